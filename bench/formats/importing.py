"""Imports a sample set from files in a benchmark's format, with or without repositories."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ctxbench.bench import formats
from ctxbench.bench import samples as sets
from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import explained
from ctxbench.bench.formats import Options, SampleFiles, Table, Task, Unusable
from ctxbench.bench.formats.hygiene import cleaned
from ctxbench.bench.formats.rows import open_tables
from ctxbench.bench.home import Home
from ctxbench.bench.repositories import snapshot
from ctxbench.bench.repositories.snapshot import Snapshot
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import VERSION_MARK

NO_REPOSITORIES = "imported without repositories: strategies had nothing to retrieve from"
PACKAGES = "strategies also search the packages installed in the repositories' folders"
HYGIENE_OFF = "hygiene off: strategies can see copies of the answers elsewhere in the repositories"
Report = Callable[[str], None]
_MOST_LINES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """The tasks read from files, and the number of unusable records by reason."""

    tasks: tuple[Task, ...]
    """The tasks, at least one, with unique ids."""
    unusable: Mapping[str, int]
    sources: tuple[Mapping[str, Any], ...]
    """Each file's ``source`` (its path), ``digest`` and ``rows`` (number of records)."""


def import_set(  # noqa: PLR0913 - what the command line lets a user choose
    format_name: str,
    refs: Sequence[str],
    home: Home,
    name: str,
    *,
    repos: Path | None = None,
    options: Options | None = None,
    hygiene: bool = True,
    packages: bool = False,
    force: bool = False,
    report: Report = lambda _: None,
) -> SampleSet:
    """Import files as a sample set.

    Args:
        format_name: one of `bench.formats.sample_names`.
        refs: paths (see `bench.formats.rows.open_tables`).
        repos: folder of the repositories, or the only repository. Prompts are rebuilt from these files, which are
            copied into the home folder. A task is dropped if its answer is not in them as recorded.
        hygiene: hide copies of answers.
        packages: let strategies search packages that are installed in the repositories' folders.
        force: replace a set with the same name.
        report: receives the set's remarks, and lines about dropped tasks: the first few of each reason, and counts.

    Raises:
        InputFault: if an option or a file is invalid, no record can be used, or another set has this name.
    """
    sets.folder(home, name)
    form = formats.samples(format_name)
    _check_repositories(format_name, repos, hygiene=hygiene, packages=packages)
    read = read_tasks(format_name, refs, options=options, report=report)
    attached = _attached(form, read.tasks, home, repos, report, hygiene=hygiene, packages=packages)
    unusable = Counter(read.unusable)
    for repository in attached.values():
        unusable.update(repository.entry["drops"])
    tasks = [task for repository in attached.values() for task in repository.tasks]
    if not tasks:
        what = f"no task matches the repositories ({listed(unusable)})"
        raise InputFault(what, where=str(repos), cure="check the versions of the repositories")
    manifest = {
        "ctxbench": version("ctxbench"),
        "kind": "+".join(sorted({task.sample.kind.value for task in tasks})),
        "imported_from": format_name,
        "prompts": "rebuilt" if repos is not None else "stored",
        "sources": [dict(source) for source in read.sources],
        "unusable": dict(sorted(unusable.items())),
        "remarks": _remarks(form, tasks, report, hygiene=hygiene, packages=packages, repos=repos),
        "repositories": {repo: repository.entry for repo, repository in attached.items()},
        "totals": {"kept": len(tasks), "dropped": unusable.total()},
    }
    samples, references = [task.sample for task in tasks], [task.reference for task in tasks]
    return sets.save(home, name, samples, references, manifest, force=force)


def _check_repositories(format_name: str, repos: Path | None, *, hygiene: bool, packages: bool) -> None:
    form = formats.samples(format_name)
    if repos is not None and form.in_repository is None and form.in_snapshot is None:
        raise InputFault(
            f"{format_name} samples cannot be built from repositories", where=str(repos), cure="leave --repos out"
        )
    if (packages or not hygiene) and repos is None:
        option = "--packages" if packages else "--hygiene off"
        raise InputFault(f"{option} needs repositories", cure="add --repos FOLDER")


def read_tasks(
    format_name: str,
    refs: Sequence[str],
    *,
    options: Options | None = None,
    report: Report = lambda _: None,
) -> Read:
    """Read and check the tasks of files, without repositories. `import_set` explains the arguments.

    Raises:
        InputFault: if a record is malformed, an id is repeated, a task is in another language than `options` allows,
            or no record can be used.
    """
    options = options or Options()
    counted = [_Counted(table) for table in open_tables(refs)]
    tasks: list[Task] = []
    first_places: dict[str, str] = {}
    left_out = DroppedRecords(report)
    for item in formats.samples(format_name).read([counted_table.table() for counted_table in counted], options):
        where = item.where or refs[0]
        task_id = item.id if isinstance(item, Unusable) else item.sample.id
        if task_id in first_places:
            what = f"the id {task_id!r} is also at {first_places[task_id]}"
            raise InputFault(what, where=where, cure="give every record its own id, or import each file as its own set")
        first_places[task_id] = where
        if isinstance(item, Unusable):
            left_out.add(item)
            continue
        if options.language is not None and item.sample.language is not options.language:
            what = f"{task_id!r} is a {item.sample.language} sample, not {options.language}"
            raise InputFault(what, where=where, cure="leave --language out, or give only that language's files")
        tasks.append(item)
    left_out.report_rest()
    if not tasks:
        what = "no task in the files" + (f" ({listed(left_out.counts)})" if left_out.counts else "")
        raise InputFault(what, where=refs[0], cure=left_out.cure or f"give files of the format {format_name}")
    return Read(
        tasks=tuple(tasks), unusable=left_out.counts, sources=tuple(counted_table.source() for counted_table in counted)
    )


def _attached(
    form: SampleFiles, tasks: Sequence[Task], home: Home, repos: Path | None, report: Report, **choices: bool
) -> dict[str, RepositoryTasks]:
    grouped: dict[str, list[Task]] = {}
    for task in tasks:
        mine = grouped.setdefault(task.sample.repo, [])
        if mine and mine[0].sample.language is not task.sample.language:
            what = f"the repository {task.sample.repo!r} has tasks in several languages"
            raise InputFault(what, where=task.where, cure="import each language's file as its own set")
        mine.append(task)
    if repos is None:
        return {repo: without_repository(mine) for repo, mine in sorted(grouped.items())}
    places = {repo: folder_of(repos, repo, alone=len(grouped) == 1) for repo in sorted(grouped)}
    if not any(places.values()):
        first = next(iter(places))
        raise InputFault(
            f"the folder contains no folder {first!r}", where=str(repos), cure=f"put the repository at {repos / first}"
        )
    attached: dict[str, RepositoryTasks] = {}
    for repo, place in places.items():
        mine = grouped[repo]
        attached[repo] = attach(form, mine, place, home, report=report, **choices) if place else all_missing(mine)
        drops = attached[repo].entry["drops"]
        if drops:
            report(f"{repo}: {sum(drops.values())} of {len(mine)} tasks left out ({listed(drops)})")
    return attached


def _remarks(
    form: SampleFiles, tasks: Sequence[Task], report: Report, *, hygiene: bool, packages: bool, repos: Path | None
) -> list[str]:
    bare = repos is None and not any(task.sample.stored for task in tasks)
    of_choices = ((NO_REPOSITORIES, bare), (HYGIENE_OFF, not hygiene), (PACKAGES, packages))
    remarks = [*form.remarks(tasks), *(remark for remark, holds in of_choices if holds)]
    for remark in remarks:
        report(f"note: {remark}")
    return remarks


class _Counted:
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


@dataclass(frozen=True, slots=True)
class RepositoryTasks:
    """One repository's usable tasks, and its entry in the sample set's manifest."""

    tasks: tuple[Task, ...]
    entry: dict[str, Any]


def without_repository(tasks: Sequence[Task]) -> RepositoryTasks:
    """Return tasks with their stored prompts, and a manifest entry without a repository."""
    return RepositoryTasks(tuple(tasks), _account(tasks, tasks, Counter()) | {"checkout": None})


def all_missing(tasks: Sequence[Task]) -> RepositoryTasks:
    """Return no tasks, and a missing repository's manifest entry, which counts all its tasks as dropped."""
    return RepositoryTasks((), _account(tasks, (), Counter(no_repository=len(tasks))) | {"checkout": None})


def attach(
    form: SampleFiles, tasks: Sequence[Task], root: Path, home: Home, *, report: Report, hygiene: bool, packages: bool
) -> RepositoryTasks:
    """Rebuild the tasks of one repository from its files, and copy the files into the home folder.

    Args:
        root: repository folder. Nothing in it is changed or run.

    Raises:
        InputFault: if the folder has no source file in the tasks' language.
    """
    first = tasks[0].sample
    read = snapshot.load(first.repo, root.resolve(), first.language, hygiene=hygiene, packages=packages)
    rebuilt: list[Task] = []
    left_out = DroppedRecords(report)
    for task in tasks:
        rebuilt_task = _placed(form, task, read.texts)
        if isinstance(rebuilt_task, Unusable):
            left_out.add(rebuilt_task)
        else:
            rebuilt.append(rebuilt_task)
    left_out.report_rest()
    clean = cleaned(rebuilt, read.texts, hide=hygiene)
    entry = _account(tasks, rebuilt, left_out.counts) | {
        "checkout": _copied(read, home),
        "cure": "import the set again with --repos",
        "snapshot": read.digest,
        "files": len(read.texts),
        "left_out": dict(read.dropped),
        **clean.counts,
    }
    unusual = {} if hygiene else {"hygiene": False}
    return RepositoryTasks(clean.tasks, entry | unusual | ({"packages": True} if packages else {}))


def _placed(form: SampleFiles, task: Task, texts: Mapping[str, str]) -> Task | Unusable:
    if form.in_snapshot is not None:
        return form.in_snapshot(task, texts)
    path, text = task.sample.path, texts.get(task.sample.path)
    if text is None:
        return Unusable(id=task.sample.id, reason="file_missing", where=task.where, detail=path)
    rebuilt_task = form.in_repository(task, text) if form.in_repository is not None else None
    if rebuilt_task is None:
        detail = f"{path} does not contain prompt and answer at the recorded place"
        return Unusable(id=task.sample.id, reason="source_mismatch", where=task.where, detail=detail)
    return rebuilt_task


def folder_of(repos: Path, repo: str, *, alone: bool) -> Path | None:
    """Return a repository's folder; None if missing.

    Args:
        repos: folder with one folder per repository. A folder's name may omit the owner of ``owner---name``, or have
            ``-`` in place of the ``@`` of ``name@revision``.
        alone: whether this is the only repository. `repos` may then be the repository itself.

    Raises:
        InputFault: if `repos` is not a folder.
    """
    if not repos.is_dir():
        raise InputFault(
            "the path is not a folder", where=str(repos), cure="choose the folder that contains the repositories"
        )
    names = (repo, repo.rpartition("---")[2], repo.replace(VERSION_MARK, "-"))
    folder = next((repos / name for name in names if (repos / name).is_dir()), None)
    if folder is not None or not alone:
        return folder
    return repos if any(child.is_file() for child in repos.iterdir()) or repos.name == repo else None


def _account(tasks: Sequence[Task], rebuilt: Sequence[Task], drops: Counter[str]) -> dict[str, Any]:
    return {
        "language": tasks[0].sample.language,
        "tasks": len(tasks),
        "kept": len(rebuilt),
        "drops": dict(sorted(drops.items())),
    }


def _copied(read: Snapshot, home: Home) -> str:
    key = f"{read.name}/imported-{read.digest[:16]}"
    place = home.repos / key
    if place.is_dir():
        return key
    with explained(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=".imported.", suffix=".part", dir=place.parent))
        try:
            # Without fsync: a copy that a crash leaves incomplete fails the snapshot's digest.
            for path, text in read.texts.items():
                (beside / path).parent.mkdir(parents=True, exist_ok=True)
                (beside / path).write_bytes(text.encode("utf-8"))
            beside.chmod(0o755)
            beside.rename(place)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    return key


class DroppedRecords:
    """A counter of dropped records, which reports the first few of each reason."""

    def __init__(self, report: Report) -> None:
        self.counts: Counter[str] = Counter()
        self.cure = ""
        self._report = report

    def add(self, item: Unusable) -> None:
        """Count a record, and report it if it is among the first few of its reason."""
        self.counts[item.reason] += 1
        self.cure = self.cure or item.cure
        if self.counts[item.reason] <= _MOST_LINES:
            detail = "; ".join(filter(None, (item.detail, item.cure)))
            self._report(f"{item.where}: {item.id} left out: {item.reason}{f' ({detail})' if detail else ''}")

    def report_rest(self) -> None:
        """Report, for each reason, how many records were dropped without a report of their own."""
        for reason, count in sorted(self.counts.items()):
            if count > _MOST_LINES:
                self._report(f"… and {count - _MOST_LINES} more left out: {reason}")


def listed(counts: Mapping[str, int]) -> str:
    """Return counts by reason as one line of text, sorted by reason."""
    return ", ".join(f"{reason} {count}" for reason, count in sorted(counts.items()))
