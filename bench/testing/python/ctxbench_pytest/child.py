"""The side that runs the tests, in one process with the code under test: nothing it says can be relied upon.

What is done here makes a lie costly and visible: every phase of a test is written out at once, what pytest
reports is compared with what was seen, and the functions that see and report are checked after each test.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import sys
import types
from collections.abc import Callable, Generator
from json import JSONEncoder
from pathlib import Path
from typing import Any

import pytest
from _pytest.unittest import TestCaseFunction

from . import canary, chance, integrity, options, twin

_MESSAGE = 300
"""Characters of a failure's message that are passed on."""
_REACHES = {
    "gc": "gc",
    "ctypes": "ctypes",
    **dict.fromkeys(("sys._getframe", "sys._current_frames", "object.__setattr__", "code", "function"), "frames"),
    **dict.fromkeys(("sys.addaudithook", "compile", "exec", "signal"), "hooks"),
    **dict.fromkeys(("os.fork", "os.forkpty", "os.posix_spawn", "subprocess", "_thread"), "threads"),
}
"""The interpreter's events, whole or by their first word, that flag a completion which causes them itself."""
_TESTS = re.compile(r"(^|/)(test_[^/]*|[^/]*_test|conftest)\.py$")
_STACK = 50
"""Callers among whom a completion is looked for that opens a file of tests."""


def run(channel: int, arguments: dict[str, Any]) -> int:
    """Run the tests and write events to `channel`; return pytest's exit status.

    With ``twins`` among the arguments the function's value is taken away, in both ways.
    """
    tests: list[str] = arguments["tests"]
    watcher = Watcher(channel, arguments)
    bases = dict.fromkeys(test.split("[", 1)[0] for test in tests)
    # Nobody reads why a test fails without the value.
    more = [*arguments["arguments"], *(["--tb=no"] if arguments["twins"] else [])]
    plugins = [Opening(watcher), watcher]
    chance.settle()
    code = int(pytest.main(options.arguments(more, bases), plugins=plugins))
    sys.stdout.flush()
    sys.stderr.flush()
    watcher.end(code)
    return code


class Opening:
    """A plugin that looks once more before the plugins of others may change pytest."""

    __slots__ = ("_watcher",)

    def __init__(self, watcher: Watcher) -> None:
        """Look with `watcher`."""
        self._watcher = watcher

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self) -> None:
        """Tell what conftests, or what they import, have changed."""
        self._watcher.check()


class Watcher:
    """A plugin that writes out what happens to the tests that were asked for, and to no other."""

    __slots__ = (
        "_canaries",
        "_channel",
        "_encode",
        "_flagged",
        "_lines",
        "_loaded",
        "_passed",
        "_patience",
        "_pid",
        "_places",
        "_ran",
        "_seal",
        "_target",
        "_traced",
        "_twins",
        "_write",
    )

    def __init__(self, channel: int, arguments: dict[str, Any]) -> None:
        """Write to `channel`."""
        self._channel, self._write, self._encode = channel, os.write, JSONEncoder().encode
        self._places = {test: place for place, test in enumerate(arguments["tests"])}
        self._canaries, self._pid, self._loaded = arguments["canaries"], os.getpid(), False
        self._target = str(Path.cwd() / arguments["target"])
        self._lines = range(*arguments["lines"])
        self._twins: bool = arguments["twins"]
        self._patience: float = arguments["patience"]
        self._ran: dict[str, bool | None] = {}
        """Whether a test's function returned; None while it runs, which is when its subtests are reported."""
        self._passed: dict[str, bool] = {}
        self._seal: integrity.Seal | None = None
        # With a trace function a called function can make its caller leave out lines. It cannot be unsaid.
        self._traced: set[str] = set()
        self._flagged: set[str] = set()
        sys.addaudithook(self._audit)

    def _say(self, *event: Any) -> None:
        if os.getpid() != self._pid:
            os._exit(70)  # a copy made by the code under test, which has no business here
        self._write(self._channel, (self._encode(event) + "\n").encode())

    def _audit(self, event: str, values: tuple[Any, ...]) -> None:
        if event in ("sys.settrace", "sys.setprofile") and os.getpid() == self._pid and event not in self._traced:
            self._traced.add(event)
            self._say("altered", [event])
        word, levels = _REACHES.get(event) or _REACHES.get(event.partition(".")[0]), 1
        if event == "open" and isinstance(values[0], str) and _TESTS.search(values[0]):
            word, levels = "pytest", _STACK
        if word and word not in self._flagged and os.getpid() == self._pid and self._is_doing(_callers(levels)):
            self._flag(word)

    def _is_doing(self, callers: list[types.CodeType]) -> bool:
        """Say whether one of these is the completion's code."""
        return any(code.co_filename == self._target and code.co_firstlineno - 1 in self._lines for code in callers)

    def _flag(self, word: str) -> None:
        self._flagged.add(word)
        self._say("flag", word)

    def check(self) -> None:
        """Tell what was changed since the seal was made."""
        altered = self._seal.broken() if self._seal else ["nothing was watched"]
        if altered:
            self._say("altered", altered[:5])

    def _look(self) -> None:
        if not self._loaded:
            self._loaded = any(_comes_from(module, self._target) for module in list(sys.modules.values()))

    @pytest.hookimpl
    def pytest_load_initial_conftests(self) -> None:
        """Begin to watch: after pytest's plugins have changed pytest, before a conftest is imported."""
        self._seal = integrity.Seal()

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Know the marker of a plugin that is off; take what other plugins changed for right."""
        config.addinivalue_line("markers", options.MARKER)
        self._seal = integrity.Seal()

    @pytest.hookimpl(trylast=True)
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Tell what could not be collected."""
        if report.failed:
            self._say("broken", report.nodeid, _short(_cause(str(report.longrepr))))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep the tests that were asked for, each once, and put the canaries between them."""
        selected = {item.nodeid: item for item in items if item.nodeid in self._places}
        self._say("collected", sorted(self._places[name] for name in selected))
        in_order = list(selected.values())
        for number, (place, item) in enumerate(canary.make(self._canaries, in_order), 1):
            in_order.insert(place, item)
            self._places[item.nodeid] = -number
        items[:] = in_order
        if self._seal:
            self._seal.add_tests(in_order)
        self._look()
        self.check()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Part, if the function's value is to be taken away: now that nothing has run but imports."""
        if self._twins:
            passed = twin.part()
            self._pid = os.getpid()
            session.items[:] = [item for item in session.items if passed is None or item.nodeid in passed]
            self._say("way", twin.way)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Generator[None, Any, None]:
        """Draw the same for a test each time; without the value, wait for none for ever."""
        chance.settle()
        if self._twins:
            twin.impatient(self._patience)
        yield
        if self._twins:
            twin.impatient(0)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, Any, None]:
        """See whether a test's function returned."""
        self._ran[pyfuncitem.nodeid] = None
        outcome = yield
        self._ran[pyfuncitem.nodeid] = outcome.excinfo is None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> None:
        """See whether the method of a TestCase returns: pytest leaves calling it to unittest."""
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
        """Tell the outcome of a phase, and beside it whether something was raised."""
        outcome = yield
        report = outcome.get_result()
        state = "xfail" if hasattr(report, "wasxfail") else report.outcome
        ran = self._ran.get(item.nodeid, self._unseen(item)) if report.when == "call" else None
        raised = call.excinfo is not None
        message = _message(call) if raised else ""
        self._passed[item.nodeid] = self._passed.get(item.nodeid, True) and state == "passed"
        self._say("phase", self._places.get(item.nodeid), report.when, state, raised, ran, message)
        if report.when == "teardown":
            self.check()

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Tell what is known after the last test, before pytest takes its own changes back."""
        self._look()
        self.check()
        self._say("loaded", self._loaded)
        if twin.selfish:
            self._flag("compares-itself")
        twin.tell(test for test, passed in self._passed.items() if passed)

    @staticmethod
    def _unseen(item: pytest.Item) -> bool | None:
        """Return what it means that a test's function was not seen to be called: only functions can be."""
        coroutine = isinstance(item, TestCaseFunction) and inspect.iscoroutinefunction(item.obj)
        return False if isinstance(item, pytest.Function) and not coroutine else None

    def end(self, code: int) -> None:
        """Tell that pytest has returned."""
        self._say("end", code)


def _callers(levels: int) -> list[types.CodeType]:
    """Return the code that caused an event, then who called it; `sys._getframe` would be an event itself."""
    try:
        raise LookupError
    except LookupError as error:
        trace = error.__traceback__
        frame = trace.tb_frame if trace else None
    # This function, and the hook that asks.
    frame = frame.f_back.f_back if frame and frame.f_back else None
    codes: list[types.CodeType] = []
    while frame and len(codes) < levels:
        codes.append(frame.f_code)
        frame = frame.f_back
    return codes


def _comes_from(module: Any, path: str) -> bool:
    try:
        file = module.__file__
        return isinstance(file, str) and (file == path or os.path.realpath(file) == os.path.realpath(path))
    except Exception:  # noqa: BLE001 - whatever stands in sys.modules
        return False


def _message(call: pytest.CallInfo[None]) -> str:
    error = call.excinfo.value if call.excinfo else None
    try:
        return _short(f"{type(error).__name__}: {error}")
    except BaseException as wrong:  # noqa: BLE001 - an exception's own code may raise anything
        return type(wrong).__name__


def _cause(text: str) -> str:
    """Return the lines of a traceback that name the exception, or all of it."""
    lines = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")]
    return " ".join(lines[-3:]) or text


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MESSAGE else line[:_MESSAGE] + "…"
