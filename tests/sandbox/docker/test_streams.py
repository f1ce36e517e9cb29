"""Taking the engine's stream apart, however it is cut."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from ctxbench.sandbox.docker.box import Streams

FRAMES = st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=300)), max_size=12)


def packed(frames: list[tuple[int, bytes]]) -> bytes:
    return b"".join(struct.pack(">BxxxL", kind, len(data)) + data for kind, data in frames)


@given(FRAMES, st.integers(1, 50))
def test_stdout_is_whole_however_the_stream_is_cut(frames: list[tuple[int, bytes]], size: int) -> None:
    streams, stream = Streams(), packed(frames)
    out = b"".join(streams.feed(stream[start : start + size]) for start in range(0, len(stream), size))
    assert out == b"".join(data for kind, data in frames if kind == 1)
    assert streams.words == b"".join(data for kind, data in frames if kind == 2)[-4096:]


def test_only_the_last_words_are_kept() -> None:
    streams = Streams()
    for number in range(1000):
        streams.feed(packed([(2, b"%05d" % number * 20)]))
    assert len(streams.words) == 4096
    assert streams.words.endswith(b"00999")
