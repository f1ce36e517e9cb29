"""Forgeries: what a wrong function may try in order to be called right, and what the verdict on it must say.

They are data, in `corpus/`. Each runs in the process that runs the tests, as any completion does.
"""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.sandbox.forgeries.shop import wrong

GROUPS = (
    *("ending", "patching", "files", "selective", "expected"),
    *("imports", "memory", "values", "informed", "runner"),
)
_CORPUS = Path(__file__).parent / "corpus"


@dataclass(frozen=True)
class Forgery:
    name: str
    text: str
    says: tuple[str, ...]
    """One of these is in the verdict's reason, if it does not pass with a remark."""
    target: str
    """The function of the shop that it claims to be."""
    fools_pytest: bool
    """Whether pytest alone, with its exit status, believes it each time: the attack works as such."""
    slow: bool
    """Whether it never returns."""


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((_CORPUS / f"{name}.toml").read_text(encoding="utf-8"))


_PIECES: dict[str, str] = _read("pieces")


def _program(text: str) -> str:
    return re.sub(r"^@([A-Z_]+)@\n", lambda found: _PIECES[found[1]], text, flags=re.MULTILINE)


def _forgery(entry: dict[str, Any]) -> Forgery:
    """Return a forgery that acts when it is called, when its file is imported, or both; its answer is wrong.

    In its code `TARGET` is the target's name.
    """
    target = entry.get("target", "total")
    text = entry.get("text") or wrong(
        _program(entry.get("called", "")),
        when_imported=_program(entry.get("imported", "")),
        target=target,
        answer=entry.get("answer", "return -1"),
    ).replace("TARGET", target.rpartition(".")[2])
    says = tuple(entry.get("says", ("tampered",)))
    return Forgery(entry["name"], text, says, target, entry.get("fools_pytest", False), entry.get("slow", False))


_ALL = [_forgery(entry) for group in GROUPS for entry in _read(group)["forgery"]]
FORGERIES = tuple(forgery for forgery in _ALL if not forgery.slow)
SLOW = tuple(forgery for forgery in _ALL if forgery.slow)
