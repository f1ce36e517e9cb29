"""Reading and writing files safely: atomic writes, checked JSON Lines, digests.

A file is written beside its place and renamed in, so that a reader, a crash or a full disk never
meets half a file. Operating-system errors become one-line faults here and nowhere else.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bench.errors import CtxbenchError, InputFault, MachineFault

_FULL = (errno.ENOSPC, errno.EDQUOT)


@contextlib.contextmanager
def explained(path: Path | str) -> Iterator[None]:
    """Turn an `OSError` about `path` into a fault that says what cures it."""
    try:
        yield
    except OSError as error:
        raise fault_of(error, str(error.filename or path)) from error


def fault_of(error: OSError, where: str) -> CtxbenchError:
    """Return the one-line fault for an operating-system error."""
    if error.errno in _FULL:
        return MachineFault("the disk is full", where=where, cure="free some space, then run the same command again")
    if isinstance(error, FileNotFoundError):
        return InputFault("no such file or folder", where=where, cure="check the path")
    if isinstance(error, PermissionError):
        return InputFault("permission denied", where=where, cure="check who owns it, or choose another --home")
    if isinstance(error, IsADirectoryError):
        return InputFault("is a folder, not a file", where=where, cure="give the path of a file")
    if isinstance(error, NotADirectoryError | FileExistsError):
        return InputFault("a part of the path is a file, not a folder", where=where, cure="check the path")
    reason = (error.strerror or str(error) or type(error).__name__).lower()
    return MachineFault(reason, where=where, cure="mend the cause, then run the same command again")


def write_atomic(path: Path, data: str | bytes | Iterable[bytes]) -> None:
    """Write a whole file, given at once or in pieces: beside its place, flushed to disk, renamed in.

    What is no file, such as ``/dev/stdout``, is written to and never replaced.

    Raises:
        MachineFault: if the disk is full; whatever stood at `path` before is still there.
    """
    whole = data.encode("utf-8") if isinstance(data, str) else data
    pieces = [whole] if isinstance(whole, bytes) else whole
    with explained(path):
        if path.exists() and not path.is_file():
            with path.open("wb") as out:
                out.writelines(pieces)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as out:
                out.writelines(pieces)
                out.flush()
                os.fsync(out.fileno())
            Path(name).chmod(0o644)
            Path(name).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise


def dump_line(record: object) -> str:
    """Return one JSON line, keys in the order given, newline included; equal data gives equal bytes."""
    return json.dumps(record, ensure_ascii=False, separators=(", ", ": ")) + "\n"


def write_jsonl(path: Path, records: Iterable[object]) -> str:
    """Write JSON Lines atomically, record by record; return the hexadecimal SHA-256 of the file."""
    digest = hashlib.sha256()

    def lines() -> Iterator[bytes]:
        for record in records:
            raw = dump_line(record).encode("utf-8")
            digest.update(raw)
            yield raw

    write_atomic(path, lines())
    return digest.hexdigest()


def read_text(path: Path) -> str:
    """Read a UTF-8 text file.

    Raises:
        InputFault: if it is missing, unreadable or not UTF-8.
    """
    with explained(path):
        raw = path.read_bytes()
    return _decoded(raw, path)


def read_jsonl(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number from 1, object) of a JSON Lines file; blank lines are passed over.

    Raises:
        InputFault: at the first line that is not a JSON object, naming file and line.
    """
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputFault(
                f"not a whole JSON object (column {error.colno}: {error.msg.lower()})",
                where=f"{path}:{number}",
                cure="the file may be cut off; write it again, one JSON object a line",
            ) from None
        except (ValueError, RecursionError):
            # A number of thousands of digits, or brackets in brackets.
            raise InputFault(
                "holds a number too long or is nested too deeply",
                where=f"{path}:{number}",
                cure="write one JSON object a line",
            ) from None
        if not isinstance(record, dict):
            raise InputFault("not a JSON object", where=f"{path}:{number}", cure="write one JSON object a line")
        yield number, record


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file one by one: files of sample sets can be larger than memory allows twice."""
    start = 0
    # Bytes are split at "\n" only: str.splitlines would also cut at U+2028 inside a JSON string.
    with explained(path), path.open("rb") as handle:
        for raw in handle:
            yield _decoded(raw, path, start)
            start += len(raw)


def _decoded(raw: bytes, path: Path, start: int = 0) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        what = f"byte {start + error.start} is not UTF-8"
        raise InputFault(what, where=str(path), cure="save the file as UTF-8") from None


def sha256(data: str | bytes) -> str:
    """Return the hexadecimal SHA-256 of bytes, or of text as UTF-8 (lone surrogates kept)."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    return hashlib.sha256(raw).hexdigest()


def sha256_file(path: Path) -> str:
    """Return the hexadecimal SHA-256 of a file."""
    with explained(path), path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
