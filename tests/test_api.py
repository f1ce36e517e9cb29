"""`import ctxbench`: what the commands do, as functions that return frames."""

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import ctxbench
from ctxbench.bench.errors import CtxbenchError, InputFault
from ctxbench.bench.home import Home
from tests.helpers.cli import assert_fault, run_cli
from tests.helpers.sets import make_set

STRATEGIES = ("lc.infile", "lc.random_windows")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home with a run of two strategies over eight samples."""
    home = tmp_path_factory.mktemp("api") / "home"
    make_set(Home(home), repos=2, per_repo=4)
    frame = ctxbench.run("demo", "lc.{infile,random_windows}", "scripted(text=apply_tax)", home=home)
    assert frame["strategy"] == STRATEGIES and frame["scored"] == frame["new"] == (8, 8)
    return home


def test_a_second_run_has_nothing_left_to_do(home: Path) -> None:
    frame = ctxbench.run("demo", STRATEGIES, "scripted(text=apply_tax)", home=home)
    assert frame["new"] == (0, 0) and frame["scored"] == (8, 8)


def test_equal_numbers_are_one_run_however_they_are_spelled(home: Path) -> None:
    frame = ctxbench.run(
        "demo",
        STRATEGIES,
        "scripted(text=apply_tax)",
        home=home,
        limit=np.int64(8),  # type: ignore[arg-type]
        n=True,
        seed=np.int64(0),  # type: ignore[arg-type]
        temperature=0,
        top_p=np.float32(1),  # type: ignore[arg-type]
    )
    assert frame["new"] == (0, 0)


def test_samples(home: Path) -> None:
    assert ctxbench.samples(home=home)["name"] == ("demo",)
    frame = ctxbench.samples("demo", home=home)
    assert frame.height == 8 and set(frame["repository"]) == {"shop0", "shop1"}
    assert all(reference.startswith("apply_tax(") for reference in frame["reference"])


def test_scores_are_those_of_the_board(home: Path) -> None:
    scores = pd.DataFrame(ctxbench.scores("demo", home=home))
    board = pd.DataFrame(ctxbench.board("demo", home=home))
    assert len(scores) == 16 and set(scores["status"]) == {"scored"}
    means = scores.groupby("strategy")["es"].mean() * 100
    assert board.set_index("strategy")["es"].to_dict() == pytest.approx(means.to_dict())


def test_the_board_is_the_command_s(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXBENCH_HOME", str(home))
    board = ctxbench.board("demo", baseline="lc.random_windows")
    options = ("--samples", "demo", "--baseline", "lc.random_windows", "--published", "none")
    text = run_cli("leaderboard", *options, "--format", "csv").out
    assert board.to_csv() == text and set(board["baseline"]) == {None, "lc.random_windows"}
    shown = board._repr_mimebundle_()["text/markdown"]
    assert shown == run_cli("leaderboard", *options, "--format", "markdown").out


def test_a_comparison_is_the_command_s(home: Path) -> None:
    frame = ctxbench.compare("lc.infile", "lc.random_windows", home=home)
    printed = json.loads(run_cli("compare", *STRATEGIES, "--home", str(home), "--format", "json").out)
    assert frame["metric"] == tuple(record["metric"] for record in printed)
    for record, row in zip(printed, frame.records(), strict=True):
        assert {name: row[name] for name in ("mean", "low", "high", "p", "pairs", "wins")} == {
            name: record["difference"][name] for name in ("mean", "low", "high", "p", "pairs", "wins")
        }
    assert len(frame) <= 24 and set(frame["baseline_strategy"]) == {"lc.infile"}
    # The same pair has the same p and interval on the board.
    board = next(row for row in ctxbench.board("demo", home=home).records() if row["strategy"] == "lc.random_windows")
    of_es = next(row for row in frame.records() if row["metric"] == "es")
    assert [of_es[part] for part in ("low", "high", "p")] == [
        board[f"difference_es_{part}"] for part in ("low", "high", "p")
    ]
    with pytest.raises(InputFault, match="no run is named"):
        ctxbench.compare(home=home)


def test_names_are_those_that_a_user_needs() -> None:
    names = dir(ctxbench)
    assert {"board", "compare", "run", "samples", "scores", "strategy", "Context"} <= set(names)
    assert not [name for name in names if name.startswith("_") or name in ("os", "operator", "bench", "harness")]


def test_scores_on_the_command_line(home: Path, tmp_path: Path) -> None:
    place = ("--home", str(home), "--samples", "demo")
    rows = list(csv.DictReader(io.StringIO(run_cli("scores", *place).out)))
    records = [json.loads(line) for line in run_cli("scores", *place, "--format", "jsonl").out.splitlines()]
    parquet = tmp_path / "scores.parquet"
    assert run_cli("scores", *place, "--format", "parquet", "--out", str(parquet)).code == 0
    assert records == list(ctxbench.scores("demo", home=home).records()) == pq.read_table(parquet).to_pylist()
    assert [row["sample"] for row in rows] == [record["sample"] for record in records]
    assert run_cli("scores", *place, "--format", "parquet").code == 2
    assert_fault(run_cli("scores", "--home", str(home), "--samples", "dem"), "demo")


def test_faults_are_exceptions_with_a_cure(home: Path) -> None:
    with pytest.raises(InputFault, match="no date"):
        ctxbench.scores("demo", home=home, after="June")
    with pytest.raises(CtxbenchError, match="demo"):
        ctxbench.run("dmeo", "lc.infile", "incontext", home=home)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"temperature": -1}, "temperature is -1; give a number from 0 on"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"temperature": "warm"}, "temperature is 'warm'"),
        ({"top_p": 2}, "top-p is 2; give a number above 0 and at most 1"),
        ({"strategy_seconds": 0}, "strategy-seconds is 0; give a number above 0"),
        ({"strategy_seconds": float("inf")}, "strategy-seconds is inf"),
        ({"strategy_seconds": None}, "strategy-seconds is None"),
        ({"limit": 1.5}, "limit is 1.5; give a whole number"),
        ({"limit": 0}, "limit is 0"),
        ({"n": 0}, "n is 0; give a whole number from 1 to 9999"),
        ({"n": 10_000}, "n is 10000"),
        ({"n": None}, "n is None; give a whole number"),
        ({"seed": -1}, "seed is -1"),
        ({"workers": 0}, "workers is 0"),
        ({"sandbox": "boxes"}, "there is no sandbox 'boxes'"),
        ({"strategies": []}, "no strategy is given"),
    ],
)
def test_what_the_command_refuses_is_no_run(tmp_path: Path, wrong: dict[str, Any], said: str) -> None:
    make_set(Home(tmp_path), repos=1, per_repo=1)
    call: dict[str, Any] = {"strategies": "lc.infile", "generator": "scripted(text=x)", "home": tmp_path, **wrong}
    with pytest.raises(CtxbenchError, match=re.escape(said)):
        ctxbench.run("demo", **call)
    with pytest.raises(CtxbenchError, match="no runs are stored"):
        ctxbench.board(home=tmp_path)


@pytest.mark.slow
def test_a_script_needs_no_guard(tmp_path: Path) -> None:
    """The generator's processes run it no second time: such a copy waited for the samples that the first one had."""
    make_set(Home(tmp_path / "home"), repos=1, per_repo=2)
    script = tmp_path / "script.py"
    run = f"ctxbench.run('demo', 'lc.infile', 'incontext(workers=2)', home={str(tmp_path / 'home')!r})"
    script.write_text(f"print('begins', flush=True)\nimport ctxbench\nprint({run}['scored'])\n")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == "begins\n(2,)\n", done.stderr


@pytest.mark.slow
def test_folders_beside_a_notebook_do_not_disturb_it(home: Path, tmp_path: Path) -> None:
    for room in ("strategies", "bench", "sandbox", "harness", "dashboard"):
        (tmp_path / room).mkdir()
        (tmp_path / room / "__init__.py").write_text("raise RuntimeError('not this one')\n")
    code = f"import ctxbench; print(ctxbench.board('demo', home={str(home)!r})['strategy']); ctxbench.strategy"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and all(name in done.stdout for name in STRATEGIES), done.stderr


def test_an_author_s_import_stays_light() -> None:
    code = (
        "import sys; from ctxbench import Context, strategy; print('sqlalchemy' in sys.modules, 'click' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
