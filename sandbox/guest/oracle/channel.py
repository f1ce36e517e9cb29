"""One end of the line between tester and candidate: values as messages over two pipes."""

from __future__ import annotations

import os
import struct
from typing import Any

from sandbox.guest.oracle import values

_LENGTH = struct.Struct(">I")
_PIECE = 1 << 16


class Gone(Exception):
    """Raised when the other end has closed its pipe."""


class Channel:
    """Sends to one file descriptor and receives from another; owns neither."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming, self._outgoing = incoming, outgoing

    def send(self, message: bytes) -> None:
        """Write an encoded value, whole.

        Raises:
            Gone: if nobody reads any more.
        """
        data = memoryview(_LENGTH.pack(len(message)) + message)
        try:
            while data:
                data = data[os.write(self._outgoing, data) :]
        except OSError as error:
            raise Gone(str(error)) from None

    def receive(self) -> Any:
        """Wait for the next value.

        Raises:
            Gone: if nobody writes any more.
            values.Malformed: if what comes is no message, or one that is too large.
        """
        size = _LENGTH.unpack(self._read(4))[0]
        if size > values.LIMIT:
            raise values.Malformed(f"a message of more than {values.LIMIT} bytes")
        return values.decode(self._read(size))

    def _read(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            try:
                piece = os.read(self._incoming, min(_PIECE, count - len(data)))
            except OSError as error:
                raise Gone(str(error)) from None
            if not piece:
                raise Gone("closed")
            data += piece
        return bytes(data)
