"""A box that is a Docker container, with the engine's attach stream as its stdin and stdout."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
import time
from typing import Any

from ctxbench.sandbox.docker.engine import Client, absent, engine_faults, fault
from ctxbench.sandbox.errors import SandboxLost, SandboxUnavailable

_CHUNK = 64 * 1024
_LAST_BYTES = 4096
_GONE_SECONDS = 10.0


class StreamEnded(SandboxLost):
    """Raised when a box's stream has ended."""


class Streams:
    """A parser that separates stdout and stderr in the engine's attach stream. No I/O."""

    def __init__(self) -> None:
        self.words = b""
        self._header = b""
        self._kind = self._left = 0

    def feed(self, data: bytes) -> bytes:
        """Return the bytes of `data` that belong to stdout; keep the last bytes of stderr in `words`."""
        out = bytearray()
        view = memoryview(data)
        while view:
            if not self._left:
                count = min(8 - len(self._header), len(view))
                self._header += bytes(view[:count])
                view = view[count:]
                if len(self._header) == 8:
                    self._kind, self._left = struct.unpack(">BxxxL", self._header)
                    self._header = b""
                continue
            part = view[: self._left]
            view = view[len(part) :]
            self._left -= len(part)
            if self._kind == 1:
                out += part
            else:
                self.words = (self.words + bytes(part))[-_LAST_BYTES:]
        return bytes(out)


class DockerBox:
    """A running container (see `sandbox.types.Box`)."""

    def __init__(self, client: Client, name: str, stream: socket.socket, user: int = 0) -> None:
        """Take over a started container and its attach stream. Only this box has the user id `user`."""
        self._client, self.name, self._stream, self.user = client, name, stream, user
        self._began = time.time()
        self._streams = Streams()
        self._reading = threading.Lock()
        self._ending = threading.Lock()
        self._why: str | None = None

    def send(self, data: bytes, deadline: float) -> None:
        """Write all of `data` to the guest's stdin (see `sandbox.types.Box.send`)."""
        unsent = memoryview(data)
        while unsent:
            self._wait(select.POLLOUT, deadline)
            try:
                unsent = unsent[self._stream.send(unsent) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise self._lost(f"the box's stdin is closed ({error.strerror})") from error

    def receive(self, deadline: float) -> bytes:
        """Return the next bytes of the guest's stdout (see `sandbox.types.Box.receive`)."""
        with self._reading:
            while True:
                self._wait(select.POLLIN, deadline)
                try:
                    data = self._stream.recv(_CHUNK)
                except BlockingIOError:
                    continue
                except OSError as error:
                    raise self._lost(f"the box's stdout is closed ({error.strerror})") from error
                if not data:
                    raise StreamEnded("the box ended", where=self._where)
                if out := self._streams.feed(data):
                    return out

    def end(self) -> str:
        """Kill and remove the container (see `sandbox.types.Box.end`)."""
        with self._ending:
            if self._why is None:
                try:
                    self._why = self._end()
                except Exception as error:  # noqa: BLE001 - by contract `end` never raises
                    self._why = str(fault(error, SandboxLost, f"box {self.name[:12]}"))
            return self._why

    def hang_up(self) -> None:
        """Close the stream, but leave the container running."""
        self._last_words()

    def _wait(self, event: int, deadline: float) -> None:
        """Wait until the stream is ready. Uses poll, because select rejects descriptors above 1023."""
        poll = select.poll()
        try:
            poll.register(self._stream, event)
            events = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
        except (OSError, ValueError) as error:
            raise self._lost("the box was ended") from error
        if not events:
            raise SandboxLost("the box did not answer in time", where=self._where, cure="run the command again")

    def _lost(self, what: str) -> SandboxLost:
        return SandboxLost(what, where=self._where)

    @property
    def _where(self) -> str:
        return f"box {self.name[:12]}"

    def _end(self) -> str:
        ended = self._last_words()
        why = ""
        if ended:
            words = self._streams.words.decode("utf-8", "replace").strip()
            why = f"{self._state()}{'; its last output: ' if words else ''}{words}"
        remove(self._client, self.name)
        return why

    def _last_words(self) -> bool:
        free = self._reading.acquire(blocking=False)
        ended = self._drained() if free else False
        with contextlib.suppress(OSError):
            self._stream.shutdown(socket.SHUT_RDWR)
        if not free:
            # Wait for that thread before closing the descriptor, since another file could reuse its number.
            self._reading.acquire()
        self._stream.close()
        self._reading.release()
        return ended

    def _drained(self) -> bool:
        for _ in range(16):
            try:
                data = self._stream.recv(_CHUNK)
            except BlockingIOError:
                return False
            except OSError:
                return True
            if not data:
                return True
            self._streams.feed(data)
        return False

    def _state(self) -> str:
        try:
            state = self._client.api.inspect_container(self.name)["State"]
        except Exception as error:  # noqa: BLE001 - the removal that follows reports more
            return self._told_by_events() if absent(error) else f"its state is unknown ({error})"
        if state["Running"]:
            return "its stream ended while it ran"
        return f"it exited with {state['ExitCode']}" + (", out of memory" if state["OOMKilled"] else "")

    def _told_by_events(self) -> str:
        records = self._client.events(
            since=int(self._began) - 1,
            until=f"{time.time():.6f}",
            filters={"container": [self.name], "event": ["die", "oom"]},
            decode=True,
        )
        events = {event["Action"]: event["Actor"]["Attributes"] for event in records}
        if "die" not in events:
            return "it is gone"
        return f"it exited with {events['die'].get('exitCode')}" + (", out of memory" if "oom" in events else "")


def attached(client: Client, name: str) -> socket.socket:
    """Attach to a container that is not started yet; return the stream. Closing it ends the guest's stdin.

    Raises:
        SandboxUnavailable: if the connection to the engine is not a plain socket.
    """
    streams = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
    return _plain(client, client.api.attach_socket(name, streams))


def _plain(client: Client, raw: Any) -> socket.socket:
    response = getattr(raw, "_response", None)
    inner = getattr(raw, "_sock", None)
    if type(inner) is not socket.socket:
        raise SandboxUnavailable(
            "boxes need a plain connection to Docker, not TLS, SSH or a pipe",
            where=str(client.api.base_url),
            cure="run ctxbench on Docker's own machine, or use --sandbox bubblewrap",
        )
    # The response closes its descriptor when it is collected, so use a duplicate.
    stream = socket.socket(inner.family, inner.type, inner.proto, fileno=socket.dup(inner.fileno()))
    stream.setblocking(False)
    (raw if response is None else response).close()
    inner.close()
    return stream


def remove(client: Client, name: str) -> None:
    """Kill and remove a container, and wait until it is gone.

    Raises:
        SandboxLost: if the engine fails to remove it.
    """
    deadline = time.monotonic() + _GONE_SECONDS
    pause = 0.01
    with engine_faults(SandboxLost, f"box {name[:12]}"):
        while True:
            try:
                client.api.remove_container(name, force=True, v=True)
                return
            except Exception as error:
                if absent(error):
                    return
                # 409: the engine is already removing it.
                if getattr(error, "status_code", None) != 409 or time.monotonic() > deadline:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, 0.2)
