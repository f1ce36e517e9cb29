"""Closing the generator `openai` ends all waiting requests within a second, in any state."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ctxbench.bench.errors import MachineFault
from ctxbench.bench.languages.python import PYTHON
from ctxbench.harness.generators import openai
from ctxbench.harness.generators.openai import OpenAI
from tests.harness.generators.test_openai import ask

AT_ONCE = 8
Hang = Callable[[socket.socket], object]


def silent(connection: socket.socket) -> None:
    """Accept a request without answering."""


def half_a_head(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Ty")


def half_a_body(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")


def one_byte_in_a_while(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        connection.sendall(b"X")
        time.sleep(0.05)


@contextlib.contextmanager
def hanging(work: Hang, backlog: int = 64) -> Iterator[tuple[str, threading.Event]]:
    """Start a server that does this work per connection; yield its address and an event for the first connection."""
    begun = threading.Event()
    with socket.create_server(("127.0.0.1", 0), backlog=backlog) as server:
        kept = []

        def answer(connection: socket.socket) -> None:
            # On a busy machine, the test may end and close the connection before this thread begins.
            with contextlib.suppress(OSError):
                work(connection)

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    kept.append(connection)
                    threading.Thread(target=answer, args=(connection,), daemon=True).start()
                    begun.set()

        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}", begun
        finally:
            server.shutdown(socket.SHUT_RDWR)
            # Without this wait, a connection accepted later would stay open, and a later test would fail for it.
            serving.join(20)
            for connection in kept:
                connection.close()


# Plain text ends a TLS handshake at once, so only silence keeps a client waiting.
@pytest.mark.parametrize(
    ("scheme", "work"),
    [("https", silent), *(("http", work) for work in (silent, half_a_head, half_a_body, one_byte_in_a_while))],
)
def test_closing_ends_every_waiting_request(work: Hang, scheme: str) -> None:
    with hanging(work) as (place, begun):
        made = openai.openai(model="tiny", url=f"{scheme}://{place}", timeout=600, bits=True, concurrency=AT_ONCE)
        assert isinstance(made, OpenAI)
        faults: list[object] = []

        def generate() -> None:
            faults.extend(made.generate([ask(str(number)) for number in range(2 * AT_ONCE)]))

        def price() -> None:
            try:
                made.bits([ask().prompt], ["x"], PYTHON)
            except MachineFault as fault:
                faults.append(fault)

        threads = [threading.Thread(target=work, daemon=True) for work in (generate, price)]
        for thread in threads:
            thread.start()
        assert begun.wait(20)
        time.sleep(0.2)
        begin = time.monotonic()
        made.close()
        for thread in threads:
            thread.join(20)
        assert time.monotonic() - begin < 5  # a second, unless the machine is busy
    assert len(faults) == 2 * AT_ONCE + 1
    assert {fault.what for fault in faults if isinstance(fault, MachineFault)} == {"the generator was closed"}


def test_closing_ends_a_request_that_waits_for_a_connection() -> None:
    # The server accepts no connection and its backlog is full, so a new connection is never ready.
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server, contextlib.ExitStack() as stack:
        address = server.getsockname()
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(address)
        made = openai.openai(model="tiny", url=f"http://127.0.0.1:{address[1]}", timeout=600)
        found: list[object] = []
        thread = threading.Thread(target=lambda: found.extend(made.generate([ask()])), daemon=True)
        thread.start()
        time.sleep(0.3)
        begin = time.monotonic()
        made.close()
        thread.join(20)
        assert time.monotonic() - begin < 5
    assert isinstance(found[0], MachineFault) and found[0].what == "the generator was closed"


def test_a_host_name_that_is_not_resolved_does_not_delay_closing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, over = threading.Event(), threading.Event()
    real = socket.getaddrinfo

    def slow(host: str | bytes, *given: Any, **more: Any) -> object:
        if host not in ("nowhere.invalid", b"nowhere.invalid"):
            return real(host, *given, **more)
        # Only a daemon thread does not delay the end of the process.
        assert threading.current_thread().daemon
        asked.set()
        over.wait(60)
        raise socket.gaierror("no such name")

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    late = openai.openai(model="tiny", url="http://nowhere.invalid", timeout=0.3, retries=0)
    [fault] = late.generate([ask()])
    assert isinstance(fault, MachineFault) and "sent no answer within 0.3 s" in str(fault)
    made = openai.openai(model="tiny", url="http://nowhere.invalid", timeout=600)
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.extend(made.generate([ask()])), daemon=True)
    thread.start()
    assert asked.wait(20)
    made.close()
    thread.join(20)
    over.set()
    assert isinstance(found[0], MachineFault) and found[0].what == "the generator was closed"


def test_a_closed_generator_sends_nothing() -> None:
    made = openai.openai(model="tiny", url="http://127.0.0.1:1", retries=0)
    made.close()
    made.close()
    [fault] = made.generate([ask()])
    assert isinstance(fault, MachineFault) and fault.what == "the generator was closed"
