"""The job's own process: forked before the job was read, confined, then told what to run.

It receives only the arguments of a call, a program's command line, or the socket of a persistent program. It never
receives the repository's tree.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from . import capture, confine, frames
from .confine import Confinement

_NOT_FOUND, _NOT_RUN, REFUSED = 127, 126, 125
_READY_MARK = b"+"
_DESCRIPTORS = 1


class NotReady(Exception):
    """Raised when the trusted part of a job's process failed. The job is not at fault."""


def confirmed(channel: socket.socket) -> None:
    """Wait until the job's process confirms that it is confined, or that it has found the function to call.

    Raises:
        NotReady: if the process ended or was killed before.
    """
    try:
        if channel.recv(1) == _READY_MARK:
            return
    except OSError:
        pass
    raise NotReady("the job's process could not be prepared")


def start(channel: socket.socket, order: Mapping[str, Any], handle: int | None = None) -> None:
    """Tell the waiting process what to run, and pass it a descriptor.

    Args:
        channel: socket to the process.
        order: ``{"run": "program", "argv": …}``, ``{"run": "call", "function": …, "arguments": …}`` or
            ``{"run": "serve", "function": …, "arguments": …}``.
        handle: descriptor for a call's result, or the socket of `serve`.

    Raises:
        NotReady: if the process has ended, or the function does not exist.
    """
    data = frames.payload(order)
    head = frames.HEADER.pack(frames.JOB, len(data))
    try:
        socket.send_fds(channel, [head], [] if handle is None else [handle])
        channel.sendall(data)
    except OSError as error:
        raise NotReady(f"the job's process is gone ({error})") from None
    if order["run"] != "program":
        confirmed(channel)


def become(channel: socket.socket, output: int, bounds: Confinement) -> NoReturn:
    """Run as the job's own process; never return."""
    code = REFUSED
    try:
        confine.set_dumpable(True)  # it has no data yet; otherwise oom_score_adj could not be set
        join(output)
        handle = os.dup2(channel.fileno(), 3)
        confine.enter(bounds, [handle])
        channel.detach()
        waiting = socket.socket(fileno=handle)
        waiting.send(_READY_MARK)
        code = _run(waiting, bounds)
    except BaseException:  # noqa: BLE001 - this process must not return
        traceback.print_exc()
    finally:
        finish(code)


def finish(code: int) -> NoReturn:
    """Flush the output and end this process at once."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BaseException):
            stream.flush()
    os._exit(code)


def join(output: int) -> None:
    """Read stdin from /dev/null, and write stdout and stderr to `output`."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)


def prepare(bounds: Confinement) -> None:
    """Set the environment variables and stdout that all jobs inherit, in the process from which they are forked."""
    own, home, temporary = bounds.folders
    path = [os.path.normpath(f"{own}/{entry}") for entry in bounds.path]
    path += [entry for entry in [os.environ.get("PYTHONPATH", "")] if entry]
    os.environ.update({"HOME": home, "TMPDIR": temporary, "PYTHONPATH": os.pathsep.join(path)})
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    importlib.import_module("array")  # needed to pass descriptors


def _receive(channel: socket.socket) -> tuple[dict[str, Any], int | None]:
    head, handles, _, _ = socket.recv_fds(channel, frames.HEADER.size, _DESCRIPTORS)
    if not head:
        os._exit(REFUSED)  # no order will come: the job was malformed, or its supervisor is gone
    _, length = frames.HEADER.unpack(head + frames.read(channel.fileno(), frames.HEADER.size - len(head)))
    order, _ = frames.split(frames.read(channel.fileno(), length))
    return order, handles[0] if handles else None


def _run(waiting: socket.socket, bounds: Confinement) -> int:
    order, handle = _receive(waiting)
    if order["run"] == "program":
        waiting.close()
        _execute(order["argv"])
    if handle is None:
        raise ValueError("no descriptor came with the order")
    function = _resolve(order["function"])
    waiting.send(_READY_MARK)
    waiting.close()
    # Only now, so that trusted code was found without the job's folders.
    sys.path[:0] = [os.path.normpath(f"{bounds.folder}/{entry}") for entry in bounds.path]
    if "tempfile" in sys.modules:
        vars(sys.modules["tempfile"])["tempdir"] = None  # the guest may have set it
    if order["run"] == "serve":
        return _exit_code(lambda: function(socket.socket(fileno=handle), **order["arguments"]))
    return _exit_code(lambda: answer(handle, function(order["arguments"])))


def _resolve(name: str) -> Callable[..., Any]:
    module, _, attribute = name.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    return function


def answer(handle: int, value: Any) -> None:
    """Write a call's return value as JSON, preceded by its length, and close `handle`."""
    data = json.dumps(value, allow_nan=False).encode()
    frames.write(handle, capture.RESULT_LENGTH.pack(len(data)) + data)
    os.close(handle)


def _exit_code(call: Callable[[], Any]) -> int:
    """Return the exit code of a Python program that makes this call."""
    try:
        call()
    except SystemExit as leave:
        if leave.code is None or isinstance(leave.code, int):
            return (leave.code or 0) & 0xFF
        sys.stderr.write(f"{leave.code}\n")
        return 1
    except BaseException:  # noqa: BLE001 - as the interpreter would
        traceback.print_exc()
        return 1
    return 0


def _execute(argv: list[str]) -> NoReturn:
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)  # Python ignores these, and programs would inherit that
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - no shell is wanted
    except FileNotFoundError:
        sys.stderr.write(f"{argv[0]}: no such program\n")
        finish(_NOT_FOUND)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{argv[0]}: {error}\n")
        finish(_NOT_RUN)
