"""No hostile strategy learns an answer or changes anything outside its cell.

Each runs as root and as a plain user, with and without namespaces.
"""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ctxbench.sandbox.guest import landlock
from tests.harness.cells.confined import granted
from tests.harness.cells.hostile import ring
from tests.harness.cells.hostile.case import ACTS, CHANNELS, Act, Channel
from tests.harness.cells.hostile.corpus import NOTE
from tests.helpers.extras import missing

pytestmark = pytest.mark.slow

LONG = ("root-namespaces", "root-landlock")
SETTINGS = ("plain-namespaces", "plain-landlock", *(pytest.param(name, marks=pytest.mark.long) for name in LONG))


@pytest.fixture(scope="module", params=SETTINGS)
def setting(request: pytest.FixtureRequest) -> str:
    """Return the name of a user and an isolation; skip it where one of them is not available."""
    name: str = request.param
    if not landlock.abi() or (name.endswith("namespaces") and not granted()):
        missing(f"the kernel does not grant what {name} needs")
    if name.startswith("root") and os.geteuid() != 0:
        missing("not root")
    return name


@pytest.fixture(scope="module")
def report(setting: str) -> dict[str, Any]:
    """Return the outcome of the whole corpus in a setting."""
    return ring.run(*setting.split("-"))


def test_there_are_enough_cases_and_their_names_are_unique() -> None:
    names = [case.name for case in (*CHANNELS, *ACTS)]
    assert len(set(names)) == len(names) >= 70


def test_the_corpus_runs_with_the_isolation_of_its_setting(report: dict[str, Any], setting: str) -> None:
    assert report["isolation"] == "process+landlock" + "+namespaces" * setting.endswith("namespaces")


@pytest.mark.parametrize("case", CHANNELS, ids=lambda case: case.name)
def test_no_cell_passes_a_note_to_another(report: dict[str, Any], setting: str, case: Channel) -> None:
    outcome = report[case.name]
    assert "fault" not in outcome, outcome
    assert not re.search(r"\b[A-Z]\w+Error: ", outcome["before"]), "the case itself is broken"
    # A channel that has closed belongs no longer in docs/isolation.md.
    assert (outcome["after"] != outcome["before"]) is (setting in case.open_in)
    assert setting in case.open_in or NOTE not in outcome["after"]


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.name)
def test_hostile_acts_are_refused_or_harmless(report: dict[str, Any], setting: str, act: Act) -> None:
    expected = act.without if act.without and setting.endswith("landlock") else act.says
    assert re.fullmatch(expected, str(report[act.name])), report[act.name]


def test_a_spy_on_every_channel_builds_the_prompts_of_infile(report: dict[str, Any]) -> None:
    """With the prompts of ``lc.infile``, the spy also has its scores."""
    assert report["spied"] == [True] * len(report["spied"]) and report["spied"]


def test_other_processes_and_the_home_do_not_change(report: dict[str, Any]) -> None:
    assert report["after"] == report["before"]
    assert report["references"] == ring.ANSWERS


def test_printed_text_is_shown_without_control_codes_and_bounded(report: dict[str, Any]) -> None:
    printed = report["stderr"]
    assert "zqcodes" in printed and "zqflood" in printed and "␛]0;zqtitle␇" in printed
    assert not set(printed) & {"\x1b", "\x07", "\r", "\x9b"}
    assert len(printed) < 200_000 and "is not shown" in printed


def test_a_strategy_cannot_type_into_the_terminal(tmp_path: Path) -> None:
    """A strategy must not enter commands for the user, even if the user is root."""
    ring.make(tmp_path, os.geteuid())
    code = (
        "import fcntl, os, sys, termios\nos.setsid()\nfcntl.ioctl(2, termios.TIOCSCTTY, 0)\n"
        "sys.argv[1:] = [sys.argv[1], 'type-into-the-terminal', 'terminal']\n"
        "from pathlib import Path\nfrom tests.harness.cells.hostile import corpus\n"
        "corpus.main(Path(sys.argv[1]), set(sys.argv[2:]))\n"
    )
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, stdin=theirs, stderr=theirs, check=True
        )
        report = json.loads(done.stdout)
        os.set_blocking(theirs, False)
        with pytest.raises(BlockingIOError):
            os.read(theirs, 1)
    finally:
        os.close(ours)
        os.close(theirs)
    [act] = [act for act in ACTS if act.name == "type-into-the-terminal"]
    assert re.fullmatch(act.says, report[act.name]), report[act.name]
    assert report["terminal"]["before"] == report["terminal"]["after"]
