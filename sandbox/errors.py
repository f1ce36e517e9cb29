"""The faults of the sandbox, each with its cure.

SandboxError               every expected fault: one line
├── SandboxUnavailable     this machine cannot run it: no engine, no program, no image
└── SandboxLost            a box, or what runs it, went away under a job: a machine fault, never a wrong answer
    └── MachineShort       the kernel killed what ran in it, within its limit, as the machine was out of memory

`bench` turns them into its own faults; the command line prints either in one line.
"""

from __future__ import annotations


class SandboxError(Exception):
    """An expected fault: the problem, its place and its cure."""

    def __init__(self, what: str, *, where: str = "", cure: str = "") -> None:
        self.what, self.where, self.cure = what, where, cure
        super().__init__(what)

    def __str__(self) -> str:
        """Return the fault as one line: ``where: what; cure``."""
        head = f"{self.where}: {self.what}" if self.where else self.what
        return " ".join((f"{head}; {self.cure}" if self.cure else head).split())


class SandboxUnavailable(SandboxError):
    """Raised when a back end, or an image it needs, cannot be had on this machine."""


class SandboxLost(SandboxError):
    """Raised when a job has no outcome because the machine failed; it may be tried again."""


class MachineShort(SandboxLost):
    """Raised when the machine was out of memory, and a box that kept to its limit had to pay: no doing of the job's."""
