"""Opens files of records: JSON Lines, JSON documents, both also gzipped, Parquet, and data sets of a hub.

JSON Lines and Parquet are streamed; a JSON document is read whole. Every fault is one line that names the
file and the line, the byte or the record. What a record means is its format's business.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from bench.errors import InputFault
from bench.files import explained, sha256_file
from bench.formats import columns
from bench.formats.checking import unfit
from bench.formats.types import Row, Table

HUB = "hub:"
"""Begins the name of a hub's data set, ``hub:OWNER/NAME`` or ``hub:OWNER/NAME/CONFIG``."""
_ENDINGS = (".gz", ".jsonl", ".json", ".parquet")
_WHOLE = "the file may be cut off; fetch or write it again"


def open_tables(refs: Sequence[str], *, revision: str | None = None, split: str | None = None) -> list[Table]:
    """Open files and data sets; rows are read when they are asked for, once or more often.

    Args:
        refs: paths, by their endings ``.parquet``, ``.json`` (one array, one object with a list, or one record)
            or else JSON Lines, each but Parquet also with ``.gz``; and ``hub:OWNER/NAME[/CONFIG]``.
        revision: the commit of the hub's data sets: all 40 digits, for a branch moves on.
        split: the split of the hub's data sets; needed if one has several.

    Raises:
        InputFault: if a file is missing, or the revision is none; while reading, at the first malformed record.
        MachineFault: if the hub cannot be reached.
    """
    if not any(ref.startswith(HUB) for ref in refs) and (revision or split):
        option = "--revision" if revision else "--split"
        raise InputFault(f"{option} is for data sets of a hub", cure="leave it out, or name one as hub:OWNER/NAME")
    return [columns.hub(ref, revision, split) if ref.startswith(HUB) else _file(ref) for ref in refs]


def _file(ref: str) -> Table:
    path = Path(ref)
    digest = sha256_file(path)
    kind = path.name.removesuffix(".gz")
    if kind.endswith(".parquet"):
        return Table(name=_name(path), source=ref, digest=digest, rows=columns.Rows(lambda: columns.parquet(path)))
    read = _document if kind.endswith(".json") else _lines
    return Table(name=_name(path), source=ref, digest=digest, rows=columns.Rows(lambda: read(path)))


def _name(path: Path) -> str:
    name = path.name
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    return name


def _bytes(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, unzipped, newlines included."""
    with explained(path):
        try:
            with gzip.open(path) if path.name.endswith(".gz") else path.open("rb") as handle:
                yield from handle
        except EOFError:
            raise InputFault("the gzip stream ends before its end", where=str(path), cure=_WHOLE) from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise InputFault(f"is no sound gzip file ({error})", where=str(path), cure=_WHOLE) from None


def _lines(path: Path) -> Iterator[Row]:
    start = 0
    for number, raw in enumerate(_bytes(path), 1):
        where = f"{path}:{number}"
        text = _text(raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw, where, start)
        start += len(raw)
        if text.strip():
            yield where, _record(_parsed(text, str(path), number), where)


def _document(path: Path) -> Iterator[Row]:
    pieces, start = [], 0
    for number, raw in enumerate(_bytes(path), 1):
        pieces.append(_text(raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw, f"{path}:{number}", start))
        start += len(raw)
    text = "".join(pieces)
    pieces.clear()
    if not text.strip():
        return
    document = _parsed(text, str(path), 1)
    del text
    key, rows = _list(document)
    for number, row in enumerate(rows):
        where = f"{path}: {key}[{number}]"
        yield where, _record(row, where)


def _list(document: Any) -> tuple[str, list[Any]]:
    """Return the list of a document with its key: the document itself, or the only list it holds."""
    if not isinstance(document, dict):
        return "", document if isinstance(document, list) else [document]
    lists = {key: value for key, value in document.items() if isinstance(value, list)}
    if "RECORDS" in lists:
        return "RECORDS", lists["RECORDS"]
    if len(document) == 1 and lists:
        return next(iter(lists.items()))
    return "", [document]


def _text(raw: bytes, where: str, start: int) -> str:
    at = raw.find(b"\0")
    if at >= 0:
        raise InputFault(f"byte {start + at} is NUL: this is no text", where=where, cure=_WHOLE)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        what = f"byte {start + error.start} is not UTF-8"
        raise InputFault(what, where=where, cure="save the file as UTF-8") from None


def _parsed(text: str, path: str, number: int) -> Any:
    where = f"{path}:{number}"
    try:
        return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        what = f"not whole JSON (column {error.colno}: {error.msg.lower()})"
        cure = "one JSON object a line belongs in a .jsonl file" if error.msg == "Extra data" else _WHOLE
        raise InputFault(what, where=f"{path}:{number + error.lineno - 1}", cure=cure) from None
    except RecursionError:
        raise InputFault("is nested too deeply", where=where, cure="write it as the benchmark does") from None
    except ValueError as error:  # a constant that is none of JSON's, a number of thousands of digits, a field twice
        raise InputFault(
            f"not sound JSON ({error})", where=where, cure="write it as JSON asks, each field once"
        ) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the field {twice!r} stands twice in one object")
    return found


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def _record(row: object, where: str) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise InputFault("not a JSON object", where=where, cure="write each record as one JSON object")
    fault = unfit(row)
    if fault:
        raise InputFault(fault, where=where, cure="write the text as valid Unicode, without NUL")
    return row
