"""Builds the report of `ctxbench decide` from runs over one repository: a sentence, a table, samples and costs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import IntEnum

from ctxbench.bench.escaping import visible
from ctxbench.bench.home import Home
from ctxbench.bench.samples import SampleSet, find
from ctxbench.bench.types import Sample
from ctxbench.harness import cutoffs
from ctxbench.harness.definitions import RETRIEVED
from ctxbench.harness.leaderboard import Board, Group, Row, board, scales
from ctxbench.harness.leaderboard.columns import COLUMNS, label
from ctxbench.harness.leaderboard.compare import compare, largest_differences
from ctxbench.harness.leaderboard.power import WITHIN_ONE, detectable
from ctxbench.harness.leaderboard.render import records
from ctxbench.harness.leaderboard.rows import listed, pair_verdict
from ctxbench.harness.metrics import COPYABLE, FIRST, FOUND
from ctxbench.harness.results import RunTable, only_copies
from ctxbench.harness.run.attempt import RunSummary
from ctxbench.harness.store import Store
from ctxbench.harness.store.details import detail
from ctxbench.harness.store.runs import run_tables
from ctxbench.harness.store.scores import RunCosts

WITHOUT_MODEL = "none"
"""Generator spec of runs without a model, which complete nothing."""
_SHOWN, _PLACES = 3, 4
_BETTER, _WORSE = "better", "worse"


class Decision(IntEnum):
    """How the other strategies compare with the first one. The value is the exit code of `ctxbench decide`."""

    BETTER = 0
    """At least one strategy is significantly better than the first."""
    NOT_SHOWN = 10
    WORSE = 11
    """Every other strategy is significantly worse than the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prospect:
    """Number of samples, and the smallest difference that they can probably show. Computed before the runs."""

    samples: int
    files: int
    metric: str
    difference: float | None
    """Smallest difference, in the metric's unit, that is significant in four of five cases if answers vary as in other
    repositories. None without a model, for functions, if the metric's variance is unknown, or no test is possible."""

    @classmethod
    def of(cls, samples: Sequence[Sample], generator: str, metric: str | None, *, pairs: int) -> Prospect:
        """Estimate which difference a decision over samples of one repository can show.

        Args:
            metric: metric that decides; None for the default ranking metric.
            pairs: number of strategies that are compared with the first.
        """
        sizes = Counter(sample.path for sample in samples)
        metric = metric or (COPYABLE if only_copies(generator) else "es")
        asked = generator != WITHOUT_MODEL and not any(sample.tested for sample in samples)
        spread = WITHIN_ONE.get(metric) if asked else None
        difference = detectable(list(sizes.values()), spread, pairs=pairs) if spread else None
        return cls(samples=len(samples), files=len(sizes), metric=metric, difference=difference)

    def __str__(self) -> str:
        drawn = f"{self.samples} samples of {self.files} files"
        if self.difference is None:
            return drawn
        amount = scales.amount(self.difference)
        return (
            f"{drawn}: a difference of about {amount} in {self.metric} would be shown in four of five cases, if "
            "answers vary as in other repositories"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSample:
    """One of the samples on which the best other strategy (the leader) and the first strategy differ most."""

    place: str
    difference: float
    """Leader minus first strategy, in the metric's unit."""
    reference: str
    answers: Mapping[str, str]
    """Strategy -> its first answer, or the first places that it retrieved if no model was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionReport:
    """The result of `ctxbench decide`, with the rows, samples and costs that support it."""

    sample_set: SampleSet
    board: Board
    group: Group
    leader: Row
    """The best row among those compared with the first strategy."""
    decision: Decision
    largest_differences: tuple[ShownSample, ...]
    costs: Mapping[str, str]
    prospect: Prospect
    seconds: float
    baseline_shows_nothing: bool
    """Whether no model was asked and the first strategy's scores are all 0 or None. `decision` is then not BETTER."""

    @property
    def repository(self) -> str:
        """Name of the repository."""
        return str(next(iter(self.sample_set.manifest["repositories"])))

    @property
    def sentence(self) -> str:
        """The result in one sentence: the leader's verdict, difference from the first strategy, p, samples, costs."""
        group, row = self.group, self.leader
        base = group.base
        assert base is not None
        difference, unit = row.difference[group.metric], group.scales[group.metric].unit
        verdict = {_BETTER: "is better than", _WORSE: "is worse than"}.get(
            _verdict(group, row), "is not shown to differ from"
        )
        compared = f"{label(row)} {verdict} {label(base)}"
        if self.baseline_shows_nothing and _verdict(group, row) == _BETTER:
            compared = (
                f"{label(row)} finds definitions but is not shown to help more than {label(base)}, which finds none"
            )
        interval = scales.interval(difference.mean, difference.low, difference.high, sign=True)
        units = "" if difference.unit.refusal else f" in {difference.unit.count(difference.units)}"
        more = [
            f"{scales.amount(abs(gap))} {'more' if gap > 0 else 'fewer'} {what}"
            for key, what in (("context_tokens", "tokens"), ("seconds", "seconds"))
            if (gap := (row.costs.get(key) or 0.0) - (base.costs.get(key) or 0.0))
        ]
        verdict_text = pair_verdict(difference, unit)
        return (
            f"{compared}: {group.metric} {interval} {unit}, p "
            f"{scales.p_value(difference.p)}, over {difference.n_common} samples{units}{self._uncounted}"
            f"{f', with {listed(more)} per sample' if more else ''}{f' ({verdict_text})' if verdict_text else ''}."
        )

    @property
    def _uncounted(self) -> str:
        """Number of planned samples without a difference, and the reason, in brackets; empty if all have one."""
        metric = self.group.metric
        left_out = self.prospect.samples - self.leader.difference[metric].n_common
        needs = "definition found in another file" if metric.startswith((FOUND, FIRST)) else metric
        return f" ({left_out} left out: no {needs})" if left_out else ""

    @property
    def claim(self) -> str:
        """Sentences on the limits of the result: repository, model, an unexpected detectable difference, and advice."""
        copies = " A copy model answered, not a language model." if only_copies(self.group.generator) else ""
        model = self.group.generator if self.leader.run.completions else "retrieval without a model"
        claim = f"The answer applies only to {self.repository} as it is now, and to {model}."
        return f"{claim}{copies}{self._surprise}{self._advice}"

    @property
    def _surprise(self) -> str:
        """Sentence on a detectable difference that is not the predicted one; empty if both are equal."""
        expected, shown = self.prospect.difference, self.leader.difference[self.group.metric].visible
        if self.decision is not Decision.NOT_SHOWN or expected is None or shown is None:
            return ""
        named = scales.amount(expected)
        if named == scales.amount(shown):
            return ""
        amount = "more" if shown > expected else "less"
        return f" A detectable difference of {named} was expected; these answers vary {amount}."

    @property
    def _advice(self) -> str:
        """Sentence on what to do if the answer decides nothing; otherwise empty."""
        if self.baseline_shows_nothing:
            return " To learn whether retrieval helps, compare two engines, or name a model with --generator."
        [entry] = self.sample_set.manifest["repositories"].values()
        usable, drawn = entry.get("usable"), len(self.sample_set.samples)
        if self.decision is not Decision.NOT_SHOWN or usable is None:
            return ""
        if usable > drawn:
            return f" The repository has {usable} usable lines; a higher --limit shows smaller differences."
        return " All usable lines of the repository were drawn, so a smaller difference cannot be shown."

    def json(self) -> str:
        """Return the report as JSON, with more digits than the printed report."""
        [entry] = self.sample_set.manifest["repositories"].values()
        record = {
            "decision": self.decision.name.lower(),
            "exit_code": int(self.decision),
            "sentence": self.sentence,
            "claim": self.claim,
            "repository": self.repository,
            "source": entry["source"],
            "samples": len(self.sample_set.samples),
            "files": len({sample.path for sample in self.sample_set.samples}),
            "samples_digest": self.sample_set.digest,
            "metric": self.group.metric,
            "baseline": self.group.baseline,
            "strategies": records(self.board),
            "expected_to_show": self.prospect.difference,
            "largest_differences": [asdict(sample) for sample in self.largest_differences],
            "seconds": round(self.seconds, 1),
        }
        return json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def answer_of(
    home: Home,
    store: Store,
    sample_set: SampleSet,
    summaries: Sequence[RunSummary],
    *,
    metric: str | None,
    prospect: Prospect,
    seconds: float,
) -> DecisionReport:
    """Compare complete runs with the first run, and return the report.

    Args:
        sample_set: the runs' samples, of one repository.
        summaries: summaries of two or more runs; the first and at least one other must not be controls.
        metric: metric that decides; None for the default ranking metric.
        prospect: what the samples were expected to show.
        seconds: seconds since the command started.

    Raises:
        UnknownName: if a run lacks the metric.
    """
    by_run = {table.run.id: table for table in run_tables(store, samples=sample_set.name)}
    tables = [by_run[summary.run] for summary in summaries]
    whole_board = board(
        tables,
        metric=metric,
        baseline=tables[0].run.strategy,
        published="none",
        cutoffs=cutoffs.of_home(home),
    )
    [group] = whole_board.groups
    others = [row for row in group.rows if row is not group.base and not row.run.control]
    costs = {summary.run: summary.costs for summary in summaries}
    leader = max(others, key=lambda row: _lead(group, row))
    verdicts = [_verdict(group, row) for row in others]
    shows_nothing = not leader.run.completions and not any(tables[0].metrics.get(group.metric, ()))
    decision = Decision.BETTER if _BETTER in verdicts and not shows_nothing else Decision.NOT_SHOWN
    return DecisionReport(
        sample_set=sample_set,
        board=whole_board,
        group=group,
        leader=leader,
        decision=Decision.WORSE if set(verdicts) == {_WORSE} else decision,
        largest_differences=tuple(_shown_samples(store, sample_set, tables, leader.run.id, group.metric)),
        costs={row.run.strategy: _cost(row, of) for row in group.rows if (of := costs[row.run.id])},
        prospect=prospect,
        seconds=seconds,
        baseline_shows_nothing=shows_nothing,
    )


def _cost(row: Row, costs: RunCosts) -> str:
    index, queries = (row.n * (row.costs.get(key) or 0.0) for key in ("index_seconds", "query_seconds"))
    engine = f", including {index:.1f} s for its index and {queries:.1f} s for its queries" if index or queries else ""
    return f"{costs}{engine}"


def _verdict(group: Group, row: Row) -> str:
    return str(COLUMNS["verdict"].value(group, row))


def _lead(group: Group, row: Row) -> tuple[bool, bool, float]:
    difference, verdict = row.difference.get(group.metric), _verdict(group, row)
    mean = (difference.mean if difference else None) or 0.0
    return verdict == _BETTER, verdict != _WORSE, -mean if group.scales[group.metric].lower_is_better else mean


def _brought(store: Store, run: str, sample: str) -> str:
    """Return a strategy's answer to a sample, or its first retrieved places if no model was asked."""
    facts = detail(store, run, sample)
    text = next((completion.text for completion in facts.completions), None)
    if text is not None:
        return text
    blocks = [block for block in facts.blocks if block.kind in RETRIEVED and block.end]
    places = [f"{place.path}:{place.start + 1}-{place.end}" for block in blocks for place in block.places]
    more = [f"{len(places) - _PLACES} more"] * (len(places) > _PLACES)
    return ", ".join([*places[:_PLACES], *more]) or "retrieved nothing"


def _shown_samples(
    store: Store, sample_set: SampleSet, tables: Sequence[RunTable], leader: str, metric: str
) -> list[ShownSample]:
    base, other = tables[0], next(table for table in tables if table.run.id == leader)
    [pair] = compare([base, other], metric=metric)

    def line(text: str) -> str:
        return visible(" ".join(text.split()))

    largest_gaps = []
    for id_, gap in largest_differences(pair, _SHOWN):
        sample = find(sample_set, id_)
        place = f"{sample.path}:{sample.first_line + sample.cursor.line + 1}"
        answers = {of.run.strategy: line(_brought(store, of.run.id, id_)) for of in (base, other)}
        reference = line(sample_set.references[id_].target)
        largest_gaps.append(ShownSample(place=visible(place), difference=gap, reference=reference, answers=answers))
    return largest_gaps
