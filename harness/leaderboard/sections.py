"""Splits a board into printable sections with a title, text tables and notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ctxbench.bench.errors import UnknownName
from ctxbench.bench.spec import POSITIONAL, Spec
from ctxbench.harness.leaderboard import scales
from ctxbench.harness.leaderboard.columns import (
    BESIDE,
    COLUMNS,
    CUTOFF,
    RANKING,
    Column,
    TextTable,
    label,
    mean_column,
    metric_column,
    secondary_metrics,
)
from ctxbench.harness.leaderboard.curves import Curves, curves, parameters, spec_of
from ctxbench.harness.leaderboard.headline import shared_origin, title
from ctxbench.harness.leaderboard.notes import has_prices, notes, notes_of_levels, notes_of_overall, warnings
from ctxbench.harness.leaderboard.published import BOTH, published_notes, published_table, published_title
from ctxbench.harness.leaderboard.rows import (
    ALL_LEVELS,
    COMBINED,
    LEVELLED,
    Board,
    Group,
    Listing,
    Row,
    groups_by_level,
)
from ctxbench.harness.metrics import (
    BLOCK_GAIN,
    BUDGETS,
    COPYABLE,
    DENSITY,
    DIAGNOSTICS,
    FIRST,
    FOUND,
    HEADLINE,
    RETRIEVAL,
)
from ctxbench.harness.results import PRICE

OTHERS = "Other metrics and costs"

_DIAGNOSTICS = (COPYABLE, *(metric.name for metric in DIAGNOSTICS if metric not in RETRIEVAL), BLOCK_GAIN)
_FOUND = (*(f"{FOUND}@{budget}" for budget in BUDGETS), f"{DENSITY}@1024", FIRST)
_LONG_NAME = 34


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardSection:
    """The tables and notes under one title."""

    title: str
    tables: tuple[TextTable, ...]
    """Tables with one line per row, in the order of the group or of the papers' highlighted rows."""
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
        diagnostics: add tables of what each context contributed and which names the answers invented.
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

    Prefixes such as ``lc.`` and parameters that all rows of a strategy share are dropped. If a name is still long,
    parameters that most of these rows share are dropped too.
    """
    names = _shortened(group, 1.0)
    return names if max(map(len, names), default=0) <= _LONG_NAME else _shortened(group, 0.5)


def _shortened(group: Group, share: float) -> list[str]:
    """Return names without parameters that at least `share`, or more than half, of the rows with a name have."""
    specs = [spec_of(row) for row in group.rows]
    of_name = Counter(spec.name for spec in specs if spec is not None)
    having = Counter((spec.name, key, str(value)) for spec in specs if spec for key, value in spec.arguments.items())
    names = []
    for row, spec in zip(group.rows, specs, strict=True):
        whole = row.run.strategy if shared_origin(group) and not row.run.control else label(row)
        if spec is None or row.run.control:
            names.append(whole)
            continue
        told = {
            key: value
            for key, value in spec.arguments.items()
            # An engine's name has no key and stays.
            if key == POSITIONAL or having[spec.name, key, str(value)] < max(share, 0.5 + 1e-9) * of_name[spec.name]
        }
        bare = spec.name if "@" in spec.name else spec.name.rpartition(".")[2]
        names.append(whole.replace(row.run.strategy, str(Spec(bare, told))))
    labels = [row.run.strategy if shared_origin(group) and not row.run.control else label(row) for row in group.rows]
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


def screen_table(group: Group, keys: Sequence[str] = (), *, page: bool = False) -> TextTable:
    """Return a group's ranking for a screen, one line per row.

    Args:
        keys: columns or metrics after rank and strategy, if the group has them. By default: the ranking metric, the
            difference with its test, tokens, known prices, and the means of other metrics.
        page: whether the table is for a web page, which draws the interval of the ranking metric and adds a verdict,
            calls, seconds and `keys`.
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


def _beside(group: Group) -> list[Column]:
    costs = [COLUMNS[key] for key in BESIDE if key != PRICE or has_prices(group)]
    return [COLUMNS["strategy"], *(metric_column(group, name) for name in secondary_metrics(group)), *costs]
