"""Select the published numbers that stand below each group, and recorded predictions that contradict them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from ctxbench.harness.leaderboard.levels import LANGUAGES
from ctxbench.harness.leaderboard.listing import BOTH, Listing, columns, levels, printed, ranking
from ctxbench.harness.leaderboard.rows import Group
from ctxbench.harness.papers import tables
from ctxbench.harness.papers.tables import PaperRow
from ctxbench.harness.results import Origin

Mode = Literal["auto", "all", "none"]
REPORTED = ("CoderEval", "CrossCodeEval", "ProjBench")
"""The benchmarks of the papers that a sample set can be."""
_OF_OUR_MODELS = 4
_BEST = 3
_SHORTEST_NAME = 5


def listings(groups: Sequence[Group], mode: Mode) -> tuple[Listing, ...]:
    """Return the published rows that belong below `groups`.

    Args:
        groups: what is shown.
        mode: ``auto`` takes the benchmarks and languages of the groups; ``all`` those of every paper, and shows every
            row; ``none`` takes nothing.
    """
    if mode == "none":
        return ()
    languages_present = {(group.benchmark, group.language) for group in groups}
    selected = []
    for benchmark in REPORTED:
        of_benchmark = [row for row in tables.rows() if row.benchmark == benchmark]
        spoken = [name for name in LANGUAGES if mode == "all" or (benchmark.lower(), name) in languages_present]
        for language in (*spoken, *([BOTH] if len(spoken) == len(LANGUAGES) else [])):
            rows = tuple(row for row in of_benchmark if language in row.printed or language in row.missing)
            if not rows:
                continue
            beside = [
                group for group in groups if group.benchmark == benchmark.lower() and language in (BOTH, group.language)
            ]
            highlighted = rows if mode == "all" else _highlighted(rows, language, {group.generator for group in beside})
            contradictions = () if language == BOTH else tuple(_contradictions(rows, language, beside))
            selected.append(
                Listing(
                    benchmark=benchmark,
                    language=language,
                    rows=rows,
                    highlighted=highlighted,
                    contradicted=contradictions,
                )
            )
    return tuple(selected)


def same_model(model: str, generator: str) -> bool:
    """Return whether a generator's spec names a paper's model: the one's name is a part of the other's."""
    model_letters = _letters(model)
    names = [_letters(name) for name in re.split(r"[(),=/\s]+", generator)]
    return any(len(name) >= _SHORTEST_NAME and (name in model_letters or model_letters in name) for name in names)


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _highlighted(rows: Sequence[PaperRow], language: str, generators: set[str]) -> tuple[PaperRow, ...]:
    """Return the rows of the groups' own models, and the best of all; what is printed in two tables once."""
    once: dict[tuple[str, ...], PaperRow] = {}
    for row in rows:
        once.setdefault((row.model, row.strategy, str(_numbers(row, language))), row)
    ordered = sorted(once.values(), key=lambda row: _key(row, language))
    filled = [row for row in ordered if any(cell is not None for cell in _numbers(row, language))]
    ours = [row for row in filled if any(same_model(row.model, generator) for generator in generators)][:_OF_OUR_MODELS]
    best = [row for row in filled if _key(row, language) < 0][:_BEST]
    return tuple(row for row in filled if row in ours or row in best)


def _numbers(row: PaperRow, language: str) -> list[tuple[float | None, str] | None]:
    cells = [printed(row, language, column) for column in columns(row, language)]
    return [None if cell is None else (cell.value, cell.status) for cell in cells]


def _key(row: PaperRow, language: str) -> float:
    """Return minus the number that ranks, so that the best comes first and what is missing last."""
    cell = printed(row, language, ranking(row, language))
    return 0.0 if cell is None or cell.value is None else -cell.value


def _contradictions(rows: Sequence[PaperRow], language: str, groups: Sequence[Group]) -> Iterator[str]:
    """Yield a sentence for every doubtful number that an imported row of the same model and strategy does not have."""
    for row in rows:
        for at in levels(row, language):
            for metric, cell in at.metrics.items():
                if cell.value is None or not cell.flag:
                    continue
                for group in groups:
                    if group.level == at.level and same_model(row.model, group.generator):
                        yield from _against(row, metric, cell.value, at.of_levels, group)


def _against(row: PaperRow, metric: str, value: float, of_levels: bool, group: Group) -> Iterator[str]:
    for ours in group.rows:
        estimate = ours.metrics.get(metric)
        mean = None if estimate is None else estimate.mean_of_levels if of_levels else estimate.mean
        # A row that nothing here computes is the recorded predictions' own; any other must be the same strategy.
        comparable = ours.run.origin is Origin.IMPORTED and row.strategy in ("", ours.run.strategy)
        if comparable and mean is not None and f"{mean:.2f}" != f"{value:.2f}":
            yield (
                f"{row.preset}, {group.language}, {group.level}: the paper prints {value:.2f}; the recorded "
                f"predictions stored here ({group.generator}, {ours.run.strategy}) give {mean:.2f}."
            )
