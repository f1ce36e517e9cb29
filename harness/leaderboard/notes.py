"""What has to be said below a table so that its numbers are not misread. Pure text, one sentence a line."""

from __future__ import annotations

import json

from harness.leaderboard import choices, numbers
from harness.leaderboard.rows import Group, Row
from harness.leaderboard.signflip import DRAWS, EXACT_UP_TO
from harness.leaderboard.stats import FEWEST, Over


def notes(group: Group) -> tuple[str, ...]:
    """Return the sentences of one group, the most needed first."""
    lines = [*_ranking(group), *_intervals(group), *_unscored(group)]
    failed = [f"{row.run.strategy} {row.model_failed}" for row in group.rows if row.model_failed]
    if failed:
        lines.append(f"Nothing usable came from the model, counted as the worst value: {', '.join(failed)}.")
    if choices.measures_context(group.generator):
        lines.append(
            f"{group.generator} is a copy model without knowledge of its own: "
            "its rows measure the context, not a model's skill."
        )
    if any(not row.run.ranked for row in group.rows):
        lines.append(
            "Rows without a rank (controls, published numbers) are shown, never ranked; no test is made of controls."
        )
    lines += _decoding(group)
    if group.superseded:
        runs = "1 earlier run is" if group.superseded == 1 else f"{group.superseded} earlier runs are"
        lines.append(f"{runs} not shown: of several runs of a strategy the newest complete one is.")
    return tuple(lines)


def _ranking(group: Group) -> list[str]:
    scale = group.scales.get(group.metric)
    if scale is None:
        return [f"No run here has {group.metric}: not ranked."]
    better = ", lower is better" if scale.lower_is_better else ""
    lines = [
        f"Ranked by {group.metric} ({scale.unit}{better}; mean over samples; by repo: mean of repository means), "
        f"profile {group.profile}."
    ]
    if not group.pairs:
        return lines
    how = "exact" if group.repositories <= EXACT_UP_TO else f"{DRAWS} draws"
    pairs = "1 pair" if group.pairs == 1 else f"{group.pairs} pairs"
    lines.append(
        f"Test: sign flips of whole repositories ({_repositories(group.repositories)}, {how}), "
        f"p corrected by Holm over {pairs}; rows that share a tier are not told apart at 5%."
    )
    if not group.decidable:
        lines.append(
            f"No difference can be significant here: with {_repositories(group.repositories)} "
            f"the smallest possible p is {numbers.p_value(group.smallest_p)}"
            f"{'' if group.pairs == 1 else f', before correction over {pairs}'}; add repositories."
        )
    if group.visible is not None:
        lines.append(
            f"The smallest difference this board can see: {numbers.value(group.visible, group.visible)} {scale.unit} "
            f"(80% power at 5%{', median over the pairs, before correction' if group.pairs > 1 else ''})."
        )
    return lines


def _decoding(group: Group) -> list[str]:
    """Say that rows were decoded in different ways: that, and not the context, may be what tells them apart."""
    if len({(row.run.completions, row.run.sampling) for row in group.rows if row.run.sampling}) < 2:
        return []
    how = ", ".join(
        f"{row.run.strategy} {row.run.completions} a sample at temperature {_temperature(row.run.sampling)}"
        for row in group.rows
        if row.run.sampling
    )
    return [f"Rows were decoded in different ways, which their differences include: {how}."]


def _temperature(sampling: str) -> str:
    return f"{json.loads(sampling).get('temperature', 0.0):g}"


def _intervals(group: Group) -> list[str]:
    shown = {over for row in group.rows if (found := row.metrics.get(group.metric)) for over in [found.over]}
    if shown == {Over.REPOSITORIES}:
        return ["Intervals: 95%, over repositories (cluster-robust, Student t)."]
    if Over.SAMPLES not in shown:
        return ["Intervals: none can be given for a single sample."] if shown else []
    if group.repositories < FEWEST:
        return [
            f"Intervals: 95%, over samples of these {_repositories(group.repositories)} only; "
            f"an interval over repositories needs {FEWEST}."
        ]
    return ["Intervals: 95%, over repositories; where all values lie on one bound, over samples (Wilson)."]


def _unscored(group: Group) -> list[str]:
    missing = [row for row in group.rows if row.unscored]
    if not missing:
        return []
    counts = ", ".join(f"{row.run.strategy} {row.unscored}" for row in missing)
    functions = " (not with --sandbox none)" if any(row.run.functions for row in missing) else ""
    lines = [f"Unscored (the machine failed; not counted as 0): {counts}. Cure: run the same command again{functions}."]
    return lines + [line for row in missing if (line := _sensitivity(group, row))]


def _sensitivity(group: Group, row: Row) -> str:
    names = (
        [group.metric] if group.metric in row.sensitivity else [one for one in ("es", "em") if one in row.sensitivity]
    )
    if not names:
        return ""
    name = names[0]
    found, estimate = row.sensitivity[name], row.metrics[name]
    half = numbers.half_width(estimate.low, estimate.high)
    return (
        f"If all unscored of {row.run.strategy} were wrong, its {name} would be {numbers.value(found.worst, half)}; "
        f"if all were right, {numbers.value(found.best, half)}."
    )


def _repositories(count: int) -> str:
    return "1 repository" if count == 1 else f"{count} repositories"
