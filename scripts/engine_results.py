"""Measures the context engines: ``python -m scripts.engine_results HOME [NAME [LIMIT [GENERATOR]]]``.

Completes runs over the standard set NAME, and writes a section of docs/results.md. With a LIMIT, all strategies and
third-party engines run over the first LIMIT samples, and docs/engines.md is also written if GENERATOR is the default.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ctxbench.bench import samples as sets
from ctxbench.bench.engines.box import EngineBox, tree_of_file
from ctxbench.bench.engines.inside import identifiers
from ctxbench.bench.engines.recipe import read
from ctxbench.bench.engines.types import Raised
from ctxbench.bench.home import Home
from ctxbench.bench.spec import expand
from ctxbench.bench.types import Sample
from ctxbench.harness.cli.main import cli
from ctxbench.harness.cli.terminal import progress
from ctxbench.harness.generators.base import canonical
from ctxbench.harness.leaderboard import board, compare
from ctxbench.harness.leaderboard.curves import Curves, curves
from ctxbench.harness.leaderboard.rows import Group, Row
from ctxbench.harness.metrics import COPY_MODEL, COPYABLE
from ctxbench.harness.results import RunTable, Status, samples_label
from ctxbench.harness.run.execution import back_end
from ctxbench.harness.run.runner import fault_of, run
from ctxbench.harness.run.spec import RunOptions, planned_samples
from ctxbench.harness.store import open_store
from ctxbench.harness.store.details import BlockFacts, detail
from ctxbench.harness.store.runs import CONTEXT, run_tables
from ctxbench.harness.store.store import Store
from ctxbench.sandbox.errors import SandboxError
from ctxbench.sandbox.persistent import with_resident
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
INSTALLED = tuple(
    f"docs/engines/{name}.toml"
    for name in ("chunkhound", "code-review-graph", "graphify", "jcodemunch-mcp", "repowise", "serena", "srclight")
)
SHARED = "mode=shared"
LITE = "ctxbench-2-lite"
DRAWN = 180
"""Number of samples for the curves and the shared mode: ten from each repository of the lite set."""
TREES, SHOWN, PLACES, ASKED, MISSING = 6, 5, 4, 8, 10
"""Every `TREES`-th repository is indexed twice. The page of engines shows `SHOWN` samples with `PLACES` places per
engine. A recipe searches for `ASKED` identifiers. A row may lack one of `MISSING` samples."""
PAGE = Path(__file__).resolve().parents[1] / "docs" / "results.md"


def measure(home: Home, name: str, first: int | None = None, generator: str = COPY_MODEL) -> list[RunTable]:
    """Build the set and complete its runs; return the runs' tables.

    With `first`, third-party engines run too, and all strategies run over this number of samples.

    Raises:
        InputFault: if the set cannot be built.
        MachineFault: if the machine lost samples, unless `first` is given.
    """
    if name not in sets.names(home):
        cli.main(args=["samples", "build", name, "--set", name, "--home", str(home.root)], standalone_mode=False)
    sample_set = sets.load(home, name)
    per_file = [f"engine({engine})" for engine in (*ENGINES, *(INSTALLED if first else ()))]
    shared = [f"engine({engine}({SHARED}))" for engine in ENGINES]
    limits: dict[tuple[str, ...], int | None] = {(*BASELINES, *per_file): first}
    if name == LITE and not first:
        limits[*OVER_BUDGETS, *shared] = DRAWN
    with open_store(home.database) as store:
        for strategies, limit in limits.items():
            summaries = run(
                home,
                store,
                sample_set,
                strategies=[spec for text in strategies for spec in expand(text)],
                generator=generator,
                choices=RunOptions(limit=limit),
                progress=progress,
            )
            # Some engines fail on some samples. The board shows the number of these missing samples.
            if not first and (fault := fault_of(summaries)) is not None:
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
    """Yield the lines of a table: each engine's copyable bits in shared mode minus those in per-file mode."""
    yield f"| `shared` minus `per-file`, bits | {' | '.join(LANGUAGES.values())} |"
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
        table for table in tables if (table.run.strategy, table.run.language) == (f"engine({engine})", language)
    )


def budget_text(group: Group) -> str:
    """Return a Markdown table of each strategy's values by budget, for the rows of one language."""
    drawn = curves(group)
    assert isinstance(drawn, Curves), drawn
    table = drawn.table()
    lines = [f"| {' | '.join(head.text for head in table.heads)} |", f"|---|{'---|' * (len(table.heads) - 1)}"]
    return "\n".join(
        [*lines, *(f"| `{cells[0].replace('(name=', '(')}` | {' | '.join(cells[1:])} |" for cells in table.lines)]
    )


def parts(tables: Sequence[RunTable], name: str) -> Iterator[str]:
    """Yield the paragraphs on a standard set: boards, and for the lite set also results of shared mode and budgets."""
    whole = [table for table in tables if table.run.samples == name and BUDGET not in table.run.strategy]
    samples = {table.run.language: table.sample for table in whole}
    count = sum(map(len, samples.values()))
    yield f"Over the {count:,} lines of `{name}`, by `{COPY_MODEL}`; seconds and places are means per sample."
    boards = {group.language: group for group in board(whole, all_pairs=True).groups}
    for language, title in LANGUAGES.items():
        repositories = len(set(_table(whole, ENGINES[0], language).repo))
        yield f"#### {title}: {len(samples[language])} samples of {repositories} repositories"
        yield board_text(boards[language], _COLUMNS)
    if name != LITE:
        return
    yield "#### The gain of an engine that may remember"
    yield "\n".join(leak_lines(tables))
    yield "#### What a budget buys"
    # A spec omits the default budget.
    drawn = [table for table in tables if table.run.samples != name and SHARED not in table.run.strategy]
    yield f"The first {DRAWN} samples, ten per repository:"
    boards = {group.language: group for group in board(drawn).groups}
    for language, title in LANGUAGES.items():
        yield f"{title}:"
        yield budget_text(boards[language])


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """An engine's index: bytes of memory and disk (maximum over trees), and how often two indices answer equally."""

    memory: int
    disk: int
    alike: int
    """Number of trees whose two indices gave the same answers."""
    trees: int


def built(home: Home, sample_set: sets.SampleSet, samples: Sequence[Sample], engine: str) -> Built:
    """Index the tree of each sample's file twice in fresh boxes, query both indices, and compare their answers."""
    recipe, sandbox = read(engine), back_end(home, None)
    sandbox.prepare(with_resident(recipe.environment), lambda _: None)
    snapshots = sets.snapshots(home, sample_set, {sample.repo for sample in samples})
    boxes, alike = [], 0
    for sample in samples:
        answers = []
        for _ in range(2):
            with contextlib.suppress(SandboxError, Raised):
                box = EngineBox(recipe, tree_of_file(snapshots[sample.repo], [sample]), sandbox)
                boxes.append(box)
                try:
                    answers.append(box.search(sample.prefix, sample, 20))
                finally:
                    box.end()
        alike += len(answers) == 2 and answers[0] == answers[1]
    return Built(
        memory=max((box.memory for box in boxes), default=0),
        disk=max((box.size for box in boxes), default=0),
        alike=alike,
        trees=len(samples),
    )


def built_lines(home: Home, name: str, first: int) -> Iterator[str]:
    """Yield the lines of a table of each engine's index cost, over one sample of every `TREES`-th repository."""
    sample_set = sets.load(home, name)
    samples = list({sample.repo: sample for sample in planned_samples(sample_set.samples, first)}.values())[::TREES]
    yield "| engine | memory, MB | index, MB | pairs of fresh indexes with equal answers |"
    yield "|---|---:|---:|---:|"
    for engine in (*ENGINES, *INSTALLED):
        row = built(home, sample_set, samples, engine)
        yield f"| `{engine}` | {row.memory / 1e6:.0f} | {row.disk / 1e6:.2f} | {row.alike} of {row.trees} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("`", "'")[:80]


def _place_cell(block: BlockFacts, prompt: str, names: Sequence[str]) -> str:
    place = block.places[0]
    text = prompt[block.start : block.end]
    defined = [name for name in names if re.search(rf"\b(def|class|interface|enum|record) {re.escape(name)}\b", text)]
    where = f"`{place.path}:{place.start + 1}-{place.end}`"
    return f"**{where} defines {', '.join(defined)}**" if defined else where


def page_lines(home: Home, name: str, first: int) -> Iterator[str]:
    """Yield the lines of docs/engines.md: the results of all strategies for some samples, side by side."""
    sample_set = sets.load(home, name)
    planned = [sample for sample in planned_samples(sample_set.samples, first) if sample.uses]
    samples = list({sample.repo: sample for sample in planned}.values())
    with open_store(home.database) as store:
        label = samples_label(name, limit=first)
        tables = [
            table
            for table in run_tables(store, samples=name)
            if (table.run.samples, table.run.generator) == (label, COPY_MODEL)
        ]
        for number, sample in enumerate(samples[:: max(1, len(samples) // SHOWN)][:SHOWN], 1):
            yield from _sample_lines(store, tables, sample, sample_set.references[sample.id].target, number)


def _sample_lines(
    store: Store, tables: Sequence[RunTable], sample: Sample, reference: str, number: int
) -> Iterator[str]:
    names = sorted({use.name for use in sample.uses})
    yield f"\n## {number}. {sample.repo}, {sample.path}:{sample.cursor.line + 1}\n"
    last = "\n".join(sample.prefix.split("\n")[-7:])
    yield f"```{sample.language}\n{last}\u258f\n```\n"
    yield f"The reference is `{_cell(reference)}`. It uses {', '.join(f'`{use}`' for use in names)} from other files.\n"
    weights = identifiers(sample.prefix)
    asked = sorted(weights, key=lambda name: -weights[name])[:ASKED]
    yield f"The recipes search for {', '.join(f'`{name}`' for name in asked)}.\n"
    yield "| strategy | copyable bits | first places | text by the copy model |"
    yield "|---|---:|---|---|"
    for table in tables:
        if table.run.language != sample.language or sample.id not in table.sample:
            continue
        shown = detail(store, table.run.id, sample.id)
        if not shown.completions:
            continue
        kept = [block for block in shown.blocks if block.places and block.start is not None]
        others = [block for block in kept if block.places[0].path != sample.path]
        best = sorted(others, key=lambda block: -(block.score or 0.0))[:PLACES]
        cells = [_place_cell(block, shown.prompt or "", names) for block in best]
        bits = next((facts.scores.get((CONTEXT, COPYABLE)) for facts in shown.completions), None)
        text = shown.completions[0].text
        spec = table.run.strategy.replace("(name=", "(")
        written = f"`{_cell(text)}`" if text and text.strip() else ""
        yield f"| `{spec}` | {'' if bits is None else f'{bits:.1f}'} | {'<br>'.join(cells)} | {written} |"


def installed_parts(home: Home, name: str, first: int, generator: str) -> Iterator[str]:
    """Yield the paragraphs on a board of strategies and engines, including third-party ones."""
    tables = [
        table
        for table in measure(home, name, first, generator)
        if table.run.samples == samples_label(name, limit=first)
        and table.run.generator.startswith(canonical(generator))
        and table.status.count(Status.INFRA_FAILED) <= len(table.status) // MISSING
    ]
    yield f"Over the first {first} lines of `{name}`, by `{generator}`; seconds and places are means per sample."
    for group in board(tables, all_pairs=True).groups:
        yield f"#### {LANGUAGES[group.language]}: by `{generator}`"
        yield board_text(group, _COLUMNS)


def main(home: str, name: str = LITE, limit: str = "", generator: str = COPY_MODEL) -> None:
    """Complete missing runs, and write the section of docs/results.md on the set, or with a limit on all engines."""
    place = Home(Path(home).absolute())
    if not limit:
        text = "\n\n".join(parts(measure(place, name), name))
        _write(f"engines on {name}", text)
        return
    _write(f"engines by {generator}, {limit} lines", "\n\n".join(installed_parts(place, name, int(limit), generator)))
    if generator == COPY_MODEL:
        _write("what installed engines need", "\n".join(built_lines(place, name, int(limit))))
        _write("samples", "\n".join(page_lines(place, name, int(limit))), PAGE.with_name("engines.md"))


def _write(title: str, text: str, page: Path = PAGE) -> None:
    write_section(
        page, f"<!-- {title}: python -m scripts.engine_results -->\n", f"<!-- end of {title} -->", f"{text}\n"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
