"""`ResultFrame`: what notebooks and files are given."""

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ctxbench.bench.errors import InputFault
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


def test_columns_of_two_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="one length"):
        ResultFrame({"a": [1], "b": [1, 2]})


def test_pandas_and_arrow_take_it() -> None:
    frame = pd.DataFrame(FRAME)
    assert list(frame.columns) == list(FRAME) and frame["es"].isna().tolist() == [False, True]
    # Through Arrow's own interface, as polars and duckdb read it.
    assert pa.table(FRAME).to_pydict() == {name: list(values) for name, values in FRAME.items()}


def test_it_is_written_as_csv_json_lines_and_parquet(tmp_path: Path) -> None:
    assert FRAME.to_csv() == 'sample,es,calls,mark\na,0.5,1,\n"b, ""c""",,2,broken\n'
    assert [json.loads(line) for line in FRAME.to_jsonl().splitlines()] == list(FRAME.records())
    FRAME.write_parquet(tmp_path / "scores.parquet")
    assert pq.read_table(tmp_path / "scores.parquet").to_pylist() == list(FRAME.records())


def test_without_pyarrow_parquet_is_a_fault_with_a_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputFault, match="pyarrow"):
        FRAME.write_parquet(tmp_path / "scores.parquet")


def test_a_notebook_shows_the_first_rows_and_no_markup_of_others() -> None:
    frame = ResultFrame({"strategy": [f"<b>{place}</b>" for place in range(21)], "es": [1 / 3] * 21})
    shown = frame._repr_mimebundle_()
    assert shown["text/html"].count("<tr>") == 21 and "<b>" not in shown["text/html"]
    assert "&lt;b&gt;19" in shown["text/html"] and "&lt;b&gt;20" not in shown["text/html"]
    assert "the first 20 of 21 rows" in shown["text/html"] and "<td>0.333333</td>" in shown["text/html"]


def test_a_board_is_shown_as_its_own_text() -> None:
    frame = ResultFrame({"a": [1]}, markdown="## Board")
    assert frame._repr_mimebundle_() == {"text/markdown": "## Board"} and repr(frame) == "## Board"


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "＝1", "\ufeff=1", "\u200b=1", "\0=1"]
)
def test_no_text_of_a_csv_file_is_a_formula(text: str) -> None:
    frame = ResultFrame.of_records([{text: text, "value": -0.5}])
    head, row = csv.reader(io.StringIO(frame.to_csv(), newline=""))
    cell = "'" + text.replace("\r", " ")
    assert (head, row) == ([cell, "value"], [cell, "-0.5"])
