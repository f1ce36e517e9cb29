"""Errors of the sandbox, with their cures.

SandboxError               every expected error, as one line
├── SandboxUnavailable     boxes or an environment cannot be used: no engine, program or image, or wrong packages
└── SandboxLost            a box or its engine was lost during a job: a machine failure, never a wrong answer
    └── MachineShort       the machine ran out of memory and the kernel killed a process within its limit

`bench` turns them into its own errors; the command line prints either kind on one line.
"""

from __future__ import annotations


class SandboxError(Exception):
    """An expected error: the problem, its place and its cure."""

    def __init__(self, what: str, *, where: str = "", cure: str = "") -> None:
        self.what, self.where, self.cure = what, where, cure
        super().__init__(what)

    def __str__(self) -> str:
        """Return the error as one line: ``where: what; cure``."""
        head = f"{self.where}: {self.what}" if self.where else self.what
        return " ".join((f"{head}; {self.cure}" if self.cure else head).split())


class SandboxUnavailable(SandboxError):
    """Raised when boxes or an environment cannot be used on this machine, for example without a back end or image."""


class SandboxLost(SandboxError):
    """Raised when a job or a message got no answer because its box, program or engine failed. A retry may work."""


class MachineShort(SandboxLost):
    """Raised if the machine ran out of memory and killed a box's process within its limit. The job is not at fault."""
