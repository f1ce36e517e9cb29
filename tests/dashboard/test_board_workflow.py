"""The example board's workflow: its scripts run in bash, and no part of a pull request becomes a command."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from ctxbench.harness.cli.main import cli
from ctxbench.harness.submissions.format import SCORES, VERIFICATION

BOARD = Path(__file__).resolve().parents[2] / "examples" / "board"
TEXT = (BOARD / ".github/workflows/verify.yml").read_text(encoding="utf-8")
WORKFLOW: dict[Any, Any] = yaml.safe_load(TEXT)
STEPS: list[dict[str, Any]] = WORKFLOW["jobs"]["verify"]["steps"]
DOCKER = f"""#!{sys.executable}
import os, sys
from pathlib import Path
with open(os.environ["NOTES"], "a") as notes:
    notes.write(repr(sys.argv[1:]) + "\\n")
if "verify" in sys.argv:
    from ctxbench.harness.submissions.format import read
    read(Path(sys.argv[sys.argv.index("verify") + 1].replace("/board/", "board/", 1)))
"""
"""A program in Docker's place. It records its arguments and reads the package to verify."""


def test_the_workflow_can_only_read_and_pins_its_actions() -> None:
    # YAML 1.1 reads `on` as true.
    assert WORKFLOW["permissions"] == {"contents": "read"} and set(WORKFLOW[True]) == {"pull_request"}
    assert WORKFLOW["defaults"]["run"]["shell"] == "bash" and set(WORKFLOW["jobs"]) == {"verify"}
    assert "permissions" not in WORKFLOW["jobs"]["verify"]
    used = [step for step in STEPS if "uses" in step]
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", step["uses"]) for step in used)
    assert all(step["with"]["persist-credentials"] is False for step in used)
    # Expressions use no text that a stranger chooses. Variables and secrets are empty in a fork's pull request.
    expressions = {"github.event.pull_request.number", "env.CTXBENCH_REPOSITORY", "env.CTXBENCH_REF"}
    assert set(re.findall(r"\$\{\{ (.*?) \}\}", TEXT)) == expressions
    assert not any("${{" in step["run"] or "GITHUB_" in step["run"] for step in STEPS if "run" in step)


def test_the_workflow_calls_commands_that_exist() -> None:
    text = " ".join(step.get("run", "").replace("\\\n", " ") for step in STEPS)
    calls = [shlex.split(call) for call in re.findall(r"docker run[^\n]*? ctxbench-worker ([^\n|]*)", text)]
    assert [call[0] for call in calls] == ["samples", "results", "site-board"]
    for words in calls:
        command: click.Command | None = cli
        while isinstance(command, click.Group):
            command = command.get_command(click.Context(command), words.pop(0))
        assert command is not None
        # Raises if the command lacks an option.
        command.make_parser(click.Context(command)).parse_args(words)


def added(board: Path) -> None:
    """Add an honest package."""
    shutil.copytree(board / "submissions/neighbours", board / "submissions/new")
    (board / "submissions/new" / VERIFICATION).unlink()


def put(path: str, text: str = "x") -> Callable[[Path], object]:
    """Add an honest package and another file."""

    def change(board: Path) -> None:
        added(board)
        (board / path).parent.mkdir(parents=True, exist_ok=True)
        (board / path).write_text(text)

    return change


EVIL = "$(touch${IFS}evil)`touch${IFS}evil`"
PULLED: dict[str, tuple[Callable[[Path], object], str]] = {
    "an honest package": (added, ""),
    "a tampered package": (put(f"submissions/new/{SCORES}", "{}\n"), "Verify them"),
    "a removed package": (lambda board: shutil.rmtree(board / "submissions/infile"), "Verify them"),
    "a verification": (put(f"submissions/new/{VERIFICATION}"), "Find the packages"),
    "another workflow": (put(".github/workflows/verify.yml"), "Find the packages"),
    "a file that moved": (
        lambda board: (added(board), (board / "README.md").rename(board / "submissions/new/README.md")),
        "Find the packages",
    ),
    "an option": (put("--all"), "Find the packages"),
    "an option as a folder": (put("submissions/--all/x"), "Find the packages"),
    "a command as a folder": (put(f"submissions/{EVIL}/x"), "Find the packages"),
    "a command after a name": (put(f"submissions/new; {EVIL}/x"), "Find the packages"),
    "a command as a file": (put(f"submissions/new/{EVIL}; touch evil"), "Verify them"),
    "a line break": (put("submissions/new\n--all/x"), "Find the packages"),
    "quotes": (put("submissions/a' \" b/x"), "Find the packages"),
    "letters that look alike": (put("submissions/n\u0435w/x"), "Find the packages"),
    "a link as a folder": (
        lambda board: (added(board), (board / "submissions/passwd").symlink_to("/etc")),
        "Find the packages",
    ),
    "a link as all folders": (
        lambda board: (shutil.rmtree(board / "submissions"), (board / "submissions").symlink_to("/etc")),
        "Find the packages",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PULLED)
def test_the_workflow_runs_no_code_of_a_pull_request(name: str, tmp_path: Path) -> None:
    change, failing = PULLED[name]
    board, notes, docker = tmp_path / "board", tmp_path / "notes", tmp_path / "bin" / "docker"
    shutil.copytree(BOARD, board)
    docker.parent.mkdir()
    docker.write_text(DOCKER)
    docker.chmod(0o755)

    def git(*words: str) -> None:
        subprocess.run(["git", "-C", board, "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True)

    git("init", "-qb", "main")
    for branch, made, title in (("base", lambda _: None, "board"), (EVIL, change, EVIL)):
        git("checkout", "-qb", branch)
        made(board)
        git("add", "-A")
        git("commit", "-qm", title)
    git("checkout", "-q", "base")
    git("merge", "-q", "--no-ff", "-m", EVIL, EVIL)
    places = {"PATH": f"{docker.parent}:{os.environ['PATH']}", "NOTES": str(notes), "RUNNER_TEMP": str(tmp_path)}
    failed = ""
    for step in STEPS:
        if "run" not in step or failed:
            continue
        script = tmp_path / "script"
        script.write_text(step["run"])
        ran = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", script],
            cwd=tmp_path / step.get("working-directory", ""),
            env={**os.environ, **WORKFLOW["env"], **places, **step.get("env", {})},
            capture_output=True,
            check=False,
        )
        failed = step["name"] if ran.returncode else ""
    assert failed == failing
    assert not list(tmp_path.rglob("evil"))
    verified = re.findall(r"'(/board/submissions/.*?)', '--all'\]", notes.read_text() if notes.exists() else "")
    assert verified == {"a removed package": ["/board/submissions/infile"]}.get(
        name, ["/board/submissions/new"] * (failing != "Find the packages")
    )
