"""Open files of records: JSON Lines, JSON documents, both also gzipped, Parquet, and data sets of a hub.

JSON Lines and Parquet are streamed; a JSON document is read whole. Every fault is one line that names the
file and the line, the byte or the record. What a record means is its format's business.
"""

from __future__ import annotations

import datetime as dt
import importlib
import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.files import MAX_TEXT, explained, json_object, parse_json, read_jsonl, read_lines, sha256_file
from ctxbench.bench.formats.checking import storable
from ctxbench.bench.formats.types import Row, Table

HUB = "hub:"
"""Begins the name of a hub's data set, ``hub:OWNER/NAME`` or ``hub:OWNER/NAME/CONFIG``."""
_ENDINGS = (".gz", ".jsonl", ".json", ".parquet")
_AS_LINES = "write it as JSON Lines (.jsonl), a record a line"
_BATCH = 256
"""Rows that are read at once, at most."""
_BATCH_BYTES = 256 << 20
"""Bytes that they may take if each of their values is as large as its column allows."""
MAX_COLUMN = 512 << 20
"""Bytes of one column in one group of rows, unpacked: a page is read whole."""
_COMMIT = re.compile(r"[0-9a-f]{40}")
_DATA_SET = re.compile(r"hub:[\w.-]+/[\w.-]+(/[\w.-]+)?")


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
    return [hub(ref, revision, split) if ref.startswith(HUB) else _file(ref) for ref in refs]


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


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that are read anew whenever they are gone through."""

    read: Callable[[], Iterator[Row]]

    def __iter__(self) -> Iterator[Row]:
        """Read from the first row."""
        return self.read()


def parquet(path: Path) -> Iterator[Row]:
    """Yield the rows of a Parquet file, some at a time.

    Raises:
        InputFault: if it is none, is cut, or holds what JSON cannot.
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
        what = f"is no sound Parquet file ({_first_line(error)})"
        raise InputFault(what, where=str(path), cure="the file may be cut off; fetch it again") from None


def _rows_at_once(metadata: Any, path: Path) -> int:
    """Return how many rows fit into memory: a value that is stored once may stand in every row."""
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    columns = (group.column(number) for group in groups for number in range(group.num_columns))
    largest = max((column.total_uncompressed_size for column in columns), default=0)
    if largest > MAX_COLUMN:
        what = f"holds {largest >> 20} MiB of one column in one group of rows, more than {MAX_COLUMN >> 20}"
        raise InputFault(what, where=str(path), cure="write it with smaller row groups (pyarrow: row_group_size=1000)")
    return max(1, min(_BATCH, _BATCH_BYTES // max(1, largest)))


def hub(ref: str, revision: str | None, split: str | None) -> Table:
    """Open a data set of a hub at one commit; it is fetched now, into the library's own cache.

    Args:
        ref: ``hub:OWNER/NAME`` or ``hub:OWNER/NAME/CONFIG``.
        revision: its commit, all 40 digits.
        split: which of its splits; None if it has one only.

    Raises:
        InputFault: if there is no such data set, configuration or split, or the revision is no commit.
        MachineFault: if the hub cannot be reached.
    """
    if not _DATA_SET.fullmatch(ref):
        raise InputFault("is no data set's name", where=ref, cure="write hub:OWNER/NAME or hub:OWNER/NAME/CONFIG")
    if revision is None or not _COMMIT.fullmatch(revision):
        what = "no revision is given" if revision is None else f"the revision {revision!r} is no whole commit"
        raise InputFault(what, where=ref, cure="pin it: --revision COMMIT, all 40 digits; branches and tags move on")
    owner, name, *config = ref.removeprefix("hub:").split("/")
    data_set = _loaded(ref, f"{owner}/{name}", *config, split=split, revision=revision)
    if isinstance(data_set, dict):
        if len(data_set) != 1:
            choice = ", ".join(sorted(data_set))
            raise InputFault(f"has the splits {choice}", where=ref, cure="choose one with --split")
        [(split, data_set)] = data_set.items()
    source = f"{ref} ({split})"

    def rows() -> Iterator[Row]:
        for number, row in enumerate(data_set):
            where = f"{ref}: {split}[{number}]"
            yield where, _plain_row(row, where)

    return Table(name="_".join([name, *config]), source=source, digest=revision, rows=Rows(rows))


def _loaded(ref: str, *arguments: str, split: str | None, revision: str) -> Any:
    library = _library("datasets", ref)
    missing: type[Exception] = importlib.import_module("datasets.exceptions").DatasetNotFoundError
    try:
        return library.load_dataset(*arguments, split=split, revision=revision)
    except (missing, FileNotFoundError) as error:
        cure = "check the name and the commit; a private data set wants its token in HF_TOKEN"
        raise InputFault(f"cannot be found ({_first_line(error)})", where=ref, cure=cure) from None
    except ValueError as error:  # no such configuration, no such split
        cure = "check the configuration (hub:OWNER/NAME/CONFIG) and --split"
        raise InputFault(_first_line(error), where=ref, cure=cure) from None
    except OSError as error:  # connections, time-outs, answers of 500, the offline mode, a full disk
        offline = " (HF_HUB_OFFLINE is set)" if os.environ.get("HF_HUB_OFFLINE") else ""
        cure = f"check the network{offline}, or fetch the data set's files by hand and give their paths"
        raise MachineFault(f"cannot be fetched ({_first_line(error)})", where=ref, cure=cure) from None


def _library(module: str, where: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        what = f"needs the package {module.partition('.')[0]}, which is not installed"
        raise InputFault(what, where=where, cure="pip install 'ctxbench[datasets]'") from None


def _plain_row(row: dict[str, Any], where: str) -> dict[str, Any]:
    return storable({key: _plain(value, key, where) for key, value in row.items()}, where)


def _plain(value: Any, field: str, where: str) -> Any:
    """Return a value of a column as JSON data: moments as ISO text, sequences as lists."""
    if isinstance(value, float) and math.isnan(value):
        return None  # how pandas writes that a number is missing
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, dict):
        return {key: _plain(member, f"{field}.{key}", where) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(member, f"{field}.{number}", where) for number, member in enumerate(value)]
    what = f"field {field}: a {type(value).__name__} is no JSON data"
    raise InputFault(what, where=where, cure="leave that column out of the file")


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).partition("\n")[0][:300]
