"""`import ctxbench`: the commands as functions that return data frames."""

import csv
import io
import json
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import ctxbench
from ctxbench.bench.errors import CtxbenchError, InputFault
from ctxbench.bench.home import Home
from ctxbench.harness.leaderboard.columns import COLUMNS
from ctxbench.sandbox.errors import SandboxUnavailable
from tests.helpers.cli import assert_fault, run_cli
from tests.helpers.sets import make_set

STRATEGIES = ("lc.infile", "lc.random_windows")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home with a run of two strategies on eight samples."""
    home = tmp_path_factory.mktemp("api") / "home"
    make_set(Home(home), repos=2, per_repo=4)
    frame = ctxbench.run("demo", "lc.{infile,random_windows}", "scripted(text=apply_tax)", home=home)
    assert tuple(frame["strategy"]) == STRATEGIES and list(frame["scored"]) == list(frame["new"]) == [8, 8]
    return home


def test_equal_numbers_of_different_types_are_one_run(home: Path) -> None:
    frame = ctxbench.run(
        "demo",
        STRATEGIES,
        "scripted(text=apply_tax)",
        home=home,
        limit=np.int64(8),  # type: ignore[arg-type]
        seed=np.int64(0),  # type: ignore[arg-type]
        temperature=0,
        top_p=np.float32(1),  # type: ignore[arg-type]
    )
    assert list(frame["new"]) == [0, 0] and list(frame["scored"]) == [8, 8]


def test_samples_lists_the_sets_or_the_samples_of_a_set(home: Path) -> None:
    assert list(ctxbench.samples(home=home)["name"]) == ["demo"]
    frame = ctxbench.samples("demo", home=home)
    assert len(frame) == 8 and set(frame["repository"]) == {"shop0", "shop1"}
    assert all(reference.startswith("apply_tax(") for reference in frame["reference"])


def test_mean_scores_equal_the_board(home: Path) -> None:
    scores, board = ctxbench.scores("demo", home=home), ctxbench.board("demo", home=home)
    assert len(scores) == 16 and set(scores["status"]) == {"scored"}
    means = scores.groupby("strategy")["es"].mean() * 100
    assert board.set_index("strategy")["es"].to_dict() == pytest.approx(means.to_dict())


def test_the_board_equals_the_leaderboard_command(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXBENCH_HOME", str(home))
    board = ctxbench.board("demo", baseline="lc.random_windows", columns="all")
    options = ("--samples", "demo", "--baseline", "lc.random_windows", "--published", "none")
    printed = run_cli("leaderboard", *options, "--format", "csv").out
    names = printed.partition("\n")[0].split(",")
    assert set(names) < set(board) and {"rank", "p", "difference", "metric_low"} <= set(board) - set(names)
    pd.testing.assert_frame_equal(*(pd.read_csv(io.StringIO(s)) for s in (board[names].to_csv(index=False), printed)))
    shown = run_cli("leaderboard", *options, "--explain").out
    said = " ".join(shown.split())
    for line in (board.attrs["headline"].partition(": ")[2], *board.attrs["notes"].split("\n- ")[1:]):
        assert line.replace("lc.", "") in said.replace("lc.", ""), line


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows, with None for missing values."""
    cells = frame.astype(object)
    rows: list[dict[str, Any]] = cells.where(frame.notna(), None).to_dict("records")
    return rows


@pytest.mark.parametrize(
    ("name", "arguments", "first"),
    [
        ("board", (), "strategy generator samples language n ranked_by metric metric_low metric_high difference"),
        ("scores", (), "strategy generator samples language repository sample level status"),
        ("runs", (), "run name state finished planned"),
        ("compare", STRATEGIES, "run baseline strategy baseline_strategy language metric mean low high"),
    ],
)
def test_columns_can_be_selected_by_name(home: Path, name: str, arguments: tuple[str, ...], first: str) -> None:
    called = partial(getattr(ctxbench, name), *arguments, home=home)
    usual, every = called(), called(columns=("all",))
    assert list(usual)[: len(first.split())] == first.split() and len(usual.columns) <= 20 < len(every.columns)
    some = [every.columns[-1], "strategy"]
    assert list(called(columns=some)) == list(called(columns=", ".join(some))) == some
    for wrong in ("stratgy", ["strategy", 3], 3):
        with pytest.raises(InputFault, match=r"stratgy.*did you mean|'3'|not a list of columns"):
            called(columns=wrong)


def test_by_level_adds_a_row_for_each_level(home: Path) -> None:
    board = ctxbench.board(home=home, by_level=True)
    assert len(board.columns) == 20 and set(board["level"]) > {"all"} and "origin" not in board


def test_every_table_column_can_be_selected_by_name(home: Path) -> None:
    names = [key for key, column in COLUMNS.items() if column.heading]
    assert list(ctxbench.board(home=home, columns=names)) == names


def test_runs_equal_the_runs_command(home: Path) -> None:
    frame = ctxbench.runs("demo", home=home, columns="all")
    listed = json.loads(run_cli("runs", "--home", str(home), "--format", "json").out)
    for name in ("run", "state", "finished", "command", "strategy", "seed"):
        assert list(frame[name]) == [record[name] for record in listed]
    assert str(frame["last_began"].dtype).endswith("UTC]") and frame["last_began"].is_monotonic_decreasing


def test_a_comparison_equals_the_compare_command(home: Path) -> None:
    frame = ctxbench.compare("lc.infile", "lc.random_windows", home=home)
    printed = json.loads(run_cli("compare", *STRATEGIES, "--home", str(home), "--format", "json").out)
    names = ["mean", "low", "high", "p", "pairs", "wins"]
    assert _records(frame[names]) == [{name: record["difference"][name] for name in names} for record in printed]
    assert list(frame["metric"]) == [record["metric"] for record in printed]
    # The same pair has the same p and interval on the board.
    columns = ["difference_es_low", "difference_es_high", "difference_es_p"]
    of_board = ctxbench.board("demo", home=home, columns=["strategy", *columns]).set_index("strategy")
    of_es = frame.set_index("metric").loc["es", ["low", "high", "p"]]
    assert list(of_es) == list(of_board.loc["lc.random_windows", columns])


def test_results_are_imported(home: Path, tmp_path: Path) -> None:
    ids = list(ctxbench.samples("demo", home=home)["sample"])
    file = tmp_path / "theirs.jsonl"
    file.write_text("".join(json.dumps({"sample": id_, "text": "apply_tax(1)"}) + "\n" for id_ in ids))
    call = partial(ctxbench.import_results, file, format="ctxbench", samples="demo", db=f"sqlite:///{tmp_path}/r.db")
    for new in (8, 0):
        frame = call(home=home, strategy="theirs")
        assert frame.drop(columns="run").values.tolist() == [["demo", "theirs", "theirs", 1, 8, new]]
    file.write_text("{}\n")
    with pytest.raises(InputFault, match=re.escape(str(file))):
        call(home=home)


def test_the_package_exports_only_public_names() -> None:
    names = dir(ctxbench)
    functions = ("board", "build", "compare", "import_results", "run", "runs", "samples", "scores")
    assert {*functions, "strategy", "Context"} <= set(names)
    assert not [name for name in names if name.startswith("_") or name in ("contextlib", "bench", "harness")]
    assert issubclass(ctxbench.UnknownName, ctxbench.InputFault) and CtxbenchError is ctxbench.CtxbenchError


def test_the_scores_command_equals_the_function(home: Path, tmp_path: Path) -> None:
    place = ("--home", str(home), "--samples", "demo")
    rows = list(csv.DictReader(io.StringIO(run_cli("scores", *place).out)))
    records = [json.loads(line) for line in run_cli("scores", *place, "--format", "jsonl").out.splitlines()]
    parquet = tmp_path / "scores.parquet"
    assert run_cli("scores", *place, "--format", "parquet", "--out", str(parquet)).code == 0
    frame = ctxbench.scores("demo", home=home, columns="all")
    assert records == _records(frame) == pq.read_table(parquet).to_pylist()
    assert [row["sample"] for row in rows] == [record["sample"] for record in records]
    assert run_cli("scores", *place, "--format", "parquet").code == 2
    assert_fault(run_cli("scores", "--home", str(home), "--samples", "dem"), "demo")


@pytest.mark.parametrize(
    ("name", "wrong", "said"),
    [
        ("run", {"temperature": -1}, "'--temperature': -1.0 is not in the range x>=0"),
        ("run", {"strategy_seconds": float("inf")}, "inf is not a finite number"),
        ("run", {"limit": 1.5}, "'--limit': '1.5' is not a valid integer"),
        ("run", {"n": 10_000}, "10000 is not in the range 1<=x<=9999"),
        ("run", {"sandbox": "boxes"}, "'boxes' is not one of docker"),
        ("run", {"strategies": []}, "Missing option '--strategy'"),
        ("run", {"samples": "dmeo"}, "did you mean demo?"),
        ("board", {"published": True}, "'True' is not one of 'auto', 'all', 'none'"),
        ("board", {"by_level": "yes"}, "'--by-level' does not take a value"),
        ("board", {"k": 0}, "'0' is not a whole number"),
        ("board", {"baseline": "lc.infle"}, "did you mean lc.infile?"),
        ("scores", {"after": "June"}, "'June' is not a date; write it as 2024-06-01"),
        ("scores", {"profile": 3}, "no metric profile is called '3'"),
        ("scores", {"samples": ["demo", "other"]}, "no sample set of the stored runs is called"),
        ("scores", {"db": 3}, "3: the value is not a database URL"),
        ("runs", {"samples": "dem"}, "did you mean demo?"),
        ("runs", {"home": "/nowhere"}, "no runs are stored"),
        ("samples", {"name": 3}, "no sample set is called '3'"),
        ("compare", {}, "no run is named"),
        ("build", {"name": "new"}, "--repo and --set are both given or both missing; give one of them"),
        ("build", {"name": "new", "repo": "nowhere"}, "no repository is called 'nowhere'"),
        ("build", {"name": "new", "set": "ctxbench-2", "seed": 1}, "--seed needs --repo"),
        ("build", {"name": "-x", "repo": "click"}, "'-x' is not a valid name for a sample set"),
        ("import_results", {}, "FILE or --format is missing; give both, or only --reference"),
        ("import_results", {"reference": 3}, "no set with reference results is called '3'"),
    ],
)
def test_invalid_arguments_raise_a_ctxbench_error(home: Path, name: str, wrong: dict[str, Any], said: str) -> None:
    run = {"samples": "demo", "strategies": "lc.infile", "generator": "scripted(text=x)"} if name == "run" else {}
    before = len(ctxbench.runs(home=home))
    with pytest.raises(CtxbenchError, match=re.escape(said)):
        getattr(ctxbench, name)(**{"home": home, **run, **wrong})
    assert len(ctxbench.runs(home=home)) == before


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), SandboxUnavailable("no engine")])
def test_machine_errors_raise_a_machine_fault(home: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("ctxbench.bench.samples.load", fail)
    with pytest.raises(ctxbench.MachineFault, match="disk is full|no engine"):
        ctxbench.samples("demo", home=home)


@pytest.mark.slow
def test_a_script_needs_no_main_guard(tmp_path: Path) -> None:
    """The generator's processes must not run the script again: such a copy would wait for the first one's samples."""
    make_set(Home(tmp_path / "home"), repos=1, per_repo=2)
    script = tmp_path / "script.py"
    run = f"ctxbench.run('demo', 'lc.infile', 'incontext(workers=2)', home={str(tmp_path / 'home')!r})"
    script.write_text(f"print('begins', flush=True)\nimport ctxbench\nprint(*{run}['scored'])\n")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=60)
    first, run_line, last = done.stdout.splitlines()
    assert (first, last) == ("begins", "2") and "lc.infile" in run_line, done.stderr


@pytest.mark.slow
def test_folders_named_like_packages_beside_a_notebook_are_ignored(home: Path, tmp_path: Path) -> None:
    for room in ("strategies", "bench", "sandbox", "harness", "dashboard"):
        (tmp_path / room).mkdir()
        (tmp_path / room / "__init__.py").write_text("raise RuntimeError('not this one')\n")
    code = f"import ctxbench; print(ctxbench.board('demo', home={str(home)!r})['strategy']); ctxbench.strategy"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and all(name in done.stdout for name in STRATEGIES), done.stderr


def test_importing_strategy_loads_no_heavy_packages() -> None:
    code = (
        "import sys; from ctxbench import Context, strategy; print('sqlalchemy' in sys.modules, 'click' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
