"""Notes below a leaderboard that prevent readers from misreading its numbers, one note per line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ctxbench.harness import cutoffs
from ctxbench.harness.leaderboard import scales, selection
from ctxbench.harness.leaderboard.columns import label
from ctxbench.harness.leaderboard.repetitions import variance_text
from ctxbench.harness.leaderboard.rows import COMBINED, Group, Overall, Row, Standing, listed
from ctxbench.harness.leaderboard.signflip import DRAWS, EXACT_UP_TO
from ctxbench.harness.leaderboard.stats import FEWEST, IntervalScope
from ctxbench.harness.metrics import common_metric
from ctxbench.harness.paper_tables import LEVELS
from ctxbench.harness.results import PRICE, Origin, only_copies

_MOST_NAMED = 15
"""Maximum number of ranked rows for which a sentence lists the significant wins. JSON and CSV always list them."""

_MARKS = {"broken": "the reference fails its tests", "vacuous": "an empty body passes them"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Instructions:
    """Advice to the reader, worded for the command line or for the pages. Each field completes a sentence."""

    rows: str
    profile: str
    invalid: str
    again: str
    all_pairs: str


COMMAND = Instructions(
    rows="by --published all, and by --format json and csv",
    profile="see --profile infercom",
    invalid="--invalid include",
    again="run the same command again",
    all_pairs="--all-pairs tests every pair",
)
PAGE = Instructions(
    rows="by `ctxbench leaderboard --published all`",
    profile="choose infercom as Metric profile, below More choices",
    invalid="Invalid samples, below More choices",
    again="continue the run; the Runs page has the command",
    all_pairs="`ctxbench leaderboard --all-pairs` tests every pair",
)


def notes(group: Group, instructions: Instructions = COMMAND) -> tuple[str, ...]:
    """Return the notes of a group, most important first."""
    lines = [
        *_ranking(group, instructions),
        *_intervals(group),
        *_lacking(group, instructions),
        *_invalid(group, instructions),
    ]
    lines += [*_failed(group), *_tails(group)]
    if only_copies(group.generator):
        lines.append(
            f"{group.generator} is a copy model that knows only its prompt: copyable_bits measure how much it can copy "
            "from a context, and do not predict a language model's results (docs/agreement.md)."
        )
    if any(not row.run.ranked for row in group.rows):
        lines.append("Controls are shown but never ranked or tested.")
    if any(row.run.origin is Origin.IMPORTED for row in group.rows):
        lines.append(
            "Rows marked (imported) were recorded elsewhere: their completions, and their verdicts if any, "
            "are as recorded."
        )
    if any(row.run.origin is Origin.REFERENCE for row in group.rows):
        lines.append(
            "Rows marked (reference) ship with ctxbench: the same samples, metrics and model, measured by its authors; "
            "their prompts and times are not stored."
        )
    if has_prices(group):
        lines.append("US$: price per sample, over all its calls, at the known rates; - if a rate is unknown.")
    lines += _repetitions(group)
    lines += [*_ages(group), *group_warnings(group)]
    lines += remarks((row.run.strategy, row.run.remarks) for row in group.rows)
    return (*lines, *_superseded(group))


def warnings(group: Group, instructions: Instructions = COMMAND) -> tuple[str, ...]:
    """Return the notes that prevent wrong conclusions, for example about missing samples or different conditions."""
    lines = [*missing_scores(group), *_lacking(group, instructions), *_invalid(group, instructions)]
    lines += [*_failed(group), *_tails(group)]
    lines += [*_ages(group), *group_warnings(group)]
    lines += remarks((row.run.strategy, row.run.remarks) for row in group.rows)
    return (*lines, *_superseded(group))


def _failed(group: Group) -> list[str]:
    failed = _counts(group.rows, lambda row: row.model_failed)
    return [f"Unusable answers count as the worst value: {failed}."] if failed else []


def _tails(group: Group) -> list[str]:
    texts = []
    for row in group.rows:
        value = row.metrics.get(group.metric)
        if value and value.mean is not None and value.trimmed is not None and value.mean * value.trimmed < 0:
            half = scales.half_width(value.low, value.high)
            both = (scales.written(number, half, sign=True) for number in (value.mean, value.trimmed))
            texts.append(f"{label(row)} ({' and '.join(both)})")
    if not texts:
        return []
    return [
        f"A few samples dominate the mean of {group.metric}: without a tenth of the samples at each end, the sign of "
        f"the mean changes for {', '.join(texts)}."
    ]


def _superseded(group: Group) -> list[str]:
    runs = "1 run is" if group.superseded == 1 else f"{group.superseded} runs are"
    return [f"{runs} not shown: only a strategy's newest complete run counts."] if group.superseded else []


def _repetitions(group: Group) -> list[str]:
    rows = [row for row in group.rows if row.run.repetitions]
    if not rows:
        return []
    counts = _counts(rows, lambda row: len(row.run.repetitions))
    lines = [f"Runs that differ only in the seed are one row; a sample's value is its mean over these runs: {counts}."]
    for row in rows:
        difference = row.difference.get(group.metric)
        texts = [f"its {group.metric}: {variance_text(of)}" for of in [row.variance.get(group.metric)] if of]
        if difference and difference.variance and group.base:
            text = variance_text(difference.variance, row.run, group.base.run)
            texts.append(f"its difference from {label(group.base)}: {text}")
        if texts:
            lines.append(f"Sources of the uncertainty of {row.run.strategy} (variance): {'; '.join(texts)}.")
    failed, undefined = (_counts(rows, count) for count in (lambda r: r.answers.failed, lambda r: r.answers.undefined))
    lines += [f"Unusable answers to samples that other runs scored: {failed}."] if failed else []
    if undefined:
        lines.append(
            f"Answers without {group.metric} to samples for which other runs have {group.metric}: {undefined}."
        )
    return lines


def has_prices(group: Group) -> bool:
    """Return whether the price of any row except controls is known."""
    return any(row.costs.get(PRICE) is not None for row in group.rows if not row.run.control)


def notes_of_levels(group: Group, parts: Mapping[str, Group]) -> tuple[str, ...]:
    """Return the notes below the table of levels; empty without levels. `parts` maps each level to its group."""
    sizes = {
        level.removesuffix("_runnable"): max((row.n for row in part.rows), default=0)
        for level, part in parts.items()
        if level != COMBINED
    }
    if not sizes:
        return ()
    counts = ", ".join(f"{level} {n}" for level, n in sizes.items())
    lines = [f"By level: {group.metric}; tasks: {counts}. --by-level adds rankings and intervals of each level."]
    lines += [
        f"Level {level} has a single task, which alone moves the mean of {len(LEVELS)} levels by "
        f"{100 / len(LEVELS):.2f}."
        for level in LEVELS
        if COMBINED in parts and sizes.get(level) == 1
    ]
    return tuple(lines)


def notes_of_overall(overall: Sequence[Overall]) -> tuple[str, ...]:
    """Return a sentence for each strategy and generator that ran in both languages of CoderEval."""
    lines = []
    for strategy_means in overall:
        name = next(iter(selection.passes(strategy_means.metrics)), min(strategy_means.metrics))
        mean = strategy_means.metrics[name]
        lines.append(
            f"{strategy_means.run.strategy} by {strategy_means.run.generator}: {name} {mean.mean_of_levels:.2f}, "
            f"the mean of the two languages' means of the levels {strategy_means.level} "
            f"(over all {mean.n} tasks: {mean.mean:.2f})."
        )
    return tuple(lines)


def _invalid(group: Group, instructions: Instructions) -> list[str]:
    marks: Counter[str] = Counter()
    for row in group.rows:
        marks |= Counter(row.marks)
    if not marks:
        return []
    why = "; ".join(f"{count} {mark}: {_MARKS.get(mark, mark)}" for mark, count in sorted(marks.items()))
    excludes_invalid = any(row.excluded for row in group.rows)
    lines = [f"Invalid samples are {'left out' if excludes_invalid else 'counted'}: {marks.total()} ({why})."]
    changed = [
        f"{row.run.strategy} {estimate.mean_with_invalid:.2f}"
        for row in group.rows
        if (estimate := row.metrics.get(group.metric)) and estimate.mean_with_invalid is not None
    ]
    if excludes_invalid and changed:
        lines.append(
            f"If invalid samples counted, {group.metric} would be: {', '.join(changed)} ({instructions.invalid})."
        )
    return lines


def _ages(group: Group) -> list[str]:
    ages = group.ages
    if ages is None:
        return []
    days = ages.oldest if ages.oldest == ages.newest else f"{ages.oldest} to {ages.newest}"
    unknown = f"; the day of {ages.unknown} is unknown" if ages.unknown else ""
    if ages.cutoff is None:
        return [
            f"The last day of the model's training data is unknown, so the model may have read these samples, of {days}"
            f"{unknown}. {cutoffs.advice(group.generator)}"
        ]
    trained = f"The model was trained on code up to {ages.cutoff}"
    if not ages.after:
        return [f"{trained}, and all samples are older ({days}{unknown}): the model may have read them."]
    if not ages.before:
        return [f"{trained}, and all samples are newer: {days}{unknown}."]
    return [
        f"{trained}: it may have read {ages.before} of these samples, but not the {ages.after} newer ones{unknown}. "
        "The two parts have different samples, so a difference between them may come from the samples."
    ]


def remarks(runs: Iterable[tuple[str, Sequence[str]]]) -> list[str]:
    """Return each remark once, prefixed with the strategies of its runs unless all runs have the remark."""
    listed = list(runs)
    strategies_by_text: dict[str, list[str]] = {}
    for strategy, texts in listed:
        for text in texts:
            strategies_by_text.setdefault(text, []).append(strategy)
    return [
        text if len(of) == len(listed) else f"{', '.join(dict.fromkeys(of))}: {text}"
        for text, of in strategies_by_text.items()
    ]


def _ranking(group: Group, instructions: Instructions) -> list[str]:
    scale = group.scales.get(group.metric)
    if scale is None:
        return missing_scores(group)
    better = ", lower is better" if scale.lower_is_better else ""
    lines = [
        f"Ranked by {group.metric} ({scale.unit}{better}; mean over samples; by repo: mean of repository means), "
        f"profile {group.profile}."
    ]
    lines += missing_scores(group)
    family = group.family
    if not family.pairs:
        return lines
    how = "exact" if family.units <= EXACT_UP_TO else f"{DRAWS} draws"
    together = "" if family.pairs == 1 else ", corrected for these tests together (step-down maximum statistic)"
    others = "rows that share a group are not significantly different" if group.all_pairs else instructions.all_pairs
    lines.append(
        f"Tested: {family.question()}. p: sign flips of whole {family.unit.plural} "
        f"({family.unit.count(family.units)}, {how})"
        f"{together}. The interval of a difference is the interval of its test; {others}."
    )
    lines += filter(
        None, [family.claim(), family.verdict(), _who_beats_whom(group), _undecided(group), family.sight(scale.unit)]
    )
    of_others = [
        row for row in group.rows if row.rank_low is None and any(d.p is not None for d in row.difference.values())
    ]
    if of_others and group.ranked:
        lines.append("Rows by others are not ranked beside your rows; their p-values are corrected separately.")
    return lines


def _who_beats_whom(group: Group) -> str:
    ranked = group.ranked
    if len(ranked) > _MOST_NAMED:
        return ""
    winners_by_losers: dict[tuple[int, ...], list[str]] = {}
    for row in ranked:
        winners_by_losers.setdefault(row.beats, []).append(label(row))
    clauses = [
        f"{listed(winners)} {'is' if len(winners) == 1 else 'are'} significantly better than "
        f"{listed([label(group.rows[loser]) for loser in losers])}"
        for losers, winners in winners_by_losers.items()
        if losers
    ]
    return f"{'; '.join(clauses)}." if clauses else ""


def _undecided(group: Group) -> str:
    rows = [row for row in group.rows if row.standing is Standing.UNDECIDED and row.baseline is not None]
    if not rows or not group.family.significant:
        return ""
    names = [
        label(row) + (f" (about {row.needed} {group.family.unit.plural} would suffice)" if row.needed else "")
        for row in rows
    ]
    which = "any other" if group.family.against is None else group.family.against
    return f"Not significantly different from {which}: {listed(names)}."


def missing_scores(group: Group) -> list[str]:
    """Return notes on rows that lack the ranking metric, or the profile's metrics, with the command that adds them."""
    counting = [row for row in group.rows if row.n]
    unranked = [row for row in counting if group.metric not in row.metrics]
    lines = []
    if group.metric not in group.scales:
        lines.append(f"No run here has {group.metric}, so no run is ranked.")
    elif unranked:
        lines.append(f"Not ranked, because they lack {group.metric}: {_strategies(unranked)}.")
    names = () if common_metric(group.metric) is not None else (group.metric,)
    # Functions are scored under one profile only.
    scored = [row for row in counting if row.run.completions and not row.run.functions]
    lacking = [row for row in scored if not _has_scores(row, names)]
    if lacking:
        lines.append(
            f"Strategies without scores of profile {group.profile}: {_strategies(lacking)}. "
            f"`ctxbench rescore --profile {group.profile}` adds the scores without asking a model."
        )
    return lines


def _has_scores(row: Row, names: Sequence[str]) -> bool:
    if names:
        return all(name in row.metrics for name in names)
    return any(common_metric(name) is None for name in row.metrics)


def _strategies(rows: Sequence[Row]) -> str:
    return ", ".join(row.run.strategy for row in rows)


def _intervals(group: Group) -> list[str]:
    estimates = [
        (row.run.strategy, estimate) for row in group.rows if (estimate := row.metrics.get(group.metric)) and estimate.n
    ]
    kinds = {estimate.over for _, estimate in estimates}
    if not kinds - {IntervalScope.NONE}:
        return ["Intervals: a single sample has none."] if kinds else []
    single = ", ".join(strategy for strategy, estimate in estimates if estimate.over is IntervalScope.NONE)
    none = f"; none for a single sample ({single})" if single else ""
    units = group.family.unit.plural
    if IntervalScope.SAMPLES not in kinds:
        return [f"Intervals: 95%, over {units} (cluster-robust, Student t){none}."]
    most = max(estimate.units for _, estimate in estimates)
    if most < FEWEST:
        of = "this one repository" if most == 1 else f"these {most} {units}"
        return [f"Intervals: 95%, over samples of {of} only; an interval over {units} needs {FEWEST}{none}."]
    few = ", ".join(
        strategy
        for strategy, estimate in estimates
        if estimate.units < FEWEST and estimate.over is not IntervalScope.NONE
    )
    more = f"; also over samples for rows with fewer than {FEWEST} {units} ({few})" if few else ""
    return [f"Intervals: 95%, over {units}; where all values lie on one bound, over samples (Wilson){more}{none}."]


def _lacking(group: Group, instructions: Instructions) -> list[str]:
    missing = [row for row in group.rows if row.missing or row.answers.missing]
    functions = " (not with --sandbox none)" if any(row.run.functions for row in missing) else ""
    lines = [
        f"{what}: {counts}. Cure: {instructions.again}{functions}."
        for what, counts in (
            (
                "Not ranked, because samples are missing (never counted as 0)",
                _counts(missing, lambda row: row.missing),
            ),
            (
                "Answers missing in some of a row's runs (a sample's value is its mean over the other runs)",
                _counts(missing, lambda row: row.answers.missing),
            ),
        )
        if counts
    ]
    return lines + [line for row in missing if (line := _sensitivity(group, row))]


def _counts(rows: Sequence[Row], count_of: Callable[[Row], int]) -> str:
    return ", ".join(f"{row.run.strategy} {count}" for row in rows if (count := count_of(row)))


def _sensitivity(group: Group, row: Row) -> str:
    names = (
        [group.metric]
        if group.metric in row.sensitivity
        else [metric for metric in ("es", "em") if metric in row.sensitivity]
    )
    if not names:
        return ""
    name = names[0]
    bounds, estimate = row.sensitivity[name], row.metrics[name]
    half = scales.half_width(estimate.low, estimate.high)
    return (
        f"If all missing samples of {row.run.strategy} were wrong, its {name} would be "
        f"{scales.written(bounds.worst, half)}; "
        f"if all were right, {scales.written(bounds.best, half)}."
    )


def group_warnings(group: Group) -> list[str]:
    """Return warnings about rows with different decoding, load, versions or samples."""
    runs = [row.run for row in group.rows]
    return [*selection.run_warnings(runs), *selection.load_warnings(runs), *_samples(group)]


def _samples(group: Group) -> list[str]:
    counts = {row.run.id: row.metrics[group.metric].n for row in group.rows if group.metric in row.metrics}
    ranked = [row for row in group.rows if row.rank_low is not None and row.run.id in counts]
    # Rows with equal counts have the same samples if their pairs with the baseline have as many.
    common = {row.difference[group.metric].n_common for row in ranked if group.metric in row.difference}
    if len({counts[row.run.id] for row in ranked} | common) < 2:
        return []
    sample_counts = ", ".join(f"{row.run.strategy} {counts[row.run.id]}" for row in ranked)
    pairs = (
        "; differences, p and ranks are over the samples that both rows of a pair have" if group.family.pairs else ""
    )
    return [
        f"Rows have {group.metric} for different samples; each mean is over the row's own samples ({sample_counts})"
        f"{pairs}."
    ]
