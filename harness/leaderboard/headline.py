"""The sentences above a board: which row leads, what the tests show, and over which samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ctxbench.harness.leaderboard import scales
from ctxbench.harness.leaderboard.columns import label, mean, secondary_metrics
from ctxbench.harness.leaderboard.pairs import Difference
from ctxbench.harness.leaderboard.rows import ALL_LEVELS, Family, Group, listed
from ctxbench.harness.results import Origin, only_copies

_MOST_ALIKE = 2


def title(group: Group) -> str:
    """Return a group's title, with the first 12 digits of its sample set's digest."""
    level = "" if group.level == ALL_LEVELS else f", {group.level}"
    return f"{group.samples} ({group.samples_digest[:12]}), {group.language}{level}, generator {group.generator}"


def heading_of(group: Group) -> str:
    """Return a group's heading for a screen: sample set and its size, language, level, generator and origin."""
    level = "" if group.level == ALL_LEVELS else f", {group.level}"
    origin = shared_origin(group) or Origin.RUN
    recorded = "" if origin is Origin.RUN else f" ({origin})"
    whole = f" of {group.set_size} samples" * ("[:" in group.samples and group.set_size > 0)
    family = group.family
    whole += f", {family.unit.count(family.units)}" * bool(family.unit.repo)
    return f"{group.samples}{whole}, {group.language.capitalize()}{level}, by {group.generator}{recorded}"


def shared_origin(group: Group) -> Origin | None:
    """Return the origin that all rows except controls share; None if origins differ or all rows are controls."""
    origins = {row.run.origin for row in group.rows if not row.run.control}
    return origins.pop() if len(origins) == 1 else None


def headline(group: Group, names: Sequence[str] = ()) -> str:
    """Return the sentences about the leader and the tests as one text; arguments as for `answer`."""
    return " ".join(filter(None, answer(group, names)))


def answer(group: Group, names: Sequence[str] = ()) -> tuple[str, str]:
    """Return the text about the leader and the text about the tests. `names`, one per row, replace the labels."""
    lead, verdict = _answer(group, names)
    return lead, " ".join(filter(None, (verdict, group.family.claim())))


def _answer(group: Group, names: Sequence[str]) -> tuple[str, str]:
    if not group.ranked:
        return f"{_nothing_ranked(group)}: nothing is ranked.", ""
    names = names or [label(row) for row in group.rows]
    start, family = f"{_nobody(group)}{_leads(group, names)}", _called(group, names)
    if not family.pairs:
        return start, _nothing_tested(group, names)
    beside_it = _other_metrics(group, names)
    if not family.significant:
        return start, f"{family.verdict()}{beside_it}"
    if not group.all_pairs:
        return start, f"{_against_baseline(group, names)}{beside_it}"
    alike = [names[place] for place in range(1, len(group.ranked)) if place not in group.rows[0].beats]
    if not alike:
        return start, f"{names[0]} is significantly better than every other strategy.{beside_it}"
    return start, f"{names[0]} is not significantly better than {_some(alike)}.{beside_it}"


def _nobody(group: Group) -> str:
    if not group.rows[0].run.completions:
        return "No model was asked. "
    return "A copy model answered, not a language model. " if only_copies(group.generator) else ""


def _nothing_ranked(group: Group) -> str:
    having = [row for row in group.rows if group.metric in row.metrics]
    if not having:
        return f"No run here has {group.metric}"
    return "These rows are controls" if all(row.run.control for row in having) else "No run here is complete"


def _leads(group: Group, names: Sequence[str]) -> str:
    first, scale = group.rows[0], group.scales[group.metric]
    value = first.metrics[group.metric]
    interval = f"{scales.interval(value.mean, value.low, value.high)} {scale.unit}"
    means = [row.metrics[group.metric].mean or 0.0 for row in group.ranked]
    if len(means) > 1 and len(set(means)) == 1:
        return f"All {len(means)} ranked rows have the same {group.metric}: {interval}."
    best = min if scale.lower_is_better else max
    others = [row for row in group.rows[len(means) :] if row.run.origin is not Origin.RUN and row.run.ranked]
    below = [at for row in others if (at := mean(row, group.metric)) is not None]
    of_yours = "Among your rows, " * (best([means[0], *below]) != means[0])
    if means[0] == best(means):
        equal = [name for name, mean in zip(names, means, strict=False) if mean == means[0]]
        chance = ", which may be chance" * (group.family.pairs > 0 and not first.significant)
        have = "has" if len(equal) == 1 else "have"
        return f"{of_yours}{_some(equal)} {have} the best {group.metric}{chance}: {interval}."
    # Where two rows can be compared, the test decides. A higher mean may come from easier samples.
    return f"{of_yours}{names[0]} ranks first, with {group.metric} {interval}; better means are over other samples."


def _called(group: Group, names: Sequence[str]) -> Family:
    of_strategy = dict(zip((row.run.strategy for row in reversed(group.rows)), reversed(names), strict=True))
    nearest = group.family.nearest
    against = group.family.against and (names[group.rows.index(group.base)] if group.base else "")
    return replace(
        group.family,
        against=against,
        nearest=nearest and (of_strategy[nearest[0]], of_strategy[nearest[1]]),
    )


def _nothing_tested(group: Group, names: Sequence[str]) -> str:
    base = group.base
    if not group.all_pairs and base is not None and (base.run.control or base.missing or not base.run.ranked):
        name = names[group.rows.index(base)]
        why = "a control" if base.run.control else "incomplete" if base.missing else "not ranked"
        return f"Nothing is tested: the baseline {name} is {why}."
    if len(group.ranked) == 1:
        return "Only one row is ranked: run another strategy for a comparison."
    return "No two of the tested rows share a completed sample, so nothing is compared."


def _other_metrics(group: Group, names: Sequence[str]) -> str:
    leader = group.rows[0]
    lead = leader.difference.get(group.metric)
    if lead is None or lead.p is None or not lead.mean or group.base is None:
        return ""

    def is_ahead(difference: Difference, metric: str) -> bool:
        return ((difference.mean or 0.0) < 0) is group.scales[metric].lower_is_better

    tested = {name: leader.difference[name] for name in secondary_metrics(group) if name in leader.difference}
    tested = {name: difference for name, difference in tested.items() if difference.p is not None}
    base = names[group.rows.index(group.base)]
    significant = {name: is_ahead(difference, name) for name, difference in tested.items() if difference.significant}
    sides = ((names[0], True), (base, False))
    favouring = [(side, [name for name, ahead in significant.items() if ahead is leads]) for side, leads in sides]
    parts = [f"{listed(metrics)} favour{'s' * (len(metrics) == 1)} {side}" for side, metrics in favouring if metrics]
    if equal := [name for name in tested if name not in significant]:
        parts.append(f"{listed(equal)} show{'s' * (len(equal) == 1)} no significant difference")
    return f" Against {base}, {'; '.join(parts)}." if parts else ""


def _against_baseline(group: Group, names: Sequence[str]) -> str:
    base = group.rows.index(group.base) if group.base in group.rows else -1
    better, worse, neither = verdicts = ([], [], [])  # type: tuple[list[str], list[str], list[str]]
    for place, row in enumerate(group.ranked):
        if place != base:
            difference = row.difference[group.metric]
            verdicts[2 if not difference.significant else 0 if base in row.beats else 1].append(names[place])
    than = f" than {names[base]}"
    parts = [f"significantly better{than}: {_some(better)}"] if better else []
    parts += [f"significantly worse{'' if better else than}: {_some(worse)}"] if worse else []
    parts += [f"not significantly different: {_some(neither)}"] if neither else []
    sentence = "; ".join(parts)
    return f"{sentence[:1].upper()}{sentence[1:]}."


def _some(names: Sequence[str]) -> str:
    more = len(names) - _MOST_ALIKE
    return listed([*names[:_MOST_ALIKE], f"{more} others"] if more > 1 else names)
