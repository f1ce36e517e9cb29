"""The two programs that say how the code stands: names, and the files on a sample's way."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from ctxbench.bench.home import Home
from scripts import names
from tests.helpers.sets import make_set

ROOT = Path(__file__).resolve().parents[1]


def test_names_are_those_that_something_is_bound_to() -> None:
    tree = ast.parse(
        "class Found:\n    def one(self, told=1):\n        kept = x.asked = 2\n        return [_made for _made in y]"
    )
    assert {name for name in names.bound_names(tree) if names.is_vague(name)} == {
        "Found",
        "one",
        "told",
        "kept",
        "_made",
    }


def test_a_room_over_the_limit_and_a_class_that_stands_twice_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for room in names.ROOMS:
        (tmp_path / room).mkdir()
        (tmp_path / room / "a.py").write_text("path = 1\n")
    monkeypatch.setattr(names, "ROOT", tmp_path)
    assert names.main() == 0
    (tmp_path / "bench" / "a.py").write_text("found = 1\nclass Row: ...\n")
    (tmp_path / "sandbox" / "b.py").write_text("class Row: ...\nclass _Own: ...\n")
    (tmp_path / "harness" / "b.py").write_text("class _Own: ...\n")
    capsys.readouterr()
    assert names.main() == 1
    printed = capsys.readouterr().out
    assert "bench: 1 of 2 names are vague (50.0 %), bench/a.py 1\n" in printed
    assert "class Row stands in bench/a.py, sandbox/b.py\n" in printed
    assert "_Own" not in printed


def test_the_trace_goes_from_the_run_over_the_strategy_to_the_store(tmp_path: Path) -> None:
    home = Home(tmp_path)
    make_set(home)
    command = [sys.executable, "-m", "scripts.trace_sample", "demo", "--home", str(home.root)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    files = [line.split()[1] for line in done.stdout.splitlines()]
    way = ["harness/run/runner.py", "harness/run/attempt.py", "strategies/infile.py", "harness/metrics/__init__.py"]
    assert [file for file in files if file in way] == way
    assert len(files) == len(set(files)) > 30
    assert not (tmp_path / "results.db").exists()
