"""Frames, the messages between pool and guest: each a kind, a length, a JSON object and bytes behind it.

    frame   = kind (1 byte), length (4 bytes, big-endian), payload
    payload = length of the JSON (4 bytes, big-endian), the JSON object, the bytes that it tells the sizes of

To the guest go `SETTINGS`, `TREE` and `JOB`; from it come `GREETING`, `READY` (a tree is written),
`OUTCOME` (of a job) and `END` (what was found when its traces were removed).
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterable, Mapping
from typing import Any

SETTINGS, TREE, JOB = b"S", b"T", b"J"
GREETING, READY, OUTCOME, END = b"G", b"R", b"O", b"E"

HEADER = struct.Struct(">cI")
_LENGTH = struct.Struct(">I")
MAX = 1 << 30
"""Bytes of one frame, at most."""


class FrameError(Exception):
    """Raised when bytes are no frame, or end before it does."""


def payload(head: Mapping[str, Any], blobs: Iterable[bytes] = ()) -> bytes:
    """Return a payload."""
    text = json.dumps(head, separators=(",", ":")).encode()
    return b"".join([_LENGTH.pack(len(text)), text, *blobs])


def frame(kind: bytes, head: Mapping[str, Any], blobs: Iterable[bytes] = ()) -> bytes:
    """Return a whole frame.

    Raises:
        FrameError: if it is larger than a frame may be.
    """
    data = payload(head, blobs)
    if len(data) > MAX:
        raise FrameError(f"{len(data)} bytes are too many for one frame")
    return HEADER.pack(kind, len(data)) + data


def split(data: bytes) -> tuple[dict[str, Any], memoryview]:
    """Return the JSON object of a payload and the bytes behind it.

    Raises:
        FrameError: if it is none.
    """
    try:
        (size,) = _LENGTH.unpack_from(data)
        if _LENGTH.size + size > len(data):
            raise FrameError("a payload that breaks off")
        head = json.loads(data[_LENGTH.size : _LENGTH.size + size])
    except (struct.error, ValueError, RecursionError):
        raise FrameError("a payload that is none") from None
    if not isinstance(head, dict):
        raise FrameError("a payload without an object")
    return head, memoryview(data)[_LENGTH.size + size :]


def files_head(files: Mapping[str, bytes]) -> list[list[Any]]:
    """Return the head that tells a payload's reader which files its bytes are."""
    return [[path, len(content)] for path, content in files.items()]


def read(handle: int, size: int) -> bytes:
    """Read exactly `size` bytes of a file descriptor.

    Raises:
        FrameError: if it ends before.
    """
    parts, missing = [], size
    while missing:
        part = os.read(handle, min(missing, 1 << 20))
        if not part:
            raise FrameError(f"the stream ended {missing} bytes early")
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def read_header(handle: int) -> tuple[bytes, int] | None:
    """Return the next frame's kind and length, None at the stream's end.

    Raises:
        FrameError: if it ends within a header, or the frame is too large.
    """
    first = os.read(handle, 1)
    if not first:
        return None
    kind, length = HEADER.unpack(first + read(handle, HEADER.size - 1))
    if length > MAX:
        raise FrameError(f"a frame of {length} bytes")
    return kind, length


def write(handle: int, data: bytes) -> None:
    """Write all of `data` to a file descriptor."""
    unwritten = memoryview(data)
    while unwritten:
        unwritten = unwritten[os.write(handle, unwritten) :]
