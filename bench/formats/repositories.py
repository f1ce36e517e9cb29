"""Put imported tasks back into their repositories: prompts made anew, answers checked, leaks closed, files copied."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import explained
from ctxbench.bench.formats.hygiene import cleaned
from ctxbench.bench.formats.left_out import LeftOut, Report
from ctxbench.bench.formats.types import Format, Locating, Task, Unusable
from ctxbench.bench.home import Home
from ctxbench.bench.repositories import snapshot
from ctxbench.bench.repositories.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Attached:
    """The tasks of one repository that can be used, and the set's account of it."""

    tasks: tuple[Task, ...]
    entry: dict[str, Any]


def stored(tasks: Sequence[Task]) -> Attached:
    """Return tasks whose repository is not there: their stored prompts are all there is."""
    return Attached(tuple(tasks), _account(tasks, tasks, Counter()) | {"checkout": None})


def missing(tasks: Sequence[Task]) -> Attached:
    """Return that none of the tasks can be used, for want of their repository."""
    return Attached((), _account(tasks, (), Counter(no_repository=len(tasks))) | {"checkout": None})


def attach(form: Format, tasks: Sequence[Task], root: Path, home: Home, *, hygiene: bool, report: Report) -> Attached:
    """Make the tasks of one repository anew from its files, and copy those into the home folder.

    Args:
        form: the shape that the tasks came in.
        tasks: of one repository and language.
        root: its folder; nothing in it is changed or run.
        home: where its source files are copied.
        hygiene: whether copies of answers are kept from strategies.
        report: told of each task that is left out.

    Raises:
        InputFault: if the folder holds no source file of the tasks' language.
    """
    first = tasks[0].sample
    read = snapshot.load(first.repo, root.resolve(), first.language, hygiene=hygiene)
    rebuilt: list[Task] = []
    left_out = LeftOut(report)
    for task in tasks:
        rebuilt_task = _placed(form, task, read.texts)
        if isinstance(rebuilt_task, Unusable):
            left_out.add(rebuilt_task)
        else:
            rebuilt.append(rebuilt_task)
    left_out.end()
    clean = cleaned(rebuilt, read.texts, hide=hygiene)
    entry = _account(tasks, rebuilt, left_out.counts) | {
        "checkout": _copied(read, home),
        "cure": "import the set again with --repos",
        "snapshot": read.digest,
        "files": len(read.texts),
        "left_out": dict(read.dropped),
        **clean.counts,
    }
    return Attached(clean.tasks, entry if hygiene else entry | {"hygiene": False})


def _placed(form: Format, task: Task, texts: Mapping[str, str]) -> Task | Unusable:
    if isinstance(form, Locating):
        return form.in_snapshot(task, texts)
    path, text = task.sample.path, texts.get(task.sample.path)
    if text is None:
        return Unusable(id=task.sample.id, reason="file_missing", where=task.where, detail=path)
    rebuilt_task = form.in_repository(task, text)
    if rebuilt_task is None:
        detail = f"the answer does not stand in {path} where the record says"
        return Unusable(id=task.sample.id, reason="source_mismatch", where=task.where, detail=detail)
    return rebuilt_task


def folder_of(repos: Path, repo: str, *, alone: bool) -> Path | None:
    """Return the folder of a repository, None if there is none.

    Args:
        repos: holds each repository in a folder of its name (of ``owner---name`` also ``name``).
        repo: its name.
        alone: whether it is the only one that is wanted: then `repos` may be the repository itself.

    Raises:
        InputFault: if `repos` is no folder.
    """
    if not repos.is_dir():
        raise InputFault("is no folder", where=str(repos), cure="give the folder that holds the repositories")
    folder = next((place for place in (repos / repo, repos / repo.rpartition("---")[2]) if place.is_dir()), None)
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
    """Copy a repository's source files into the home folder; return the folder below ``repos``."""
    key = f"{read.name}/imported-{read.digest[:16]}"
    place = home.repos / key
    if place.is_dir():
        return key
    with explained(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=".imported.", suffix=".part", dir=place.parent))
        try:
            # Not one by one to disk: what a crash leaves half would not have the snapshot's digest.
            for path, text in read.texts.items():
                (beside / path).parent.mkdir(parents=True, exist_ok=True)
                (beside / path).write_bytes(text.encode("utf-8"))
            beside.chmod(0o755)
            beside.rename(place)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    return key
