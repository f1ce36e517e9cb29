"""Finds and removes what killed ctxbench processes left behind.

A container's label and a control group's name identify their process (`sandbox.ownership`). A scratch folder is locked
while its process lives. Other half-written files (``.*.part``, ``.*.old``) count as abandoned after an hour if no
running ctxbench process is older than they are. The hour is for other machines that may share the home. Containers of
image builds count as abandoned after an hour.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ctxbench.sandbox.bubblewrap import cgroups
from ctxbench.sandbox.docker.engine import connected, engine_faults
from ctxbench.sandbox.errors import SandboxError, SandboxLost
from ctxbench.sandbox.ownership import LOCKED, abandoned, alive

_SCRATCH = ("ctxbench-cells-*", "ctxbench-box-*")
_HALF = (".part", ".old")
_AGE = 3600.0
_OWNER, _IMAGE = "ctxbench.owner", "ctxbench.image"


@dataclass(frozen=True, slots=True)
class Leftover:
    """A container, control group, file or folder that a dead process left behind."""

    what: str
    """Description, e.g. ``container 0123456789ab``."""
    remove: Callable[[], None]
    """Function that removes or restores the leftover. It may raise OSError or SandboxError."""


def find(home: Path) -> Iterator[Leftover]:
    """Yield the leftovers on this machine and in a home folder."""
    yield from containers()
    for group in cgroups.abandoned():
        yield Leftover(f"control group {group}", partial(cgroups.remove_abandoned, group))
    yield from _scratch(Path(tempfile.gettempdir()))
    yield from half_written(home)


def containers() -> Iterator[Leftover]:
    """Yield boxes of dead processes and containers of killed image builds. Without an engine, yield nothing."""
    with contextlib.suppress(SandboxError), connected() as client:
        with engine_faults(SandboxLost, "docker"):
            boxes = client.api.containers(all=True, filters={"label": _OWNER})
            steps = client.api.containers(all=True, filters={"label": _IMAGE, "status": "exited"})
            steps += client.api.containers(all=True, filters={"label": _IMAGE, "status": "created"})
        for box in boxes:
            if not alive(box["Labels"][_OWNER]):
                yield Leftover(f"container {box['Id'][:12]}", _removal(client, box["Id"]))
        for step in steps:
            ours = _OWNER not in step["Labels"] and step["Command"].startswith("/bin/sh -c")
            if ours and time.time() - step["Created"] > _AGE:
                yield Leftover(f"half-built image's container {step['Id'][:12]}", _removal(client, step["Id"]))


def _removal(client: Any, container: str) -> Callable[[], None]:
    def remove() -> None:
        with engine_faults(SandboxLost, f"container {container[:12]}"):
            client.api.remove_container(container, force=True, v=True)

    return remove


def _scratch(folder: Path) -> Iterator[Leftover]:
    for pattern in _SCRATCH:
        for path in sorted(folder.glob(pattern)):
            if _mine(path) and abandoned(path):
                yield Leftover(f"folder {path}", _folder_removal(path))


def half_written(home: Path) -> Iterator[Leftover]:
    """Yield files and folders in a home that a dead process was writing or replacing."""
    starts = list(_writers())
    for path in _hidden(home):
        if path.suffix not in _HALF or not _mine(path):
            continue
        modified = path.lstat().st_mtime
        locked = path.name.startswith(LOCKED)
        if locked and abandoned(path):
            yield Leftover(f"folder {path}", _folder_removal(path))
        elif not locked and time.time() - modified > _AGE and all(start > modified for start in starts):
            place = path.with_name(path.name[1:].rsplit(".", 2)[0])
            if path.suffix == ".old" and not place.exists():
                # The old copy was moved aside for a new one that was never finished, so it is the only complete copy.
                yield Leftover(f"{place}, restored from {path.name}", _renaming(path, place))
            else:
                yield Leftover(f"{'folder' if path.is_dir() else 'file'} {path}", _folder_removal(path))


def _hidden(home: Path) -> Iterator[Path]:
    waiting = [home]
    while waiting:
        folder = waiting.pop()
        try:
            entries = sorted(folder.iterdir())
        except OSError:
            continue
        for path in entries:
            if path.is_symlink():
                continue
            if path.name.startswith("."):
                yield path
            elif path.is_dir() and not (len(path.relative_to(home).parts) > 2 and path.is_relative_to(home / "repos")):
                waiting.append(path)


def _mine(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return path.lstat().st_uid == os.geteuid()
    return False


def _folder_removal(path: Path) -> Callable[[], None]:
    def remove() -> None:
        # Use programs: paths may be too deep for Python, read-only, or not valid text.
        for argv in (["chmod", "-R", "u+rwX", "--", str(path)], ["rm", "-rf", "--", str(path)]):
            process = subprocess.run(argv, capture_output=True, text=True, check=False)
        if process.returncode:
            raise SandboxLost(process.stderr.strip().splitlines()[-1], where=str(path), cure="remove it by hand")

    return remove


def _renaming(path: Path, place: Path) -> Callable[[], None]:
    def rename() -> None:
        path.rename(place)

    return rename


def _writers() -> Iterator[float]:
    """Yield the start times of other processes that may write to a home, in seconds since 1970."""
    ticks = os.sysconf("SC_CLK_TCK")
    with contextlib.suppress(OSError):
        stat = Path("/proc/stat").read_text(encoding="ascii")
        boot = float(next(line.split()[1] for line in stat.splitlines() if line.startswith("btime")))
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid() and _may_write(entry):
                with contextlib.suppress(OSError):
                    began = (
                        (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
                    )
                    yield boot + int(began) / ticks


def _may_write(process: Path) -> bool:
    with contextlib.suppress(OSError):
        words = (process / "cmdline").read_bytes().split(b"\0")
        if any(word.endswith((b"/ctxbench", b"ctxbench.harness.cli.main")) or word == b"ctxbench" for word in words):
            return True
        return b"tree_sitter" in (process / "maps").read_bytes()
    return False
