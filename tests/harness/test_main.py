"""The command line's edges: exit codes, one-line faults, cheap imports."""

import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import click
import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.harness.cli import main as module
from tests.helpers.cli import assert_fault, run_cli

USURPER = {
    "doctor": ("tests.harness.test_main:elsewhere", "another doctor"),
    "elsewhere": ("tests.harness.test_main:elsewhere", "a command from elsewhere"),
}


@click.command()
def elsewhere() -> None:
    """Do nothing."""


HEAVY = (
    "sqlalchemy",
    "numpy",
    "pydantic",
    "tree_sitter",
    "rapidfuzz",
    "torch",
    "transformers",
    "pandas",
    "docker",
)


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from ctxbench.harness.cli.main import run; run(['--help']);"
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
    assert "quickstart" in done.stdout


def test_packages_register_commands_and_a_broken_table_takes_none_along(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = {
        "dashboard": "ctxbench.dashboard.cli:COMMANDS",
        "broken": "no_such_package:COMMANDS",
        "usurper": "tests.harness.test_main:USURPER",
    }
    points = [EntryPoint(name, value, module.GROUP) for name, value in tables.items()]
    monkeypatch.setattr(module, "entry_points", lambda group: points if group == module.GROUP else [])
    module.commands.cache_clear()
    try:
        result = run_cli("--help")
        assert result.code == 0 and "Show the stored runs as web pages." in result.out
        assert "left out: the commands of no_such_package:COMMANDS (ModuleNotFoundError" in result.err
        assert "another doctor" not in result.out and "a command from elsewhere" in result.out
        assert run_cli("elsewhere", "--help").code == 0
    finally:
        module.commands.cache_clear()


def raising(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    @click.command()
    def command() -> None:
        """Raise."""
        raise error

    monkeypatch.setattr(module.LazyGroup, "get_command", lambda *_: command)


def test_fault_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    raising(monkeypatch, InputFault("bad\nthing", where="here", cure="mend it"))
    result = run_cli("run")
    assert (result.code, result.err) == (1, "ctxbench: here: bad thing; mend it\n")


def test_a_fault_that_quotes_a_terminals_codes_shows_them(monkeypatch: pytest.MonkeyPatch) -> None:
    raising(monkeypatch, InputFault("the server says \x1b]0;owned\x07\u202e", where="here", cure="mend it"))
    assert run_cli("run").err == "ctxbench: here: the server says ␛]0;owned␇⟨U+202E⟩; mend it\n"


def test_interrupt_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    raising(monkeypatch, KeyboardInterrupt())
    assert run_cli("run").code == 130


HERE = """class Finder:
    pass


@strategy('mine')
def mine(query, repo): ...


@strategy(
    "my.other", kinds=(Kind.FUNCTION,)
)
def other(query, repo): ...
"""


@pytest.mark.parametrize(
    ("command", "cure"),
    [
        ("leaderboard --db mysql://me:secret@host/db", "write it as sqlite:///FILE or postgresql://"),
        ("scores --db sqlite:///folder", "the path is a folder; give a file: sqlite:///FILE"),
        ("strategy check here.py", "write here.py@mine or here.py@my.other"),
        ("strategy show here.py", "write here.py@mine or here.py@my.other"),
        ("strategy show empty.py", "write empty.py@NAME"),
        ("strategy show missing.py", "no strategy is called 'missing.py'"),
        ("engine show here.py", "write here.py@Finder"),
        ("engine show empty.py", "write empty.py@CLASS"),
        ("leaderboard --home here.py", "here.py: the home is a file, not a folder; give the path of a folder"),
        ("samples list --home here.py", "is a file, not a folder"),
        ("generator check openai:", "write it as openai:MODEL@URL"),
    ],
)
def test_a_cure_cures(command: str, cure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "here.py").write_text(HERE)
    (tmp_path / "empty.py").touch()
    result = run_cli(*command.split())
    assert_fault(result, cure)
    assert "secret" not in result.err


def test_bug_is_3_with_a_log(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    raising(monkeypatch, ZeroDivisionError("oh"))
    result = run_cli("run")
    assert result.code == 3
    assert "internal error: ZeroDivisionError: oh" in result.err and "Traceback" not in result.err


def test_full_disk_anywhere_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    raising(monkeypatch, OSError(28, "No space left on device", "/somewhere/file"))
    result = run_cli("run")
    assert result.code == 1 and "disk is full" in result.err and "free some space" in result.err
