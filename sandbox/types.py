"""Environments, jobs, outcomes, and the protocols of back ends. No I/O.

Paths are POSIX, and relative to the working folder unless stated otherwise. Sizes are in bytes, times in seconds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ctxbench.sandbox.persistent import Conversation

Report = Callable[[str], None]
MIB = 1 << 20
NETWORK = {
    "net/ipv4/tcp_rmem": "4096 131072 262144",
    "net/ipv4/tcp_wmem": "4096 16384 262144",
    "net/ipv4/tcp_max_tw_buckets": "0",
}
"""Network settings of a box, below ``/proc/sys``: socket buffers (smallest, initial, largest), no closed sockets."""


@dataclass(frozen=True, kw_only=True)
class Environment:
    """The content of a box before a job starts. It is built once; jobs install nothing."""

    name: str
    """Display name, e.g. ``toolz-1.2.0``. Not part of the digest."""
    requirements: tuple[str, ...] = ()
    """pip requirements, resolved to wheels when the image is built."""
    project: str = ""
    """Distribution under test, e.g. ``fasta2a==2.1.1``, or empty. Its code contains answers and is not installed."""
    programs: tuple[str, ...] = ()
    """Debian packages, e.g. ``openjdk-17-jdk-headless``. With bubblewrap, this machine must have them."""
    tree: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """Contents of every job's working folder, by path. These files contain the answers, so images lack them."""
    library: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """Contents of ctxbench's trusted modules, by path in a library folder. Jobs can import but not change them."""
    path: tuple[str, ...] = ()
    """First entries of Python's import path, relative to the working folder."""
    preload: tuple[str, ...] = ()
    """Modules to import before a job starts; never modules of `tree`, which a job may change."""
    variables: tuple[tuple[str, str], ...] = ()

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all fields except `name`."""
        parts = [self.path, self.preload, self.variables]
        return digest_of([self.installed, file_digests(self.tree), file_digests(self.library), *parts])

    @cached_property
    def installed(self) -> str:
        """SHA-256 of requirements, project and programs. Environments with equal digests share one installation."""
        return digest_of([self.requirements, self.project, self.programs])


def file_digests(files: Mapping[str, bytes]) -> list[list[str]]:
    """Return the path and SHA-256 of each file, sorted by path."""
    return [[path, hashlib.sha256(files[path]).hexdigest()] for path in sorted(files)]


def digest_of(parts: Sequence[object]) -> str:
    """Return the hexadecimal SHA-256 of the JSON text of `parts`."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Resource limits of a box. Sizes are in bytes."""

    memory: int = 512 * MIB
    disk: int = 64 * MIB
    """Maximum bytes of a job's working folder, home and temporary files together."""
    inodes: int = 20_000
    """Maximum number of files and folders in a job's working folder, home and temporary folder together."""
    file_bytes: int = 64 * MIB
    """Maximum size in bytes of one file."""
    processes: int = 64
    open_files: int = 256
    cpus: float = 1.0
    output: int = 64 * 1024
    """Maximum bytes of a job's stdout and stderr together. The middle of a longer output is dropped."""
    result: int = 1 * MIB
    """Maximum size in bytes of a call's return value as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A program with its arguments, found on the box's PATH."""

    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A function of the environment's library or preloaded modules, called in a forked child.

    Untrusted code that the function runs can forge the return value (`Outcome.result`), so the caller must check it
    (nonce, canary, expected names). If a signal kills another process in which that code runs, the function must
    return a dictionary with the signal's number as ``signal``.
    """

    function: str
    """The function as ``module:function``. It is called with `arguments`."""
    arguments: Mapping[str, Any]
    """Arguments as JSON data. The process that the child is forked from does not contain them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A command or call to run in a box."""

    action: Command | Call
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Contents of the files to write over the tree before the job starts, by path."""
    seconds: float = 20.0
    """Wall-clock limit in seconds, after which the job and all its processes are killed."""


class Ended(StrEnum):
    """The way a job ended."""

    EXITED = "exited"
    KILLED = "killed"
    """A signal killed the job, for example because memory ran out."""
    TIMED_OUT = "timed-out"
    WRECKED = "wrecked"
    """The job destroyed three boxes in a row, although a harmless job ran well after each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A job's outcome. The job can forge the exit code, the signal, the output and the result."""

    ended: Ended
    exit_code: int | None = None
    """The job's exit code; None unless the job exited."""
    signal: int | None = None
    """Number of the signal that killed the job; None unless a signal did."""
    output: str = ""
    """stdout and stderr, interleaved as written."""
    truncated: bool = False
    """Whether the middle of the output was dropped."""
    result: Any = None
    """A call's return value; None for a command, or if the value is incomplete, not JSON, or over the limit."""
    out_of_memory: bool = False
    """Whether a process was killed over the box's memory, sockets or locks. False if the machine ran out of memory."""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_bytes: int = 0
    """Peak memory in bytes (resident size) of the largest process."""


class Pool(Protocol):
    """The open boxes of one environment. Thread-safe."""

    image: str
    """Digest of everything a job can see in its box: boxes with equal digests have equal contents."""

    def run(self, job: Job) -> Outcome:
        """Run a job alone in a box, as soon as one is free.

        Raises:
            SandboxLost: if three boxes were lost because the machine failed.
            SandboxError: if the job cannot be started.
        """
        ...


class Sandbox(Protocol):
    """A back end that runs jobs in boxes."""

    name: str

    def prepare(self, environment: Environment, report: Report) -> str:
        """Build the missing parts of an environment and return the image's digest. Only this step uses a network.

        Raises:
            SandboxUnavailable: if the environment cannot be built here.
        """
        ...

    def open(
        self, environment: Environment, *, limits: Limits, width: int = 1, reuse: int = 1
    ) -> AbstractContextManager[Pool]:
        """Open a pool for a prepared environment, and end all its boxes on exit.

        Args:
            width: number of concurrent jobs.
            reuse: number of jobs after which a box is replaced; 1 for a new box per job.

        Raises:
            SandboxUnavailable: if no box can be started, or the environment does not work in it.
        """
        ...

    def converse(self, environment: Environment, *, limits: Limits) -> AbstractContextManager[Conversation]:
        """Open a persistent box for a prepared environment from `sandbox.persistent.with_resident`.

        Raises:
            SandboxUnavailable: if no box can be started, or the environment does not work in it.
            SandboxLost: if the machine failed.
        """
        ...


class Box(Protocol):
    """A running box. Its first process, the guest, reads and writes frames (see `sandbox.guest.frames`)."""

    def send(self, data: bytes, deadline: float) -> None:
        """Write all of `data` to the guest's stdin.

        Raises:
            SandboxLost: if the box has ended, or `deadline` (of `time.monotonic`) has passed.
        """
        ...

    def receive(self, deadline: float) -> bytes:
        """Return the next 1 to 65,536 bytes of the guest's stdout.

        Raises:
            SandboxLost: if the box has ended, or `deadline` has passed.
        """
        ...

    def end(self) -> str:
        """Kill and remove the box. Return why it had already ended or cannot be removed; otherwise an empty text.

        Any thread may call this, repeatedly. It never raises.
        """
        ...


class Launcher(Protocol):
    """A launcher of boxes of one image under one set of limits."""

    image: str

    def start(self) -> Box:
        """Start a box without waiting for its guest, which sends a greeting when ready.

        Raises:
            SandboxLost: if the machine cannot start a box now.
        """
        ...
