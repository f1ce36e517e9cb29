"""Runs in the box: runs the suite under coverage, and compiles modules that tests import. Trusts the repository."""

from __future__ import annotations

import base64
import contextlib
import gc
import importlib
import os
import py_compile
import resource
import sys
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .options import Warnings, settle, with_options

_IMPORT = "import "
_PATIENCE = 10.0
"""Seconds that a test's thread may continue after the test."""
_IN_VAIN = 3
"""Number of long-lived threads after which no thread is joined. They serve the whole suite."""
_processor_time = time.process_time


def cover(arguments: dict[str, Any]) -> dict[str, Any]:
    """Run the suite and return which test ran which line (see `ctxbench_pytest.cover`)."""
    # The default core of newer Pythons cannot distinguish tests.
    os.environ["COVERAGE_CORE"] = "ctrace"
    measured = importlib.import_module("coverage").Coverage(
        data_file=None, config_file=False, source=["."], branch=False, messages=False
    )
    log = Log(measured)
    left_out = [f"--deselect={name}" for name in arguments["deselect"]]
    left_out += [f"--ignore={name}" for name in arguments["deselect"] if "::" not in name]
    settle()
    measured.start()
    try:
        options = with_options([*arguments["arguments"], *left_out], arguments["paths"])
        code = pytest.main(options, plugins=[Warnings(), log])
    finally:
        measured.stop()
    sets, lines, imports = _lines(measured.get_data(), Path.cwd())
    tests = [[name, outcome, round(seconds, 4)] for name, (outcome, seconds) in log.tests.items()]
    report = {"exit": int(code), "tests": tests, "broken": log.broken, "sets": sets, "lines": lines}
    return {**report, "modules": list(log.modules), "imports": imports}


class Log:
    """A plugin that sets coverage's context to the running test's index, and records outcomes."""

    def __init__(self, measured: Any) -> None:
        self._measured = measured
        self._lasting = 0
        self.tests: dict[str, tuple[str, float]] = {}
        self.broken: list[list[str]] = []
        # Module of tests -> position; "" stands for code that runs before any module is imported.
        self.modules: dict[str, int] = {"": 0}

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Any:
        """Record the lines that run while a test module is imported and collected, under the module's index."""
        module = collector.getparent(pytest.Module)
        place = self.modules.setdefault(module.nodeid, len(self.modules)) if module else 0
        self._measured.switch_context(_IMPORT + str(place))
        yield
        self._measured.switch_context("")

    @pytest.hookimpl
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record a file or folder that pytest could not collect."""
        if report.failed:
            self.broken.append([report.nodeid, str(report.longrepr)[-2000:]])

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """Record the lines that a test and its fixtures run, under the test's index, and the test's processor time."""
        place = len(self.tests)
        threads, start = set(threading.enumerate()), _used()
        settle()
        if item.nodeid in self.tests:
            yield
            return
        self.tests[item.nodeid] = ("passed", 0.0)
        self._measured.switch_context(str(place))
        yield
        self.tests[item.nodeid] = (self.tests[item.nodeid][0], _used() - start)
        self._end(threads)
        self._measured.switch_context("")

    def _end(self, before: set[threading.Thread]) -> None:
        # A full collection takes longer than most tests, so it runs only if a thread may wait for an object to go.
        started = [thread for thread in threading.enumerate() if thread not in before]
        gc.collect(2 if started else 1)
        for thread in started:
            if self._lasting < _IN_VAIN:
                # Threads that Python did not start cannot be waited for.
                with contextlib.suppress(Exception):
                    thread.join(_PATIENCE)
                    self._lasting += thread.is_alive()

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Any:
        """Record the worst outcome of a test's phases."""
        outcome = yield
        report = outcome.get_result()
        state = "xfail" if hasattr(report, "wasxfail") else str(report.outcome)
        if state != "passed" and self.tests[item.nodeid][0] != "failed":
            self.tests[item.nodeid] = (state, 0.0)


def _used() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return _processor_time() + children.ru_utime + children.ru_stime


def _lines(data: Any, root: Path) -> tuple[list[str], dict[str, dict[str, int]], dict[str, dict[str, list[int]]]]:
    """Return distinct sets of tests, path -> line -> position of its set, and path -> line -> modules that ran it."""
    sets: dict[str, int] = {}
    lines: dict[str, dict[str, int]] = {}
    imports: dict[str, dict[str, list[int]]] = {}
    for name in sorted(data.measured_files()):
        path = Path(name)
        if not path.is_relative_to(root):
            continue
        inner = path.relative_to(root).as_posix()
        by_line, importing = lines.setdefault(inner, {}), imports.setdefault(inner, {})
        for line, contexts in sorted(data.contexts_by_lineno(name).items()):
            ran = _ranges(sorted(int(context) for context in contexts if context.isdigit()))
            if ran:
                by_line[str(line)] = sets.setdefault(ran, len(sets))
            modules = {int(context.removeprefix(_IMPORT) or 0) for context in contexts if not context.isdigit()}
            if modules:
                importing[str(line)] = sorted(modules)
    return list(sets), lines, imports


def _ranges(numbers: Iterable[int]) -> str:
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)


# Bytecode of test imports, with rewritten assertions. It is compiled once for all judgements.

MAX_BYTES = 900 * 1024
"""Bytes of encoded bytecode after which no more files are returned. Other modules are compiled on import."""
_CHECKED = b"\x03\0\0\0"
"""Flags of a bytecode file that is valid for one source text, whatever its date."""


def compiled(arguments: dict[str, Any]) -> dict[str, str]:
    """Import the tests and return the resulting bytecode files (see `ctxbench_pytest.compiled`)."""
    sys.dont_write_bytecode = False
    pytest.main(with_options([*arguments["arguments"], "--collect-only"], arguments["paths"]), plugins=[Warnings()])
    files: dict[str, str] = {}
    room = MAX_BYTES
    for path, content in _files(Path.cwd()):
        if content[4:8] == _CHECKED:
            files[path] = base64.b64encode(zlib.compress(content)).decode()
            room -= len(files[path])
        if room < 0:
            break
    return files


def _files(root: Path) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of bytecode files. Those that pytest rewrote, which take longest, come first."""
    rewritten = sorted(root.rglob(f"__pycache__/*-pytest-{pytest.__version__}.pyc"))
    for path in rewritten:
        yield path.relative_to(root).as_posix(), path.read_bytes()
    sources = {(path.parent.parent, path.name.partition(".")[0]) for path in rewritten}
    for module in list(sys.modules.values()):
        path = Path(getattr(module, "__file__", None) or root)
        if path.suffix == ".py" and path.is_relative_to(root) and (path.parent, path.stem) not in sources:
            with contextlib.suppress(py_compile.PyCompileError, OSError):
                mode = py_compile.PycInvalidationMode.CHECKED_HASH
                cached = Path(py_compile.compile(str(path), doraise=True, invalidation_mode=mode) or "")
                yield cached.relative_to(root).as_posix(), cached.read_bytes()
