"""Opening files of records: every kind of file, and every kind of fault."""

import datetime as dt
import gzip
import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import sha256_file
from ctxbench.bench.formats.rows import open_tables

RECORDS = [{"a": 1, "text": "é\u2028x"}, {"a": 2, "text": None}]
LINES = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in RECORDS).encode()


def rows(path: Path) -> list[tuple[str, Any]]:
    [table] = open_tables([str(path)])
    return [(where.removeprefix(str(path)), dict(row)) for where, row in table.rows]


def test_json_lines_may_have_blank_lines_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "tasks.v1.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + LINES.replace(b"\n", b"\r\n\n", 1))
    assert rows(path) == [(":1", RECORDS[0]), (":3", RECORDS[1])]
    [table] = open_tables([str(path)])
    assert (table.name, table.source, table.digest) == ("tasks.v1", str(path), sha256_file(path))


def test_rows_can_be_read_again(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_bytes(LINES)
    [table] = open_tables([str(path)])
    assert list(table.rows) == list(table.rows)
    assert len(list(table.rows)) == 2


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ({"RECORDS": RECORDS, "other": [1]}, ": RECORDS[{}]"),
        (RECORDS, ": [{}]"),
        ({"tasks": RECORDS}, ": tasks[{}]"),
    ],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_json_documents_are_read_as_rows(document: Any, place: str, zipped: bool, tmp_path: Path) -> None:
    path = tmp_path / ("tasks.json.gz" if zipped else "tasks.json")
    text = json.dumps(document, indent=1).encode()
    path.write_bytes(gzip.compress(text) if zipped else text)
    assert rows(path) == [(place.format(number), record) for number, record in enumerate(RECORDS)]
    [table] = open_tables([str(path)])
    assert table.name == "tasks"


def test_a_single_json_record_is_read_as_one_row(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text(json.dumps({"prompt": "x", "list": [1]}))
    assert [row for _, row in rows(path)] == [{"prompt": "x", "list": [1]}]


def test_parquet_rows_are_read_as_json_values(tmp_path: Path) -> None:
    path = tmp_path / "tasks.parquet"
    write_parquet(path, [{"a": 1, "at": dt.datetime(2024, 1, 2, 3), "list": [{"b": "é"}], "f": float("nan")}] * 300)
    found = rows(path)
    assert found[0] == (": row 0", {"a": 1, "at": "2024-01-02T03:00:00", "list": [{"b": "é"}], "f": None})
    assert found[-1][0] == ": row 299"


def write_parquet(path: Path, records: list[dict[str, Any]]) -> None:
    library: Any = importlib.import_module("pyarrow")
    importlib.import_module("pyarrow.parquet").write_table(library.Table.from_pylist(records), path)


BROKEN: dict[str, tuple[str, bytes, tuple[str, ...]]] = {
    "cut line": ("t.jsonl", LINES[:-9], (":2", "not valid JSON", "column")),
    "cut document": ("t.json", b'{"RECORDS": [\n{"a": 1},\n{"a"', (":3", "not valid JSON")),
    "lines in a document": ("t.json", LINES, (":2", "extra data", ".jsonl")),
    "array in lines": ("t.jsonl", b"[1]\n", (":1", "not a JSON object")),
    "number in a list": ("t.json", b'{"RECORDS": [7]}', ("RECORDS[0]", "not a JSON object")),
    "number as a document": ("t.json", b"7", ("[0]", "not a JSON object")),
    "not utf-8": ("t.jsonl", LINES + b'{"a": "\xff"}\n', (":3", f"byte {len(LINES) + 7}", "UTF-8")),
    "nul": ("t.jsonl", b'{"a": "\0"}\n', (":1", "byte 7", "NUL")),
    "nul written out": ("t.jsonl", b'{"a": {"b": ["x", "\\u0000"]}}\n', (":1", "field a.b.1", "NUL")),
    "half surrogate": ("t.jsonl", b'{"a": "\\ud800"}\n', (":1", "field a", "surrogate")),
    "nan": ("t.jsonl", b'{"a": NaN}\n', (":1", "NaN is not a number")),
    "number of digits": ("t.jsonl", b'{"a": ' + b"9" * 5000 + b"}\n", (":1", "is not valid JSON")),
    "field twice": ("t.jsonl", b'{"a": {"b": 1, "c": 2, "b": 3}}\n', (":1", "the field 'b' occurs twice")),
    "deep": ("t.jsonl", b'{"a": ' + b"[" * 100_000 + b"\n", (":1", "nested too deeply")),
    "deep, but not for a parser": ("t.jsonl", b'{"a": ' + b"[" * 200 + b"]" * 200 + b"}", (":1", "nested too deeply")),
    "a small document of many values": (
        "t.json",
        b"[" + b"[]," * 5_000_000 + b"[]]",
        (":1", "MiB of memory", ".jsonl"),
    ),
    "a small line of many values": ("t.jsonl", b'{"a": [' + b"{}," * 3_000_000 + b"{}]}", (":1", "MiB of memory")),
    "no gzip": ("t.jsonl.gz", LINES, ("t.jsonl.gz", "not valid gzip")),
    "gzip cut": ("t.jsonl.gz", gzip.compress(LINES)[:-9], ("t.jsonl.gz", "gzip data ends too early")),
    "gzip damaged": ("t.jsonl.gz", gzip.compress(LINES)[:10] + b"\xff" * 60, ("t.jsonl.gz", "not valid gzip")),
    "no parquet": ("t.parquet", LINES, ("t.parquet", "not valid Parquet")),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "line", "count", "words"),
    [
        ("t.jsonl.gz", b" " * (1 << 20), 65, (":1", "the line is larger than 64 MiB", "one record per line")),
        ("t.jsonl.gz", b" " * 1023 + b"\n", 150_000, ("unpacks to more than 200 times its size", "unpack it")),
        ("t.json.gz", b" " * 1023 + b"\n", 70_000, ("is larger than 64 MiB", ".jsonl")),
        ("t.json", b" " * 1023 + b"\n", 70_000, ("is larger than 64 MiB", ".jsonl")),
    ],
)
def test_a_file_that_would_exhaust_memory_is_refused(
    tmp_path: Path, name: str, line: bytes, count: int, words: tuple[str, ...]
) -> None:
    path = tmp_path / name
    with gzip.open(path, "wb", compresslevel=6) if name.endswith(".gz") else path.open("wb") as out:
        for _ in range(count):
            out.write(line)
    with pytest.raises(InputFault) as caught:
        rows(path)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.slow
def test_a_gzip_file_of_ordinary_records_is_not_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl.gz"
    record = json.dumps({"code": "\n".join(f"    total_{n} = apply_tax(cart_{n}, rate)" for n in range(50))})
    path.write_bytes(gzip.compress(f"{record}\n".encode() * 30_000))
    assert path.stat().st_size < 500_000
    assert sum(1 for _ in rows(path)) == 30_000


def test_a_parquet_file_that_would_exhaust_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.parquet"
    write_parquet(path, [{"a": "x" * 100_000, "b": number} for number in range(300)])
    assert path.stat().st_size < 50_000
    monkeypatch.setattr("ctxbench.bench.formats.rows._BATCH_BYTES", 1 << 20)
    assert [row["b"] for _, row in rows(path)] == list(range(300))
    monkeypatch.setattr("ctxbench.bench.formats.rows.MAX_COLUMN", 50_000)
    with pytest.raises(InputFault, match=r"t\.parquet: a column has .* in one row group.*row_group_size"):
        rows(path)


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file_is_refused_in_one_line(kind: str, tmp_path: Path) -> None:
    name, data, words = BROKEN[kind]
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(InputFault) as caught:
        rows(path)
    said = str(caught.value)
    assert said.startswith(str(path)) and caught.value.cure and "\n" not in said
    for word in words:
        assert word in said


def test_a_truncated_parquet_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write_parquet(path, [{"a": 1}] * 10)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputFault, match=r"t\.parquet: the file is not valid Parquet"):
        rows(path)


def test_parquet_values_that_json_cannot_express_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write_parquet(path, [{"a": {"raw": b"x"}}])
    with pytest.raises(InputFault, match=r"row 0: field a\.raw: a value of type bytes is not JSON data"):
        rows(path)
    write_parquet(path, [{"a": "x\0"}])
    with pytest.raises(InputFault, match="row 0: field a: contains a NUL"):
        rows(path)


def test_a_missing_file_or_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputFault, match="no such file"):
        open_tables([str(tmp_path / "gone.jsonl")])
    with pytest.raises(InputFault, match="is a folder"):
        open_tables([str(tmp_path)])


def test_a_missing_library_names_its_install_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(b"PAR1")

    def fail(name: str) -> Any:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr("importlib.import_module", fail)
    [table] = open_tables([str(path)])
    with pytest.raises(InputFault, match=r"not installed; pip install 'ctxbench\[parquet\]'"):
        list(table.rows)
