"""The trusted side: runs the check against a stand-in for the candidate and says what came of it."""

from __future__ import annotations

import _thread
import contextlib
import linecache
import os
import signal
import socket
import sys
import traceback
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, Protocol

from . import faults, values
from .channel import Channel, ChannelClosed

_FILE = "<check>"


_SERVE = "sandbox.guest.oracle:serve"


class Stage(Protocol):
    """Has one confined process, made before the check was read, that can run the program."""

    def start(self, function: str, arguments: dict[str, Any]) -> socket.socket:
        """Call ``module:function`` there with a socket and `arguments`; return our end of the socket.

        Raises:
            OSError: if that process is gone.
        """


class Broken(BaseException):
    """Ends the check. No ordinary exception: a check that expects one must not take this for it."""


def run(check: Mapping[str, Any], box: Stage) -> dict[str, Any]:
    """Test the candidate; return ``{"passed": bool, "detail": str}``.

    It passes only if ``check(candidate)`` returned and the line never broke on the way, whatever the check
    made of that. The check's own output is dropped: the candidate could read the pipe it would go to.

    Args:
        check: the fields of `sandbox.types.Check`: program, entry and check.
        box: what starts the candidate's process.
    """
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    _forget_imports()
    try:
        line = box.start(_SERVE, {})
    except OSError:
        return {"passed": False, "detail": "the candidate's process ended before it began"}
    stand_in = StandIn(Channel(line), check["entry"])
    try:
        with _silence():
            stand_in.load(check["program"])
            _trusted(check["check"])(stand_in)
    except BaseException as error:  # noqa: BLE001 - sys.exit() in a candidate or a check is no pass either
        return {"passed": False, "detail": stand_in.fault or _where(error) + faults.in_one_line(error)}
    return {"passed": not stand_in.fault, "detail": stand_in.fault}


class StandIn:
    """`candidate` in a check: calls the real one in the other process, by value."""

    def __init__(self, channel: Channel, entry: str) -> None:
        self.__name__ = self.__qualname__ = entry
        self.fault = ""
        """Why no verdict can be a pass any more; empty while all is well."""
        self._channel, self._lock = channel, _thread.allocate_lock()

    def load(self, program: str) -> None:
        """Send the program and wait until it is loaded."""
        match self._ask((program, self.__name__)):
            case ("ready",):
                return
            case ("broken", str(text)):
                raise self._broken(f"the program does not load: {text[:2000]}")
            case _:
                raise self._broken("the candidate answered with no reply")

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Return what the candidate returns, or raise what it raises.

        Raises:
            Broken: if it is gone, or what it returns or is given is no plain value.
        """
        match self._ask((arguments, named)):
            case ("value", value):
                return value
            case ("raised", name, of):
                raise self._raised(name, of)
            case ("odd", str(text)):
                raise self._broken(f"the candidate returned {text[:200]}, which cannot be compared from outside")
            case _:
                raise self._broken("the candidate answered with no reply")

    def _ask(self, request: object) -> Any:
        if self.fault:
            raise Broken(self.fault)
        try:
            message = values.encode(request)
        except values.NotPlain as error:
            raise self._broken(f"the check passes {error}, which cannot be sent to a candidate") from None
        try:
            with self._lock:
                self._channel.send(message)
                return self._channel.receive()
        except ChannelClosed:
            raise self._broken("the candidate's process ended before it answered") from None
        except Exception as error:  # noqa: BLE001 - such as no memory for it: a check may not take it for the candidate's
            raise self._broken(f"the candidate answered with no reply: {faults.in_one_line(error)}") from None

    def _raised(self, name: object, arguments: object) -> BaseException:
        try:
            return faults.received(name, arguments)
        except values.MalformedValue as error:
            raise self._broken(f"the candidate answered with no reply: {error}") from None

    def _broken(self, fault: str) -> Broken:
        self.fault = self.fault or fault
        return Broken(self.fault)


def _trusted(source: str) -> Any:
    linecache.cache[_FILE] = (len(source), None, source.splitlines(keepends=True), _FILE)
    # optimize=0: its assertions must run, whatever PYTHONOPTIMIZE says.
    code = compile(source, _FILE, "exec", dont_inherit=True, optimize=0)
    module = ModuleType("check")
    sys.modules["check"] = module
    exec(code, module.__dict__)  # noqa: S102 - the check is trusted
    if not callable(getattr(module, "check", None)):
        raise NameError("the check defines no function check(candidate)")
    return module.check


def _forget_imports() -> None:
    """Keep the working folder, which the candidate can write, off the import path of this process."""
    top = os.path.realpath(".")
    below = [path for path in sys.path if f"{os.path.realpath(path)}/".startswith(f"{top}/")]
    sys.path[:] = [path for path in sys.path if path.startswith("/") and path not in below]


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):  # noqa: PTH123
        yield


def _where(error: BaseException) -> str:
    lines = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == _FILE]
    return f"line {lines[-1].lineno} of the check: {lines[-1].line or ''}: "[:500] if lines else ""
