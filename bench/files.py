"""Read and write files safely: atomic writes, checked JSON Lines, digests.

A file is written under a temporary name beside its place and then renamed. A crash or a full disk thus leaves no
partial file. Only this module turns operating-system errors into one-line faults.
"""

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
"""Largest size in bytes of a text file, or of one line if a file is read line by line."""
MAX_RATIO = 200
"""Largest ratio of unpacked to packed size of a gzip file. Code packs to about a tenth, zeros to a thousandth."""
MAX_JSON_MEMORY = 640 << 20
"""Most bytes of memory for a JSON text and its values, estimated before parsing."""
MAX_DEPTH = 100
"""Deepest nesting of JSON lists and objects. Validation and writing recurse."""
_MEMORY_OF = {"{": 250, "[": 100, ",": 60}
"""Character -> estimated bytes of memory for the value after it, an upper bound."""
_FULL = (errno.ENOSPC, errno.EDQUOT)
_WHOLE = "the file may be cut off; fetch or write it again"
_DEEP = "write it as the benchmark does"


@contextlib.contextmanager
def explained(path: Path | str) -> Iterator[None]:
    """Turn an `OSError` about `path` into a fault with a cure."""
    try:
        yield
    except OSError as error:
        raise fault_of(error, str(error.filename or path)) from error


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[Path]:
    """Lock a folder for one thread of one process; create it if needed. The lock of a killed process is released."""
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
        handle = (folder / ".lock").open("w")
    with handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield folder


def fault_of(error: OSError, where: str) -> CtxbenchError:
    """Return the one-line fault for an operating-system error."""
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
    """Write a whole file: to a temporary file beside it, flushed to disk, then renamed.

    If `path` is not a regular file, such as ``/dev/stdout``, it is written to and never replaced.

    Raises:
        MachineFault: if the disk is full. The old file at `path` is kept.
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
    """Return a value as one JSON line with a newline. Keys keep their order; equal data gives equal bytes."""
    return json.dumps(record, ensure_ascii=False, separators=(", ", ": ")) + "\n"


def write_jsonl(path: Path, records: Iterable[object]) -> str:
    """Write JSON Lines atomically, one record at a time; return the hexadecimal SHA-256 of the file."""
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
    """Read a regular file. Links, pipes and devices are errors.

    A link could name a file that its reader may read and its author may not.

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
            "the file is a link, a pipe or a device", where=str(path), cure="put a copy of the file in its place"
        )
    if len(raw) > MAX_TEXT:
        raise InputFault(f"the file is larger than {MAX_TEXT >> 20} MiB", where=str(path), cure="use a smaller file")
    return raw


def read_jsonl(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number from 1, object) of a JSON Lines file, gzipped if it ends with .gz. Blank lines are skipped.

    Raises:
        InputFault: at the first line that is not a JSON object. The message names file and line.
    """
    for number, line in read_lines(path):
        if line.strip():
            where = f"{path}:{number}"
            yield number, json_object(parse_json(line.rstrip("\r\n"), str(path), number), where)


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (number from 1, line with its end) of a UTF-8 file, gzipped if its name ends with .gz, without a BOM.

    Raises:
        InputFault: if the file is missing or not text, a line is larger than `MAX_TEXT`, or a gzip file is broken or
            unpacks to more than `MAX_RATIO` times its size.
    """
    start = 0
    for number, raw in enumerate(_raw_lines(path), 1):
        yield number, _decoded(raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw, f"{path}:{number}", start)
        start += len(raw)


def _raw_lines(path: Path) -> Iterator[bytes]:
    """Yield lines as bytes, split only at newlines: str.splitlines would also cut at U+2028 inside a JSON string."""
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
            raise InputFault("the gzip file is cut off", where=str(path), cure=_WHOLE) from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise InputFault(f"the file is not valid gzip ({error})", where=str(path), cure=_WHOLE) from None


def parse_json(text: str, path: str, line: int) -> Any:
    """Parse a JSON text strictly: no NaN, no repeated field, limited depth and size.

    Args:
        line: the number of the text's first line.

    Raises:
        InputFault: if the text is not such JSON. The message names file and line.
    """
    where = f"{path}:{line}"
    megabytes = (len(text) + sum(text.count(mark) * cost for mark, cost in _MEMORY_OF.items())) >> 20
    if megabytes > MAX_JSON_MEMORY >> 20:
        what = f"the text would take {megabytes} MiB of memory, more than {MAX_JSON_MEMORY >> 20}"
        raise InputFault(what, where=where, cure="write it as JSON Lines (.jsonl), one record per line")
    try:
        value = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_each_field_once)
    except json.JSONDecodeError as error:
        what = f"the text is not complete JSON (column {error.colno}: {error.msg.lower()})"
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
    """Return a JSON value that is an object.

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
    """Return the hexadecimal SHA-256 of bytes, or of a text in UTF-8 (lone surrogates are encoded too)."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    return hashlib.sha256(raw).hexdigest()


def sha256_file(path: Path) -> str:
    """Return the hexadecimal SHA-256 of a file."""
    with explained(path), path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


UTF8 = "utf-8"


class Decoded(NamedTuple):
    """The text of a file."""

    text: str
    encoding: str
    """Python's name of the encoding it was decoded from: ``utf-8``, ``iso8859-1``."""
    whole: bool
    """Whether every byte could be decoded. U+FFFD replaces the other bytes."""


def decode(raw: bytes, declared: str | None) -> Decoded:
    """Decode bytes in their declared encoding, or in UTF-8 if that fails. A byte order mark is removed.

    Args:
        declared: the name of its encoding; None if its declaration cannot be read.
    """
    try:
        if declared is not None:
            name = codecs.lookup(declared).name.removesuffix("-sig")
            return Decoded(raw.decode("utf-8-sig" if name == UTF8 else declared), name, True)
    except (LookupError, UnicodeError):
        pass
    return Decoded(raw.decode("utf-8-sig", "replace"), UTF8, False)


def plain_newlines(text: str) -> str:
    """Return a text with plain newlines instead of those of Windows and old Macs."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
