"""`ctxbench leaderboard`: rank the stored runs; and the choice of a board, which `ctxbench report` shares."""

from __future__ import annotations

import dataclasses
import functools
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import click

from ctxbench.bench.errors import InputFault
from ctxbench.bench.home import Home
from ctxbench.harness.cli.options import db_option, format_option, home_option, k_option, prices_option

if TYPE_CHECKING:
    from ctxbench.harness.leaderboard.rows import Board
    from ctxbench.harness.results import RunTable

FORMS = ("table", "json", "csv", "markdown", "latex")
_WIDEST = 120
Marked: TypeAlias = Literal["exclude", "include"]
NOTHING_CURE = "store one with `ctxbench quickstart`, or `ctxbench run --samples NAME --strategy SPEC --generator SPEC`"


class NothingStored(InputFault):
    """There is no run to show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardQuery:
    """A user's choice of a board."""

    samples: str | None
    metric: str | None
    ks: tuple[int, ...]
    baseline: str | None
    profile: str
    by_level: bool | None
    published: Literal["auto", "all", "none"]
    marked: Marked
    prices: Path | None
    seed: int
    home: Home
    db: str | None

    @property
    def url(self) -> str:
        """The database of the runs."""
        return self.db or self.home.database

    def board(self) -> Board:
        """Return the board; with ``published=all`` also if no run is stored.

        Raises:
            InputFault: as `read_tables`, and if no run has the metric or the baseline.
        """
        from ctxbench.harness.leaderboard import board

        try:
            tables = read_tables(
                self.home,
                self.db,
                samples=self.samples,
                profile=self.profile,
                ks=self.ks,
                marked=self.marked,
                prices=self.prices,
            )
        except NothingStored:
            if self.published != "all" or self.samples:
                raise
            tables = []
        return board(
            tables,
            metric=self.metric,
            baseline=self.baseline,
            by_level=self.by_level,
            seed=self.seed,
            published=self.published,
        )


def board_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a board; the command receives ``query``."""

    @functools.wraps(command)
    def gathered(**options: Any) -> None:
        query = BoardQuery(**{field.name: options.pop(field.name) for field in dataclasses.fields(BoardQuery)})
        command(query=query, **options)

    decorated = gathered
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


_OPTIONS: tuple[Callable[..., Any], ...] = (
    click.option(
        "--samples",
        metavar="NAME",
        help="Only runs over this sample set; if there are none, limited runs (NAME[:N]) of it.",
    ),
    click.option(
        "--metric",
        metavar="METRIC",
        help="What ranks; default: pass@1 for functions; context_gain for incontext; for others es, em "
        "or what the profile declares first.",
    ),
    k_option,
    click.option("--baseline", metavar="SPEC", help="The strategy that differences refer to; default: lc.infile."),
    click.option(
        "--profile", default="ctxbench", show_default=True, help="The metric profile; never mixed in a ranking."
    ),
    click.option(
        "--by-level/--no-by-level",
        default=None,
        help="Add a ranking for each level (single-line, next-line, …); default: CoderEval's levels in one table.",
    ),
    click.option(
        "--published",
        type=click.Choice(["auto", "all", "none"]),
        default="auto",
        show_default=True,
        help="Published numbers below the runs: of their benchmarks, the nearest and best; all, also without a run; "
        "none.",
    ),
    click.option(
        "--marked",
        type=click.Choice(["exclude", "include"]),
        default="exclude",
        show_default=True,
        help="Samples marked as broken (their own answer fails their tests) or vacuous (an empty body passes them).",
    ),
    prices_option,
    click.option("--seed", default=0, show_default=True, help="Decides drawn permutations and bootstrap samples."),
    home_option,
    db_option,
)


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
    """Return the stored runs, oldest first; `prices` is a file of rates by which their tokens are priced.

    Raises:
        UnknownName: if no run has that sample set, or there is no such profile.
        NothingStored: if there is no run.
        InputFault: if the file of rates is wrong.
    """
    from ctxbench.bench.errors import UnknownName
    from ctxbench.harness.metrics import PROFILES
    from ctxbench.harness.prices import load

    if profile not in PROFILES:
        raise UnknownName("metric profile", profile, PROFILES)
    from ctxbench.harness.store.store import exists, open_current

    url = db or home.database
    # Looking must not leave an empty database behind.
    if db is None and not exists(url):
        raise NothingStored("no runs are stored here", where=str(home.root), cure=NOTHING_CURE)
    from ctxbench.harness.store.runs import run_tables

    rates = load(prices) if prices else None
    name = samples and samples.partition("[:")[0]
    with open_current(url) as store:
        read = functools.partial(run_tables, store, profile=profile, ks=ks, marked=marked, prices=rates)
        tables = read(samples=name)
        others = read(samples=None) if not tables and samples else []
    if samples:
        # `demo` means the whole set, `demo[:10]` its first ten; a set that was only run in part is shown in parts.
        whole = [table for table in tables if table.run.samples == samples]
        matching = whole or [table for table in (tables or others) if table.run.samples.startswith(f"{samples}[:")]
        if not matching and (tables or others):
            raise UnknownName(
                "sample set of the stored runs", samples, {table.run.samples for table in tables or others}
            )
        tables = matching
    if not tables:
        raise NothingStored(f"no runs with scores of profile {profile} are stored", where=url, cure=NOTHING_CURE)
    return list(tables)


@click.command()
@board_options
@click.option(
    "--diagnostics",
    is_flag=True,
    help="Show what each context brought and what was made up (docs/diagnostics.md); JSON and CSV always do.",
)
@format_option(*FORMS)
def leaderboard(*, query: BoardQuery, diagnostics: bool, form: str) -> None:
    """Rank the stored runs by sample set, language and generator: means, 95% intervals, paired tests, tiers.

    Rows that share a tier are not told apart. What each number means is in docs/statistics.md.
    """
    from ctxbench.harness.leaderboard.notes import missing_scores

    board = query.board()
    click.echo(printed(board, form, diagnostics=diagnostics, full=bool(query.by_level)), nl=False)
    # The other forms have it among their notes.
    for group in board.groups if form in ("json", "csv") else ():
        for sentence in missing_scores(group):
            click.echo(f"{group.samples}, {group.language}: {sentence}", err=True)


def printed(board: Board, form: str, *, diagnostics: bool = False, full: bool = False) -> str:
    """Return a board as text: ``table`` (as wide as the terminal), ``json``, ``csv``, ``markdown`` or ``latex``.

    With `full` the levels of CoderEval have rankings of their own, not only a table.
    """
    from ctxbench.harness.leaderboard import latex, records, render

    if form == "json":
        return records.to_json(board)
    if form == "csv":
        return records.to_csv(board)
    if form == "markdown":
        return render.markdown(board, diagnostics=diagnostics, full=full)
    if form == "latex":
        return latex.latex(board, diagnostics=diagnostics, full=full)
    terminal = sys.stdout.isatty()
    width = min(_WIDEST, shutil.get_terminal_size().columns) if terminal else _WIDEST
    return render.table(board, width=width, terminal=terminal, diagnostics=diagnostics, full=full)
