"""`ctxbench diagnose` on a stored run, with the generator that can price."""

import json
from pathlib import Path

import pytest

from ctxbench.bench.home import Home
from tests.helpers.cli import run_cli
from tests.helpers.sets import make_set


@pytest.fixture
def home(tmp_path: Path) -> str:
    home = Home(tmp_path / "home")
    make_set(home, per_repo=2)
    return str(home.root)


def test_a_run_without_results_is_one_line(home: str) -> None:
    result = run_cli("diagnose", "abc", "--home", home)
    assert (result.code, result.err.count("\n")) == (1, 1) and "no results yet" in result.err


@pytest.mark.slow
def test_blocks_are_priced_and_shown(home: str) -> None:
    ran = run_cli("run", "--home", home, "--samples", "demo", "--generator", "incontext",
                  "--strategy", "lc.repocoder(iterations=1)", "--strategy", "lc.infile")  # fmt: skip
    assert ran.code == 0, ran.err
    repocoder, infile = (line.split()[0] for line in ran.out.splitlines())
    first = run_cli("diagnose", repocoder, "--home", home, "--limit", "1")
    assert first.code == 0 and "samples 1  new 1  left 3" in first.out and "similar" in first.out, first
    again = run_cli("diagnose", repocoder[:8], infile, "--home", home, "--format", "json")
    one, other = map(json.loads, again.out.splitlines())
    assert (one["new"], one["left"], len(one["samples"])) == (3, 0, 4) and other["samples"] == {}
    assert any(block["gain"] > 0 for blocks in one["samples"].values() for block in blocks)
    rows = json.loads(run_cli("leaderboard", "--home", home, "--format", "json").out)
    shown = {row["strategy"]: row for row in rows}
    assert shown["lc.repocoder(iterations=1)"]["block_gain"]["mean"] > 0 and "block_gain" not in shown["lc.infile"]
    table = run_cli("leaderboard", "--home", home, "--diagnostics").out
    assert "api_recall" not in table and "context_waste % [95%]" in table and "block_gain bits [95%]" in table
    unknown = run_cli("diagnose", "zzz", "--home", home)
    assert unknown.code == 1 and "zzz" in unknown.err
