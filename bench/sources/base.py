"""The shared parts of all sources: their records, the destination of a fetch, and its faults.

A source names one copy of a version by its own hash. `Unreachable` means that this copy cannot be had
from here now, so the next source is tried; a wrong hash is an `InputFault` and ends the fetch.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.home import Home


class Unreachable(MachineFault):
    """Raised when a source cannot be reached, or no longer offers this version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitSource:
    """One commit of a git repository."""

    url: str
    commit: str
    """40 hexadecimal digits; git itself checks that the content has this hash."""

    def __str__(self) -> str:
        """Return the spelling used in messages and records."""
        return f"git+{self.url}@{self.commit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PypiSource:
    """The sdist of one release on the package index that pip is configured for."""

    name: str
    version: str
    sha256: str

    def __str__(self) -> str:
        """Return the spelling used in messages and records."""
        return f"pypi:{self.name}=={self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DebianSource:
    """The upstream tarball of a Debian source package; Debian's own patches are not applied."""

    package: str
    version: str
    """The upstream version."""
    sha256: str

    def __str__(self) -> str:
        """Return the spelling used in messages and records."""
        return f"debian:{self.package}={self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSource:
    """A folder, or an archive, on this machine."""

    path: Path
    sha256: str = ""
    """Of the archive, or of the folder's content as `bench.sources.local.digest` counts it; empty: not pinned."""

    def __str__(self) -> str:
        """Return the spelling used in messages and records."""
        return f"local:{self.path}"


Source = GitSource | PypiSource | DebianSource | LocalSource
Report = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """The folders that one fetch writes to, and the receiver of its reports."""

    tree: Path
    """An empty folder that becomes the repository's root."""
    scratch: Path
    """An empty folder for downloads; removed afterwards."""
    home: Home
    report: Report


def check_sha256(name: str, expected: str, actual: str, *, where: str) -> None:
    """Compare two hashes.

    Raises:
        InputFault: if they differ; it names both.
    """
    if expected != actual:
        raise InputFault(
            f"the sha256 of {name} is {actual}, but the manifest expects {expected}",
            where=where,
            cure="nothing was kept; if the manifest is wrong, mend its sha256, otherwise do not trust this source",
        )


def run_program(
    arguments: Sequence[str], *, folder: Path, environment: Mapping[str, str], seconds: float, source: object
) -> str:
    """Run a program without a terminal and return its standard output.

    Raises:
        MachineFault: if the disk is full.
        Unreachable: if it is not installed, fails or takes longer than `seconds`; then it and its children are killed.
    """
    try:
        process = subprocess.Popen(
            arguments,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except FileNotFoundError:
        raise Unreachable(f"{arguments[0]} is not installed", where=str(source)) from None
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Unreachable(f"{arguments[0]} took longer than {seconds:.0f} s", where=str(source)) from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode:
        if "No space left on device" in err:
            raise MachineFault("the disk is full", where=str(folder), cure="free some space, then try again")
        lines = [line.strip() for line in err.splitlines() if line.strip()]
        raise Unreachable(" ".join(lines[-3:]) or f"{arguments[0]} failed", where=str(source))
    return out
