"""`ctxbench report`: the leaderboard as one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from bench.errors import InputFault
from bench.home import Home
from harness.cli.options import db_option, home_option, k_option, prices_option

if TYPE_CHECKING:
    from harness.leaderboard.rows import Board
    from harness.store.work import RunWork


@click.command()
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="FILE", help="The file to write.")
@click.option(
    "--samples",
    metavar="NAME",
    help="Only runs over this sample set; if there are none, limited runs (NAME[:N]) of it.",
)
@click.option("--metric", metavar="METRIC", help="What ranks, as for `ctxbench leaderboard`.")
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
    help="Published numbers below the runs: of their benchmarks, the nearest and best; all; none.",
)
@click.option(
    "--marked",
    type=click.Choice(["exclude", "include"]),
    default="exclude",
    show_default=True,
    help="Samples marked as broken (their own answer fails their tests) or vacuous (an empty body passes them).",
)
@prices_option
@click.option("--seed", default=0, show_default=True, help="Decides drawn permutations and bootstrap samples.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["html", "latex", "markdown", "csv", "json"]),
    default="html",
    show_default=True,
    help="What to write.",
)
@home_option
@db_option
def report(
    *,
    out: Path,
    samples: str | None,
    metric: str | None,
    ks: tuple[int, ...],
    baseline: str | None,
    profile: str,
    by_level: bool | None,
    published: Literal["auto", "all", "none"],
    marked: Literal["exclude", "include"],
    prices: Path | None,
    seed: int,
    form: str,
    home: Home,
    db: str | None,
) -> None:
    """Write the leaderboard as one self-contained file, with the commands that make its rows again.

    The numbers are those of `ctxbench leaderboard` with the same options. Reports of the same runs are equal, byte for
    byte, whenever they are written.
    """
    from bench.files import write_atomic
    from harness.cli.leaderboard import printed, read_tables
    from harness.leaderboard import board

    _check(out)
    tables = read_tables(home, db, samples=samples, profile=profile, ks=ks, marked=marked, prices=prices)
    made = board(tables, metric=metric, baseline=baseline, by_level=by_level, seed=seed, published=published)
    if form == "html":
        text = _html(made, _works(made, db or home.database), full=bool(by_level))
    else:
        text = printed(made, form, full=bool(by_level))
    write_atomic(out, text)
    click.echo(f"{out}: {len(made.rows)} rows in {len(made.groups)} groups", err=True)


def _check(out: Path) -> None:
    """Refuse a place that nothing can be written to, before the work is done."""
    if out.is_dir():
        raise InputFault("is a folder, not a file", where=str(out), cure="give --out the path of a file")
    if not out.absolute().parent.is_dir():
        raise InputFault(
            "there is no such folder", where=str(out.absolute().parent), cure="make it, or give --out another path"
        )


def _works(made: Board, url: str) -> dict[str, RunWork]:
    from harness.store import open_store
    from harness.store.work import works

    with open_store(url) as store:
        return {one.id: one for one in works(store, {row.run.id for row in made.rows})}


def _html(made: Board, works: dict[str, RunWork], *, full: bool) -> str:
    from dashboard.report import model, page

    return page.html(model.report(made, works, full=full))
