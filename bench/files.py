"""Reads and writes files safely: atomic writes, checked JSON Lines, digests, one-line errors."""

from __future__ import annotations

import codecs
import contextlib
import errno
import fcntl
import gzip
import hashlib
import json
import math
import os
import stat
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from ctxbench.bench.errors import CtxbenchError, InputFault, MachineFault
from ctxbench.bench.home import CACHE

MAX_TEXT = 64 << 20
"""Maximum size in bytes of a text file or, in a file that is read line by line, of a line."""
MAX_RATIO = 200
"""Maximum ratio of a gzip file's unpacked size to its packed size. Code packs to a tenth, zeros to a thousandth."""
MAX_JSON_MEMORY = 640 << 20
"""Maximum memory in bytes for a JSON text and its values, estimated before parsing."""
MAX_DEPTH = 100
"""Maximum depth of nested JSON values. Validation and writing are recursive."""
_MEMORY_OF = {"{": 250, "[": 100, ",": 60}
"""Maximum memory in bytes of the value that follows each of these characters."""
_FULL = (errno.ENOSPC, errno.EDQUOT)
_WHOLE = "the file may be cut off; fetch or write it again"
_DEEP = "write it with fewer levels"


@contextlib.contextmanager
def explained(path: Path | str) -> Iterator[None]:
    """Turn an `OSError` in this context into an error with a cure, about its file or, if that is unknown, `path`."""
    try:
        yield
    except OSError as error:
        raise fault_of(error, str(error.filename or path)) from error


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[Path]:
    """Lock a folder in this context, for one thread of one process. Create the folder if it is missing."""
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
        handle = (folder / ".lock").open("w")
    with handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield folder


def fault_of(error: OSError, where: str) -> CtxbenchError:
    """Turn an operating-system error into a one-line error."""
    if error.errno in _FULL:
        return MachineFault("the disk is full", where=where, cure="free some space, then run the same command again")
    if isinstance(error, FileNotFoundError):
        return InputFault("no such file or folder", where=where, cure="check the path")
    if isinstance(error, PermissionError):
        cure = f"check the owner, or choose another --home; to move only its cache, set {CACHE}=FOLDER"
        return InputFault("permission denied", where=where, cure=cure)
    if error.errno == errno.EROFS:
        cure = f"choose another folder; to move the cache of a home folder, set {CACHE}=FOLDER"
        return MachineFault("read-only file system", where=where, cure=cure)
    if error.errno == errno.ELOOP:
        return InputFault("the file is a link", where=where, cure="put a copy of the file in its place")
    if isinstance(error, IsADirectoryError):
        return InputFault("the path is a folder, not a file", where=where, cure="give the path of a file")
    if isinstance(error, NotADirectoryError | FileExistsError):
        return InputFault("a part of the path is a file, not a folder", where=where, cure="check the path")
    reason = (error.strerror or str(error) or type(error).__name__).lower()
    return MachineFault(reason, where=where, cure="repair the cause, then run the same command again")


def write_atomic(path: Path, data: str | bytes | Iterable[bytes]) -> None:
    """Write a file atomically: to a temporary file, flushed to disk, then renamed.

    A `path` that is not a regular file, such as ``/dev/stdout``, is written directly.

    Raises:
        CtxbenchError: if the file cannot be written (see `fault_of`). An old file is kept.
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
    """Return a value as one line of JSON. Fields keep their order."""
    return json.dumps(record, ensure_ascii=False, separators=(", ", ": ")) + "\n"


def write_jsonl(path: Path, records: Iterable[object]) -> str:
    """Write JSON Lines atomically, one record at a time. Return the file's SHA-256."""
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
        InputFault: if the file is missing, unreadable, not UTF-8, or larger than `MAX_TEXT`.
    """
    with explained(path), path.open("rb") as handle:
        raw = handle.read(MAX_TEXT + 1)
    if len(raw) > MAX_TEXT:
        raise InputFault(
            f"the file is larger than {MAX_TEXT >> 20} MiB", where=str(path), cure="check that it is the right file"
        )
    return _decoded(raw, str(path))


def read_own_file(path: Path) -> bytes:
    """Read a regular file. Links are errors: they could name a file that the link's author may not read.

    Raises:
        InputFault: if the file is missing, unreadable, not regular, or larger than `MAX_TEXT`.
    """
    with explained(path):
        # Without O_NONBLOCK, opening a pipe would wait for a writer.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        status = os.fstat(handle)
        regular = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
        if regular:
            with os.fdopen(handle, "rb") as file:
                raw = file.read(MAX_TEXT + 1)
        else:
            os.close(handle)
    if not regular:
        raise InputFault(
            "the path is a link, folder, pipe or device", where=str(path), cure="put a copy of the file in its place"
        )
    if len(raw) > MAX_TEXT:
        raise InputFault(f"the file is larger than {MAX_TEXT >> 20} MiB", where=str(path), cure="use a smaller file")
    return raw


def read_jsonl(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number from 1, object) from JSON Lines, gzipped if the name ends with .gz. Skip blank lines.

    Raises:
        InputFault: if the file cannot be read (see `read_lines`), or a line is not a JSON object.
    """
    for number, line in read_lines(path):
        if line.strip():
            where = f"{path}:{number}"
            yield number, json_object(parse_json(line.rstrip("\r\n"), str(path), number), where)


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (number from 1, line with its end) from UTF-8 text, gzipped if the name ends with .gz.

    Raises:
        InputFault: if the file is missing or not text, a line is larger than `MAX_TEXT`, or gzip data is invalid or
            unpacks to more than `MAX_RATIO` times its size plus `MAX_TEXT`.
    """
    start = 0
    for number, raw in enumerate(_raw_lines(path), 1):
        yield number, _decoded(raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw, f"{path}:{number}", start)
        start += len(raw)


def _raw_lines(path: Path) -> Iterator[bytes]:
    """Yield lines, split only at newlines: `str.splitlines` also splits at U+2028, which JSON strings may contain."""
    zipped = path.name.endswith(".gz")
    remaining_bytes = MAX_TEXT + MAX_RATIO * path.stat().st_size if zipped and path.exists() else math.inf
    with explained(path):
        try:
            with gzip.open(path) if zipped else path.open("rb") as handle:
                number = 0
                while raw := handle.readline(MAX_TEXT + 1):
                    number += 1
                    if len(raw) > MAX_TEXT:
                        what = f"the line is larger than {MAX_TEXT >> 20} MiB"
                        raise InputFault(what, where=f"{path}:{number}", cure="write one record per line")
                    remaining_bytes -= len(raw)
                    if remaining_bytes < 0:
                        what = f"the file unpacks to more than {MAX_RATIO} times its size"
                        raise InputFault(
                            what, where=str(path), cure="if you trust the file, unpack it and use the unpacked file"
                        )
                    yield raw
        except EOFError:
            raise InputFault("the gzip data ends too early", where=str(path), cure=_WHOLE) from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise InputFault(f"the file is not valid gzip ({error})", where=str(path), cure=_WHOLE) from None


def parse_json(text: str, path: str, line: int) -> Any:
    """Parse JSON strictly: no NaN, no repeated field, limited depth and size.

    Args:
        line: number of the text's first line, for messages.

    Raises:
        InputFault: if the text is not such JSON.
    """
    where = f"{path}:{line}"
    megabytes = (len(text) + sum(text.count(mark) * cost for mark, cost in _MEMORY_OF.items())) >> 20
    if megabytes > MAX_JSON_MEMORY >> 20:
        what = f"the text would take {megabytes} MiB of memory; the limit is {MAX_JSON_MEMORY >> 20}"
        raise InputFault(what, where=where, cure="write it as JSON Lines (.jsonl), one record per line")
    try:
        value = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_each_field_once)
    except json.JSONDecodeError as error:
        what = f"the text is not valid JSON (column {error.colno}: {error.msg.lower()})"
        cure = "rename a file with one JSON object per line to .jsonl" if error.msg == "Extra data" else _WHOLE
        raise InputFault(what, where=f"{path}:{line + error.lineno - 1}", cure=cure) from None
    except RecursionError:
        raise InputFault("the JSON is nested too deeply", where=where, cure=_DEEP) from None
    except ValueError as error:  # NaN or infinity, a number with thousands of digits, a repeated field
        what = f"the text is not valid JSON ({error})"
        raise InputFault(what, where=where, cure="write standard JSON, with each field once") from None
    if _deeper_than(value, MAX_DEPTH):
        raise InputFault("the JSON is nested too deeply", where=where, cure=_DEEP)
    return value


def json_object(value: object, where: str) -> dict[str, Any]:
    """Return a JSON value after checking that it is an object.

    Raises:
        InputFault: if the value is not an object.
    """
    if not isinstance(value, dict):
        raise InputFault("the record is not a JSON object", where=where, cure="write each record as one JSON object")
    return value


def _each_field_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the field {twice!r} occurs twice in one object")
    return record


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number")


def _deeper_than(value: object, depth: int) -> bool:
    level = [value]
    for _ in range(depth):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def _decoded(raw: bytes, where: str, start: int = 0) -> str:
    at = raw.find(b"\0")
    if at >= 0:
        raise InputFault(f"byte {start + at} is NUL: this is not a text file", where=where, cure=_WHOLE)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        what = f"byte {start + error.start} is not UTF-8"
        raise InputFault(what, where=where, cure="save the file as UTF-8") from None


def sha256(data: str | bytes) -> str:
    """Return the hexadecimal SHA-256 of bytes, or of text in UTF-8 (lone surrogates allowed)."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    return hashlib.sha256(raw).hexdigest()


def sha256_file(path: Path) -> str:
    """Return a file's hexadecimal SHA-256."""
    with explained(path), path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


UTF8 = "utf-8"


class Decoded(NamedTuple):
    """A decoded file."""

    text: str
    encoding: str
    """Python's name of the encoding: ``utf-8``, ``iso8859-1``."""
    whole: bool
    """Whether an encoding was declared and fits all bytes. If not, U+FFFD replaces bytes that are not UTF-8."""


def decode(raw: bytes, declared: str | None) -> Decoded:
    """Decode bytes in their declared encoding or, if that fails, in UTF-8. A byte order mark is removed.

    Args:
        declared: name of the encoding; None if unknown.
    """
    try:
        if declared is not None:
            name = codecs.lookup(declared).name.removesuffix("-sig")
            return Decoded(raw.decode("utf-8-sig" if name == UTF8 else declared), name, True)
    except (LookupError, UnicodeError):
        pass
    return Decoded(raw.decode("utf-8-sig", "replace"), UTF8, False)


def plain_newlines(text: str) -> str:
    """Convert the newlines of Windows and old Macs to Unix ones."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
