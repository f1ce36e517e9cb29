"""One end of the line between tester and candidate: values as messages over a socket."""

from __future__ import annotations

import socket
import struct
from typing import Any

from . import values

_LENGTH = struct.Struct(">I")
_PIECE = 1 << 16


class ChannelClosed(Exception):
    """Raised when the other end is gone."""


class Channel:
    """Sends and receives over a connected stream socket, which it does not own."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line

    def send(self, message: bytes) -> None:
        """Write an encoded value, whole.

        Raises:
            Gone: if nobody reads any more.
        """
        try:
            self._line.sendall(_LENGTH.pack(len(message)) + message)
        except OSError as error:
            raise ChannelClosed(str(error)) from None

    def receive(self) -> Any:
        """Wait for the next value.

        Raises:
            Gone: if nobody writes any more.
            values.Malformed: if what comes is no message, or one that is too large.
        """
        size = _LENGTH.unpack(self._read(4))[0]
        if size > values.LIMIT:
            raise values.MalformedValue(f"a message of more than {values.LIMIT} bytes")
        return values.decode(self._read(size))

    def _read(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            try:
                piece = self._line.recv(min(_PIECE, count - len(data)))
            except OSError as error:
                raise ChannelClosed(str(error)) from None
            if not piece:
                raise ChannelClosed("closed")
            data += piece
        return bytes(data)
