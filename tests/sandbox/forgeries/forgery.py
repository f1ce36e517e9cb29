"""Forgeries: wrong functions that try to pass the tests, and the reasons that their verdicts must name.

They are data in `corpus/`. Like any completion, a forgery runs in the process that runs the tests.
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
    """Texts of which the verdict's reason must contain one, unless the forgery passes with a remark."""
    target: str
    """The function of the shop that the forgery replaces."""
    fools_pytest: bool
    """Whether the forgery always makes pytest exit with 0, so that the attack itself works."""
    slow: bool
    """Whether the forgery never returns."""


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((_CORPUS / f"{name}.toml").read_text(encoding="utf-8"))


_PIECES: dict[str, str] = _read("pieces")


def _program(text: str) -> str:
    return re.sub(r"^@([A-Z_]+)@\n", lambda found: _PIECES[found[1]], text, flags=re.MULTILINE)


def _forgery(entry: dict[str, Any]) -> Forgery:
    """Return a forgery with a wrong answer that attacks when it is called, when its file is imported, or both.

    `TARGET` in its code stands for the target's name.
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
