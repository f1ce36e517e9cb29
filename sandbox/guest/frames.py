"""Frames, the messages between pool and guest: a kind, a length, a JSON object and bytes.

    frame   = kind (1 byte), length (4 bytes, big-endian), payload
    payload = length of the JSON (4 bytes, big-endian), the JSON object, the bytes whose sizes it lists

The pool sends `SETTINGS`, `TREE` and `JOB`. The guest sends `GREETING`, `READY` (a tree is written), `OUTCOME` (of a
job) and `END` (the result of removing the job's traces).
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
"""Maximum bytes of one frame."""


class FrameError(Exception):
    """Raised when bytes are not a valid frame, end too early, or exceed `MAX`."""


def payload(head: Mapping[str, Any], blobs: Iterable[bytes] = ()) -> bytes:
    """Build a payload from its JSON object and the bytes after it."""
    text = json.dumps(head, separators=(",", ":")).encode()
    return b"".join([_LENGTH.pack(len(text)), text, *blobs])


def frame(kind: bytes, head: Mapping[str, Any], blobs: Iterable[bytes] = ()) -> bytes:
    """Build a frame from its kind, its JSON object and the bytes after it.

    Raises:
        FrameError: if the payload is larger than `MAX`.
    """
    data = payload(head, blobs)
    if len(data) > MAX:
        raise FrameError(f"{len(data)} bytes are too many for one frame")
    return HEADER.pack(kind, len(data)) + data


def split(data: bytes) -> tuple[dict[str, Any], memoryview]:
    """Return the JSON object of a payload and the bytes after it.

    Raises:
        FrameError: if the payload is malformed.
    """
    try:
        (size,) = _LENGTH.unpack_from(data)
        if _LENGTH.size + size > len(data):
            raise FrameError("a truncated payload")
        head = json.loads(data[_LENGTH.size : _LENGTH.size + size])
    except (struct.error, ValueError, RecursionError):
        raise FrameError("a malformed payload") from None
    if not isinstance(head, dict):
        raise FrameError("a payload without an object")
    return head, memoryview(data)[_LENGTH.size + size :]


def files_head(files: Mapping[str, bytes]) -> list[list[Any]]:
    """Return the path and size of each file, for the JSON object of a payload that contains the files."""
    return [[path, len(content)] for path, content in files.items()]


def read(handle: int, size: int) -> bytes:
    """Read exactly `size` bytes from a file descriptor.

    Raises:
        FrameError: if the stream ends earlier.
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
    """Return the next frame's kind and length; None at the stream's end.

    Raises:
        FrameError: if the stream ends within a header, or the frame is too large.
    """
    first = os.read(handle, 1)
    if not first:
        return None
    kind, length = HEADER.unpack(first + read(handle, HEADER.size - 1))
    if length > MAX:
        raise FrameError(f"a frame of {length} bytes, which is too large")
    return kind, length


def write(handle: int, data: bytes) -> None:
    """Write all of `data` to a file descriptor."""
    unwritten = memoryview(data)
    while unwritten:
        unwritten = unwritten[os.write(handle, unwritten) :]
