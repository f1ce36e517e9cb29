"""`ctxbench engine`: what it lists, shows, checks and measures."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxbench.bench.home import Home
from ctxbench.sandbox.types import Sandbox
from tests.bench.engines import rooms
from tests.helpers.cli import assert_fault
from tests.helpers.cli import run_cli as run


@pytest.fixture
def boxes(bubblewrap_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxbench.harness.run.execution.back_end", lambda *_: bubblewrap_sandbox)
    monkeypatch.setattr("ctxbench.harness.run.resources.back_end", lambda *_: bubblewrap_sandbox)


def test_it_lists_and_shows_engines_without_running_them() -> None:
    listed = run("engine", "list")
    assert listed.code == 0
    names = {row.split()[0] for row in listed.out.splitlines()}
    assert {"ripgrep", "ctags", "jedi", "repomap", "tantivy", "mcp", "command"} <= names
    shown = run("engine", "show", "ripgrep(window=10, mode=shared)")
    assert "mode: shared" in shown.out and "ripgrep==" in shown.out and "window = 10" in shown.out


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("ripgerp", "did you mean ripgrep"),
        ("ripgrep(size=1)", "no parameter 'size'"),
        ("ripgrep(mode=both)", "give per-file or shared"),
        ("absent.py@Engine", "no such file"),
        ("absent.toml", "no such file"),
        (rooms.spy("Absent"), "no engine is called 'Absent'"),
    ],
)
def test_a_wrong_spec_is_refused_in_one_line(spec: str, words: str) -> None:
    shown = run("engine", "show", spec)
    assert_fault(shown, words)


def test_it_checks_an_engine_in_a_box(boxes: None, tmp_path: Path) -> None:
    refused = run("engine", "check", rooms.spy("Absolute"), "--home", str(tmp_path))
    assert refused.code == 1 and "an absolute path" in refused.out
    passed = run("engine", "check", "repomap", "--home", str(tmp_path))
    assert passed.code == 0 and "7 of 7 checks passed" in passed.out, passed.out


@pytest.mark.slow
def test_what_a_checked_engine_raises_stays_on_its_line(boxes: None, tmp_path: Path) -> None:
    checked = run("engine", "check", rooms.spy("RaisesOddly"), "--home", str(tmp_path))
    assert checked.code == 1 and checked.out.splitlines()[-1] == "1 of 7 checks passed", checked
    assert checked.out.count("it raised ValueError: half ⟨U+D800⟩ ␛[31mred second line\n") == 6, checked.out


@pytest.mark.slow
def test_an_engine_elsewhere_has_one_mode_only(tmp_path: Path) -> None:
    file = tmp_path / "far.toml"
    file.write_text('protocol = "http"\nurl = "http://127.0.0.1:9/"\n')
    refused = run("engine", "measure-leak", f"{file}(remote=on)", "--samples", "demo", "--home", str(tmp_path))
    assert_fault(refused, "has one mode", "name an engine that lives in a box")


@pytest.mark.slow
def test_what_one_remembers_is_measured_as_a_leak(boxes: None, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    rooms.make_set(home, repos=6, per_file=3)
    command = ("engine", "measure-leak", rooms.spy("Remembers"), "--samples", "demo", "--home", str(home.root))
    leaking = run(*command)
    assert leaking.code == 0, leaking.err
    assert "it gains by what it saw: a leak" in leaking.out.splitlines()[-1], leaking.out
    honest = run(*(word.replace("Remembers", "Honest") for word in command))
    assert "no leak can be seen" in honest.out.splitlines()[-1], honest.out
