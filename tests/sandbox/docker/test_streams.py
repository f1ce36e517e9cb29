"""Parsing and ending the engine's stream of frames."""

import os
import select
import socket
import struct
import threading
import time
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.sandbox.docker.box import DockerBox, StreamEnded, Streams

FRAMES = st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=300)), max_size=12)


def packed(frames: list[tuple[int, bytes]]) -> bytes:
    return b"".join(struct.pack(">BxxxL", kind, len(data)) + data for kind, data in frames)


@given(FRAMES, st.integers(1, 50))
def test_stdout_is_complete_for_any_chunk_size(frames: list[tuple[int, bytes]], size: int) -> None:
    streams, stream = Streams(), packed(frames)
    out = b"".join(streams.feed(stream[start : start + size]) for start in range(0, len(stream), size))
    assert out == b"".join(data for kind, data in frames if kind == 1)
    assert streams.words == b"".join(data for kind, data in frames if kind == 2)[-4096:]


def test_only_the_last_4096_bytes_of_stderr_are_kept() -> None:
    streams = Streams()
    for number in range(1000):
        streams.feed(packed([(2, b"%05d" % number * 20)]))
    assert len(streams.words) == 4096
    assert streams.words.endswith(b"00999")


def test_a_reader_stops_before_its_descriptor_is_reused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the next opened file could get the number, and the reader would wait for it until its deadline."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    removed = threading.Event()
    gone = SimpleNamespace(remove_container=lambda *_, **__: removed.set())
    box = DockerBox(SimpleNamespace(api=gone), "box", ours)
    number, idle = ours.fileno(), os.pipe()
    real, ending = select.poll, threading.Thread(target=box.end)

    class Interrupted:
        """A poll object. Another thread ends the box before each poll."""

        def __init__(self) -> None:
            self.poll_, self.register = (inner := real()), inner.register

        def poll(self, milliseconds: float) -> list[tuple[int, int]]:
            ending.start()
            if removed.wait(0.2):
                os.dup2(idle[0], number)
            return self.poll_.poll(milliseconds)

    monkeypatch.setattr(select, "poll", Interrupted)
    with pytest.raises(StreamEnded):
        box.receive(time.monotonic() + 1)
    ending.join()
    assert removed.is_set() and ours.fileno() == -1
    for handle in idle:
        os.close(handle)
    theirs.close()
