"""The isolation that the kernel grants to cells on this machine, and ways to test without parts of it."""

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
    """Return whether cells can use namespaces on this machine."""
    with open_cells([], 1) as cells:
        return "namespaces" in cells.describe()["isolation"]


def switch_off(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, namespaces: bool = False, landlock: bool = False
) -> None:
    """Make servers that the test starts run without namespaces or Landlock, through a file in `folder`."""
    (folder / "sitecustomize.py").write_text(text_without(namespaces=namespaces, landlock=landlock))
    monkeypatch.syspath_prepend(str(folder))


def text_without(*, namespaces: bool = False, landlock: bool = False) -> str:
    """Return a ``sitecustomize.py`` that makes the kernel seem to lack namespaces or Landlock."""
    return (_WITHOUT_NAMESPACES if namespaces else "") + (_WITHOUT_LANDLOCK if landlock else "")
