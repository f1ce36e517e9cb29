"""Files as a tar for a container, and a container's files as a tar for us."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from typing import IO

from sandbox.docker.engine import Client, absent, told
from sandbox.docker.launcher import tidy
from sandbox.errors import SandboxError, SandboxUnavailable
from sandbox.owners import owner

_TIME = 1_600_000_000
"""When every file was changed last: tar warns of files from 1970."""
_END = bytes(2 * tarfile.BLOCKSIZE)


def archive(files: Mapping[str, bytes], *, ended: bool = False) -> bytes:
    """Return files as a tar; equal files give equal bytes, and the later of two of one name holds.

    Args:
        files: path -> content.
        ended: whether this is the last part of the archive, which what comes before it is not.
    """
    data = io.BytesIO()
    tar = tarfile.TarFile(fileobj=data, mode="w", format=tarfile.GNU_FORMAT)
    for path in sorted(files):
        entry = tarfile.TarInfo(path)
        entry.size, entry.mtime = len(files[path]), _TIME
        entry.mode = 0o755 if files[path].startswith(b"#!") else 0o644
        tar.addfile(entry, io.BytesIO(files[path]))
    return data.getvalue() + (_END if ended else b"")


def copy_out(client: Client, image: str, path: str, into: IO[bytes], most: int) -> bool:
    """Write a folder of an image as a tar, all in it below the folder's own name; False if it has no such folder.

    Nothing of the image is run.

    Args:
        client: the engine's.
        image: name or id.
        path: of the folder, absolute.
        into: where the tar goes.
        most: bytes that it may have.

    Raises:
        SandboxUnavailable: if there is no such image.
        SandboxError: if it is larger.
    """
    with told(SandboxUnavailable, image):
        # Never started: its program need not be there.
        name = client.api.create_container(image, ["-"], labels={"ctxbench.owner": owner()})["Id"]
        try:
            chunks, _ = client.api.get_archive(name, path)
            for chunk in chunks:
                into.write(chunk)
                if into.tell() > most:
                    raise SandboxError(f"is larger than {most >> 20} MiB", where=f"{image}: {path}")
        except Exception as error:
            if absent(error):
                return False
            raise
        finally:
            tidy(client, name)
    return True
