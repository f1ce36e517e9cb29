"""Files to and from images, as tars: equal files give equal bytes."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

from ctxbench.sandbox.docker.engine import Client, absent, engine_faults
from ctxbench.sandbox.docker.launcher import tidy
from ctxbench.sandbox.errors import SandboxError, SandboxUnavailable
from ctxbench.sandbox.ownership import owner

_TIME = 1_600_000_000
"""When every file was changed last: tar warns of files from 1970."""
_END = bytes(2 * tarfile.BLOCKSIZE)


def archive(files: Mapping[str, bytes], *, ended: bool = False) -> bytes:
    """Return files as a tar; equal files give equal bytes, and the later of two of one name holds.

    Only an archive's last part is `ended`.
    """
    data = io.BytesIO()
    tar = tarfile.TarFile(fileobj=data, mode="w", format=tarfile.GNU_FORMAT)
    for path in sorted(files):
        entry = tarfile.TarInfo(path)
        entry.size, entry.mtime = len(files[path]), _TIME
        entry.mode = 0o755 if files[path].startswith(b"#!") else 0o644
        tar.addfile(entry, io.BytesIO(files[path]))
    return data.getvalue() + (_END if ended else b"")


def copy_out(client: Client, image: str, path: str, into: IO[bytes], keep: Callable[[str], bool], most: int) -> bool:
    """Write the plain files of an image's folder as a tar, below its own name; False if it has no such folder.

    Nothing of the image is run. Equal files give equal bytes. Files whose path below the folder `keep` refuses are left
    out; together they may have `most` bytes.

    Raises:
        SandboxUnavailable: if there is no such image.
        SandboxError: if the files are larger.
    """
    with engine_faults(SandboxUnavailable, image):
        # Never started: its program need not be there.
        name = client.api.create_container(image, ["-"], labels={"ctxbench.owner": owner()})["Id"]
        try:
            try:
                chunks, _ = client.api.get_archive(name, path)
            except Exception as error:
                if absent(error):
                    return False
                raise
            size = _filtered(_ChunkStream(chunks), into, keep, most)
        finally:
            tidy(client, name)
    if size > most:
        raise SandboxError(f"its files are larger than {most >> 20} MiB", where=f"{image[:19]}: {path}")
    return True


def _filtered(stream: _ChunkStream, into: IO[bytes], keep: Callable[[str], bool], most: int) -> int:
    """Copy wanted files of a tar, whose members lie below one folder; return their size, or one above `most`."""
    size = 0
    with tarfile.open(fileobj=stream, mode="r|") as tar, tarfile.TarFile(fileobj=into, mode="w") as out:
        for member in tar:
            _, _, inner = member.name.partition("/")
            data = tar.extractfile(member) if member.isreg() and inner and keep(inner) else None
            if data is None:
                continue
            size += member.size
            if size > most:
                break
            entry = tarfile.TarInfo(member.name)
            entry.size, entry.mtime = member.size, _TIME
            out.addfile(entry, data)
    return size


class _ChunkStream(io.RawIOBase):
    """Chunks as a file that is read once."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._rest = chunks, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            self._rest = next(self._chunks, b"")
            if not self._rest:
                return 0
        part = self._rest[: len(buffer)]
        buffer[: len(part)] = part
        self._rest = self._rest[len(part) :]
        return len(part)
