"""Make a sample set of files in another benchmark's shape, with its repositories where they are given.

What each file said, which records could not be used and why, and what was found in the repositories goes into
the set's manifest: nothing is left out in silence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ctxbench.bench import formats
from ctxbench.bench import samples as sets
from ctxbench.bench.errors import InputFault
from ctxbench.bench.formats.left_out import LeftOut, Report, listed
from ctxbench.bench.formats.repositories import Attached, attach, folder_of, missing, stored
from ctxbench.bench.formats.rows import open_tables
from ctxbench.bench.formats.types import Format, Options, Remarking, Table, Task, Unusable
from ctxbench.bench.home import Home
from ctxbench.bench.samples import SampleSet

HYGIENE_OFF = "hygiene off: copies of answers that stand elsewhere in the repositories are left in strategies' sight"
"""The remark of a set whose strategies may retrieve the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """The tasks of some files, and the account of reading them."""

    tasks: tuple[Task, ...]
    """Ids unique, at least one."""
    unusable: Mapping[str, int]
    """Reason -> number of records."""
    sources: tuple[Mapping[str, Any], ...]
    """For each file ``source``, ``digest`` and ``rows``."""


def import_set(  # noqa: PLR0913 - what the command line lets a user choose
    format_name: str,
    refs: Sequence[str],
    home: Home,
    name: str,
    *,
    repos: Path | None = None,
    options: Options | None = None,
    hygiene: bool = True,
    force: bool = False,
    report: Report = lambda _: None,
) -> SampleSet:
    """Read files into a set.

    With `repos`, the repositories' source files are copied into the home folder and prompts are rebuilt from them;
    a task whose answer is not where its record says is left out and counted. Without it prompts stay as stored.

    Args:
        format_name: one of `bench.formats.NAMES`.
        refs: paths and data sets, see `bench.formats.rows.open_tables`.
        home: where the set is kept.
        name: the set's name.
        repos: a folder that holds each repository in a folder of its name, or is the only one.
        options: what the caller chose.
        hygiene: False leaves copies of answers in strategies' sight, which the set's remarks say.
        force: replace another set of that name.
        report: told what is left out, a line at a time.

    Raises:
        InputFault: at the first fault of a file, with line and field, or if nothing can be used.
    """
    sets.folder(home, name)
    if repos is not None and format_name in formats.STORED_ONLY:
        raise InputFault(f"{format_name} brings no repositories", where=str(repos), cure="leave --repos out")
    if not hygiene and repos is None:
        raise InputFault("hygiene is about the files of repositories", cure="give them with --repos")
    form = formats.named(format_name)
    read = read_tasks(format_name, refs, options=options, report=report)
    attached = _attached(form, read.tasks, home, repos, hygiene, report)
    unusable = Counter(read.unusable)
    for repository in attached.values():
        unusable.update(repository.entry["drops"])
    tasks = [task for repository in attached.values() for task in repository.tasks]
    if not tasks:
        what = f"no task matches the repositories ({listed(unusable)})"
        raise InputFault(what, where=str(repos), cure="check that they are the right versions")
    manifest = {
        "ctxbench": version("ctxbench"),
        "kind": "+".join(sorted({task.sample.kind.value for task in tasks})),
        "imported_from": format_name,
        "prompts": "rebuilt" if repos is not None else "stored",
        "sources": [dict(source) for source in read.sources],
        "unusable": dict(sorted(unusable.items())),
        "remarks": _remarks(form, tasks, hygiene, report),
        "repositories": {repo: repository.entry for repo, repository in attached.items()},
        "totals": {"kept": len(tasks), "dropped": unusable.total()},
    }
    samples, references = [task.sample for task in tasks], [task.reference for task in tasks]
    return sets.save(home, name, samples, references, manifest, force=force)


def read_tasks(
    format_name: str,
    refs: Sequence[str],
    *,
    options: Options | None = None,
    report: Report = lambda _: None,
) -> Read:
    """Read and check the tasks of files, without their repositories; see `import_set` for the arguments.

    Raises:
        InputFault: at the first malformed record, at a double id, at a file in another language than
            `options` allow, or if no record can be used.
    """
    options = options or Options()
    counted = [_Counted(table) for table in open_tables(refs, revision=options.revision, split=options.split)]
    tasks: list[Task] = []
    first_places: dict[str, str] = {}
    left_out = LeftOut(report)
    for item in formats.named(format_name).read([counted_table.table() for counted_table in counted], options):
        where = item.where or refs[0]
        task_id = item.id if isinstance(item, Unusable) else item.sample.id
        if task_id in first_places:
            what = f"the id {task_id!r} stands at {first_places[task_id]} too"
            raise InputFault(what, where=where, cure="give every record its own id, or each file a set of its own")
        first_places[task_id] = where
        if isinstance(item, Unusable):
            left_out.add(item)
            continue
        if options.language is not None and item.sample.language is not options.language:
            what = f"{task_id!r} is a {item.sample.language} sample, not {options.language}"
            raise InputFault(what, where=where, cure="leave --language out, or give only that language's files")
        tasks.append(item)
    left_out.end()
    if not tasks:
        what = "no task in the files" + (f" ({listed(left_out.counts)})" if left_out.counts else "")
        raise InputFault(what, where=refs[0], cure=f"give files of the shape {format_name}")
    return Read(
        tasks=tuple(tasks), unusable=left_out.counts, sources=tuple(counted_table.source() for counted_table in counted)
    )


def _attached(
    form: Format, tasks: Sequence[Task], home: Home, repos: Path | None, hygiene: bool, report: Report
) -> dict[str, Attached]:
    grouped: dict[str, list[Task]] = {}
    for task in tasks:
        mine = grouped.setdefault(task.sample.repo, [])
        if mine and mine[0].sample.language is not task.sample.language:
            what = f"the repository {task.sample.repo!r} has tasks in several languages"
            raise InputFault(what, where=task.where, cure="import each language's file under a name of its own")
        mine.append(task)
    if repos is None:
        return {repo: stored(mine) for repo, mine in sorted(grouped.items())}
    places = {repo: folder_of(repos, repo, alone=len(grouped) == 1) for repo in sorted(grouped)}
    if not any(places.values()):
        first = next(iter(places))
        raise InputFault(f"holds no folder {first!r}", where=str(repos), cure=f"put the repository at {repos / first}")
    attached: dict[str, Attached] = {}
    for repo, place in places.items():
        mine = grouped[repo]
        attached[repo] = attach(form, mine, place, home, hygiene=hygiene, report=report) if place else missing(mine)
        drops = attached[repo].entry["drops"]
        if drops:
            report(f"{repo}: {sum(drops.values())} of {len(mine)} tasks left out ({listed(drops)})")
    return attached


def _remarks(form: Format, tasks: Sequence[Task], hygiene: bool, report: Report) -> list[str]:
    remarks = [*(form.remarks(tasks) if isinstance(form, Remarking) else ()), *([] if hygiene else [HYGIENE_OFF])]
    for remark in remarks:
        report(f"note: {remark}")
    return remarks


class _Counted:
    """A table that counts the rows that are read."""

    def __init__(self, table: Table) -> None:
        self._table, self._rows = table, 0

    def table(self) -> Table:
        return Table(name=self._table.name, source=self._table.source, digest=self._table.digest, rows=self)

    def __iter__(self) -> Any:
        self._rows = 0
        for row in self._table.rows:
            self._rows += 1
            yield row

    def source(self) -> dict[str, Any]:
        return {"source": self._table.source, "digest": self._table.digest, "rows": self._rows}
