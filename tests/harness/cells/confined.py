"""What confines cells on this machine, and how a test does without some of it."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from harness.cells import open_cells

_WITHOUT_NAMESPACES = "import harness.cells.namespaces as n\nn.granted = lambda attempt: False\n"
_WITHOUT_LANDLOCK = (
    "import sandbox.guest.landlock as l\ndef refuse(*_): raise OSError\nl.restrict = l.ruleset = refuse\n"
)


@functools.cache
def granted() -> bool:
    """Return whether cells have namespaces here."""
    with open_cells([], 1) as cells:
        return "namespaces" in cells.describe()["isolation"]


def switch_off(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, namespaces: bool = False, landlock: bool = False
) -> None:
    """Make the kernel of servers that are started from here seem to lack something; `folder` is for this alone."""
    text = (_WITHOUT_NAMESPACES if namespaces else "") + (_WITHOUT_LANDLOCK if landlock else "")
    (folder / "sitecustomize.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder))
