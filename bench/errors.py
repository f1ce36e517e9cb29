"""The expected errors, each with its cure.

    CtxbenchError          every expected error: one line, exit code 1
    ├── InputFault         something from the user is wrong: a file, a name, an option
    │   └── UnknownName    an unknown name; suggests similar ones
    └── MachineFault       the machine or a service failed; never scored, the next run tries again

Any other error that reaches the command line is a bug in ctxbench (exit code 3).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

_MOST_LISTED = 20


class CtxbenchError(Exception):
    """An expected error: what happened, where, and a cure."""

    def __init__(self, what: str, *, where: str = "", cure: str = "") -> None:
        self.what, self.where, self.cure = what, where, cure
        super().__init__(what)

    def __str__(self) -> str:
        """Return one line: ``where: what; cure``."""
        head = f"{self.where}: {self.what}" if self.where else self.what
        line = f"{head}; {self.cure}" if self.cure else head
        return " ".join(line.split())

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle with all fields, so that worker processes can raise the error."""
        return _rebuild, (type(self), self.what, self.where, self.cure)


def _rebuild(kind: type[CtxbenchError], what: str, where: str, cure: str) -> CtxbenchError:
    error = kind.__new__(kind)
    CtxbenchError.__init__(error, what, where=where, cure=cure)
    return error


class InputFault(CtxbenchError):
    """A wrong file, name or option from the user."""


class MachineFault(CtxbenchError):
    """A failure of the machine or a service. Running the command again may work."""


class UnknownName(InputFault):
    """An unknown name. The cure suggests similar names, or lists the known ones."""

    def __init__(
        self, kind: str, name: str, candidates: Iterable[str], *, command: str = "", instead: Sequence[str] = ()
    ) -> None:
        """Create the error. `instead` lists names to suggest if no name is similar."""
        names = sorted(candidates)
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.5) or instead
        listed = [*names[:_MOST_LISTED], f"… {len(names) - _MOST_LISTED} more"] if len(names) > _MOST_LISTED else names
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(listed) or 'none'}"
        cure = f"{hint} (see `{command}`)" if command else hint
        super().__init__(f"no {kind} is called {name!r}", cure=cure)
