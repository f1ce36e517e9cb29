"""Environments, jobs, outcomes, and the protocols that every back end has. Frozen data, no I/O.

Paths are POSIX and relative to the working folder; sizes are bytes; times are seconds.
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
    from ctxbench.sandbox.living import Conversation

Report = Callable[[str], None]
"""Takes one line about what is being built."""
MIB = 1 << 20
NETWORK = {
    "net/ipv4/tcp_rmem": "4096 131072 262144",
    "net/ipv4/tcp_wmem": "4096 16384 262144",
    "net/ipv4/tcp_max_tw_buckets": "0",
}
"""Settings of a box's own network, below ``/proc/sys``: the least, first and largest buffers of a socket, in bytes,
which are memory of the machine's that a box's limit may not count; and how many closed connections are kept for a
minute, in which the next job of the box would find their ports taken."""


@dataclass(frozen=True, kw_only=True)
class Environment:
    """The content of a box before a job comes: built once; nothing is installed at run time."""

    name: str
    """For people, e.g. ``toolz-1.2.0``; no part of the digest."""
    requirements: tuple[str, ...] = ()
    """pip requirement strings, importable in calls and commands; resolved to wheels when the image is made."""
    project: str = ""
    """The distribution that `tree` is, e.g. ``fasta2a==2.1.1``: what it requires and its metadata are
    installed, its code is not, since that holds the answers. Empty for none."""
    programs: tuple[str, ...] = ()
    """Debian packages, e.g. ``openjdk-17-jdk-headless``; bubblewrap needs them on this machine."""
    tree: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """Path -> content; written fresh into the working folder of every job. Sent to the box, never part of
    an image, and never in the memory of what a job is forked from: it holds the answers."""
    library: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """Trusted Python modules of ours that calls may name; importable, read-only."""
    path: tuple[str, ...] = ()
    """Folders of the working folder that stand first on Python's import path; ``.`` is the folder itself."""
    preload: tuple[str, ...] = ()
    """Modules imported before a job comes; never the tree's own, which a job may change."""
    variables: tuple[tuple[str, str], ...] = ()
    """Environment variables."""

    @cached_property
    def digest(self) -> str:
        """SHA-256 over everything but the name."""
        parts = [self.path, self.preload, self.variables]
        return digest_of([self.installed, file_digests(self.tree), file_digests(self.library), *parts])

    @cached_property
    def installed(self) -> str:
        """SHA-256 over everything that is installed: environments with the same one can share that work."""
        return digest_of([self.requirements, self.project, self.programs])


def file_digests(files: Mapping[str, bytes]) -> list[list[str]]:
    """Return path and SHA-256 of each file, in order of path."""
    return [[path, hashlib.sha256(files[path]).hexdigest()] for path in sorted(files)]


def digest_of(parts: Sequence[object]) -> str:
    """Return the SHA-256 of parts that JSON can hold."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The resources that a box may use, whatever runs in it."""

    memory: int = 512 * MIB
    disk: int = 64 * MIB
    """Of the working folder."""
    inodes: int = 20_000
    """Files and folders in it."""
    file_bytes: int = 64 * MIB
    """Of one file."""
    processes: int = 64
    """Threads count."""
    open_files: int = 256
    cpus: float = 1.0
    output: int = 64 * 1024
    """Of a job's stdout and stderr together; the first and the last half are kept."""
    result: int = 1 * MIB
    """Of what a call returns, as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A program with its arguments, found on the box's PATH."""

    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A function of the environment's library or preloaded modules, called in a forked child.

    What it returns comes back as JSON in `Outcome.result`. Code that the function itself runs can forge
    that: who calls must be able to tell (a nonce, a canary, expected names). A function that runs such code in a
    process of its own returns an object that tells under ``signal`` what that died of.
    """

    function: str
    """``module:function``; called with one argument, the mapping below."""
    arguments: Mapping[str, Any]
    """Plain JSON data; never in the image that the child is forked from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One thing to run in a box."""

    action: Command | Call
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Path -> content, written over the tree's before it starts."""
    seconds: float = 20.0
    """Wall time after which it is killed with everything that it started."""


class Ended(StrEnum):
    """The way in which a job ended."""

    EXITED = "exited"
    KILLED = "killed"
    """By a signal, such as the kernel's when memory ran out."""
    TIMED_OUT = "timed-out"
    WRECKED = "wrecked"
    """It took its box down, three boxes in a row, while other jobs ran well: its own doing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a job, which may forge everything in it but the times and `ended`."""

    ended: Ended
    exit_code: int | None = None
    """None unless it exited."""
    signal: int | None = None
    """None unless it was killed."""
    output: str = ""
    """stdout and stderr in the order in which they came."""
    truncated: bool = False
    """Whether output was left out of its middle."""
    result: Any = None
    """What a call returned; None if nothing whole and in the limits came."""
    out_of_memory: bool = False
    """Whether a process was ended since the box's own limit of memory was hit; never since the machine had no more."""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_bytes: int = 0
    """Largest resident size of one of its processes."""


class Pool(Protocol):
    """Open boxes of one environment; safe to use from many threads."""

    image: str
    """Digest of everything a job finds in its box; equal digests give equal outcomes."""

    def run(self, job: Job) -> Outcome:
        """Run a job in a box that no other job is in; wait for one if need be.

        Raises:
            SandboxLost: if the machine failed, three times.
        """
        ...


class Sandbox(Protocol):
    """A back end."""

    name: str

    def prepare(self, environment: Environment, report: Report) -> str:
        """Make the missing parts of an environment; return the image's digest. The only step with a network.

        Raises:
            SandboxUnavailable: if it cannot be made here.
        """
        ...

    def open(
        self, environment: Environment, *, limits: Limits, width: int = 1, reuse: int = 1
    ) -> AbstractContextManager[Pool]:
        """Open a pool of a prepared environment; end every box on leaving.

        Args:
            environment: what stands in each box.
            limits: what each may use.
            width: how many jobs may run at once.
            reuse: jobs after which a box is thrown away; 1 gives each job a fresh one.

        Raises:
            SandboxUnavailable: if no box can be started.
        """
        ...

    def converse(self, environment: Environment, *, limits: Limits) -> AbstractContextManager[Conversation]:
        """Have one box, of a prepared environment of `sandbox.living.living`, in which a program lives and answers.

        Raises:
            SandboxUnavailable: if no box can be started, or the environment does not work in it.
            SandboxLost: if the machine failed.
        """
        ...


class Box(Protocol):
    """One running box; its first process is `sandbox.guest`, which reads and writes frames."""

    def send(self, data: bytes, deadline: float) -> None:
        """Write all of `data` to the guest's stdin.

        Raises:
            SandboxLost: if the box has ended, or `deadline` (of `time.monotonic`) passed.
        """
        ...

    def receive(self, deadline: float) -> bytes:
        """Return the next bytes of the guest's stdout, at least one, at most 64 KiB.

        Raises:
            SandboxLost: if the box has ended, or `deadline` passed.
        """
        ...

    def end(self) -> str:
        """Kill the box with everything in it, leave nothing of it behind, say why it had ended if it had.

        May be called again, from any thread; never raises.
        """
        ...


class Launcher(Protocol):
    """Starts boxes of one image under one set of limits."""

    image: str

    def start(self) -> Box:
        """Start a box and return at once; the guest greets when it is ready.

        Raises:
            SandboxLost: if the machine cannot start one now.
        """
        ...
