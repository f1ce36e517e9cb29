"""A program whose time is over, told from an engine that hangs and a line that was cut."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from ctxbench.sandbox.docker import foreign
from ctxbench.sandbox.docker.box import DockerBox
from ctxbench.sandbox.docker.foreign import ForeignJob
from ctxbench.sandbox.docker.tars import archive
from ctxbench.sandbox.errors import SandboxLost
from ctxbench.sandbox.types import Ended, Outcome


def silent(monkeypatch: pytest.MonkeyPatch, status: Callable[[], str], *, running: bool = True) -> Outcome:
    """Run a job that takes its files, and from then on says nothing."""
    job = ForeignJob("/x", archive({"a.py": b"x"}, ended=True), ("true",))
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    api = SimpleNamespace(
        inspect_container=lambda _: {"State": {"Status": status()}}, exec_inspect=lambda _: {"Running": running}
    )
    client = SimpleNamespace(api=api)
    monkeypatch.setattr(foreign, "executed", lambda *_: ("number", ours))

    def engine() -> None:
        taken = 0
        while taken < len(job._data):
            taken += len(theirs.recv(1 << 16))
        theirs.sendall(struct.pack(">BxxxL", 1, len(job._first)) + job._first)

    thread = threading.Thread(target=engine)
    thread.start()
    held, other = socket.socketpair()
    try:
        with theirs, held, other:
            return job.run(client, DockerBox(client, "0123456789abcdef", held), 0.05, 1000)
    finally:
        thread.join()


def test_a_program_that_the_engine_says_is_running_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    assert silent(monkeypatch, lambda: "running").ended is Ended.TIMED_OUT


def test_one_that_does_not_run_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    for status in ("exited", "paused"):
        with pytest.raises(SandboxLost, match=status):
            silent(monkeypatch, lambda status=status: status)  # type: ignore[misc]
    with pytest.raises(SandboxLost, match="ended"):
        silent(monkeypatch, lambda: "running", running=False)


def test_an_engine_that_does_not_answer_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def cut() -> str:
        raise ConnectionError("the line is cut")

    with pytest.raises(SandboxLost, match="the line is cut"):
        silent(monkeypatch, cut)


def test_an_engine_that_answers_late_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """It hung, and came back."""
    monkeypatch.setattr(foreign, "_PROMPT_SECONDS", -1.0)
    with pytest.raises(SandboxLost, match="while the engine hung"):
        silent(monkeypatch, lambda: "running")
