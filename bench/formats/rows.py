"""Opens files of records: Parquet, and JSON Lines and JSON documents, which may be gzipped."""

from __future__ import annotations

import datetime as dt
import importlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ctxbench.bench.checking import storable
from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import MAX_TEXT, explained, json_object, parse_json, read_jsonl, read_lines, sha256_file
from ctxbench.bench.formats import Row, Table

_ENDINGS = (".gz", ".jsonl", ".json", ".parquet")
_AS_LINES = "write it as JSON Lines (.jsonl), one record per line"
_BATCH = 256
_BATCH_BYTES = 256 << 20
"""Maximum bytes of the rows read at once, if all values are as large as their column allows."""
MAX_COLUMN = 512 << 20
"""Maximum unpacked bytes of a column in a row group."""


def open_tables(refs: Sequence[str]) -> list[Table]:
    """Open files of records. Each iteration over a table's rows reads its file again.

    Args:
        refs: paths. ``.parquet`` and ``.json`` (an array, an object with a list, or one record) name these formats.
            Others are JSON Lines. All but Parquet may end with ``.gz``.

    Raises:
        InputFault: if a file is missing or, while rows are read, a record is malformed.
    """
    return [_file(ref) for ref in refs]


def _file(ref: str) -> Table:
    path = Path(ref)
    digest = sha256_file(path)
    kind = path.name.removesuffix(".gz")
    if kind.endswith(".parquet"):
        return Table(name=_name(path), source=ref, digest=digest, rows=Rows(lambda: parquet(path)))
    read = _document if kind.endswith(".json") else _lines
    return Table(name=_name(path), source=ref, digest=digest, rows=Rows(lambda: read(path)))


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
            raise InputFault(f"the file is larger than {MAX_TEXT >> 20} MiB", where=str(path), cure=_AS_LINES)
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
    if not isinstance(document, dict):
        return "", document if isinstance(document, list) else [document]
    lists = {key: value for key, value in document.items() if isinstance(value, list)}
    if "RECORDS" in lists:
        return "RECORDS", lists["RECORDS"]
    if len(document) == 1 and lists:
        return next(iter(lists.items()))
    return "", [document]


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a file. Each iteration reads the file again."""

    read: Callable[[], Iterator[Row]]

    def __iter__(self) -> Iterator[Row]:
        return self.read()


def parquet(path: Path) -> Iterator[Row]:
    """Yield the rows of a Parquet file.

    Raises:
        InputFault: if pyarrow is not installed, the file is not valid Parquet, a column is larger than `MAX_COLUMN`, or
            JSON cannot express a value.
    """
    library = _library("pyarrow.parquet", str(path))
    broken: type[Exception] = importlib.import_module("pyarrow").ArrowException
    number = 0
    try:
        with explained(path), library.ParquetFile(path) as opened:
            for batch in opened.iter_batches(_rows_at_once(opened.metadata, path)):
                for row in batch.to_pylist():
                    where = f"{path}: row {number}"
                    yield where, _plain_row(row, where)
                    number += 1
    except broken as error:
        what = f"the file is not valid Parquet ({_first_line(error)})"
        raise InputFault(what, where=str(path), cure="the file may be cut off; fetch it again") from None


def _rows_at_once(metadata: Any, path: Path) -> int:
    """Return how many rows fit into memory. A value that is stored once may occur in every row."""
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    columns = (group.column(number) for group in groups for number in range(group.num_columns))
    largest = max((column.total_uncompressed_size for column in columns), default=0)
    if largest > MAX_COLUMN:
        what = f"a column has {largest >> 20} MiB in one row group; the limit is {MAX_COLUMN >> 20} MiB"
        raise InputFault(what, where=str(path), cure="write smaller row groups (pyarrow: row_group_size=1000)")
    return max(1, min(_BATCH, _BATCH_BYTES // max(1, largest)))


def _library(module: str, where: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        what = f"reading the file needs the package {module.partition('.')[0]}, which is not installed"
        raise InputFault(what, where=where, cure="pip install 'ctxbench[parquet]'") from None


def _plain_row(row: dict[str, Any], where: str) -> dict[str, Any]:
    return storable({key: _plain(value, key, where) for key, value in row.items()}, where)


def _plain(value: Any, field: str, where: str) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return None  # pandas writes NaN for a missing number
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, dict):
        return {key: _plain(member, f"{field}.{key}", where) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(member, f"{field}.{number}", where) for number, member in enumerate(value)]
    what = f"field {field}: a value of type {type(value).__name__} is not JSON data"
    raise InputFault(what, where=where, cure="leave that column out of the file")


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).partition("\n")[0][:300]
