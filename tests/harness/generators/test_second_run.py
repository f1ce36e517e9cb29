"""Stored answers are reused by every strategy, under every set name and in every process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ctxbench.bench.home import Home
from tests.helpers.cells import open_inline
from tests.helpers.second_run import FUNCTIONS, LINES, every_spec, everything


@pytest.mark.long
@pytest.mark.slow
def test_a_second_run_of_any_strategy_sends_no_requests(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    first = everything(home, (LINES[0], FUNCTIONS[0]), cells=open_inline)
    assert {fault for _, _, fault in first.values()} == {""}
    assert {new for _, new, _ in first.values()} == {3}
    asked = {spec for spec, (count, _, _) in first.items() if count}
    # Strategies with equal prompts share a request, but most prompts are unique.
    assert len(asked) > 30 and sum(count for count, _, _ in first.values()) > 100
    same = everything(home, (LINES[0], FUNCTIONS[0]), cells=open_inline)
    assert set(same.values()) == {(0, 0, "")}
    shorter = everything(home, (LINES[0], FUNCTIONS[0]), cells=open_inline, limit=2)
    assert {spec: row for spec, row in shorter.items() if row != (0, 2, "")} == {}
    # Run everything again with another hash seed, other cells and another name of the set.
    command = [sys.executable, "-m", "tests.helpers.second_run", str(home.root)]
    env = {**os.environ, "PYTHONHASHSEED": "7"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=env)
    assert done.returncode == 0, done.stderr
    fresh = json.loads(done.stdout)
    assert {spec: row for spec, row in fresh.items() if row != [0, 3, ""]} == {} and fresh.keys() == first.keys()


def test_every_family_of_strategies_is_included() -> None:
    found = every_spec()
    assert len(found) == len(set(found)) > 40
    for name in ("aim(", "lc.infercom(", "lc.crosscodeeval", "icl.selfdoc_ragot_s(", "base.cocogen(", "gold"):
        assert any(spec.startswith(name) for spec in found), name
