"""The untrusted side: runs the program and answers calls of its entry.

Nothing that this process sends is believed beyond being a plain value: the program can replace all of this.
"""

from __future__ import annotations

import contextlib
import linecache
import socket
import sys
import traceback
from collections.abc import Callable
from types import ModuleType
from typing import Any

from . import faults, values
from .channel import Channel, ChannelClosed

_FILE = "<program>"


def serve(line: socket.socket) -> None:
    """Load the program that the tester sends, then answer calls until the tester is gone.

    Run this in a process that was made before the check was read, confined, with no other descriptor open
    but the standard three. The program is executed as the module ``candidate``, not as ``__main__``.
    """
    channel = Channel(line)
    with contextlib.suppress(ChannelClosed):
        program, entry = channel.receive()
        try:
            function = _load(program, entry)
        except BaseException as error:  # noqa: BLE001 - sys.exit() while loading is a failure like any other
            traceback.print_exc()
            return _reply(channel, ("broken", faults.in_one_line(error)))
        _reply(channel, ("ready",))
        while True:
            arguments, named = channel.receive()
            _reply(channel, _answer(function, arguments, named))


def _load(program: str, entry: str) -> Callable[..., Any]:
    linecache.cache[_FILE] = (len(program), None, program.splitlines(keepends=True), _FILE)
    code = compile(program, _FILE, "exec", dont_inherit=True)
    module = ModuleType("candidate")
    sys.modules["candidate"] = module
    exec(code, module.__dict__)  # noqa: S102 - running it is what this process is for
    function: Any = getattr(module, entry, None)
    if not callable(function):
        raise NameError(f"the program defines no function {entry}")
    return function  # type: ignore[no-any-return]


def _answer(function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> bytes:
    try:
        return values.encode(("value", function(*arguments, **named)))
    except values.NotPlain as error:
        return values.encode(("odd", str(error)))
    except BaseException as error:  # noqa: BLE001 - the check may expect it
        return values.encode(("raised", *faults.sent(error)))


def _reply(channel: Channel, reply: object) -> None:
    with contextlib.suppress(Exception):  # the program may have replaced or closed it
        sys.stdout.flush()
    channel.send(reply if isinstance(reply, bytes) else values.encode(reply))
