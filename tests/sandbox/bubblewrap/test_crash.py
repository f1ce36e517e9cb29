"""Boxes end with their owner if it is killed, and their remains are found."""

import os
import time
from pathlib import Path

import pytest

from ctxbench.sandbox.bubblewrap import cgroups
from ctxbench.sandbox.leftovers import find
from ctxbench.sandbox.ownership import owner
from tests.sandbox.bubblewrap.conftest import Driver
from tests.sandbox.bubblewrap.test_box import gone, groups, with_word

pytestmark = pytest.mark.slow


def test_an_owner_killed_while_boxes_start_leaves_no_processes(run_as: Driver) -> None:
    # bwrap alone leaves its child running if it is killed at the wrong moment.
    word = f"word-{os.getpid()}-{time.monotonic_ns()}"
    owners = []
    for step in range(8):
        with run_as.begin(hold="storm", raw=f"'{word}'\nimport time; time.sleep(600)") as process:
            assert process.stdout and "storm" in process.stdout.readline()
            owners.append(owner(process.pid))
            time.sleep(0.05 + 0.04 * step)
    assert gone(word), [Path(f"/proc/{pid}/cmdline").read_bytes()[:200] for pid in with_word(word)]
    made = {path for each in owners for path in groups(each)}
    for path in cgroups.abandoned():
        if path in made:
            assert not (path / "cgroup.procs").read_text()
            cgroups.remove_abandoned(path)


def test_boxes_of_a_killed_owner_end_and_their_groups_are_found(run_as: Driver, tmp_path: Path) -> None:
    word = f"word-{os.getpid()}-{time.monotonic_ns()}"
    code = f"'{word}'\nimport os, time\nif os.fork() == 0: os.setsid()\nprint(1, flush=True)\ntime.sleep(600)"
    with run_as.begin(hold=2, raw=code) as process:
        assert process.stdout and "2" in process.stdout.readline()
        assert len(with_word(word)) >= 4
        made = groups(owner(process.pid))
        assert bool(made) == run_as.root
        alive = [each.what for each in find(tmp_path)]
        assert not any(str(path) in text for text in alive for path in made)
    assert gone(word)
    found = {each.what: each for each in find(tmp_path)}
    for path in made:
        found[f"control group {path}"].remove()
        assert not path.exists()
