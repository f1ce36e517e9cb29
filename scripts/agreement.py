"""The agreement study: do `incontext`'s measurements predict published models? ``python -m scripts.agreement``.

Writes a section of docs/agreement.md and its pictures from the shipped results. The rules are in scripts/agreement.md.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata, spearmanr

from ctxbench.bench.types import Sample
from ctxbench.harness.imported import reference
from ctxbench.harness.imported.reference import ReferenceResults
from ctxbench.harness.leaderboard import signflip, stats
from ctxbench.harness.metrics import COPY_MODEL, GAIN, gain_of
from ctxbench.harness.store.runs import CONTEXT
from ctxbench.strategies.registry import is_control
from scripts import write_section
from scripts.findings import held
from scripts.model_results import LITE
from scripts.reference_results import DOCS, LANGUAGES

PAGE = DOCS / "agreement.md"
PICTURES = {"rows": DOCS / "agreement-rows.svg", "pairs": DOCS / "agreement-pairs.svg"}
BEGIN, END = "<!-- python -m scripts.agreement -->\n", "<!-- end of the study -->"
PLANNED = 144
"""Number of lines that the rules require."""
JUDGE, LARGER = "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"
"""The model that judges all rows and lines, and the model that shows how well two models agree."""
_METRICS = {GAIN: (CONTEXT, 1.0), "es": ("ctxbench", 100.0), "id_f1": ("ctxbench", 100.0)}
_BASE = "lc.infile"
_CONTRASTS = (
    ("lc.infercom(encoder=bm25, fsr=false)", "lc.infercom(encoder=bm25, fsr=false, uer=false)"),
    ("engine(ripgrep)", "lc.repocoder"),
)
_SEED = "agreement"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question of the study, and the threshold that its answer must reach."""

    name: str
    text: str
    bar: str
    ask: Callable[[Rows, Rows], Answer]
    decides: bool = True
    """Whether the outcome of the study depends on the answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question for the lines of one programming language."""

    text: str
    passed: bool | None
    """Whether the answer reaches the threshold; None without data."""


class Rows:
    """One model's gains and scores with some strategies, over lines of one programming language."""

    def __init__(self, files: Iterable[ReferenceResults], strategies: Sequence[str], samples: Sequence[Sample]) -> None:
        found = held(files)
        self.strategies, self.codes = tuple(strategies), stats.coded([sample.repo for sample in samples])

        def value(strategy: str, sample: Sample, metric: str) -> float:
            run, place = found[strategy][sample.id]
            profile, factor = _METRICS[metric]
            stored_name = gain_of(run.coder) if metric == GAIN else metric
            return factor * (run.scores[profile][stored_name][place] or 0.0)

        self.values: Mapping[str, stats.Array] = {
            metric: np.array([[value(strategy, sample, metric) for sample in samples] for strategy in strategies])
            for metric in _METRICS
        }
        """Metric -> value of each line in the displayed unit, shape (strategies, lines)."""

    def means(self, metric: str = GAIN) -> stats.Array:
        """Return each strategy's mean of a metric over the lines."""
        return np.asarray(self.values[metric].mean(axis=1))

    def gap(self, better: str, worse: str, metric: str = GAIN) -> stats.Array:
        """Return one strategy's values minus another's, line by line."""
        places = [self.strategies.index(name) for name in (better, worse)]
        return np.asarray(self.values[metric][places[0]] - self.values[metric][places[1]])

    def apart(self, pairs: Sequence[tuple[str, str]]) -> list[bool]:
        """Return for each pair of strategies whether their gains differ significantly, corrected for all pairs."""
        sums = np.stack([stats.clustered(self.gap(*pair), self.codes).sums for pair in pairs])
        return [p <= signflip.ALPHA for p in signflip.step_down(sums, seed=_SEED).p.tolist()]

    def told(self) -> list[tuple[str, str]]:
        """Return the pairs of ranked strategies whose gains differ significantly, each with the better one first."""
        pairs = list(itertools.combinations([name for name in self.strategies if not is_control(name)], 2))
        told = [pair for pair, is_apart in zip(pairs, self.apart(pairs), strict=True) if is_apart]
        return [pair if self.gap(*pair).mean() > 0 else pair[::-1] for pair in told]


def order(ruler: Rows, judge: Rows) -> Answer:
    """Answer question A1: the rank correlation of both models' mean gains."""
    return _correlation([float(spearmanr(ruler.means(), judge.means()).statistic)], 0.9)


def order_of_scores(ruler: Rows, judge: Rows) -> Answer:
    """Answer question A2: rank correlations of the first model's mean gains with the second's mean ES and ID-F1."""
    found = [float(spearmanr(ruler.means(), judge.means(metric)).statistic) for metric in ("es", "id_f1")]
    return _correlation(found, 0.8)


def signs(ruler: Rows, judge: Rows) -> Answer:
    """Answer question A3: how often the first model's significant pairs keep their sign in the second's gain or ES."""
    told = ruler.told()
    if not told:
        return Answer("none is significant", None)
    shares = [statistics.fmean(judge.gap(*pair, metric).mean() > 0 for pair in told) for metric in (GAIN, "es")]
    text = f"{' and '.join(f'{100 * share:.0f} %' for share in shares)} of {len(told)}"
    return Answer(text, shares[0] >= 0.9 and shares[1] >= 0.8)


def by_sample(ruler: Rows, judge: Rows) -> Answer:
    """Answer question A4: the rank correlation of both models' gains for single lines, within repositories."""
    others = [name for name in ruler.strategies if name != _BASE]
    these, those = (np.stack([rows.gap(name, _BASE) for name in others]) for rows in (ruler, judge))
    return _correlation([pooled_ranks(these, those, ruler.codes)], 0.5)


def pooled_ranks(these: stats.Array, those: stats.Array, codes: stats.Codes) -> float:
    """Return the rank correlation of two models' gains within repositories, pooled over all repositories.

    This is Pearson's correlation of ranks from -1 to 1. Arrays are (strategies, lines); `codes` are the repositories.
    """
    ranks: tuple[list[stats.Array], list[stats.Array]] = ([], [])
    for code in np.unique(codes):
        for of, numbers in zip(ranks, (these, those), strict=True):
            own = numbers[:, codes == code].ravel()
            of.append((2 * rankdata(own) - len(own) - 1) / len(own))
    mine, its = map(np.concatenate, ranks)
    return float(np.corrcoef(mine, its)[0, 1])


def contrasts(ruler: Rows, judge: Rows) -> Answer:
    """Answer question A5: whether both models agree on InferCom's APIs, and on plain search minus RepoCoder."""
    told = [rows.apart([pair])[0] for pair in _CONTRASTS for rows in (ruler, judge)]
    gaps = [float(rows.gap(*pair).mean()) for pair in _CONTRASTS for rows in (ruler, judge)]
    texts, fine = [], []
    for place, name in enumerate(("APIs", "search")):
        own, its = gaps[2 * place : 2 * place + 2]
        is_told = told[2 * place : 2 * place + 2]
        fine.append(own * its > 0 or not any(is_told))
        texts.append(f"{name} {own:+.1f}{'*' * is_told[0]}, {its:+.1f}{'*' * is_told[1]}")
    return Answer("; ".join(texts), all(fine))


def _correlation(found: Sequence[float], bar: float) -> Answer:
    return Answer(" and ".join(f"{number:.2f}" for number in found), min(found) >= bar)


QUESTIONS = (
    Question(name="A1", text="rank correlation of both models' mean gains", bar="at least 0.9", ask=order),
    Question(
        name="A2",
        text="rank correlation of the first model's mean gains with the second model's mean ES and ID-F1",
        bar="at least 0.8",
        ask=order_of_scores,
    ),
    Question(
        name="A3",
        text="pairs that differ significantly with the first model: share whose sign is the same in the second model's "
        "gain, and in the second model's ES",
        bar="at least 90 %, 80 %",
        ask=signs,
    ),
    Question(
        name="A4",
        text="rank correlation of both models' gains for single lines, within repositories",
        bar="at least 0.5",
        ask=by_sample,
    ),
    Question(
        name="A5",
        text="two differences in bits with the first and second model: the gain from InferCom's APIs, and plain search "
        "minus RepoCoder",
        bar="same sign, or significant with neither model",
        ask=contrasts,
        decides=False,
    ),
)


def rows_of(label: str, other: str, language: str) -> tuple[Rows, Rows] | None:
    """Return two models' values for their common strategies and lines of a language; None if they share none."""
    models: dict[str, list[ReferenceResults]] = {}
    for results in reference.models(LITE).values():
        models.setdefault(results.model, []).append(results)
    if not {label, other} <= models.keys():
        return None
    mine, its = held(models[label]), held(models[other])
    strategies = [name for name in mine if name in its]
    samples = [sample for results in models[other] for sample in results.samples if sample.language == language]
    shared = [
        sample
        for sample in {sample.id: sample for sample in samples}.values()
        if all(sample.id in of[name] for of in (mine, its) for name in strategies)
    ]
    if not strategies or not shared:
        return None
    return Rows(models[label], strategies, shared), Rows(models[other], strategies, shared)


def questions_table(label: str, other: str) -> str:
    """Return a Markdown table of the answers to all questions about two models, by language."""
    lines = [
        f"| | question | threshold | {' | '.join(LANGUAGES.values())} |",
        f"|---|---|---|{'---|' * len(LANGUAGES)}",
    ]
    both = [rows_of(label, other, language) for language in LANGUAGES]
    for question in QUESTIONS:
        cells = ["-" if pair is None else _cell(question.ask(*pair)) for pair in both]
        lines.append(f"| {question.name} | {question.text} | {question.bar} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(answer: Answer) -> str:
    return f"{answer.text}{'' if answer.passed is None else ': passed' if answer.passed else ': **failed**'}"


def outcome(both: Mapping[str, tuple[Rows, Rows]]) -> str:
    """Return the study's result: the questions that failed in each language, and the consequence for boards."""
    verdicts, failing = [], []
    for language, pair in both.items():
        answers = {question.name: question.ask(*pair).passed for question in QUESTIONS if question.decides}
        parts = [
            f"{_listed(names)} {what}"
            for what, of in (("failed", False), ("could not be answered", None))
            if (names := [name for name, passed in answers.items() if passed is of])
        ]
        failing += [LANGUAGES[language]] * (False in answers.values())
        verdicts.append(f"{' and '.join(parts) or 'all of A1 to A4 passed'} in {LANGUAGES[language]}")
    lines = sum(len(ruler.codes) for ruler, _ in both.values())
    over = (
        f"Over {lines} of the {PLANNED} lines that the rules ask for" if lines < PLANNED else f"Over all {lines} lines"
    )
    follows = _consequence(failing) if lines == PLANNED else "This is not yet the outcome."
    return f"**{over}, {'; '.join(verdicts)}.** {follows}"


def _consequence(failing: Sequence[str]) -> str:
    if not failing:
        return "Lines are therefore still ranked by `incontext`'s gain."
    return (
        f"Boards of {_listed(failing)} lines therefore rank by a published model's edit similarity, and also show EM "
        "and ID-F1. The gain of `incontext`, called *copyable bits*, is only a diagnostic. Boards of `incontext` begin "
        "with a warning that no language model answered."
    )


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def scatter(points: Mapping[str, Sequence[tuple[float, float, str]]], across: str, up: str) -> str:
    """Return an SVG with one panel of points per language, both axes in bits and including 0."""
    side, parts = 380, []
    for panel, (language, of) in enumerate(points.items()):
        columns = [0.0, *(x for x, _, _ in of)], [0.0, *(y for _, y, _ in of)]
        ends = [(min(column), max(column)) for column in columns]
        pads = [0.08 * ((high - low) or 1.0) for low, high in ends]
        left, top = 70 + panel * (side + 80), 40

        def at(
            value: float, axis: int, ends: Sequence[tuple[float, float]] = ends, pads: Sequence[float] = pads
        ) -> float:
            low, high = ends[axis][0] - pads[axis], ends[axis][1] + pads[axis]
            return side * (value - low) / (high - low)

        parts.append(f'<g transform="translate({left} {top})"><text x="0" y="-12">{LANGUAGES[language]}</text>')
        parts.append(f'<rect width="{side}" height="{side}" fill="none" stroke="#888"/>')
        parts.append(f'<path d="M{at(0, 0):.1f} 0V{side}M0 {side - at(0, 1):.1f}H{side}" stroke="#bbb"/>')
        for axis, (low, high) in enumerate(ends):
            for value in (0.0, *(end for end in (low, high) if abs(end) >= 1)):
                x, y = (at(value, 0), side + 16) if axis == 0 else (-6, side - at(value, 1) + 4)
                anchor = "middle" if axis == 0 else "end"
                parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{value:.0f}</text>')
        parts += [
            f'<circle cx="{at(x, 0):.1f}" cy="{side - at(y, 1):.1f}" r="4" fill="#2a6fb0" fill-opacity=".75">'
            f"<title>{name}: {x:.1f}, {y:.1f}</title></circle>"
            for x, y, name in of
        ]
        parts.append(f'<text x="{side / 2}" y="{side + 36}" text-anchor="middle">{across}</text>')
        parts.append(f'<text transform="rotate(-90)" x="{-side / 2}" y="-44" text-anchor="middle">{up}</text></g>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {70 + len(points) * (side + 80)} {side + 90}" '
    style = 'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="#fff"/>'
    return "\n".join([head + style, *parts, "</svg>", ""])


def text(both: Mapping[str, tuple[Rows, Rows]]) -> str:
    """Return the generated section of docs/agreement.md."""
    counts = " and ".join(f"{len(pair[0].codes)} {LANGUAGES[language]}" for language, pair in both.items())
    parts = [
        "## Outcome",
        outcome(both),
        f"The table compares `{COPY_MODEL}` (first model) with `{JUDGE}` (second model) over {counts} lines. "
        "A star marks a difference in A5 that is significant at 5 %, without correction.",
        questions_table(COPY_MODEL, JUDGE),
        f"![Mean gain of each row with both models]({PICTURES['rows'].name})",
        f"![Difference of each pair of rows with both models]({PICTURES['pairs'].name})",
        "## A6: how well two models of one family agree",
    ]
    has_larger = any(rows_of(JUDGE, LARGER, language) for language in LANGUAGES)
    parts.append(questions_table(JUDGE, LARGER) if has_larger else f"`{LARGER}` has not answered these lines yet.")
    return "\n\n".join(parts) + "\n"


def pictures(both: Mapping[str, tuple[Rows, Rows]]) -> dict[str, str]:
    """Return the SVG of each picture, by name."""
    axes = ("mean gain by incontext, bits", f"by {JUDGE}, bits")
    rows = {
        language: list(zip(ruler.means().tolist(), judge.means().tolist(), ruler.strategies, strict=True))
        for language, (ruler, judge) in both.items()
    }
    pairs = {
        language: [
            (float(ruler.gap(*pair).mean()), float(judge.gap(*pair).mean()), " over ".join(pair))
            for pair in itertools.combinations([name for name in ruler.strategies if not is_control(name)], 2)
        ]
        for language, (ruler, judge) in both.items()
    }
    return {"rows": scatter(rows, *axes), "pairs": scatter(pairs, "difference of a pair by incontext, bits", axes[1])}


def main() -> None:
    """Write the study into docs/agreement.md, and write its pictures."""
    both = {language: pair for language in LANGUAGES if (pair := rows_of(COPY_MODEL, JUDGE, language))}
    write_section(PAGE, BEGIN, END, text(both))
    for name, picture in pictures(both).items():
        PICTURES[name].write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
