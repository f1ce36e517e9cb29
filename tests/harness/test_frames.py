"""`ResultFrame`: what notebooks and files are given."""

import csv
import io
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ctxbench.harness.frames import ResultFrame

RECORDS: list[dict[str, Any]] = [
    {"sample": "a", "es": 0.5, "calls": 1},
    {"sample": 'b, "c"', "es": None, "calls": 2, "mark": "broken"},
]
FRAME = ResultFrame.of_records(RECORDS)


def test_records_become_columns_and_lack_nothing() -> None:
    assert FRAME == {
        "sample": ("a", 'b, "c"'),
        "es": (0.5, None),
        "calls": (1, 2),
        "mark": (None, "broken"),
    }
    assert FRAME.height == 2 and ResultFrame({}).height == 0
    assert list(FRAME.records()) == [{**RECORDS[0], "mark": None}, RECORDS[1]]
    assert repr(FRAME) == "Frame of 2 rows: sample, es, calls, mark"


@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        ((1, 2), "int64", [1, 2]),
        ((1, None), "Int64", [1, None]),
        ((2**60 + 1, None), "Int64", [2**60 + 1, None]),
        ((0.5, None), "float64", [0.5, None]),
        ((1, 0.5, None), "float64", [1.0, 0.5, None]),
        ((True, None), "boolean", [True, None]),
        ((True, False), "bool", [True, False]),
        ((None, None), "float64", [None, None]),
        (("a", None), "str", ["a", None]),
        ((datetime(2024, 6, 1, tzinfo=UTC), None), "datetime64[us, UTC]", [datetime(2024, 6, 1, tzinfo=UTC), None]),
    ],
)
def test_of_a_column_with_gaps_pandas_keeps_the_kind(values: tuple[Any, ...], dtype: str, expected: list[Any]) -> None:
    column = ResultFrame({"a": values}).to_user()["a"]
    assert column.dtype == dtype
    assert [None if value is pd.NA or value != value else value for value in column] == expected


def test_without_pandas_it_is_an_arrow_table_and_without_pyarrow_it_is_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = ResultFrame(FRAME, {"headline": "b leads"})
    assert frame.to_user().attrs == {"headline": "b leads"} and list(frame.to_user()) == list(FRAME)
    monkeypatch.setitem(sys.modules, "pandas", None)
    table = frame.to_user()
    assert isinstance(table, pa.Table) and table.to_pylist() == list(FRAME.records())
    assert table.schema.metadata == {b"headline": b"b leads"}
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert frame.to_user() is frame


def test_it_is_written_as_csv_json_lines_and_parquet(tmp_path: Path) -> None:
    assert FRAME.to_csv() == 'sample,es,calls,mark\na,0.5,1,\n"b, ""c""",,2,broken\n'
    assert [json.loads(line) for line in FRAME.to_jsonl().splitlines()] == list(FRAME.records())
    FRAME.write_parquet(tmp_path / "scores.parquet")
    assert pq.read_table(tmp_path / "scores.parquet").to_pylist() == list(FRAME.records())


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "＝1", "\ufeff=1", "\u200b=1", "\0=1"]
)
def test_no_text_of_a_csv_file_is_a_formula(text: str) -> None:
    frame = ResultFrame.of_records([{text: text, "value": -0.5}])
    head, row = csv.reader(io.StringIO(frame.to_csv(), newline=""))
    cell = "'" + text.replace("\r", " ")
    assert (head, row) == ([cell, "value"], [cell, "-0.5"])
