"""A program whose time is over, told from an engine that hangs and a line that was cut."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ctxbench.sandbox.docker import foreign
from ctxbench.sandbox.docker.box import DockerBox
from ctxbench.sandbox.docker.foreign import ForeignJob, archive
from ctxbench.sandbox.errors import SandboxLost
from ctxbench.sandbox.types import Ended, Outcome


def silent(inspect: Callable[[str], Any]) -> Outcome:
    """Run a job whose container takes its files, and from then on says nothing."""
    job = ForeignJob("/x", archive({"a.py": b"x"}, ended=True), ("true",))
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    client = SimpleNamespace(api=SimpleNamespace(inspect_container=inspect))

    def engine() -> None:
        taken = 0
        while taken < len(job._data):
            taken += len(theirs.recv(1 << 16))
        mark = job._first.encode()
        theirs.sendall(struct.pack(">BxxxL", 1, len(mark)) + mark)

    thread = threading.Thread(target=engine)
    thread.start()
    try:
        with ours, theirs:
            return job.run(client, DockerBox(client, "0123456789abcdef", ours), 0.05, 1000)
    finally:
        thread.join()


def test_a_program_that_the_engine_says_is_running_is_late() -> None:
    assert silent(lambda _: {"State": {"Status": "running"}}).ended is Ended.TIMED_OUT


@pytest.mark.parametrize("status", ["exited", "paused"])
def test_one_that_does_not_run_is_lost(status: str) -> None:
    with pytest.raises(SandboxLost, match=status):
        silent(lambda _: {"State": {"Status": status}})


def test_an_engine_that_does_not_answer_is_no_verdict() -> None:
    def cut(_: str) -> None:
        raise ConnectionError("the line is cut")

    with pytest.raises(SandboxLost, match="the line is cut"):
        silent(cut)


def test_an_engine_that_answers_late_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """It hung, and came back."""
    monkeypatch.setattr(foreign, "_PROMPT_SECONDS", -1.0)
    with pytest.raises(SandboxLost, match="while the engine hung"):
        silent(lambda _: {"State": {"Status": "running"}})
