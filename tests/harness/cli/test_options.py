"""Options that many commands share."""

from __future__ import annotations

import click
import pytest

from ctxbench.harness.cli.options import sandbox_name

CONTEXT = click.Context(click.Command("run"))
OPTION = click.Option(["--sandbox"])


@pytest.mark.parametrize("name", ["docker", "bubblewrap", "docker(runtime=runsc)", "none", None])
def test_a_back_end_is_named_with_its_runtime(name: str | None) -> None:
    assert sandbox_name("none")(CONTEXT, OPTION, name) == name


@pytest.mark.parametrize("name", ["podman", "", "docker(runsc)", "docker(runtime=)", "docker(runtime=a;b)", "none"])
def test_another_name_is_refused_with_those_that_are_known(name: str) -> None:
    with pytest.raises(
        click.BadParameter, match=r"docker, docker\(runtime=NAME\), docker\(hosts=URL,URL\), bubblewrap"
    ):
        sandbox_name()(CONTEXT, OPTION, name)
