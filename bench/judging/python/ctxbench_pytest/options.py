"""Settings of all runs of pytest in the box: early imports, arguments, fixed random numbers."""

from __future__ import annotations

import contextlib
import importlib
import random
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from _pytest.config import parse_warning_filter

_LATE = """
    _elementtree _pytest._argcomplete _pytest.assertion.rewrite _pytest.doctest _pytest.faulthandler
    _pytest.helpconfig _pytest.junitxml _pytest.monkeypatch _pytest.pastebin _pytest.python _pytest.python_api
    _pytest.raises _pytest.recwarn _pytest.setuponly _pytest.setupplan _pytest.skipping _pytest.stepwise
    _pytest.subtests _pytest.terminal _pytest.threadexception _pytest.tmpdir _pytest.tracemalloc _pytest.unittest
    _pytest.unraisableexception _pytest.warnings cmd code codeop difflib faulthandler getpass pdb pwd pyexpat
    readline termios unittest unittest.case unittest.mock xml.etree.ElementTree
"""


def import_late_modules() -> None:
    """Import modules that pytest imports late, so that a job starts in 80 ms instead of 300 ms."""
    for name in _LATE.split():
        try:
            importlib.import_module(name)
        except ImportError:
            continue


OPTIONS = (
    # Ignore the developers' plugins, strict settings for new warnings, and caches.
    *("-o", "addopts=", "-o", "filterwarnings=", "-p", "no:warnings", "-p", "no:cacheprovider"),
    *("--rootdir=.", "--confcutdir=.", "-q", "--tb=short", "--color=no", "--no-header"),
)


class Warnings:
    """A plugin that filters tests' warnings. It replaces pytest's own, which runs tested code between tests."""

    @pytest.hookimpl
    def pytest_configure(self, config: pytest.Config) -> None:
        """Register the marker ``filterwarnings``, which pytest's own plugin would register."""
        config.addinivalue_line("markers", "filterwarnings(warning): filter warnings as pytest's own plugin does")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_collection(self) -> Iterator[None]:
        """Revert changes that test modules make to the warning filters on import."""
        with _filtered(()):
            yield

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Apply the warning filters in the test's markers."""
        with _filtered(text for mark in item.iter_markers("filterwarnings") for text in mark.args):
            yield


@contextlib.contextmanager
def _filtered(marks: Iterable[str]) -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.showwarning = lambda *_, **__: None
        for kind in (PendingDeprecationWarning, DeprecationWarning):
            warnings.simplefilter("always", kind)
        for text in marks:
            warnings.filterwarnings(*parse_warning_filter(text, escape=False))
        yield


def with_options(more: Iterable[str], paths: Iterable[str]) -> list[str]:
    """Return pytest's arguments: ctxbench's options, the options `more`, and the paths."""
    return [*OPTIONS, *more, *paths]


_SEED = 0
_EXPLAINING = ("shrink", "explain")
"""Hypothesis's phases after a failure. They only explain it, take minutes, and set a trace function."""
_seed = random.seed


def settle() -> None:
    """Reset the random number generators of the standard library, NumPy and Hypothesis."""
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
    """Make examples depend only on the test, not on a clock, earlier failures, or constants in the code."""
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
            # The class forbids assignments.
            type.__setattr__(hypothesis.settings, name, _Changed(setting, change))
    providers = sys.modules.get("hypothesis.internal.conjecture.providers")
    if providers:
        providers._get_local_constants = providers.Constants  # type: ignore[attr-defined]


class _Changed:
    def __init__(self, setting: Any, change: Callable[[Any], Any]) -> None:
        self._setting, self._change = setting, change

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else self._change(self._setting.__get__(owner, kind))

    def __set__(self, owner: Any, value: Any) -> None:
        self._setting.__set__(owner, value)
