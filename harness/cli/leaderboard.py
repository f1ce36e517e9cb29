"""`ctxbench leaderboard`: rank the stored runs."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.home import Home
from harness.cli.options import db_option, home_option, k_option

if TYPE_CHECKING:
    from harness.leaderboard.rows import Board
    from harness.results import RunTable

_CURE = "store one with `ctxbench quickstart`, or `ctxbench run --samples NAME --strategy SPEC --generator SPEC`"
_WIDEST = 120


@click.command()
@click.option(
    "--samples",
    metavar="NAME",
    help="Only runs over this sample set; if there are none, limited runs (NAME[:N]) of it.",
)
@click.option(
    "--metric",
    metavar="METRIC",
    help="What ranks; default: pass@1 for functions; context_gain for incontext, es for others.",
)
@k_option
@click.option("--baseline", metavar="SPEC", help="The strategy that differences refer to; default: lc.infile.")
@click.option("--profile", default="ctxbench", show_default=True, help="The metric profile; never mixed in a ranking.")
@click.option("--by-level", is_flag=True, help="Add a table for each level (single-line, next-line, …).")
@click.option(
    "--diagnostics",
    is_flag=True,
    help="Show what each context brought and what was made up (docs/diagnostics.md); JSON and CSV always do.",
)
@click.option("--seed", default=0, show_default=True, help="Decides drawn permutations and bootstrap samples.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv", "markdown"]),
    default="table",
    show_default=True,
    help="How to print it.",
)
@home_option
@db_option
def leaderboard(
    *,
    samples: str | None,
    metric: str | None,
    ks: tuple[int, ...],
    baseline: str | None,
    profile: str,
    by_level: bool,
    diagnostics: bool,
    seed: int,
    form: str,
    home: Home,
    db: str | None,
) -> None:
    """Rank the stored runs by sample set, language and generator: means, 95% intervals, paired tests, tiers.

    Rows that share a tier are not told apart. What each number means is in docs/statistics.md.
    """
    from harness.leaderboard import board

    tables = read_tables(home, db, samples=samples, profile=profile, ks=ks)
    made = board(tables, metric=metric, baseline=baseline, by_level=by_level, seed=seed)
    click.echo(printed(made, form, diagnostics=diagnostics), nl=False)


def read_tables(
    home: Home, db: str | None, *, samples: str | None, profile: str, ks: tuple[int, ...] = ()
) -> list[RunTable]:
    """Return the stored runs, oldest first.

    Raises:
        UnknownName: if no run has that sample set, or there is no such profile.
        InputFault: if nothing is stored.
    """
    from bench.errors import InputFault, UnknownName
    from harness.metrics import PROFILES

    if profile not in PROFILES:
        raise UnknownName("metric profile", profile, PROFILES)
    url = db or home.database
    # Looking must not leave an empty database behind.
    if db is None and not Path(url.removeprefix("sqlite:///")).exists():
        raise InputFault("no runs are stored here", where=str(home.root), cure=_CURE)
    from harness.store import open_store, queries

    with open_store(url) as store:
        tables = queries.run_tables(store, samples=samples, profile=profile, ks=ks)
        others = queries.run_tables(store, samples=None, profile=profile, ks=ks) if not tables and samples else []
    if others:
        tables = [table for table in others if table.run.samples.startswith(f"{samples}[:")]
        if not tables and samples:
            raise UnknownName("sample set of the stored runs", samples, {table.run.samples for table in others})
    if not tables:
        raise InputFault(f"no runs with scores of profile {profile} are stored", where=url, cure=_CURE)
    return list(tables)


def printed(made: Board, form: str, *, diagnostics: bool = False) -> str:
    """Return a board as text: ``table`` (as wide as the terminal), ``json``, ``csv`` or ``markdown``."""
    from harness.leaderboard import records, render

    if form == "json":
        return records.to_json(made)
    if form == "csv":
        return records.to_csv(made)
    if form == "markdown":
        return render.markdown(made, diagnostics=diagnostics)
    terminal = sys.stdout.isatty()
    width = min(_WIDEST, shutil.get_terminal_size().columns) if terminal else _WIDEST
    return render.table(made, width=width, terminal=terminal, diagnostics=diagnostics)
