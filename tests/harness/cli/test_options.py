"""Options that many commands share."""

from pathlib import Path

import click
import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.harness.cli.options import format_by_ending, sandbox_choice
from tests.helpers.cli import run_cli


def sandbox(name: str | None, *beside: str) -> object:
    """Return what a command receives of ``--sandbox``."""
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
        (["exec", "--samples", "x"], "give either --completions or --run (see `ctxbench exec --help`)"),
    ],
)
def test_a_wrong_call_is_one_line_that_says_where_the_right_one_stands(call: list[str], said: str) -> None:
    result = run_cli(*call)
    assert (result.code, result.out, result.err) == (2, "", f"ctxbench: {said}\n")


def test_a_group_without_a_command_says_what_it_has() -> None:
    result = run_cli("samples")
    assert result.code == 2 and "Commands:" in result.err and not result.err.startswith("ctxbench:")


@pytest.mark.parametrize("name", ["docker", "bubblewrap", "docker(runtime=runsc)", "none", None])
def test_a_back_end_is_named_with_its_runtime(name: str | None) -> None:
    assert sandbox(name, "none") == name


@pytest.mark.parametrize("name", ["podman", "", "docker(runsc)", "docker(runtime=)", "docker(runtime=a;b)", "none"])
def test_another_name_is_refused_with_those_that_are_known(name: str) -> None:
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
def test_a_file_is_written_as_its_ending_says_unless_a_format_is_asked_for(
    name: str | None, form: str | None, expected: str
) -> None:
    assert format_by_ending(Path(name) if name else None, form, ENDINGS) == expected


@pytest.mark.parametrize(
    ("name", "words"), [("a.xyz", "the ending '.xyz' is not a known format"), ("answer", "has no ending")]
)
def test_an_ending_that_says_no_format_is_refused(name: str, words: str) -> None:
    with pytest.raises(InputFault, match=rf"{words}.*use one of \.html, \.tex, \.csv, or give --format"):
        format_by_ending(Path(name), None, ENDINGS)
