"""Takes the value of the function under test from its callers: a test that passes even so does not test it.

Until the tests begin the function works as it is, since modules may call it. Then its callers get no answer, in
three ways, each in a process of its own:

- ``returns``: its body runs, with all that it may do to the process of its tests, and an object that is good for
  nothing comes back, which fails nothing but assertions. Only tests that pass like this are run in the other two ways.
- ``raises``: its body runs, and an exception that nobody expects comes out: no test that reaches the function and
  is not switched off survives it.
- ``idles``: its body runs once; later calls do nothing. This finds lost assertions about what it should have done.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import itertools
import os
import signal
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

RETURNS, RAISES, IDLES = "returns", "raises", "idles"
_DECORATOR = b'@__import__("ctxbench_pytest.twin", fromlist=["taken"]).taken'
_MOST_ITEMS = 1000
"""Of a generator, which may have no end."""
_MOST_CALLS = 1000
_COMPARED = 3
"""Levels of containers in which a value that answers comparisons itself is looked for."""
way = ""
"""How the value is taken away now; empty until the tests begin."""
report = -1
"""Where the next process is told which tests passed in this one; -1 for the last."""
_idled = 0
selfish = False
"""Whether a value was seen that equals what it cannot know."""


class Taken(BaseException):
    """Raised instead of an answer; no `except Exception` of a repository takes it."""


class Nothing:
    """Good for nothing, and obliging: what is done with it goes well and gives nothing, so that only assertions fail.

    It equals nothing, not even itself, and is false, empty and zero.
    """

    def __getattr__(self, name: str) -> Any:
        """Give nothing, but no method that the interpreter looks for."""
        if name.startswith("__"):
            raise AttributeError(name)
        return _used(self)

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Give nothing."""
        return _used(self)

    def __hash__(self) -> int:
        """Be usable as a key."""
        return 0


_used_times = 0


def _used(result: Any) -> Any:
    """Return a result; raise where a loop would not end otherwise."""
    global _used_times  # noqa: PLW0603 - of all of them
    _used_times += 1
    if _used_times > _MOST_CALLS:
        raise Taken
    return result


def _constantly(result: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda me, *_: _used(result(me))


_METHODS: dict[str, Callable[[Any], Any]] = {
    "eq lt le gt ge contains bool exit": lambda _: False,
    "ne": lambda _: True,
    "len int index": lambda _: 0,
    "float": lambda _: 0.0,
    "complex": lambda _: 0j,
    "str repr format": lambda _: "",
    "bytes": lambda _: b"",
    "iter reversed await": lambda _: iter(()),
    "setattr setitem delitem delattr": lambda _: None,
    """
    enter getitem abs add and divmod floordiv invert lshift matmul mod mul neg or pos pow rshift sub truediv xor round
    radd rand rdivmod rfloordiv rlshift rmatmul rmod rmul ror rpow rrshift rsub rtruediv rxor
    iadd iand ifloordiv ilshift imatmul imod imul ior ipow irshift isub itruediv ixor
    """: lambda me: me,
}
for _names, _result in _METHODS.items():
    for _name in _names.split():
        setattr(Nothing, f"__{_name}__", _constantly(_result))


def decorate(path: Path, name: str, lines: tuple[int, int]) -> None:
    """Put `taken` on every definition of that name in some lines of a file, nearest to the function.

    Args:
        path: of a Python file.
        name: the function's own, without its class.
        lines: ``[start, end)``, 0-based.

    Raises:
        SyntaxError: if it is no Python.
    """
    source = path.read_bytes()
    lines_of_file = source.splitlines(keepends=True)
    places = sorted(
        node.lineno - 1
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name == name
        and lines[0] <= node.lineno - 1 < lines[1]
    )
    for place in reversed(places):
        line = lines_of_file[place]
        lines_of_file.insert(place, line[: len(line) - len(line.lstrip())] + _DECORATOR + b"\n")
    path.write_bytes(b"".join(lines_of_file))


def taken(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs another one and keeps its answer."""

    @functools.wraps(function)
    def call(*values: Any, **named: Any) -> Any:
        global _idled  # noqa: PLW0603 - of all of them
        if not way:
            return function(*values, **named)
        _idled += way == IDLES
        if _idled > 1:
            return _answer()
        # Whatever it raises is an answer too, and kept.
        with contextlib.suppress(BaseException):
            result = function(*values, **named)
            if inspect.iscoroutine(result):
                return _awaited(result)
            if inspect.isasyncgen(result):
                return _iterated(result)
            if inspect.isgenerator(result):
                result = list(itertools.islice(result, _MOST_ITEMS))
            _compare(result)
        return _answer()

    return call


def part() -> set[str] | None:
    """Go on as three processes, one after the other, one for each way; return the tests to run in it, None for all."""
    global way, report  # noqa: PLW0603 - the decorated function may be anywhere
    passed = None
    for name in (RETURNS, RAISES):
        read, report = os.pipe()
        if not os.fork():
            way = name
            os.close(read)
            return passed
        os.close(report)
        with os.fdopen(read) as pipe:
            survivors = set(pipe.read().split("\0"))
        passed = survivors if passed is None else passed
    way, report = IDLES, -1
    return passed


def impatient(seconds: float) -> None:
    """Have the running test fail after so many seconds, and again; 0 for never more."""
    signal.signal(signal.SIGALRM, _refuse)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)


def _refuse(*_: Any) -> None:
    raise Taken


def tell(passed: Iterable[str]) -> None:
    """Tell the next process which tests passed in this one."""
    if report >= 0:
        os.write(report, "\0".join(passed).encode())


def _answer() -> Any:
    # Who waits for what an idle function does, waits for ever.
    if way == RAISES or _idled > _MOST_CALLS:
        raise Taken
    return Nothing()


async def _awaited(result: Any) -> Any:
    with contextlib.suppress(BaseException):
        _compare(await result)
    return _answer()


async def _iterated(result: Any) -> Any:
    with contextlib.suppress(BaseException):
        async for _ in result:
            pass
    yield _answer()


def _compare(value: Any) -> None:
    global selfish  # noqa: PLW0603 - the process has one answer
    selfish = selfish or _is_selfish(value, _COMPARED)


def _is_selfish(value: Any, levels: int) -> bool:
    """Say whether a value, or one in it, says that it equals an object that nobody has seen before."""
    with contextlib.suppress(Exception):
        if (value == object()) is True or (value != object()) is False:
            return True
    if not levels or type(value) not in (list, tuple, set, frozenset, dict):
        return False
    inner = [*value, *value.values()] if type(value) is dict else value
    return any(_is_selfish(member, levels - 1) for member in itertools.islice(inner, _MOST_ITEMS))
