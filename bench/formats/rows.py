"""Open files of records: JSON Lines, JSON documents, both also gzipped, Parquet, and data sets of a hub.

JSON Lines and Parquet are streamed; a JSON document is read whole. Every fault is one line that names the
file and the line, the byte or the record. What a record means is its format's business.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import MAX_TEXT, json_object, parse_json, read_jsonl, read_lines, sha256_file
from ctxbench.bench.formats import columns
from ctxbench.bench.formats.checking import storable
from ctxbench.bench.formats.types import Row, Table

HUB = "hub:"
"""Begins the name of a hub's data set, ``hub:OWNER/NAME`` or ``hub:OWNER/NAME/CONFIG``."""
_ENDINGS = (".gz", ".jsonl", ".json", ".parquet")
_AS_LINES = "write it as JSON Lines (.jsonl), a record a line"


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


def _lines(path: Path) -> Iterator[Row]:
    for number, record in read_jsonl(path):
        where = f"{path}:{number}"
        yield where, storable(record, where)


def _document(path: Path) -> Iterator[Row]:
    pieces, size = [], 0
    for _, line in read_lines(path):
        size += len(line)
        if size > MAX_TEXT:
            raise InputFault(f"is larger than {MAX_TEXT >> 20} MiB", where=str(path), cure=_AS_LINES)
        pieces.append(line)
    text = "".join(pieces)
    pieces.clear()
    if not text.strip():
        return
    document = parse_json(text, str(path), 1)
    del text
    key, rows = _list(document)
    for number, row in enumerate(rows):
        where = f"{path}: {key}[{number}]"
        yield where, storable(json_object(row, where), where)


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
