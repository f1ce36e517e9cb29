"""`ctxbench leaderboard`: rank the stored runs; and the choice of a board, which `ctxbench report` shares."""

from __future__ import annotations

import dataclasses
import functools
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.bench.home import Home
from ctxbench.harness.cli.options import after_option, db_option, format_option, home_option, k_option, prices_option

if TYPE_CHECKING:
    from ctxbench.harness.leaderboard.rows import Board
    from ctxbench.harness.results import RunTable

FORMS = ("table", "json", "csv", "markdown", "latex")
_WIDEST = 120
NOTHING_CURE = "store one with `ctxbench quickstart`, or `ctxbench run --samples NAME --strategy SPEC --generator SPEC`"
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
    after_option("Only samples whose code is dated after DATE (see docs/contamination.md)."),
    prices_option,
    click.option("--seed", default=0, show_default=True, help="Decides drawn permutations and bootstrap samples."),
    home_option,
    db_option,
)


class NothingStored(InputFault):
    """There is no run to show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardQuery:
    """A user's choice of stored runs, and of a board of them; a field for each option of a board."""

    home: Home
    db: str | None = None
    samples: str | None = None
    profile: str = "ctxbench"
    ks: tuple[int, ...] = ()
    marked: Literal["exclude", "include"] = "exclude"
    after: date | None = None
    """The day after which samples are dated; None for all, dated or not."""
    prices: Path | None = None
    """A file of rates by which the runs' tokens are priced."""
    metric: str | None = None
    baseline: str | None = None
    by_level: bool | None = None
    published: Literal["auto", "all", "none"] = "auto"
    seed: int = 0

    @property
    def url(self) -> str:
        """The database of the runs."""
        return self.db or self.home.database

    def board(self) -> Board:
        """Return the board; with ``published=all`` also if no run is stored.

        Raises:
            InputFault: as `tables`, and if no run has the metric or the baseline, or the file of cutoffs is wrong.
        """
        from ctxbench.harness import cutoffs
        from ctxbench.harness.leaderboard import board

        try:
            tables = self.tables()
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
            cutoffs=cutoffs.of_home(self.home),
        )

    def tables(self) -> list[RunTable]:
        """Return the stored runs, oldest first.

        Raises:
            UnknownName: if no run has that sample set, or there is no such profile.
            NothingStored: if there is no run.
            InputFault: if the file of rates is wrong, or no sample is dated after the day that was given.
        """
        from ctxbench.harness.leaderboard.scales import newer
        from ctxbench.harness.metrics import PROFILES
        from ctxbench.harness.prices import load
        from ctxbench.harness.store.runs import run_tables
        from ctxbench.harness.store.store import exists, open_current

        if self.profile not in PROFILES:
            raise UnknownName("metric profile", self.profile, PROFILES)
        # Looking must not leave an empty database behind.
        if self.db is None and not exists(self.url):
            raise NothingStored("no runs are stored here", where=str(self.home.root), cure=NOTHING_CURE)
        rates = load(self.prices) if self.prices else None
        with open_current(self.url) as store:
            read = functools.partial(
                run_tables, store, profile=self.profile, ks=self.ks, marked=self.marked, prices=rates
            )
            tables = read(samples=self.samples and self.samples.partition("[")[0])
            others = read(samples=None) if not tables and self.samples else []
        if self.samples:
            # `demo` means the whole set, `demo[:10]` its first ten; a set that was only run in part is shown in parts.
            whole = [table for table in tables if table.run.samples == self.samples]
            part = f"{self.samples}["
            matching = whole or [table for table in tables or others if table.run.samples.startswith(part)]
            if not matching and (tables or others):
                names = {table.run.samples for table in tables or others}
                raise UnknownName("sample set of the stored runs", self.samples, names)
            tables = matching
        if self.after is not None:
            tables = newer(tables, self.after)
        if not tables:
            what = f"no runs with scores of profile {self.profile} are stored"
            raise NothingStored(what, where=self.url, cure=NOTHING_CURE)
        return list(tables)


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
