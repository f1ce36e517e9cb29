"""`ctxbench leaderboard`: rank the stored runs."""

from __future__ import annotations

import functools
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import click

from bench.errors import InputFault
from bench.home import Home
from harness.cli.options import db_option, home_option, k_option, prices_option

if TYPE_CHECKING:
    from harness.leaderboard.rows import Board
    from harness.results import RunTable

Marked: TypeAlias = Literal["exclude", "include"]
_CURE = "store one with `ctxbench quickstart`, or `ctxbench run --samples NAME --strategy SPEC --generator SPEC`"
FORMS = ("table", "json", "csv", "markdown", "latex")
_WIDEST = 120


class NothingStored(InputFault):
    """There is no run to show."""


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
@click.option(
    "--by-level/--no-by-level",
    default=None,
    help="Add a ranking for each level (single-line, next-line, …); default: CoderEval's levels in one table.",
)
@click.option(
    "--published",
    type=click.Choice(["auto", "all", "none"]),
    default="auto",
    show_default=True,
    help="Published numbers below the runs: of their benchmarks, the nearest and best; all, also without a run; none.",
)
@click.option(
    "--marked",
    type=click.Choice(["exclude", "include"]),
    default="exclude",
    show_default=True,
    help="Samples marked as broken (their own answer fails their tests) or vacuous (an empty body passes them).",
)
@click.option(
    "--diagnostics",
    is_flag=True,
    help="Show what each context brought and what was made up (docs/diagnostics.md); JSON and CSV always do.",
)
@prices_option
@click.option("--seed", default=0, show_default=True, help="Decides drawn permutations and bootstrap samples.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMS),
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
    by_level: bool | None,
    published: Literal["auto", "all", "none"],
    marked: Marked,
    diagnostics: bool,
    prices: Path | None,
    seed: int,
    form: str,
    home: Home,
    db: str | None,
) -> None:
    """Rank the stored runs by sample set, language and generator: means, 95% intervals, paired tests, tiers.

    Rows that share a tier are not told apart. What each number means is in docs/statistics.md.
    """
    from harness.leaderboard import board

    try:
        tables = read_tables(home, db, samples=samples, profile=profile, ks=ks, marked=marked, prices=prices)
    except NothingStored:
        if published != "all" or samples:
            raise
        tables = []
    made = board(tables, metric=metric, baseline=baseline, by_level=by_level, seed=seed, published=published)
    click.echo(printed(made, form, diagnostics=diagnostics, full=bool(by_level)), nl=False)


def read_tables(
    home: Home,
    db: str | None,
    *,
    samples: str | None,
    profile: str,
    ks: tuple[int, ...] = (),
    marked: Marked = "exclude",
    prices: Path | None = None,
) -> list[RunTable]:
    """Return the stored runs, oldest first; with `prices`, a file of rates, their tokens are priced by these.

    Raises:
        UnknownName: if no run has that sample set, or there is no such profile.
        NothingStored: if there is no run.
        InputFault: if the file of rates is wrong.
    """
    from bench.errors import UnknownName
    from harness.metrics import PROFILES
    from harness.prices import load

    if profile not in PROFILES:
        raise UnknownName("metric profile", profile, PROFILES)
    url = db or home.database
    # Looking must not leave an empty database behind.
    if db is None and not Path(url.removeprefix("sqlite:///")).exists():
        raise NothingStored("no runs are stored here", where=str(home.root), cure=_CURE)
    from harness.store import open_store, queries

    rates = load(prices) if prices else None
    with open_store(url) as store:
        read = functools.partial(queries.run_tables, store, profile=profile, ks=ks, marked=marked, prices=rates)
        tables = read(samples=samples)
        others = read(samples=None) if not tables and samples else []
    if others:
        tables = [table for table in others if table.run.samples.startswith(f"{samples}[:")]
        if not tables and samples:
            raise UnknownName("sample set of the stored runs", samples, {table.run.samples for table in others})
    if not tables:
        raise NothingStored(f"no runs with scores of profile {profile} are stored", where=url, cure=_CURE)
    return list(tables)


def printed(made: Board, form: str, *, diagnostics: bool = False, full: bool = False) -> str:
    """Return a board as text: ``table`` (as wide as the terminal), ``json``, ``csv``, ``markdown`` or ``latex``.

    With `full` the levels of CoderEval have rankings of their own, not only a table.
    """
    from harness.leaderboard import latex, records, render

    if form == "json":
        return records.to_json(made)
    if form == "csv":
        return records.to_csv(made)
    if form == "markdown":
        return render.markdown(made, diagnostics=diagnostics, full=full)
    if form == "latex":
        return latex.latex(made, diagnostics=diagnostics, full=full)
    terminal = sys.stdout.isatty()
    width = min(_WIDEST, shutil.get_terminal_size().columns) if terminal else _WIDEST
    return render.table(made, width=width, terminal=terminal, diagnostics=diagnostics, full=full)
