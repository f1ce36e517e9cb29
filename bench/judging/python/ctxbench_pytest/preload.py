"""Imports what pytest imports late, so that a box has it before a job comes: 300 ms become 80."""

from __future__ import annotations

import importlib

_LATE = """
    _elementtree _pytest._argcomplete _pytest.assertion.rewrite _pytest.doctest _pytest.faulthandler
    _pytest.helpconfig _pytest.junitxml _pytest.monkeypatch _pytest.pastebin _pytest.python _pytest.python_api
    _pytest.raises _pytest.recwarn _pytest.setuponly _pytest.setupplan _pytest.skipping _pytest.stepwise
    _pytest.subtests _pytest.terminal _pytest.threadexception _pytest.tmpdir _pytest.tracemalloc _pytest.unittest
    _pytest.unraisableexception _pytest.warnings cmd code codeop difflib faulthandler getpass pdb pwd pyexpat
    readline termios unittest unittest.case unittest.mock xml.etree.ElementTree
"""


def late() -> None:
    """Import them; versions of pytest differ in which they have."""
    for name in _LATE.split():
        try:
            importlib.import_module(name)
        except ImportError:
            continue
