"""What every run of pytest has alike: what is imported before it, its arguments, and chance taken out of its tests."""

from __future__ import annotations

import contextlib
import importlib
import random
import sys
from collections.abc import Callable, Iterable
from typing import Any

_LATE = """
    _elementtree _pytest._argcomplete _pytest.assertion.rewrite _pytest.doctest _pytest.faulthandler
    _pytest.helpconfig _pytest.junitxml _pytest.monkeypatch _pytest.pastebin _pytest.python _pytest.python_api
    _pytest.raises _pytest.recwarn _pytest.setuponly _pytest.setupplan _pytest.skipping _pytest.stepwise
    _pytest.subtests _pytest.terminal _pytest.threadexception _pytest.tmpdir _pytest.tracemalloc _pytest.unittest
    _pytest.unraisableexception _pytest.warnings cmd code codeop difflib faulthandler getpass pdb pwd pyexpat
    readline termios unittest unittest.case unittest.mock xml.etree.ElementTree
"""


def late() -> None:
    """Import what pytest imports late, so that a box has it before a job comes: 300 ms become 80.

    Versions of pytest differ in which they have.
    """
    for name in _LATE.split():
        try:
            importlib.import_module(name)
        except ImportError:
            continue


OPTIONS = (
    # Plugins that the repository's developers have and we have not, strictness about new warnings, caches.
    *("-o", "addopts=", "-o", "filterwarnings=", "-p", "no:warnings", "-p", "no:cacheprovider"),
    *("--rootdir=.", "--confcutdir=.", "-q", "--tb=short", "--color=no", "--no-header"),
)
MARKER = "filterwarnings(warning): the marker of the plugin `warnings`, which is off"


def with_options(more: Iterable[str], paths: Iterable[str]) -> list[str]:
    """Return pytest's arguments: ours, the suite's own, then what to run."""
    return [*OPTIONS, *more, *paths]


_SEED = 0
_EXPLAINING = ("shrink", "explain")
"""Phases of Hypothesis that come behind a failure, to say it better: minutes, and a trace function."""
_seed = random.seed


def settle() -> None:
    """Let what tests draw numbers from begin anew: the standard library's, NumPy's and Hypothesis's generators."""
    _seed(_SEED)
    numpy, hypothesis = sys.modules.get("numpy.random"), sys.modules.get("hypothesis.core")
    with contextlib.suppress(Exception):
        if numpy:
            numpy.seed(_SEED)
    with contextlib.suppress(Exception):
        if hypothesis:
            hypothesis.global_force_seed = _SEED  # type: ignore[attr-defined]
            _settle_hypothesis(sys.modules["hypothesis"])


def _settle_hypothesis(hypothesis: Any) -> None:
    """Let examples depend on nothing but the test: on no clock, on none that failed before, on no constant of the code.

    It would draw constants that it reads in the code under test, which is another one for each completion.
    """
    checks = tuple(hypothesis.HealthCheck)
    changes: dict[str, Callable[[Any], Any]] = {
        "deadline": lambda _: None,
        "database": lambda _: None,
        "suppress_health_check": lambda _: checks,
        "phases": lambda phases: tuple(phase for phase in phases if phase.name not in _EXPLAINING),
    }
    for name, change in changes.items():
        setting = vars(hypothesis.settings)[name]
        if not isinstance(setting, _Changed):
            # Its class lets nobody assign to it.
            type.__setattr__(hypothesis.settings, name, _Changed(setting, change))
    providers = sys.modules.get("hypothesis.internal.conjecture.providers")
    if providers:
        providers._get_local_constants = providers.Constants  # type: ignore[attr-defined]


class _Changed:
    """A property whose value is changed where it is read, whoever has set it."""

    def __init__(self, setting: Any, change: Callable[[Any], Any]) -> None:
        self._setting, self._change = setting, change

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else self._change(self._setting.__get__(owner, kind))

    def __set__(self, owner: Any, value: Any) -> None:
        self._setting.__set__(owner, value)
