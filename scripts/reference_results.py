"""Builds the reference results: ``python -m scripts.reference_results [HOME [KIND]]``.

With HOME: builds the standard set in it, completes missing runs and writes the shipped files, or only the file of KIND
(``line`` or ``function``). Then writes the boards and pictures of docs/results.md from the files.
"""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ctxbench.bench import samples as sets
from ctxbench.bench import standard
from ctxbench.bench.errors import InputFault
from ctxbench.bench.home import Home
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Kind
from ctxbench.harness.cli.main import cli
from ctxbench.harness.cli.terminal import progress, say
from ctxbench.harness.imported import reference
from ctxbench.harness.imported.reference import ReferenceResults
from ctxbench.harness.leaderboard import board
from ctxbench.harness.leaderboard.rows import Group, Row
from ctxbench.harness.leaderboard.stats import Estimate
from ctxbench.harness.metrics import COPY_MODEL, COPYABLE, GAIN
from ctxbench.harness.results import only_copies
from ctxbench.harness.run.runner import fault_of, run
from ctxbench.harness.store import open_store
from ctxbench.harness.store.runs import run_tables
from scripts import write_section

NAME = "ctxbench-2"
STRATEGIES = {
    Kind.LINE: (
        "lc.infile",
        "lc.repocoder",
        "lc.random_windows",
        "lc.infercom(encoder=bm25)",
        "lc.repofuse(encoder=bm25)",
        "gold",
        "blank",
        "lc.infercom(encoder=bm25, uer=off, fsr=off)",
        "lc.infercom(encoder=bm25, fsr=off)",
        "lc.infercom(encoder=bm25, uer=off)",
        "aim(lc.infile, encoder=bm25)",
        "aim(lc.repofuse(encoder=bm25), encoder=bm25)",
        "aim(lc.repocoder, encoder=bm25)",
        "oracle-context",
        "lc.repocoder(iterations=1)",
        "lc.infile(limit=2048)",
        "lc.repofuse(rationale=off, encoder=bm25)",
        "lc.infercom(encoder=jaccard)",
    ),
    Kind.FUNCTION: (
        "lc.infile",
        "icl.infile",
        "icl.direct",
        "icl.rag(encoder=bm25)",
        "icl.rag_s(encoder=bm25)",
        "icl.filerag(encoder=bm25)",
        "icl.infile_rag(encoder=bm25)",
        "icl.infile_rag_s(encoder=bm25)",
        "icl.infile_filerag(encoder=bm25)",
        "lc.random_windows",
        "lc.repocoder",
        "base.repocoder_fn(encoder=bm25)",
        "base.reacc(encoder=bm25)",
        "base.rlcoder(encoder=bm25)",
        "gold",
        "blank",
        "oracle-context",
    ),
}
"""Strategies of each kind that need no instruction-following model and no encoder weights. Baselines for lines come
first."""
RANDOM = "lc.random_windows"
DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = DOCS / "results.md"
BOARD_PICTURES = {Kind.LINE: DOCS / "results-board.svg", Kind.FUNCTION: DOCS / "results-functions.svg"}
BEGIN, END = "<!-- board: python -m scripts.reference_results -->\n", "<!-- end of the board -->"
LANGUAGES = {"python": "Python", "java": "Java"}
_COLOURS = {"python": "#2a78d6", "java": "#eb6834"}
_METRICS = {Kind.LINE: {"ES": "es", "EM": "em", "ID-F1": "id_f1"}, Kind.FUNCTION: {"pass@1": "pass@1", "ES": "es"}}
_DRAWN = {Kind.LINE: (COPYABLE, "copyable bits"), Kind.FUNCTION: ("es", "edit similarity in percent")}
"""Metric of a kind's picture, and its name. Bits are undefined for the ICL paper's prompts, which end before the
function."""


def make(home: Home, kind: Kind) -> Path:
    """Build the set, complete missing runs and write the file of a kind of sample; return its path.

    Raises:
        InputFault: if the set is not the published one, or samples of a run are missing.
        MachineFault: if the machine lost samples.
    """
    sample_set = published_samples(home, NAME, kind)
    with open_store(home.database) as store:
        summaries = run(home, store, sample_set, strategies=STRATEGIES[kind], generator=COPY_MODEL, progress=progress)
        fault = fault_of(summaries)
        if fault is not None:
            raise fault
        runs = [reference.read(store, summary.run, sample_set) for summary in summaries]
    return reference.write(NAME, sample_set, runs)


def published_samples(home: Home, set_name: str, kind: Kind) -> SampleSet:
    """Return the samples of a standard set, which is built if it is missing.

    Raises:
        InputFault: if the samples are not the published ones.
    """
    name = standard.samples_name(set_name, kind)
    if name not in sets.names(home):
        words = ["samples", "build", name, "--set", set_name, "--kind", kind.value, "--home", str(home.root)]
        cli.main(args=words, standalone_mode=False)
    sample_set = sets.load(home, name)
    if sample_set.digest != standard.load(set_name).digests.get(kind):
        raise InputFault(f"the samples of {name} are not the published ones", cure=f"remove {home.samples / name}")
    return sample_set


def groups_of(name: str, kind: Kind) -> list[Group]:
    """Return each language's board of a shipped file's rows by the copy model, Python first."""
    with tempfile.TemporaryDirectory() as folder, open_store(f"sqlite:///{folder}/results.db") as store:
        reference.import_reference(store, name, kind)
        tables = [table for table in run_tables(store) if only_copies(table.run.generator)]
    groups = {group.language: group for group in board(tables, all_pairs=True).groups}
    return [groups[language] for language in LANGUAGES if language in groups]


def board_text(group: Group, columns: Mapping[str, Callable[[Row], str]]) -> str:
    """Return a language's board as a Markdown table. `columns` maps more headings to functions that return a cell."""
    # Only the copy model measures copyable bits.
    bits = next((metric for metric in (COPYABLE, GAIN) if any(metric in row.metrics for row in group.rows)), COPYABLE)
    heading = {COPYABLE: "copyable bits", GAIN: "context gain, bits"}[bits]
    head = f"| rank | group | strategy | {heading} | {' | '.join(columns)} |"
    lines = [head, f"|---|---|---|---|{'---:|' * len(columns)}"]
    for row in group.rows:
        cells = [
            _rank(row),
            row.letters or ("control" if row.run.control else "not whole"),
            # Leave out the name of a positional parameter.
            f"`{row.run.strategy.replace('(name=', '(')}`",
            interval_text(row.metrics[bits]) if bits in row.metrics else "-",
            *(cell(row) for cell in columns.values()),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def metric_cell(metric: str) -> Callable[[Row], str]:
    """Return a function that formats a row's mean of a metric."""
    return lambda row: f"{row.metrics[metric].mean:.1f}"


def tokens_cell(row: Row) -> str:
    """Return the mean number of context tokens in a row's prompts, as text."""
    return f"{row.costs['context_tokens']:.0f}"


def _columns(kind: Kind) -> dict[str, Callable[[Row], str]]:
    return {
        **{heading: metric_cell(metric) for heading, metric in _METRICS[kind].items()},
        "tokens shown": tokens_cell,
        "beats": lambda row: str(len(row.beats)) if row.rank_low else "",
    }


def board_summary(group: Group) -> str:
    """Return sentences on a language's board: random windows' copyable bits, or that no difference is significant."""
    ranked = [row for row in group.rows if row.rank_low]
    if not any(row.beats for row in ranked):
        return (
            f"No difference is significant by {group.metric}: the built-in model continues code that it has seen and "
            "solves hardly any function. `gold` and `blank` show that the tests work. Run the strategies with your own "
            "model."
        )
    best = ranked[0]
    drawn = next(row for row in ranked if row.run.strategy == RANDOM)
    whole, part = best.metrics[COPYABLE].mean or 0, drawn.metrics[COPYABLE].mean or 0
    beaten = [f"`{row.run.strategy}`" for row in ranked if ranked.index(drawn) in row.beats]
    return (
        f"Random windows have {part:.1f} copyable bits, {100 * part / whole:.0f}% of the first row's: any code of the "
        f"repository adds that much. {len(beaten)} of {len(ranked) - 1} other strategies "
        "significantly exceed random windows."
    )


def _rank(row: Row) -> str:
    if row.rank_low is None:
        return ""
    return str(row.rank_low) if row.rank_low == row.rank_high else f"{row.rank_low}-{row.rank_high}"


def interval_text(estimate: Estimate) -> str:
    """Format a mean with its interval."""
    return f"{estimate.mean:.1f} [{estimate.low:.1f}, {estimate.high:.1f}]"


class Plot:
    """An SVG of labelled lines, each with points over a common axis."""

    def __init__(self, labels: Sequence[str], values: Iterable[float], *, height: int, labels_width: int) -> None:
        """Fit the axis to all values. Lines are `height` pixels high."""
        numbers = [0.0, *values]
        step = next(step for step in (1, 2, 5, 10, 20, 50, 100) if (max(numbers) - min(numbers)) / step <= 8)
        self.low, self.high = math.floor(min(numbers) / step) * step, math.ceil(max(numbers) / step) * step
        self.left, self.width, self.height = labels_width, 860, height
        bottom = 40 + height * len(labels)
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {bottom + 45}" '
            'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="#fff"/>'
        ]
        for tick in range(self.low, self.high + 1, step):
            x, stroke = self.x(tick), "#888" if tick == 0 else "#ddd"
            self.parts.append(f'<path d="M{x:.1f} 30V{bottom}" stroke="{stroke}"/>')
            self.parts.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{tick}</text>')
        for line, label in enumerate(labels):
            y = self.y(line) + 4
            self.parts.append(f'<text x="{self.left - 10}" y="{y}" text-anchor="end">{label}</text>')
        for place, (language, name) in enumerate(LANGUAGES.items()):
            x = self.left + 70 * place
            self.parts.append(f'<circle cx="{x}" cy="15" r="4" fill="{_COLOURS[language]}"/>')
            self.parts.append(f'<text x="{x + 9}" y="19">{name}</text>')
        self.caption = f'<text x="{(self.left + self.width) / 2}" y="{bottom + 36}" text-anchor="middle">'

    def x(self, value: float) -> float:
        """Return the x coordinate of a value."""
        return self.left + (self.width - self.left - 20) * (value - self.low) / (self.high - self.low)

    def y(self, line: int) -> int:
        """Return the y coordinate of a line's middle."""
        return 40 + self.height * line + self.height // 2

    def text(self, caption: str) -> str:
        """Return the SVG with a caption below its axis."""
        return "\n".join([*self.parts, f"{self.caption}{caption}</text></svg>", ""])


def board_picture(groups: Sequence[Group], kind: Kind) -> str:
    """Return an SVG of each strategy's copyable bits (for functions: edit similarity) by language, with intervals."""
    metric, caption = _DRAWN[kind]
    rows: dict[str, dict[str, Row]] = {}
    for group in groups:
        for row in group.rows:
            # Both show only the file: no prompt contains the reference itself.
            if row.run.strategy not in ("gold", "blank"):
                rows.setdefault(row.run.strategy, {})[group.language] = row
    means = {name: statistics.fmean(row.metrics[metric].mean or 0 for row in of.values()) for name, of in rows.items()}
    names = sorted(means, key=means.__getitem__, reverse=True)
    ends = [
        end
        for of in rows.values()
        for row in of.values()
        for end in (row.metrics[metric].low, row.metrics[metric].high)
    ]
    plot = Plot(names, [end or 0.0 for end in ends], height=26, labels_width=330)
    for line, name in enumerate(names):
        for language, row in rows[name].items():
            gain, y = row.metrics[metric], plot.y(line) + (-4 if language == "python" else 5)
            colour, low, high = _COLOURS[language], plot.x(gain.low or 0), plot.x(gain.high or 0)
            plot.parts.append(f'<path d="M{low:.1f} {y}H{high:.1f}" stroke="{colour}" stroke-width="2"/>')
            title = f"<title>{name}, {LANGUAGES[language]}: {interval_text(gain)}</title>"
            plot.parts.append(
                f'<circle cx="{plot.x(gain.mean or 0):.1f}" cy="{y}" r="4" fill="{colour}">{title}</circle>'
            )
    return plot.text(f"{caption}, with 95% intervals over repositories")


def board_parts(results: ReferenceResults, groups: Sequence[Group]) -> Iterator[str]:
    """Yield the paragraphs of a kind of sample: its boards with a picture."""
    ranked = [row for row in groups[0].rows if row.rank_low]
    versions = {run.code for run in results.runs}
    yield (
        f"{len(ranked)} strategies and {len(groups[0].rows) - len(ranked)} controls over the {len(results.samples):,} "
        f"{results.kind}s of `{results.name}`, by `{results.runs[0].generator}`, measured with ctxbench "
        f"{', '.join(versions)}."
    )
    drawn, picture = _DRAWN[results.kind][1], BOARD_PICTURES[results.kind].name
    measured = "[Copyable bits](agreement.md) show how much can be copied from a context."
    yield f"No language model answered these samples. {measured}"
    yield f"![{drawn.capitalize()} of each strategy in both languages]({picture})"
    for group in groups:
        repositories = len({sample.repo for sample in results.samples if sample.language == group.language})
        yield f"#### {LANGUAGES[group.language]}: {repositories} repositories"
        yield board_text(group, _columns(results.kind))
        yield board_summary(group)


def main(home: str = "", *kinds: str) -> None:
    """Write the boards and pictures of docs/results.md, after building the result files if a home is given."""
    for kind in (map(Kind, kinds) if kinds else Kind) if home else ():
        path = make(Home(Path(home).absolute()), kind)
        say(f"{path}: {path.stat().st_size:,} bytes")
    parts: list[str] = []
    for kind in reference.kinds(NAME):
        results, groups = reference.load(NAME, kind), groups_of(NAME, kind)
        parts += [f"### {str(kind).capitalize()}s", *board_parts(results, groups)]
        BOARD_PICTURES[kind].write_text(board_picture(groups, kind), encoding="utf-8")
    write_section(PAGE, BEGIN, END, "\n\n".join(parts) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
