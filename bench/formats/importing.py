"""Makes a sample set of files in another benchmark's shape, with its repositories where they are given."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench import samples as sets
from bench import snapshot
from bench.errors import InputFault
from bench.files import explained, read_jsonl, write_atomic
from bench.formats import projbench
from bench.formats.projbench import Task
from bench.home import Home
from bench.samples import SampleSet
from bench.snapshot import Snapshot
from bench.types import Kind, Language


def import_projbench(
    paths: Sequence[Path],
    home: Home,
    name: str,
    *,
    repos: Path | None = None,
    language: Language | None = None,
    force: bool = False,
    report: Callable[[str], None] = lambda _: None,
) -> SampleSet:
    """Read ProjBench files into a set.

    With `repos` (one folder a repository), the repositories' source files are copied into the home
    folder and prompts are rebuilt from them; a task whose answer does not stand at its cursor there is
    dropped and counted. Without it the stored prompts are all there is.

    Raises:
        InputFault: at the first fault of a file, with line and field.
    """
    sets.folder(home, name)
    tasks = _read(paths, language)
    if not tasks:
        raise InputFault("no task in the files", where=str(paths[0]), cure="give ProjBench JSON Lines files")
    kept: list[Task] = []
    repositories: dict[str, dict[str, Any]] = {}
    for key in sorted({(task.sample.repo, task.sample.language) for task in tasks}):
        if key[0] in repositories:
            what = f"the repository {key[0]!r} has tasks in several languages"
            raise InputFault(what, where=str(paths[0]), cure="import each language's file under a name of its own")
        mine = [task for task in tasks if (task.sample.repo, task.sample.language) == key]
        usable, repositories[key[0]] = _with_repository(mine, key[0], key[1], home, repos)
        kept += usable
        dropped = len(mine) - len(usable)
        if dropped:
            report(f"{key[0]}: {dropped} of {len(mine)} tasks dropped, their text is not what the repository holds")
    manifest = {
        "ctxbench": version("ctxbench"),
        "kind": Kind.LINE.value,
        "imported_from": "projbench",
        "prompts": "rebuilt" if repos is not None else "stored",
        "repositories": repositories,
        "totals": {"kept": len(kept), "dropped": len(tasks) - len(kept)},
    }
    if not kept:
        raise InputFault(
            "no task matches the repositories", where=str(repos), cure="check that they are the right versions"
        )
    return sets.save(
        home, name, [task.sample for task in kept], [task.reference for task in kept], manifest, force=force
    )


def _read(paths: Sequence[Path], language: Language | None) -> list[Task]:
    found: list[Task] = []
    seen: dict[str, str] = {}
    for path in paths:
        for number, record in read_jsonl(path):
            where = f"{path}:{number}"
            task = projbench.task(record, where=where)
            sample = task.sample
            if sample.id in seen:
                what = f"field metadata.task_id: {sample.id!r} stands at {seen[sample.id]} too"
                raise InputFault(what, where=where, cure="give every task its own id")
            if language is not None and sample.language is not language:
                what = f"field metadata.fpath_tuple: a {sample.language} file, not {language}"
                raise InputFault(what, where=where, cure="leave --language out, or give only that language's files")
            seen[sample.id] = where
            found.append(task)
    return found


def _with_repository(
    tasks: list[Task], repo: str, language: Language, home: Home, repos: Path | None
) -> tuple[list[Task], dict[str, Any]]:
    if repos is None:
        return tasks, {
            "language": language.value,
            "checkout": None,
            "tasks": len(tasks),
            "kept": len(tasks),
            "drops": {},
        }
    root = repos / repo
    if not root.is_dir():
        raise InputFault(f"holds no folder {repo!r}", where=str(repos), cure=f"put the repository at {root}")
    read = snapshot.load(repo, root.resolve(), language)
    kept: list[Task] = []
    drops: Counter[str] = Counter()
    for task in tasks:
        text = read.texts.get(task.sample.path)
        rebuilt = projbench.in_repository(task, text) if text is not None else None
        if rebuilt is None:
            drops["file_missing" if text is None else "source_mismatch"] += 1
        else:
            kept.append(rebuilt)
    entry = {
        "language": language.value,
        "checkout": _copied(read, home),
        "cure": "import the set again with --repos",
        "snapshot": read.digest,
        "files": len(read.texts),
        "left_out": dict(read.dropped),
        "tasks": len(tasks),
        "kept": len(kept),
        "drops": dict(sorted(drops.items())),
    }
    return kept, entry


def _copied(read: Snapshot, home: Home) -> str:
    """Copy a repository's source files into the home folder; return the folder below ``repos``."""
    key = f"{read.name}/imported-{read.digest[:16]}"
    place = home.repos / key
    if place.is_dir():
        return key
    with explained(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=".imported.", suffix=".part", dir=place.parent))
        try:
            for path, text in read.texts.items():
                write_atomic(beside / path, text)
            beside.chmod(0o755)
            beside.rename(place)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    return key
