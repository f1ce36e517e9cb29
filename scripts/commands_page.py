"""Write docs/commands.md from the commands' own help: `make docs`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import click

from ctxbench.harness.cli.main import cli
from ctxbench.harness.cli.options import WithShapes

PAGE = Path(__file__).resolve().parents[1] / "docs" / "commands.md"
HEAD = """# Commands

Written by `make docs` from the commands' own help; a test keeps it equal.

Every command: data on stdout, progress on stderr, exit code 0, 1 (a fault of the input or the machine:
one line with its cure), 2 (a wrong call: one line as well), 3 (a bug of ours) or 130 (interrupted). `--home` (or
`CTXBENCH_HOME`) is where things are kept; `--db` (or `CTXBENCH_DB`) is the SQLAlchemy URL of the results.
`CTXBENCH_CACHE` names another folder for what the home folder keeps in `cache`, so that it is only read.
"""


def page() -> str:
    """Return the text of the page."""
    return HEAD + "".join(_section(path, command) for path, command in commands())


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield (full name, command) for every command and subcommand."""
    yield from _walk("ctxbench", cli)


def _walk(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    if path != "ctxbench":
        yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None and not child.hidden:
                yield from _walk(f"{path} {name}", child)


def _section(path: str, command: click.Command) -> str:
    context = click.Context(command, info_name=path)
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [f"\n## `{path}`\n", inspect.cleandoc(command.help or "").replace("\b\n", "") + "\n"]
    if isinstance(command, click.Group):
        return "\n".join(lines)
    lines.append(f"```text\n{path} {usage}\n```\n")
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            record = parameter.get_help_record(click.Context(command))
            if record:
                lines.append(f"- `{record[0]}`: {record[1]}")
    if isinstance(command, WithShapes):
        lines += ["\nShapes:\n", *(f"- `{name}`: {shape}" for name, shape in command.shapes())]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
