import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.sandbox.guest import frames
from ctxbench.sandbox.guest.frames import FrameError


@pytest.mark.slow
@given(st.dictionaries(st.text(), st.integers() | st.text() | st.none()), st.lists(st.binary(max_size=50)))
def test_a_frame_survives_writing_and_reading(head: dict[str, object], blobs: list[bytes]) -> None:
    data = frames.frame(frames.JOB, head, blobs)
    kind, length = frames.HEADER.unpack(data[:5])
    assert (kind, length) == (b"J", len(data) - 5)
    found, rest = frames.split(data[5:])
    assert found == head and bytes(rest) == b"".join(blobs)


@given(st.binary(max_size=80))
def test_any_bytes_are_parsed_or_refused(data: bytes) -> None:
    try:
        head, rest = frames.split(data)
    except FrameError:
        return
    assert isinstance(head, dict) and len(rest) < len(data)


@pytest.mark.parametrize(
    "data", [b"", b"\0\0\0\1", b"\0\0\0\2[]", b"\0\0\0\2{]", b"\xff\xff\xff\xff{}", b"\0\4\0\0" + b"[" * (1 << 18)]
)
def test_an_invalid_payload_is_refused(data: bytes) -> None:
    with pytest.raises(FrameError):
        frames.split(data)


def test_a_truncated_stream_is_an_error_and_its_end_is_none() -> None:
    data = frames.frame(frames.TREE, {"files": []}, [b"x" * 300_000])
    source, sink = os.pipe()
    thread = threading.Thread(target=lambda: (frames.write(sink, data * 2 + data[:3]), os.close(sink)))
    thread.start()
    for _ in range(2):
        header = frames.read_header(source)
        assert header == (frames.TREE, len(data) - 5)
        assert frames.read(source, header[1]) == data[5:]
    with pytest.raises(FrameError, match="ended 2 bytes early"):
        frames.read_header(source)
    assert frames.read_header(source) is None
    thread.join()
    os.close(source)


def test_a_frame_that_is_too_large_is_refused_by_reader_and_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    source, sink = os.pipe()
    frames.write(sink, frames.HEADER.pack(frames.TREE, frames.MAX + 1))
    with pytest.raises(FrameError, match="bytes"):
        frames.read_header(source)
    os.close(source), os.close(sink)
    monkeypatch.setattr(frames, "MAX", 100)
    with pytest.raises(FrameError, match="too many"):
        frames.frame(frames.TREE, {}, [b"x" * 100])
