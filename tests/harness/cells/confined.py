"""What confines cells on this machine, and how a test does without some of it."""

import functools
from pathlib import Path

import pytest

from ctxbench.harness.cells import open_cells

_WITHOUT_NAMESPACES = "import ctxbench.harness.cells.kernel as n\nn.granted = lambda attempt: False\n"
_WITHOUT_LANDLOCK = (
    "import ctxbench.sandbox.guest.landlock as l\ndef refuse(*_): raise OSError\nl.restrict = l.ruleset = refuse\n"
)


@functools.cache
def granted() -> bool:
    """Return whether cells have namespaces here."""
    with open_cells([], 1) as cells:
        return "namespaces" in cells.describe()["isolation"]


def switch_off(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, namespaces: bool = False, landlock: bool = False
) -> None:
    """Make the kernel seem to lack something to servers that are started from here; `folder` is for this alone."""
    (folder / "sitecustomize.py").write_text(text_without(namespaces=namespaces, landlock=landlock))
    monkeypatch.syspath_prepend(str(folder))


def text_without(*, namespaces: bool = False, landlock: bool = False) -> str:
    """Return the text of a ``sitecustomize.py`` that makes the kernel seem to lack something."""
    return (_WITHOUT_NAMESPACES if namespaces else "") + (_WITHOUT_LANDLOCK if landlock else "")
