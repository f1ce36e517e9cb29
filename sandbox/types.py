"""Environments, jobs, outcomes, and the protocols of every back end. Frozen data, no I/O.

Paths are POSIX and relative to the working folder. Sizes are in bytes, times in seconds.
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
"""Settings of a box's own network, below ``/proc/sys``. The first two are the smallest, initial and largest size of a
socket buffer in bytes, which a box's memory limit may not count. The last is the number of closed connections that the
kernel remembers for a minute: 0, so that the next job of the box can use their ports."""


@dataclass(frozen=True, kw_only=True)
class Environment:
    """The content of a box before a job starts. It is built once, and nothing is installed at run time."""

    name: str
    """Name for people, e.g. ``toolz-1.2.0``. Not part of the digest."""
    requirements: tuple[str, ...] = ()
    """pip requirements, resolved to wheels when the image is built. Calls and commands can import them."""
    project: str = ""
    """Distribution of `tree`, e.g. ``fasta2a==2.1.1``, or empty. Its metadata and dependencies are installed. Its code
    is not, because it contains the answers."""
    programs: tuple[str, ...] = ()
    """Debian packages, e.g. ``openjdk-17-jdk-headless``. For bubblewrap, they must be installed on this machine."""
    tree: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """Path -> content, written anew into the working folder of every job. The tree contains the answers, so it is sent
    to the box and is never part of an image, or of the memory that jobs are forked from."""
    library: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """Trusted Python modules of ctxbench for calls. Importable and read-only."""
    path: tuple[str, ...] = ()
    """First folders on Python's import path, relative to the working folder; ``.`` is the working folder itself."""
    preload: tuple[str, ...] = ()
    """Modules imported before a job starts. Never modules of the tree, which a job may change."""
    variables: tuple[tuple[str, str], ...] = ()

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything but the name."""
        parts = [self.path, self.preload, self.variables]
        return digest_of([self.installed, file_digests(self.tree), file_digests(self.library), *parts])

    @cached_property
    def installed(self) -> str:
        """SHA-256 of everything that is installed. Environments with equal values can share the installation."""
        return digest_of([self.requirements, self.project, self.programs])


def file_digests(files: Mapping[str, bytes]) -> list[list[str]]:
    """Return the path and SHA-256 of each file, sorted by path."""
    return [[path, hashlib.sha256(files[path]).hexdigest()] for path in sorted(files)]


def digest_of(parts: Sequence[object]) -> str:
    """Return the SHA-256 of parts, which must be JSON data."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Resource limits of a box."""

    memory: int = 512 * MIB
    disk: int = 64 * MIB
    """Size of the working folder, in bytes."""
    inodes: int = 20_000
    """Number of files and folders in the working folder."""
    file_bytes: int = 64 * MIB
    """Size of one file, in bytes."""
    processes: int = 64
    open_files: int = 256
    cpus: float = 1.0
    output: int = 64 * 1024
    """Bytes of a job's stdout and stderr together. The first and the last half are kept."""
    result: int = 1 * MIB
    """Bytes of a call's return value, as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A program with its arguments, found on the box's PATH."""

    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A function of the environment's library or preloaded modules, called in a forked child.

    Its return value becomes `Outcome.result`, by way of JSON. Untrusted code that the function runs can forge it, so
    the caller must be able to check it (a nonce, a canary, expected names). A function that runs such code in another
    process returns an object whose ``signal`` is the signal that killed that process.
    """

    function: str
    """``module:function``, called with the mapping `arguments`."""
    arguments: Mapping[str, Any]
    """Plain JSON data, never in the memory that the child is forked from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """An action to run in a box."""

    action: Command | Call
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Path -> content, written over the tree before the job starts."""
    seconds: float = 20.0
    """Seconds of wall time after which the job and all its processes are killed."""


class Ended(StrEnum):
    """How a job ended."""

    EXITED = "exited"
    KILLED = "killed"
    """Killed by a signal, for example by the kernel when memory ran out."""
    TIMED_OUT = "timed-out"
    WRECKED = "wrecked"
    """The job destroyed its box three times in a row while other jobs ran well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a job. The job can forge everything in it but the times and `ended`."""

    ended: Ended
    exit_code: int | None = None
    """None unless the job exited."""
    signal: int | None = None
    """None unless the job was killed."""
    output: str = ""
    """stdout and stderr, interleaved as written."""
    truncated: bool = False
    """Whether the middle of the output was left out."""
    result: Any = None
    """Return value of a call; None if it was incomplete or over the limit."""
    out_of_memory: bool = False
    """Whether a process was killed because the box reached its own limit; False if the machine ran out of memory."""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_bytes: int = 0
    """Largest resident size of a single process, in bytes."""


class Pool(Protocol):
    """A pool of open boxes of one environment. It is thread-safe."""

    image: str
    """Digest of everything that a job finds in its box. Equal digests lead to equal outcomes."""

    def run(self, job: Job) -> Outcome:
        """Run a job in a box of its own. Wait until a box is free.

        Raises:
            SandboxLost: if the machine failed three times.
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
        """Open a pool of a prepared environment. End every box on exit.

        Args:
            width: number of jobs that may run at once.
            reuse: number of jobs after which a box is replaced; 1 runs each job in a new box.

        Raises:
            SandboxUnavailable: if no box can be started.
        """
        ...

    def converse(self, environment: Environment, *, limits: Limits) -> AbstractContextManager[Conversation]:
        """Open a box in which a program stays and answers messages.

        The environment is the result of `sandbox.persistent.living`, already prepared.

        Raises:
            SandboxUnavailable: if no box can be started, or the environment does not work in it.
            SandboxLost: if the machine failed.
        """
        ...


class Box(Protocol):
    """A running box. Its first process is `sandbox.guest`, which reads and writes frames."""

    def send(self, data: bytes, deadline: float) -> None:
        """Write all of `data` to the guest's stdin.

        Raises:
            SandboxLost: if the box has ended, or `deadline` (of `time.monotonic`) passed.
        """
        ...

    def receive(self, deadline: float) -> bytes:
        """Return the next bytes of the guest's stdout: 1 byte to 64 KiB.

        Raises:
            SandboxLost: if the box has ended, or `deadline` passed.
        """
        ...

    def end(self) -> str:
        """Kill the box with everything in it and remove every trace. Return why it had ended, or an empty text.

        Any thread may call this, more than once. It never raises.
        """
        ...


class Launcher(Protocol):
    """A factory of boxes of one image under one set of limits."""

    image: str

    def start(self) -> Box:
        """Start a box and return at once. The guest sends its greeting when it is ready.

        Raises:
            SandboxLost: if the machine cannot start a box now.
        """
        ...
