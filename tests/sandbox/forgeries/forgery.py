"""`Forgery`: what a wrong function may try in order to be called right, and what the verdict on it must say."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from tests.sandbox.forgeries.shop import wrong

TAMPERED, EARLY, FAILED, BROKE = "tampered", "ended early", "did not pass", "import or collection broke"


@dataclass(frozen=True)
class Forgery:
    """One attempt. Each runs in the process that runs the tests, as any completion does."""

    name: str
    text: str
    says: tuple[str, ...] = (TAMPERED,)
    """One of these is in the verdict's reason, if it does not pass with a remark."""
    target: str = "total"
    """The function of the shop that it claims to be."""
    fools_pytest: bool = False
    """Whether pytest alone, with its exit status, believes it: the attack works as such."""


def tries(name: str, *says: str, called: str = "", imported: str = "") -> Forgery:
    """Return a forgery of `total` that acts when it is called, when its file is imported, or both."""
    return Forgery(name, wrong(called, when_imported=imported), says)


def fools(
    name: str,
    *says: str,
    called: str = "",
    imported: str = "",
    target: str = "total",
    answer: str = "return -1",
    sure: bool = True,
) -> Forgery:
    """Return a forgery of any target that pytest alone believes; in its code `TARGET` is the target's name.

    One that is not `sure` depends on time or on chance, so that pytest alone may not believe it each time, and a wrong
    function whose moment does not come fails as any wrong function does.
    """
    text = wrong(called, when_imported=imported, target=target, answer=answer)
    text = text.replace("TARGET", target.rpartition(".")[2])
    says = says or (TAMPERED,)
    return Forgery(name, text, says if sure else (*says, FAILED), target, fools_pytest=sure)


def code(*parts: str) -> str:
    """Return pieces of a program, each moved to the left margin, as one program."""
    return "\n".join(textwrap.dedent(part).strip("\n") for part in parts) + "\n"
