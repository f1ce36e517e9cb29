"""Whole runs in other tools' formats, and `ResultFrame`, the table for notebooks and files."""

import csv
import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ctxbench.bench.home import Home
from ctxbench.bench.types import Use
from ctxbench.harness.exports import RUN_FORMATS
from ctxbench.harness.frames import ResultFrame
from tests.helpers.cli import Result, assert_fault, run_cli
from tests.helpers.sets import make_set

TEXT, NUMBER = {"type": "string"}, {"type": "number"}
DETAILS = {"type": "object", "additionalProperties": TEXT}
BOUND = {"anyOf": [NUMBER, {"enum": ["Infinity", "-Infinity"]}]}


def fields(*required: str, **known: Any) -> dict[str, Any]:
    """Return the schema of an object. Each field has a schema or a list of its allowed values."""
    properties = {name: {"enum": value} if isinstance(value, list) else value for name, value in known.items()}
    return {"type": "object", "required": list(required), "properties": properties}


MODEL = fields(
    "deployment_type",
    "model_availability",
    deployment_type=["self_deployed", "externally_managed", "unknown"],
    model_availability=["open_weights", "closed_weights", "unknown"],
)
RESULT = fields(
    *("evaluation_name", "source_data", "metric_config", "score_details"),
    source_data=fields("dataset_name", "source_type", source_type=["other"], additional_details=DETAILS),
    metric_config=fields(
        *("lower_is_better", "min_score", "max_score"), score_type=["continuous"], min_score=BOUND, max_score=BOUND
    ),
    score_details=fields("score", score=NUMBER, details=DETAILS),
)
RECORD = {
    "additionalProperties": False,
    **fields(
        *("model_info", "eval_library", "source_metadata", "evaluation_results", "schema_version"),
        **dict.fromkeys(("evaluation_id", "evaluation_timestamp", "retrieved_timestamp"), TEXT),
        schema_version=["0.3.0"],
        source_metadata=fields(
            *("source_type", "source_organization_name", "evaluator_relationship"),
            source_type=["documentation", "evaluation_run"],
            evaluator_relationship=["first_party", "third_party", "collaborative", "other"],
            additional_details=DETAILS,
        ),
        eval_library=fields("name", "version"),
        model_info=fields("name", "id", additional_details=MODEL | {"additionalProperties": TEXT}),
        evaluation_results={"type": "array", "minItems": 1, "items": RESULT},
    ),
}
"""The part of Every Eval Ever's schema 0.3.0 that ctxbench writes. The complete schema has accepted an export."""


def command(home: Home, *arguments: str) -> Result:
    return run_cli(*arguments, "--home", str(home.root))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """Return a home with one run. Its answers look like markup, and a name contains a blank."""
    home = Home(tmp_path_factory.mktemp("exports") / "home")
    uses = (Use(name="apply_tax", module="shop.tax", kind="function"),)
    make_set(home, name="demo", repos=2, per_repo=3, uses=uses)
    ran = command(
        home, "run", "--samples", "demo", "--strategy", "lc.repocoder", "--generator", "scripted(text='<b>apply_tax')"
    )
    assert ran.code == 0, ran.err
    [run] = re.findall(r"^([0-9a-f]{12})  lc\.repocoder", ran.out, re.MULTILINE)
    named = command(home, "runs", "name", run, "mine")
    assert named.code == 0, (named.err, ran.out)
    yield home


def exported(home: Home, name: str, out: Path) -> Path:
    done = command(home, "results", "export", "mine", "--format", name, "--out", str(out))
    assert done.code == 0, done.err
    assert done.out == f"{out}: 6 of 6 samples\n"
    return out


def test_an_every_eval_ever_export_is_valid(home: Home, tmp_path: Path) -> None:
    record = json.loads(exported(home, "every-eval-ever", tmp_path / "a.json").read_text())
    jsonschema.validate(record, RECORD)
    results = {result["metric_config"]["metric_name"]: result for result in record["evaluation_results"]}
    [row] = json.loads(command(home, "leaderboard", "--format", "json").out)
    score = results["es"]["score_details"]
    assert score["score"] == pytest.approx(row["es"]["mean"]) and score["uncertainty"]["num_samples"] == 6
    assert (results["es"]["metric_config"]["min_score"], results["es"]["metric_config"]["max_score"]) == (0.0, 100.0)


@pytest.mark.slow
def test_epochs_of_an_inspect_log_divide_the_calls_of_a_sample(home: Home, tmp_path: Path) -> None:
    home = Home(shutil.copytree(home.root, tmp_path / "home"))
    options = ("--strategy", "lc.repocoder(iterations=2)", "--generator", "scripted(text='x')", "--n", "3")
    ran = command(home, "run", "--samples", "demo", "--limit", "1", *options)
    assert ran.code == 0, ran.err
    out = tmp_path / "log.json"
    assert command(home, "results", "export", ran.out.split()[0], "--format", "inspect", "--out", str(out)).code == 0
    board = json.loads(command(home, "leaderboard", "--format", "json").out)
    [row] = [row for row in board if row["run"] == ran.out.split()[0]]
    epochs = json.loads(out.read_text())["samples"]
    tokens = [usage["output_tokens"] for epoch in epochs for usage in epoch["model_usage"].values()]
    assert len(tokens) == 3 and sum(tokens) == row["tokens_out"]
    # The draft is asked for once.
    assert tokens[0] > tokens[1] == tokens[2]


def test_an_impossible_export_is_refused_with_advice(home: Home, tmp_path: Path) -> None:
    alone = command(home, "run", "--samples", "demo", "--strategy", "lc.infile", "--generator", "none").out.split()[0]
    ended = command(home, "results", "export", alone, "--out", str(tmp_path / "x"), "--format", "ctxbench")
    assert_fault(ended, "has no completions, because no model was asked", "choose --format inspect or every-eval-ever")
    folder = ("results", "export", "mine", "--out", str(tmp_path), "--format")
    assert_fault(command(home, *folder, "inspect"), "the path is a folder", "pass the path of a file: --out FILE")
    assert command(home, *folder[:-1], "--format", "nothing").code == 2
    assert set(RUN_FORMATS) < set(command(home, "results", "export", "--help").out.replace("|", " ").split())


@pytest.mark.long
@pytest.mark.network
@pytest.mark.slow
def test_inspect_reads_an_exported_log(home: Home, tmp_path: Path) -> None:
    """Inspect runs in a separate environment, because the library and its dependencies take 300 MB."""
    log = exported(home, "inspect", tmp_path / "log.json")
    python = tmp_path / "venv" / "bin" / "python"
    install = ["pip", "--python", python, "install", "-q", "--no-compile", "inspect_ai==0.3.285"]
    for words in (["venv", "--without-pip", str(tmp_path / "venv")], install):
        subprocess.run([sys.executable, "-m", *words], check=True, capture_output=True)
    code = (
        "import json, sys; from inspect_ai.log import read_eval_log; log = read_eval_log(sys.argv[1]); "
        "first = log.samples[0]; print(json.dumps([log.status, len(log.samples), first.output.completion, "
        "first.target, first.scores['es'].value, {s.name: s.metrics['mean'].value for s in log.results.scores}]))"
    )
    done = subprocess.run([python, "-c", code, log], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    status, count, completion, target, score, means = json.loads(done.stdout.splitlines()[-1])
    [row] = json.loads(command(home, "leaderboard", "--format", "json").out)
    assert (status, count, completion) == ("success", 6, "<b>apply_tax") and target.startswith("apply_tax(")
    assert 0 < score < 1 and means["es"] == pytest.approx(row["es"]["mean"])


RECORDS: list[dict[str, Any]] = [
    {"sample": "a", "es": 0.5, "calls": 1},
    {"sample": 'b, "c"', "es": None, "calls": 2, "mark": "broken"},
]
FRAME = ResultFrame.of_records(RECORDS)


def test_records_become_columns_with_none_for_missing_values() -> None:
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
def test_pandas_keeps_the_type_of_a_column_with_gaps(values: tuple[Any, ...], dtype: str, expected: list[Any]) -> None:
    column = ResultFrame({"a": values}).to_user()["a"]
    assert column.dtype == dtype
    assert [None if value is pd.NA or value != value else value for value in column] == expected


def test_a_frame_becomes_an_arrow_table_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = ResultFrame(FRAME, {"headline": "b leads"})
    assert frame.to_user().attrs == {"headline": "b leads"} and list(frame.to_user()) == list(FRAME)
    monkeypatch.setitem(sys.modules, "pandas", None)
    table = frame.to_user()
    assert isinstance(table, pa.Table) and table.to_pylist() == list(FRAME.records())
    assert table.schema.metadata == {b"headline": b"b leads"}
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert frame.to_user() is frame


def test_a_frame_is_written_as_csv_json_lines_and_parquet(tmp_path: Path) -> None:
    assert FRAME.to_csv() == 'sample,es,calls,mark\na,0.5,1,\n"b, ""c""",,2,broken\n'
    assert [json.loads(line) for line in FRAME.to_jsonl().splitlines()] == list(FRAME.records())
    FRAME.write_parquet(tmp_path / "scores.parquet")
    assert pq.read_table(tmp_path / "scores.parquet").to_pylist() == list(FRAME.records())


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "＝1", "\ufeff=1", "\u200b=1", "\0=1"]
)
def test_text_that_looks_like_a_formula_is_quoted_in_csv(text: str) -> None:
    frame = ResultFrame.of_records([{text: text, "value": -0.5}])
    head, row = csv.reader(io.StringIO(frame.to_csv(), newline=""))
    cell = "'" + text.replace("\r", " ")
    assert (head, row) == ([cell, "value"], [cell, "-0.5"])
