"""Splits a board into printable sections with a title, text tables and notes, and computes curves over a parameter."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.bench.spec import Spec, parse
from ctxbench.harness.leaderboard import scales, selection
from ctxbench.harness.leaderboard.columns import (
    BESIDE,
    COLUMNS,
    CUTOFF,
    INTERVAL,
    RANKING,
    Column,
    ColumnHead,
    TextTable,
    heading,
    interval_of,
    label,
    mean,
    mean_column,
    metric_column,
)
from ctxbench.harness.leaderboard.notes import has_prices, notes, notes_of_levels, notes_of_overall, warnings
from ctxbench.harness.leaderboard.pairs import Difference
from ctxbench.harness.leaderboard.published import BOTH, published_notes, published_table, published_title
from ctxbench.harness.leaderboard.rows import (
    ALL_LEVELS,
    COMBINED,
    LEVELLED,
    Board,
    Family,
    Group,
    Listing,
    Row,
    groups_by_level,
    listed,
)
from ctxbench.harness.metrics import (
    BLOCK_GAIN,
    BUDGETS,
    COPYABLE,
    DENSITY,
    DIAGNOSTICS,
    FIRST,
    FOUND,
    GAIN,
    HEADLINE,
    RETRIEVAL,
)
from ctxbench.harness.results import PRICE, Origin, only_copies
from ctxbench.strategies.registry import default_of

OTHERS = "Other metrics and costs"
BUDGET = "budget"
_WIDE = 8
_SHIFT = 0.006
"""Distance between the intervals of two strategies at the same value, as a share of the axis."""

_BESIDE = ("em", "es", "id_f1", GAIN, COPYABLE)
_BESIDE_PASSES = (GAIN, "es", "id_f1", "em", COPYABLE)
_MOST_BESIDE = 3
_DIAGNOSTICS = (COPYABLE, *(metric.name for metric in DIAGNOSTICS if metric not in RETRIEVAL), BLOCK_GAIN)
_FOUND = (*(f"{FOUND}@{budget}" for budget in BUDGETS), f"{DENSITY}@1024", FIRST)
_MOST_PASSES = 2
_LONG_NAME = 34
_MOST_ALIKE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardSection:
    """The tables and notes under one title."""

    title: str
    tables: tuple[TextTable, ...]
    """Tables with one line per row of the group, in the group's order."""
    notes: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    group: Group | None = None
    """Group of the rows; None for the papers' rows and for means over both languages."""
    over: tuple[TextTable, ...] = ()
    """Requested tables of strategies by the values of a parameter. A line combines several rows."""

    @property
    def all_tables(self) -> tuple[TextTable, ...]:
        """All tables, in order."""
        return (*self.tables, *self.over)


def sections(board: Board, *, diagnostics: bool = False, full: bool = False, by: str = "") -> Iterator[BoardSection]:
    """Yield the sections of a board, in order.

    Args:
        diagnostics: add a table of the contexts' use and cost, and of invented names.
        full: print each CoderEval level as its own group, with its ranking.
        by: add a table of strategies by the values of this parameter, for strategies that differ only in it.

    Raises:
        UnknownName: if no two strategies of a group differ only in this parameter.
    """
    if by and not any(isinstance(curves(group, by), Curves) for group in board.groups):
        raise UnknownName("parameter that these strategies vary", by, parameters(board.groups))
    pending = {(listing.benchmark.lower(), listing.language): listing for listing in board.published}
    for index, group in enumerate(board.groups):
        parts = groups_by_level(board.groups, group) if group.benchmark == LEVELLED else {}
        if full or group.level == ALL_LEVELS or group.benchmark != LEVELLED:
            yield _group(group, parts if group.level == ALL_LEVELS and not full else {}, diagnostics, by)
        after = board.groups[index + 1 :]
        if not any((later.benchmark, later.language) == (group.benchmark, group.language) for later in after):
            yield from _published(pending.pop((group.benchmark, group.language), None), group)
        if not any(later.benchmark == group.benchmark for later in after):
            if group.benchmark == LEVELLED and board.overall:
                yield BoardSection(title="both languages", tables=(), notes=notes_of_overall(board.overall))
            yield from _published(pending.pop((group.benchmark, BOTH), None), group)
    for listing in pending.values():
        yield from _published(listing, None)


def title(group: Group) -> str:
    """Return a group's title, with the digest of its sample set."""
    level = "" if group.level == ALL_LEVELS else f", {group.level}"
    return f"{group.samples} ({group.samples_digest[:12]}), {group.language}{level}, generator {group.generator}"


def heading_of(group: Group) -> str:
    """Return a group's heading for a screen: sample set, language, level and generator."""
    level = "" if group.level == ALL_LEVELS else f", {group.level}"
    origin = _shared_origin(group) or Origin.RUN
    recorded = "" if origin is Origin.RUN else f" ({origin})"
    whole = f" of {group.set_size} samples" * ("[:" in group.samples and group.set_size > 0)
    family = group.family
    whole += f", {family.unit.count(family.units)}" * bool(family.unit.repo)
    return f"{group.samples}{whole}, {group.language.capitalize()}{level}, by {group.generator}{recorded}"


def headline(group: Group, names: Sequence[str] = ()) -> str:
    """Return one or two sentences about the leader and the tests; arguments as for `answer`."""
    return " ".join(filter(None, answer(group, names)))


def answer(group: Group, names: Sequence[str] = ()) -> tuple[str, str]:
    """Return a sentence about the leader, and sentences about the tests. `names` replace the rows' labels."""
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
        return "Nothing else here is ranked: run another strategy to compare with."
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


def _group(group: Group, parts: Mapping[str, Group], diagnostics: bool, by: str) -> BoardSection:
    more = [name for name in _DIAGNOSTICS if name in group.scales and name != group.metric] if diagnostics else []
    columns = {f"Ranked by {group.metric}, best first": _ranking(group)}
    columns |= {f"{group.metric} by level": _levels(group, parts)} if parts else {}
    columns |= {OTHERS: _beside(group)}
    read_before = [COLUMNS[key] for key in CUTOFF] if any(row.before_cutoff for row in group.rows) else []
    columns |= {"Samples that the model may have read": [COLUMNS["strategy"], *read_before]} if read_before else {}
    brought = [COLUMNS["strategy"], *(metric_column(group, name) for name in more)]
    columns |= {"Contribution of the context, and invented names": brought} if more else {}
    retrieval = [name for name in _FOUND if name in group.scales and (diagnostics or group.metric == HEADLINE)]
    means = [mean_column(group, name) for name in retrieval]
    short = [replace(column, heading=column.head(group).removeprefix("definition_")) for column in means]
    columns |= {"Retrieved definitions that the reference uses": [COLUMNS["strategy"], *short]} if retrieval else {}
    tables = tuple(TextTable.of(table_columns, group, caption) for caption, table_columns in columns.items())
    over = (picture.table(),) if by and isinstance(picture := curves(group, by), Curves) else ()
    of_levels = notes_of_levels(group, parts)
    return BoardSection(
        title=title(group),
        tables=tables,
        over=over,
        notes=(*notes(group), *of_levels),
        warnings=(*warnings(group), *of_levels),
        group=group,
    )


def short_names(group: Group) -> list[str]:
    """Return a short, unique name per row.

    The family's name and parameters that all rows of a name share are dropped. If a name is still long, parameters that
    most of these rows share are dropped too.
    """
    names = _shortened(group, 1.0)
    return names if max(map(len, names), default=0) <= _LONG_NAME else _shortened(group, 0.5)


def _shortened(group: Group, share: float) -> list[str]:
    """Return names without parameters that at least `share`, or more than half, of the rows with a name have."""
    specs = [_spec(row) for row in group.rows]
    of_name = Counter(spec.name for spec in specs if spec is not None)
    having = Counter((spec.name, key, str(value)) for spec in specs if spec for key, value in spec.arguments.items())
    names = []
    for row, spec in zip(group.rows, specs, strict=True):
        whole = row.run.strategy if _shared_origin(group) and not row.run.control else label(row)
        if spec is None or row.run.control:
            names.append(whole)
            continue
        told = {
            key: value
            for key, value in spec.arguments.items()
            if having[spec.name, key, str(value)] < max(share, 0.5 + 1e-9) * of_name[spec.name]
        }
        bare = spec.name if "@" in spec.name else spec.name.rpartition(".")[2]
        # Users write the engine's name first.
        names.append(whole.replace(row.run.strategy, str(Spec(bare, told)).replace("(name=", "(")))
    labels = [row.run.strategy if _shared_origin(group) and not row.run.control else label(row) for row in group.rows]
    # A short name must differ from the short and full names of all other rows.
    while clashing := [
        place
        for place, name in enumerate(names)
        if name != labels[place] and (names.count(name) > 1 or name in labels or name in _strategies(group, place))
    ]:
        for place in clashing:
            names[place] = labels[place]
    return names


def _strategies(group: Group, place: int) -> list[str]:
    own = group.rows[place].run.strategy
    return [row.run.strategy for row in group.rows if row.run.strategy != own]


def _shared_origin(group: Group) -> Origin | None:
    origins = {row.run.origin for row in group.rows if not row.run.control}
    return origins.pop() if len(origins) == 1 else None


def screen_table(group: Group, keys: Sequence[str] = (), *, page: bool = False) -> TextTable:
    """Return a group's ranking for a screen, one line per row.

    Args:
        keys: columns or metrics after the strategy, if the group has them. By default: the ranking metric, the
            difference with its test, tokens, and the means of other metrics.
        page: whether the table is for a web page, which draws the interval of the ranking metric and adds a verdict,
            seconds and `keys`.
    """
    columns = {key: column for key, column in COLUMNS.items() if column.heading}
    columns |= {metric: metric_column(group, metric) for metric in {group.metric, *group.scales}}
    if page or not keys:
        tested = ["difference", "p"] if any(row.difference for row in group.rows) else []
        tested += [*["group"] * group.all_pairs, *["verdict"] * page] if tested else []
        columns |= {name: mean_column(group, name) for name in secondary_metrics(group)}
        if tested and not page:
            # The interval of the difference is enough.
            columns[group.metric] = mean_column(group, group.metric)
        repeated = ["runs"] if any(row.run.repetitions for row in group.rows) else []
        costs = [key for key in (BESIDE if page else ("context_tokens", PRICE)) if key != PRICE or has_prices(group)]
        usual = [group.metric, *tested, *repeated]
        usual += [*secondary_metrics(group), *costs] if page else [*costs, *secondary_metrics(group)]
        keys = [*usual, *(key for key in keys if key not in usual)]
    names = short_names(group)
    if group.base is not None:
        columns["difference"] = replace(columns["difference"], heading=f"vs {names[group.rows.index(group.base)]}")
    if page:
        # New readers look for the word "cost".
        columns["context_tokens"] = replace(columns["context_tokens"], heading="cost: tokens")
    chosen = [columns[key] for key in keys if key in columns]
    if page:
        chosen = [column for column in chosen if any(column.value(group, row) is not None for row in group.rows)]
    shown = [COLUMNS["rank"], replace(COLUMNS["strategy"], text=lambda of, row: names[of.rows.index(row)]), *chosen]
    return TextTable.of(shown, group)


def _published(listing: Listing | None, group: Group | None) -> Iterator[BoardSection]:
    if listing is not None:
        profile = group.profile if group else ""
        yield BoardSection(
            title=published_title(listing),
            tables=(published_table(listing),),
            notes=published_notes(listing, profile),
        )


def _ranking(group: Group) -> list[Column]:
    optional = ("runs", "excluded", "missing")
    left_out = {key for key in optional if not any(COLUMNS[key].value(group, row) for row in group.rows)}
    left_out |= set() if group.all_pairs else {"group"}
    if group.baseline is None or not any(row.difference for row in group.rows):
        left_out |= {"difference", "p"}
    metric = metric_column(group, group.metric)
    return [metric if key == "metric" else COLUMNS[key] for key in RANKING if key not in left_out]


def _levels(group: Group, parts: Mapping[str, Group]) -> list[Column]:
    row_at = {(level, row.run.id, row.run.strategy): row for level, part in parts.items() for row in part.rows}

    def column(level: str, heading: str, part: str) -> Column:
        def value(_: Group, row: Row) -> float | None:
            part_row = row_at.get((level, row.run.id, row.run.strategy))
            estimate = part_row.metrics.get(group.metric) if part_row else None
            return getattr(estimate, part, None)

        def text(group: Group, row: Row) -> str:
            # Two decimals, as in the papers, for comparison with them.
            mean = value(group, row)
            return scales.UNKNOWN if mean is None else f"{mean:.2f}"

        return Column(key=f"{level} {part}", heading=heading, value=value, text=text)

    is_combined = COMBINED in parts
    levels = [*(level for level in parts if level != COMBINED), *([COMBINED] if is_combined else [])]
    return [
        COLUMNS["strategy"],
        *(column(level, level.removesuffix("_runnable"), "mean") for level in levels),
        *([column(COMBINED, "mean of these levels", "mean_of_levels")] if is_combined else []),
    ]


def secondary_metrics(group: Group) -> list[str]:
    """Return the metrics printed beside the ranking metric."""
    return leading(group.profile, group.scales, but=group.metric)[:_MOST_BESIDE]


def leading(profile: str, metrics: Collection[str], *, but: str = "") -> list[str]:
    """Return a profile's metrics, most useful first, without the metric `but`."""
    passes = [name for name in selection.passes(metrics) if name != but][-_MOST_PASSES:]
    own = selection.own_metrics(profile, metrics)
    usual = _BESIDE_PASSES if selection.passes(metrics) else _BESIDE
    # A profile without the usual metrics shows its own metrics first.
    others = (*([] if set(own) & set(usual) else own), *usual)
    return [*passes, *(name for name in others if name in metrics and name != but)]


def _beside(group: Group) -> list[Column]:
    costs = [COLUMNS[key] for key in BESIDE if key != PRICE or has_prices(group)]
    return [COLUMNS["strategy"], *(metric_column(group, name) for name in secondary_metrics(group)), *costs]


@dataclass(frozen=True, slots=True)
class Blank:
    """A chart without data, and why."""

    title: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """A row at one value of the parameter."""

    at: float
    row: Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A strategy at two or more values of the parameter."""

    strategy: str
    points: tuple[CurvePoint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """All strategies of a group that were run at several values of a parameter."""

    title: str
    parameter: str
    metric: str
    unit: str
    heading: str
    curves: tuple[Curve, ...]

    @property
    def values(self) -> tuple[float, ...]:
        """Values of the parameter, ascending."""
        return tuple(sorted({point.at for curve in self.curves for point in curve.points}))

    @property
    def logarithmic(self) -> bool:
        """Whether the axis is logarithmic."""
        return self.values[0] > 0 and self.values[-1] >= _WIDE * self.values[0]

    def beside(self, value: float, number: int) -> float:
        """Return the position of a curve's dot on the axis, shifted so that intervals at one value do not overlap."""
        low, high = self.values[0], self.values[-1]
        shift = _SHIFT * (number - (len(self.curves) - 1) / 2)
        return value * (high / low) ** shift if self.logarithmic else value + (high - low) * shift

    def table(self) -> TextTable:
        """Return the curves as text: one line per strategy, one column per value of the parameter."""
        heads = [ColumnHead(f"{self.parameter} {value:g}") for value in self.values]
        lines = []
        for curve in self.curves:
            rows = {point.at: point.row for point in curve.points}
            lines.append(
                [
                    curve.strategy,
                    *(
                        interval_of(rows[value], self.metric) if value in rows else scales.UNKNOWN
                        for value in self.values
                    ),
                ]
            )
        first = ColumnHead(
            f"{self.heading} {INTERVAL}",
            "The strategy, without the parameter whose values are the columns.",
            is_text=True,
        )
        return TextTable((first, *heads), lines)


def curves(group: Group, parameter: str = BUDGET, *, metric: str | None = None) -> Curves | Blank:
    """Return a metric of a group's strategies over a parameter, ordered by each strategy's best row."""
    metric = metric or group.metric
    title = f"{metric} over {parameter}"
    points: dict[str, list[CurvePoint]] = defaultdict(list)
    unspoken: list[tuple[Spec, Row]] = []
    for row in group.rows:
        spec = None if row.run.control or mean(row, metric) is None else _spec(row)
        value = spec.arguments.get(parameter) if spec else None
        if spec and isinstance(value, int | float) and not isinstance(value, bool):
            points[_without(spec, parameter, row)].append(CurvePoint(at=value, row=row))
        elif spec and value is None:
            unspoken.append((spec, row))
    for spec, row in unspoken:
        # Canonical specs omit defaults.
        if (name := label(row)) in points and (at := default_of(spec.name, parameter)) is not None:
            points[name].append(CurvePoint(at=at, row=row))
    drawn = tuple(
        Curve(strategy=name, points=tuple(sorted(members, key=lambda point: point.at)))
        for name, members in points.items()
        if len({point.at for point in members}) > 1
    )
    if not drawn:
        return Blank(
            title, f"No strategy here was run with two values of {parameter}, such as name({parameter}={{256,512}})."
        )
    scale = group.scales[metric]
    return Curves(
        title=title, parameter=parameter, metric=metric, unit=scale.unit, heading=heading(group, metric), curves=drawn
    )


def parameters(groups: Collection[Group]) -> list[str]:
    """Return the parameters with a curve, sorted."""
    specs = [spec for group in groups for row in group.rows if (spec := _spec(row)) is not None]
    names = {name for spec in specs for name in spec.arguments if name}
    return sorted(name for name in names if any(isinstance(curves(group, name), Curves) for group in groups))


def _spec(row: Row) -> Spec | None:
    try:
        return parse(row.run.strategy)
    except InputFault:
        # Labels of imported runs may not be specs.
        return None


def _without(spec: Spec, parameter: str, row: Row) -> str:
    bare = replace(spec, arguments={key: value for key, value in spec.arguments.items() if key != parameter})
    return label(replace(row, run=replace(row.run, strategy=str(bare))))
