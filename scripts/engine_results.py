"""Measure the context engines: ``python -m scripts.engine_results HOME [NAME]`` (default ``ctxbench-2-lite``).

Build the standard set NAME there, run what is missing (stopped, it goes on where it was) and write what came of it into
docs/results.md: the engines beside strategies of ours, and of the default set also what their shared mode gains, and
what a budget buys.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ctxbench.bench import samples as sets
from ctxbench.bench.home import Home
from ctxbench.bench.spec import expand
from ctxbench.harness.cli.main import cli
from ctxbench.harness.cli.terminal import progress
from ctxbench.harness.leaderboard import board, compare
from ctxbench.harness.leaderboard.rows import Group, Row
from ctxbench.harness.leaderboard.sections import Curves, curves
from ctxbench.harness.metrics import COPY_MODEL, COPYABLE
from ctxbench.harness.results import RunTable
from ctxbench.harness.run.runner import fault_of, run
from ctxbench.harness.run.spec import RunOptions
from ctxbench.harness.store import open_store
from ctxbench.harness.store.runs import run_tables
from scripts import write_section
from scripts.reference_results import LANGUAGES, board_text, metric_cell, tokens_cell

ENGINES = (
    *("ripgrep", "tantivy", "repomap", "ctags", "jedi"),
    *("docs/engines/code-index.toml", "docs/engines/mcp-grep.toml"),
)
BASELINES = (
    *("lc.infile", "lc.random_windows", "lc.repocoder", "lc.repofuse(encoder=bm25)", "lc.infercom(encoder=bm25)"),
    "oracle-context",
)
BUDGET, BUDGETS = "budget=", "{256,512,1024,2048,4096}"
OVER_BUDGETS = (
    f"lc.random_windows(budget={BUDGETS})",
    f"lc.repofuse(encoder=bm25, budget={BUDGETS})",
    f"lc.repocoder(budget={BUDGETS})",
    f"engine(ripgrep, budget={BUDGETS})",
    f"engine(repomap, budget={BUDGETS})",
)
SHARED = "mode=shared"
LITE = "ctxbench-2-lite"
DRAWN = 180
"""Samples of the curves and of the shared mode: ten of each repository of the lite set."""
PAGE = Path(__file__).resolve().parents[1] / "docs" / "results.md"


def measure(home: Home, name: str) -> list[RunTable]:
    """Build the set and run what is missing; return the tables of the set's runs.

    Raises:
        InputFault: if the set cannot be built.
        MachineFault: if the machine lost samples.
    """
    if name not in sets.names(home):
        cli.main(args=["samples", "build", name, "--set", name, "--home", str(home.root)], standalone_mode=False)
    sample_set = sets.load(home, name)
    per_file = [f"engine({engine})" for engine in ENGINES]
    shared = [f"engine({engine}({SHARED}))" for engine in ENGINES]
    with open_store(home.database) as store:
        limits: dict[tuple[str, ...], int | None] = {(*BASELINES, *per_file): None}
        if name == LITE:
            limits[*OVER_BUDGETS, *shared] = DRAWN
        for strategies, limit in limits.items():
            summaries = run(
                home,
                store,
                sample_set,
                strategies=[spec for text in strategies for spec in expand(text)],
                generator=COPY_MODEL,
                choices=RunOptions(limit=limit),
                progress=progress,
            )
            if (fault := fault_of(summaries)) is not None:
                raise fault
        return list(run_tables(store, samples=name))


def _cost_cell(cost: str, decimals: int) -> Callable[[Row], str]:
    def cell(row: Row) -> str:
        value = row.costs.get(cost)
        return "" if value is None else f"{value:.{decimals}f}"

    return cell


_COLUMNS = {
    "ES": metric_cell("es"),
    "ID-F1": metric_cell("id_f1"),
    "tokens shown": tokens_cell,
    "index, s": _cost_cell("index_seconds", 2),
    "queries, s": _cost_cell("query_seconds", 3),
    "places": _cost_cell("places", 0),
}


def leak_lines(tables: Sequence[RunTable]) -> Iterator[str]:
    """Yield a table of what the shared mode of each engine gains over its per-file mode, over the same samples."""
    yield f"| shared less per-file, bits | {' | '.join(LANGUAGES.values())} |"
    yield "|---|---|---|"
    for engine in ENGINES:
        cells = []
        for language in LANGUAGES:
            pair = [_table(tables, f"{engine}{mode}", language) for mode in ("", f"({SHARED})")]
            [compared] = compare.compare(pair, metric=COPYABLE)
            gap = compared.difference
            cells.append(f"{gap.mean:+.2f} [{gap.low:+.2f}, {gap.high:+.2f}], n = {gap.n_common}")
        yield f"| `{engine}` | {' | '.join(cells)} |"


def _table(tables: Sequence[RunTable], engine: str, language: str) -> RunTable:
    return next(
        table for table in tables if (table.run.strategy, table.run.language) == (f"engine(name={engine})", language)
    )


def budget_text(group: Group) -> str:
    """Return the curves of a language as a Markdown table."""
    drawn = curves(group)
    assert isinstance(drawn, Curves), drawn
    table = drawn.table()
    lines = [f"| {' | '.join(head.text for head in table.heads)} |", f"|---|{'---|' * (len(table.heads) - 1)}"]
    return "\n".join(
        [*lines, *(f"| `{cells[0].replace('(name=', '(')}` | {' | '.join(cells[1:])} |" for cells in table.lines)]
    )


def parts(tables: Sequence[RunTable], name: str) -> Iterator[str]:
    """Yield the paragraphs of the section."""
    whole = [table for table in tables if table.run.samples == name and BUDGET not in table.run.strategy]
    samples = {table.run.language: table.sample for table in whole}
    count = sum(map(len, samples.values()))
    yield f"Over the {count:,} lines of `{name}`, by `{COPY_MODEL}`; seconds and places are means over its samples."
    boards = {group.language: group for group in board(whole, all_pairs=True).groups}
    for language, title in LANGUAGES.items():
        repositories = len(set(_table(whole, ENGINES[0], language).repo))
        yield f"#### {title}: {len(samples[language])} samples of {repositories} repositories"
        yield board_text(boards[language], _COLUMNS)
    if name != LITE:
        return
    yield "#### What an engine gains that may remember"
    yield "\n".join(leak_lines(tables))
    yield "#### What a budget buys"
    # A budget that is the default stands in no spec.
    drawn = [table for table in tables if table.run.samples != name and SHARED not in table.run.strategy]
    yield f"Of the first {DRAWN} samples, ten of each repository:"
    boards = {group.language: group for group in board(drawn).groups}
    for language, title in LANGUAGES.items():
        yield f"{title}:"
        yield budget_text(boards[language])


def main(home: str, name: str = LITE) -> None:
    """Run what is missing; write the section of the set."""
    text = "\n\n".join(parts(measure(Home(Path(home).absolute()), name), name))
    begin, end = (
        f"<!-- engines on {name}: python -m scripts.engine_results -->\n",
        f"<!-- end of the engines on {name} -->",
    )
    write_section(PAGE, begin, end, f"{text}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
