"""Edge cases of the command line: exit codes, one-line faults, cheap imports and shared options."""

import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import click
import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.harness.cli import main as module
from ctxbench.harness.cli.options import format_by_ending, sandbox_choice
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


def test_packages_register_commands_and_a_broken_table_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
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
        assert "the commands of no_such_package:COMMANDS cannot be loaded (ModuleNotFoundError" in result.err
        assert "another doctor" not in result.out and "a command from elsewhere" in result.out
        assert run_cli("elsewhere", "--help").code == 0
    finally:
        module.commands.cache_clear()


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (InputFault("bad\nthing", where="here", cure="mend it"), 1, "ctxbench: here: bad thing; mend it\n"),
        (InputFault("it says \x1b]0;owned\x07\u202e", cure="mend it"), 1, "it says ␛]0;owned␇⟨U+202E⟩; mend it\n"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (ZeroDivisionError("oh"), 3, "internal error: ZeroDivisionError: oh"),
        (OSError(28, "No space left on device", "/somewhere/file"), 1, "disk is full"),
    ],
    ids=["a fault", "a terminal's codes", "an interrupt", "a bug, with a log", "a full disk anywhere"],
)
def test_every_failure_of_a_command_prints_one_line(
    error: BaseException, code: int, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    @click.command()
    def command() -> None:
        """Raise."""
        raise error

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(module.LazyGroup, "get_command", lambda *_: command)
    result = run_cli("run")
    assert result.code == code and said in result.err and "Traceback" not in result.err
    assert "\n" not in result.err.strip()


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
def test_faults_suggest_the_right_cure(
    command: str, cure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "here.py").write_text(HERE)
    (tmp_path / "empty.py").touch()
    result = run_cli(*command.split())
    assert_fault(result, cure)
    assert "secret" not in result.err


def sandbox(name: str | None, *beside: str) -> object:
    """Return the value that a command receives for ``--sandbox``."""
    command = click.command()(sandbox_choice("Where.", *beside)(lambda sandbox: sandbox))
    return command.main([] if name is None else ["--sandbox", name], standalone_mode=False)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (["leaderbord"], "No such command 'leaderbord'. Did you mean 'leaderboard'? (see `ctxbench --help`)"),
        (["samples", "biuld"], "No such command 'biuld'. Did you mean 'build'? (see `ctxbench samples --help`)"),
        (["--bogus"], "No such option '--bogus' (see `ctxbench --help`)"),
        (["run"], "Missing option '--samples' (see `ctxbench run --help`)"),
        (
            ["run", "--samples", "x", "--n", "0"],
            "Invalid value for '--n': 0 is not in the range 1<=x<=9999 (see `ctxbench run --help`)",
        ),
        (
            ["exec", "--samples", "x"],
            "--completions and --run are both given or both missing; give one of them (see `ctxbench exec --help`)",
        ),
    ],
)
def test_a_usage_error_is_one_line_that_names_the_help_command(call: list[str], said: str) -> None:
    result = run_cli(*call)
    assert (result.code, result.out, result.err) == (2, "", f"ctxbench: {said}\n")


def test_a_group_without_a_command_lists_its_commands() -> None:
    result = run_cli("samples")
    assert result.code == 2 and "Commands:" in result.err and not result.err.startswith("ctxbench:")


@pytest.mark.parametrize("name", ["docker", "bubblewrap", "docker(runtime=runsc)", "none", None])
def test_a_sandbox_name_may_contain_a_runtime(name: str | None) -> None:
    assert sandbox(name, "none") == name


@pytest.mark.parametrize("name", ["podman", "", "docker(runsc)", "docker(runtime=)", "docker(runtime=a;b)", "none"])
def test_an_unknown_sandbox_is_refused_with_the_known_names(name: str) -> None:
    with pytest.raises(click.BadParameter, match=r"docker, docker\(runtime=NAME\), bubblewrap"):
        sandbox(name)


ENDINGS = {"html": ".html", "latex": ".tex", "csv": ".csv"}


@pytest.mark.parametrize(
    ("name", "form", "expected"),
    [
        ("a.tex", None, "latex"),
        ("a.HTML", None, "html"),
        ("a.xyz", "csv", "csv"),
        (None, None, "html"),
        (None, "csv", "csv"),
    ],
)
def test_the_file_ending_selects_the_format_unless_one_is_given(
    name: str | None, form: str | None, expected: str
) -> None:
    assert format_by_ending(Path(name) if name else None, form, ENDINGS) == expected


@pytest.mark.parametrize(
    ("name", "words"), [("a.xyz", "the ending '.xyz' is not a known format"), ("answer", "has no ending")]
)
def test_a_file_ending_without_a_format_is_refused(name: str, words: str) -> None:
    with pytest.raises(InputFault, match=rf"{words}.*use one of \.html, \.tex, \.csv, or give --format"):
        format_by_ending(Path(name), None, ENDINGS)
