"""Which lines of a Python file read a clock or wait by one, by syntax, and so which tests do, by coverage. Pure.

The names of clocks alone would not do: most tests that measure do so in a helper or a fixture. So a test reads a
clock if it ran a line of the repository that does, wherever that line stands.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping

from ctxbench.bench.testing.python.reports import Covered

_OF_MODULES = {
    "asyncio": "sleep timeout timeout_at wait_for",
    "datetime": "date.today datetime.now datetime.today datetime.utcnow",
    "signal": "alarm setitimer",
    "threading": "Timer",
    "time": """
        monotonic monotonic_ns perf_counter perf_counter_ns process_time process_time_ns sleep thread_time
        thread_time_ns time time_ns
    """,
    "timeit": "Timer default_timer repeat timeit",
}
_CLOCKS = frozenset(f"{module}.{name}" for module, names in _OF_MODULES.items() for name in names.split())
_MARKS = frozenset(("pytest.mark.timeout", "pytest.mark.benchmark"))
_PROPERTY_TEST = "hypothesis.given"
"""Hypothesis fails a test whose examples take longer than its deadline, unless that is taken away."""
_FIXTURES = frozenset(("benchmark", "benchmark_weave"))
_WAITS = frozenset(("wait", "join", "acquire"))
"""Methods of threads, processes and locks whose only argument is how many seconds to wait."""
_TIMERS = frozenset(("call_at", "call_later"))
"""Methods of an event loop, which are told when to do something."""
_LOOP = re.compile(r"loop(\(\))?$", re.IGNORECASE)
"""How an event loop is spelled that has a clock of its own: ``self._loop``, ``asyncio.get_running_loop()``."""
_WORTH_PARSING = re.compile(rb"time|benchmark|hypothesis|asyncio|signal|wait|join|acquire|loop")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def clock_tests(covered: Covered, files: Mapping[str, bytes]) -> frozenset[str]:
    """Return the ids of the tests that ran a line which reads a clock.

    Args:
        covered: the suite under coverage.
        files: path -> content of the repository.
    """
    positions: set[int] = set()
    for path, ran in covered.lines.items():
        lines = clock_lines(files[path]) if path in files and _WORTH_PARSING.search(files[path]) else ()
        positions.update(position for line in lines for position in ran.get(line, ()))
    return frozenset(covered.tests[position].id for position in positions)


def clock_lines(source: bytes) -> frozenset[int]:
    """Return the lines of a file, 0-based, that read a clock, wait by one, or belong to a test that is timed.

    A file that is no Python has none.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError):
            return frozenset()
    names = _Names(tree)
    lines: set[int] = set()
    for node in ast.walk(tree):
        if names.is_clock(node):
            lines.update(_lines(node))
        if isinstance(node, Function | ast.ClassDef) and _is_timed(node, names):
            lines.update(_lines(node))
        if isinstance(node, ast.Assign) and node in tree.body and _is_mark(node, names):
            return frozenset(range(len(source.splitlines())))
    return frozenset(lines)


class _Names:
    """What the names of one file stand for, wherever in it they are bound."""

    def __init__(self, tree: ast.Module) -> None:
        self._dotted: dict[str, str] = {}
        self._aliases: set[str] = set()
        """Names, also of attributes, that a clock was bound to."""
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    name = alias.name if alias.asname else alias.name.partition(".")[0]
                    self._dotted[alias.asname or name] = name
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    if alias.name == "*":
                        star = f"{node.module}."
                        clocks = (clock for clock in _CLOCKS if clock.startswith(star))
                        self._dotted.update({clock.removeprefix(star): clock for clock in clocks})
                    self._dotted[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        for node in ast.walk(tree):
            self._aliases.update(_bound(node, self))

    def dotted(self, node: ast.AST) -> str:
        """Return what a name or an attribute stands for, as its full dotted name; nothing where that is unknown."""
        if isinstance(node, ast.Call):
            return self.dotted(node.func)
        if isinstance(node, ast.Attribute):
            inner = self.dotted(node.value)
            return f"{inner}.{node.attr}" if inner else ""
        return self._dotted.get(node.id, "") if isinstance(node, ast.Name) else ""

    def is_clock(self, node: ast.AST) -> bool:
        """Say whether an expression names a clock, or calls something that waits for a given time."""
        if isinstance(node, ast.Call):
            return _waits(node) or _is_of_loop(node)
        if isinstance(node, ast.Name):
            return node.id in self._aliases or self.dotted(node) in _CLOCKS
        return isinstance(node, ast.Attribute) and (node.attr in self._aliases or self.dotted(node) in _CLOCKS)


def _bound(node: ast.AST, names: _Names) -> Iterator[str]:
    """Yield the names that a statement or a default binds to a clock itself, as in ``timer = time.perf_counter``."""
    if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and _is_reference(node.value, names):
        yield from _targets(node)
    if isinstance(node, ast.arguments):
        positional = [*node.posonlyargs, *node.args]
        paired = [
            *zip(positional[::-1], node.defaults[::-1], strict=False),
            *zip(node.kwonlyargs, node.kw_defaults, strict=True),
        ]
        yield from (argument.arg for argument, default in paired if default and _is_reference(default, names))


def _is_reference(node: ast.AST, names: _Names) -> bool:
    return isinstance(node, ast.Name | ast.Attribute) and names.dotted(node) in _CLOCKS


def _targets(node: ast.Assign | ast.AnnAssign) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return {
        target.id if isinstance(target, ast.Name) else target.attr
        for target in targets
        if isinstance(target, ast.Name | ast.Attribute)
    }


def _is_mark(node: ast.Assign, names: _Names) -> bool:
    """Say whether an assignment marks the tests of its module as timed."""
    marks = {names.dotted(inner) for inner in ast.walk(node.value)}
    return _targets(node) == {"pytestmark"} and bool(marks & _MARKS)


def _is_timed(node: Function | ast.ClassDef, names: _Names) -> bool:
    """Say whether a test's own time is measured or bounded by what stands around it."""
    decorators = {names.dotted(decorator) for decorator in node.decorator_list}
    if decorators & _MARKS:
        return True
    if isinstance(node, ast.ClassDef):
        return False
    unbounded = any(
        keyword.arg == "deadline" and isinstance(keyword.value, ast.Constant) and keyword.value.value is None
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call)
        for keyword in decorator.keywords
    )
    if _PROPERTY_TEST in decorators and not unbounded:
        return True
    return node.name.startswith("test") and any(argument.arg in _FIXTURES for argument in node.args.args)


def _waits(call: ast.Call) -> bool:
    """Say whether a call is given a number of seconds to wait, and may end otherwise on a slower machine."""
    if any(keyword.arg == "timeout" and _seconds(keyword.value) for keyword in call.keywords):
        return True
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return method in _WAITS and len(call.args) == 1 and _seconds(call.args[0])


def _is_of_loop(call: ast.Call) -> bool:
    """Say whether a call reads the clock of an event loop, or has that loop wait by it."""
    method = call.func
    if not isinstance(method, ast.Attribute):
        return False
    if method.attr not in _TIMERS and (method.attr != "time" or call.args):
        return False
    return bool(_LOOP.search(ast.unparse(method.value)))


def _seconds(node: ast.expr) -> bool:
    """Say whether an expression is a number that is no bool and no 0."""
    return isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value != 0


def _lines(node: ast.AST) -> range:
    start: int = getattr(node, "lineno", 1)
    return range(start - 1, getattr(node, "end_lineno", None) or start)
