"""Options that many commands share."""

import click
import pytest

from ctxbench.harness.cli.options import sandbox_choice
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
            "Invalid value for '--n': 0 is not in the range x>=1 (see `ctxbench run --help`)",
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
