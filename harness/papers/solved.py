"""Who solves what among the strategies of a reproduced table (ICL-strategies paper, Figure 8): counts and a picture.

Pure: returns text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from ctxbench.bench.visible import visible
from ctxbench.harness.leaderboard.compare import Solved, SolvedRegion, solved
from ctxbench.harness.results import RunTable

_RIGHT_OR_WRONG = ("pass@1", "em")
_STEP, _EDGE, _BAR = 22, 16, 260
"""Pixels of a row or a column of dots, around everything, and of the longest bar."""
MOST_REGIONS = 40
"""Columns that a plot draws."""
_CHARACTER = 7
"""Pixels of a character, at most."""
_INK, _FAINT, _FILL = "#222", "#ddd", "#0072B2"


@dataclass(frozen=True, slots=True, kw_only=True)
class SolvedBy:
    """Who solves what, over the samples of one set in one language that all of the strategies completed."""

    samples: str
    language: str
    generator: str
    metric: str
    strategies: tuple[str, ...]
    solved: Solved

    @property
    def title(self) -> str:
        """What it is about."""
        return f"who solves what: {self.samples}, {self.language}, {self.generator}, by {self.metric}"


def solved_by(tables: Sequence[RunTable]) -> Iterator[SolvedBy]:
    """Yield who solves what, for each language in which two strategies have a metric that is right or wrong."""
    for language in dict.fromkeys(table.run.language for table in tables):
        of_language = {table.run.strategy: table for table in tables if table.run.language == language}
        members = tuple(of_language.values())
        metric = next((name for name in _RIGHT_OR_WRONG if all(name in table.metrics for table in members)), "")
        outcome = solved(members, metric) if metric and len(members) > 1 else None
        if outcome is not None and outcome.n:
            run = members[0].run
            yield SolvedBy(
                samples=run.samples,
                language=language,
                generator=run.generator,
                metric=metric,
                strategies=tuple(of_language),
                solved=outcome,
            )


def who(by: SolvedBy, region: SolvedRegion) -> str:
    """Return which strategies solve the samples of a region, and no other does."""
    if not region.runs:
        return "none of them"
    if len(region.runs) == by.solved.count:
        return "all of them"
    return f"only {' and '.join(by.strategies[run] for run in region.runs)}"


def record(by: SolvedBy) -> dict[str, Any]:
    """Return the same for JSON, with the samples of each region."""
    return {
        "samples": by.samples,
        "language": by.language,
        "generator": by.generator,
        "metric": by.metric,
        "n": by.solved.n,
        "regions": [
            {"strategies": [by.strategies[run] for run in region.runs], "samples": list(region.samples)}
            for region in by.solved.regions
        ],
    }


def picture(charts: Sequence[SolvedBy]) -> str:
    """Return UpSet plots, one below the other, as an SVG.

    A row is a strategy, a column the samples that exactly the strategies with a full dot solve, most samples first;
    its bar and number say how many they are. At the right, how many samples each strategy solves.
    """
    parts: list[str] = []
    width, top = 2 * _EDGE, float(_EDGE)
    for by in charts:
        labels = [
            visible(f"{name}: {total} solved") for name, total in zip(by.strategies, by.solved.totals(), strict=True)
        ]
        title = f"{by.title}, {by.solved.n} samples{_undrawn(by)}"
        across = 2 * _EDGE + _STEP * len(by.solved.regions[:MOST_REGIONS]) + _CHARACTER * max(map(len, labels))
        width = max(width, across, 2 * _EDGE + _CHARACTER * len(title))
        parts += _chart(by, visible(title), labels, top)
        top += 3 * _STEP + _BAR / 2 + _STEP * len(labels) + _EDGE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top:.0f}" font-family="sans-serif" '
        f'font-size="12" fill="{_INK}">\n<rect width="100%" height="100%" fill="#fff"/>\n' + "".join(parts) + "</svg>\n"
    )


def _undrawn(by: SolvedBy) -> str:
    regions = len(by.solved.regions)
    return f"; drawn are the {MOST_REGIONS} largest of {regions} regions" if regions > MOST_REGIONS else ""


def _chart(by: SolvedBy, title: str, labels: Sequence[str], top: float) -> Iterator[str]:
    yield f'<text x="{_EDGE}" y="{top + 12:.0f}" font-weight="bold">{escape(title)}</text>\n'
    regions = by.solved.regions[:MOST_REGIONS]
    foot = top + 2 * _STEP + _BAR / 2
    most = max(len(region.samples) for region in regions)
    for column, region in enumerate(regions):
        x, size = _EDGE + _STEP * (column + 0.5), len(region.samples)
        height = size / most * _BAR / 2
        hover = f"<title>{escape(visible(who(by, region)))}: {size}</title>"
        yield (
            f'<rect x="{x - 7:.0f}" y="{foot - height:.1f}" width="14" height="{height:.1f}" fill="{_FILL}">'
            f"{hover}</rect>\n"
            f'<text x="{x:.0f}" y="{foot - height - 4:.1f}" text-anchor="middle" font-size="10">{size}</text>\n'
        )
        if len(region.runs) > 1:
            first, last = (foot + _STEP * (run + 0.75) for run in (region.runs[0], region.runs[-1]))
            yield f'<path d="M{x:.0f} {first:.1f}V{last:.1f}" stroke="{_INK}" stroke-width="2"/>\n'
        for run in range(by.solved.count):
            y, colour = foot + _STEP * (run + 0.75), _INK if run in region.runs else _FAINT
            yield f'<circle cx="{x:.0f}" cy="{y:.1f}" r="5" fill="{colour}">{hover}</circle>\n'
    beside = _EDGE + _STEP * len(regions) + 8
    for run, label in enumerate(labels):
        yield f'<text x="{beside}" y="{foot + _STEP * (run + 0.75) + 4:.1f}">{escape(label)}</text>\n'
