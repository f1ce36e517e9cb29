"""Runs in the box: runs the tests in the same process as the code under test, whose reports cannot be trusted.

To make false reports difficult, this module writes each phase of a test immediately, and compares pytest's reports with
its own observations. After each test, it checks whether reporting functions have changed. Canaries, tests that must
fail, are created in memory in the modules of real tests. If a canary passes, the report is false.
"""

from __future__ import annotations

import ast
import functools
import inspect
import os
import sys
import types
import unittest
from collections.abc import Callable, Generator, Iterator, Sequence
from json import JSONEncoder
from pathlib import Path
from typing import Any

import pytest
from _pytest.assertion.rewrite import rewrite_asserts
from _pytest.unittest import TestCaseFunction, UnitTestCase

from . import integrity
from .options import Warnings, settle, with_options

_MESSAGE = 300


def run(channel: int, arguments: dict[str, Any]) -> int:
    """Run the tests and write events to the file descriptor `channel`. Return pytest's exit status."""
    tests: list[str] = arguments["tests"]
    watcher = Watcher(channel, arguments)
    bases = dict.fromkeys(test.split("[", 1)[0] for test in tests)
    plugins = [EarlyCheck(watcher), Warnings(), watcher]
    settle()
    code = int(pytest.main(with_options(arguments["arguments"], bases), plugins=plugins))
    sys.stdout.flush()
    sys.stderr.flush()
    watcher.end(code)
    return code


class EarlyCheck:
    """A plugin that checks pytest for changes before any other plugin is configured."""

    __slots__ = ("_watcher",)

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self) -> None:
        """Report the changes that conftests or their imports made to pytest."""
        self._watcher.check()


class Watcher:
    """A plugin that reports the collection and the phases of the requested tests."""

    __slots__ = (
        "_canaries",
        "_channel",
        "_encode",
        "_loaded",
        "_pid",
        "_places",
        "_ran",
        "_seal",
        "_target",
        "_traced",
        "_write",
    )

    def __init__(self, channel: int, arguments: dict[str, Any]) -> None:
        self._channel, self._write, self._encode = channel, os.write, JSONEncoder().encode
        self._places = {test: place for place, test in enumerate(arguments["tests"])}
        self._canaries, self._pid, self._loaded = arguments["canaries"], os.getpid(), False
        self._target = str(Path.cwd() / arguments["target"])
        self._ran: dict[str, bool | None] = {}
        """Test -> whether its function returned; None while it runs, when its subtests are reported."""
        self._seal: integrity.Seal | None = None
        # A trace function lets a called function skip lines of its caller. A report of it cannot be withdrawn.
        self._traced: set[str] = set()
        sys.addaudithook(self._audit)

    def _say(self, *event: Any) -> None:
        if os.getpid() != self._pid:
            os._exit(70)  # a process forked by the code under test
        self._write(self._channel, (self._encode(event) + "\n").encode())

    def _audit(self, event: str, values: tuple[Any, ...]) -> None:
        if event in ("sys.settrace", "sys.setprofile") and os.getpid() == self._pid and event not in self._traced:
            self._traced.add(event)
            self._say("altered", [event])

    def check(self) -> None:
        """Report changes since the seal (a snapshot of functions and classes) was created, at most five."""
        altered = self._seal.broken() if self._seal else ["nothing was watched"]
        if altered:
            self._say("altered", altered[:5])

    def _look(self) -> None:
        if not self._loaded:
            self._loaded = any(_comes_from(module, self._target) for module in list(sys.modules.values()))

    @pytest.hookimpl
    def pytest_load_initial_conftests(self) -> None:
        """Record a snapshot of functions (`Seal`) after plugins changed pytest, before a conftest is imported."""
        self._seal = integrity.Seal()

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        """Record the snapshot (`Seal`) again after all plugins have configured pytest. Later changes are reported."""
        self._seal = integrity.Seal()

    @pytest.hookimpl(trylast=True)
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Report a file or folder that pytest could not collect."""
        if report.failed:
            self._say("broken", report.nodeid, _short(_cause(str(report.longrepr))))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep the requested tests, without duplicates, and insert the canaries."""
        selected = {item.nodeid: item for item in items if item.nodeid in self._places}
        self._say("collected", sorted(self._places[name] for name in selected))
        in_order = list(selected.values())
        for number, (place, item) in enumerate(place_canaries(self._canaries, in_order), 1):
            in_order.insert(place, item)
            self._places[item.nodeid] = -number
        items[:] = in_order
        if self._seal:
            self._seal.add_tests(in_order)
        self._look()
        self.check()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self) -> None:
        """Reset the random number generators before each test."""
        settle()

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, Any, None]:
        """Record whether a test's function returned."""
        self._ran[pyfuncitem.nodeid] = None
        outcome = yield
        self._ran[pyfuncitem.nodeid] = outcome.excinfo is None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> None:
        """Record whether a TestCase's method returns. unittest, not pytest, calls such methods."""
        if isinstance(item, TestCaseFunction) and not inspect.iscoroutinefunction(item.obj):
            item.obj = self._watched(item.nodeid, item.obj)

    def _watched(self, test: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(*values: Any, **named: Any) -> Any:
            self._ran[test] = None
            completed = False
            try:
                returned = method(*values, **named)
                completed = True
            finally:
                self._ran[test] = completed
            return returned

        return call

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
        """Report a phase's outcome, and whether it raised an exception."""
        outcome = yield
        report = outcome.get_result()
        state = "xfail" if hasattr(report, "wasxfail") else report.outcome
        ran = self._ran.get(item.nodeid, self._unseen(item)) if report.when == "call" else None
        raised = call.excinfo is not None
        message = _message(call) if raised else ""
        self._say("phase", self._places.get(item.nodeid), report.when, state, raised, ran, message)
        if report.when == "teardown":
            self.check()

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Report changes, and whether the changed file was loaded, before pytest reverts its own changes."""
        self._look()
        self.check()
        self._say("loaded", self._loaded)

    @staticmethod
    def _unseen(item: pytest.Item) -> bool | None:
        """Return what a missing record of a call means: False for a function, None for other items."""
        coroutine = isinstance(item, TestCaseFunction) and inspect.iscoroutinefunction(item.obj)
        return False if isinstance(item, pytest.Function) and not coroutine else None

    def end(self, code: int) -> None:
        """Report pytest's exit status `code`."""
        self._say("end", code)


def _comes_from(module: Any, path: str) -> bool:
    try:
        file = module.__file__
        return isinstance(file, str) and (file == path or os.path.realpath(file) == os.path.realpath(path))
    except Exception:  # noqa: BLE001 - any object may be in sys.modules
        return False


def _message(call: pytest.CallInfo[None]) -> str:
    error = call.excinfo.value if call.excinfo else None
    try:
        return _short(f"{type(error).__name__}: {error}")
    except BaseException as wrong:  # noqa: BLE001 - an exception's own code may raise anything
        return type(wrong).__name__


def _cause(text: str) -> str:
    lines = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")]
    return " ".join(lines[-3:]) or text


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MESSAGE else line[:_MESSAGE] + "…"


_SOURCE = """
def {name}({me}):
    left, right = {left}, {right}
    assert left == right
"""


def place_canaries(
    canaries: Sequence[dict[str, Any]], items: Sequence[pytest.Item]
) -> Iterator[tuple[int, pytest.Item]]:
    """Yield (index in the test order, canary). A canary is a TestCase method only if `items` contain such methods."""
    cased = any(isinstance(item, TestCaseFunction) for item in items)
    modules = [item.getparent(pytest.Module) for item in items]
    for number, description in enumerate(canaries):
        count = len(items) + number
        place = min(count, int(description["place"] * (count + 1)))
        near = modules[min(place, len(modules) - 1)] if modules else None
        if near is not None:
            yield place, (_method if description["unittest"] and cased else _function)(description, near)


def _compiled(description: dict[str, Any], me: str, module: pytest.Module) -> types.FunctionType:
    source = _SOURCE.format(
        name=description["name"], me=me, left=int(description["left"]), right=int(description["right"])
    )
    tree = ast.parse(source)
    path = str(module.path)
    rewrite_asserts(tree, source.encode(), path, module.config)
    space: dict[str, Any] = {"__name__": module.obj.__name__, "__file__": path}
    exec(compile(tree, path, "exec", dont_inherit=True), space)  # noqa: S102 - our own four lines
    function: types.FunctionType = space[description["name"]]
    return function


def _function(description: dict[str, Any], module: pytest.Module) -> pytest.Item:
    setattr(module.obj, description["name"], _compiled(description, "", module))
    item: pytest.Item = pytest.Function.from_parent(module, name=description["name"])
    return item


def _method(description: dict[str, Any], module: pytest.Module) -> pytest.Item:
    name = "".join(part.capitalize() for part in description["name"].split("_"))
    space = {description["name"]: _compiled(description, "self", module), "__module__": module.obj.__name__}
    setattr(module.obj, name, type(name, (unittest.TestCase,), space))
    case = UnitTestCase.from_parent(module, name=name)
    items = list(case.collect())
    item: pytest.Item = next(item for item in items if isinstance(item, TestCaseFunction))
    return item
