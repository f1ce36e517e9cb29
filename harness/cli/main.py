"""The `ctxbench` command: imports subcommands, built-in or registered, when they are called, and prints errors.

Exit codes: 0 success; 1 fault of the user or machine (prints one line), or a failed check; 2 usage; 3 bug in ctxbench;
130 interrupt. Some commands define further codes.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import tempfile
import traceback
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import click

from ctxbench.bench.errors import CtxbenchError
from ctxbench.bench.files import fault_of
from ctxbench.harness.cli import terminal
from ctxbench.sandbox.errors import SandboxError

_OWN: dict[str, tuple[str, str]] = {
    "quickstart": (
        "ctxbench.harness.cli.reproduce:quickstart",
        "Build samples and show how a code model completes them.",
    ),
    "doctor": (
        "ctxbench.harness.cli.doctor:doctor",
        "Check this machine; --clean removes leftovers of crashes.",
    ),
    "repo": ("ctxbench.harness.cli.repo:repo", "List, add, check and fetch benchmark repositories."),
    "samples": ("ctxbench.harness.cli.samples:samples", "Build, show, import and export sample sets."),
    "strategy": ("ctxbench.harness.cli.plugins:strategy", "List, show and check context strategies."),
    "engine": ("ctxbench.harness.cli.plugins:engine", "List, show and check context engines; measure leaks."),
    "generator": ("ctxbench.harness.cli.plugins:generator", "List and check generators."),
    "model": ("ctxbench.harness.cli.model:model", "List, fetch and add models that run on this machine."),
    "run": ("ctxbench.harness.cli.run:run", "Run strategies over a sample set with a generator."),
    "exec": ("ctxbench.harness.cli.score:execute", "Run the tests of function samples on completions, in a sandbox."),
    "merge": ("ctxbench.harness.cli.results:merge", "Merge shards from other processes into one database."),
    "score": ("ctxbench.harness.cli.score:score", "Score a file of predictions under a metric profile."),
    "rescore": (
        "ctxbench.harness.cli.score:rescore",
        "Compute missing metrics of stored completions, without asking a model.",
    ),
    "results": ("ctxbench.harness.cli.results:results", "Import predictions; export, pack and verify runs."),
    "leaderboard": ("ctxbench.harness.cli.leaderboard:leaderboard", "Rank the stored runs."),
    "scores": (
        "ctxbench.harness.cli.leaderboard:scores",
        "Write the scores of every sample, for other tools.",
    ),
    "compare": ("ctxbench.harness.cli.compare:compare", "Test the differences between stored runs."),
    "decide": ("ctxbench.harness.cli.decide:decide", "Test whether a strategy helps on your repository."),
    "power": ("ctxbench.harness.cli.compare:power", "Estimate how many repositories a run needs to show a difference."),
    "diagnose": ("ctxbench.harness.cli.compare:diagnose", "Measure the value of each retrieved block of stored runs."),
    "reproduce": ("ctxbench.harness.cli.reproduce:reproduce", "Run a paper's table and compare the numbers."),
}
"""Command -> its location (``module:attribute``) and its line in the list of commands."""
USAGE = 2
GROUP = "ctxbench.commands"
"""Entry-point group of tables like `_OWN` with other packages' commands. These cannot replace built-in commands."""


@functools.cache
def commands() -> Mapping[str, tuple[str, str]]:
    """Return each command's location (``module:attribute``) and help line, built-in first. No command is imported."""
    table = dict(_OWN)
    for point in entry_points(group=GROUP):
        try:
            registered: Mapping[str, tuple[str, str]] = point.load()
        except Exception as error:  # noqa: BLE001 - a broken package must not break the other commands
            what = f"the commands of {point.value} cannot be loaded ({type(error).__name__}: {error})"
            click.echo(f"{what}; repair or uninstall the package that provides them", err=True)
            continue
        for name, command in registered.items():
            table.setdefault(name, command)
    return table


class LazyGroup(click.Group):
    """A group that imports a subcommand only when it is called, so that ``--help`` is fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the command names in display order."""
        return list(commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command's module and return the command; None if unknown."""
        place = _OWN.get(cmd_name) or commands().get(cmd_name)
        if place is None:
            return None
        module, _, attribute = place[0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve the command as click does, but suggest similar names for an unknown name."""
        if not args[0].startswith("-") and args[0] not in commands():
            raise click.exceptions.NoSuchCommand(args[0], possibilities=commands(), ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in commands().items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="ctxbench", prog_name="ctxbench")
def cli() -> None:
    """Compare ways to choose context for a code model: samples, strategies, generators, rankings.

    Start with `ctxbench quickstart`.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and end the process with its exit code."""
    # Workers already use all cores, so BLAS's own threads would only compete with them.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    terminal.watch_interrupts()
    code = run(sys.argv[1:] if arguments is None else arguments)
    if terminal.interrupted():
        terminal.end_interrupted()
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run the command line and return its exit code."""
    try:
        result: Any = cli.main(args=arguments, prog_name="ctxbench", standalone_mode=False)
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return USAGE
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx is not None else "ctxbench"
        return _say(f"{error.format_message().removesuffix('.')} (see `{command} --help`)", USAGE)
    except click.ClickException as error:
        return _say(error.format_message())
    except (KeyboardInterrupt, click.Abort) as end:
        if isinstance(end.__context__, EOFError) and end.__cause__ is None:
            # The input ended at a question, whose line is still open.
            click.echo(err=True)
            return _say("the question was not answered, so nothing was done; give --yes")
        if not terminal.interrupted():
            click.echo(terminal.INTERRUPTED, err=True)
        return terminal.INTERRUPT_CODE
    except (CtxbenchError, SandboxError) as error:
        return _say(str(error))
    except BrokenPipeError:
        # The program that reads the output (head, less) has ended, so no message is possible.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _say(str(fault_of(error, str(error.filename or "this machine"))))
    except Exception:  # noqa: BLE001 - the one place where a bug becomes a message
        return _bug()
    return result if isinstance(result, int) else 0


def _say(message: str, code: int = 1) -> int:
    if terminal.interrupted():
        # Interrupted work fails in many ways. Hide these messages.
        return terminal.INTERRUPT_CODE
    from ctxbench.bench.escaping import visible  # messages may quote a server or a repository

    click.echo(f"ctxbench: {visible(message)}", err=True)
    return code


def _bug() -> int:
    if terminal.interrupted():
        return terminal.INTERRUPT_CODE
    text = traceback.format_exc()
    try:
        handle, name = tempfile.mkstemp(prefix="ctxbench-", suffix=".log")
        os.close(handle)
        Path(name).write_text(text, encoding="utf-8")
        place = f"the traceback is in {name}; please attach it to a report"
    except OSError:
        place = text
    click.echo(f"ctxbench: internal error: {text.strip().splitlines()[-1]}; {place}", err=True)
    return 3
