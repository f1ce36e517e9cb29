"""The tables that the leaderboard reads: the results of one run in one language, as columns. Frozen data, no I/O.

What a sample counts as is said here once (`status_cases`, `value_cases`), in operators that values, arrays
and columns of a database share: Python and SQL evaluate the same rules. So is what a run may leave out (`Measurement`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from pathlib import PurePath
from typing import Any

from ctxbench.bench.code_tokens import P50K_BASE
from ctxbench.bench.errors import InputFault
from ctxbench.bench.spec import parse
from ctxbench.harness.metrics import COPY_MODEL, COPYABLE, DEFAULT, DIAGNOSTICS, GAIN


class Status(StrEnum):
    """The outcome of one sample of a run; exactly one of these."""

    SCORED = "scored"
    MODEL_FAILED = "model-failed"
    """The model gave nothing usable: counts as the worst value, never skipped."""
    INFRA_FAILED = "infra-failed"
    """The machine failed or the run was interrupted: missing, shown, tried again, never 0."""
    EXCLUDED = "excluded"
    """Left out by a certificate of the benchmark, with its reason."""


Cases = tuple[tuple[Any, Any], ...]
"""(condition, what holds under it); the first condition that is true decides."""


def status_cases(*, excluded: Any, missing: Any, tested: Any, judged: Any, n: Any) -> Cases:
    """Return what became of a sample other than its result says: left out, or missing.

    Args:
        excluded: whether the sample is left out.
        missing: whether it has no result.
        tested: whether tests judge it: then it is missing as long as a completion lacks its verdict.
        judged: completions that have a verdict.
        n: completions a sample.
    """
    return (
        (excluded, Status.EXCLUDED),
        (missing, Status.INFRA_FAILED),
        (tested & (judged != n), Status.INFRA_FAILED),
    )


def value_cases(*, scored: Any, model_failed: Any, own: Any, worst: Any) -> Cases:
    """Return the value of a sample; other samples than scored and model-failed ones have none.

    Args:
        scored: whether its status is `Status.SCORED`.
        model_failed: whether its status is `Status.MODEL_FAILED`.
        own: its own value.
        worst: what a model-failed sample counts as; None: its own value, where it has one.
    """
    return (scored, own), (model_failed, own if worst is None else worst)


def samples_label(name: str, *, limit: int | None = None, after: date | str | None = None) -> str:
    """Return how leaderboards call a sample set, or a part of it: ``demo[after 2024-06-01][:10]``."""
    parts = [f"after {after}"] if after else []
    parts += [] if limit is None else [f":{limit}"]
    return name + "".join(f"[{part}]" for part in parts)


_RELEASED = ", asked as released"
"""Ends the version of a summariser that was asked with the release's template."""


def asked_by(version: str, templates: Mapping[str, str]) -> str:
    """Return a summariser's version, apart where it was asked with the release's templates."""
    return version + _RELEASED * bool(templates)


def is_released(version: str) -> bool:
    """Say whether a summariser of that version was asked with the release's templates."""
    return version.endswith(_RELEASED)


def generator_label(
    spec: str,
    *,
    fim: bool = False,
    summariser: str = "",
    summarises_tests: bool = False,
    released_template: bool = False,
    tokenizer: str = "",
) -> str:
    """Return how leaderboards call a generator, with all in which runs differ that no other name tells.

    That is whether it was shown what follows the cursor, who summarised in its place, whether APIs of tests too and
    with the release's template, and whether budgets were counted in p50k_base.
    """
    remarks = ["fim"] if fim else []
    how = ", of tests too" * summarises_tests + _RELEASED * released_template
    remarks += [f"summaries by {summariser}{how}"] if summariser else []
    remarks += [f"budgets in {tokenizer}"] if tokenizer == P50K_BASE else []
    return spec + "".join(f" [{remark}]" for remark in remarks)


def file_label(strategy: str) -> str:
    """Return what a strategy of a file is called: its file's name without the folder; others by their spec."""
    try:
        parsed = parse(strategy)
    except InputFault:
        # Labels of imported runs need not be specs.
        return strategy
    path, at, name = parsed.name.rpartition("@")
    return str(replace(parsed, name=f"{PurePath(path).name}@{name}")) if at else strategy


def spec_of_label(label: str) -> str:
    """Return the generator's spec of a label."""
    return label.partition(" [budgets in ")[0].partition(" [summaries by ")[0].removesuffix(" [fim]")


def only_copies(generator: str) -> bool:
    """Return whether this generator is the built-in copy model, so that no language model answered."""
    return spec_of_label(generator).partition("(")[0] == COPY_MODEL


class Origin(StrEnum):
    """The origin of a row's numbers."""

    RUN = "run"
    IMPORTED = "imported"
    REFERENCE = "reference"
    """Measured by us and shipped with ctxbench as scores without prompts."""
    PUBLISHED = "published"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Load:
    """What an attempt at a run did at once; seconds measured under different loads cannot be compared."""

    workers: int
    """Strategies, and tests of functions."""
    requests: int
    """Requests to the model; 1 where no model was asked side by side."""
    cores: int
    """Of the machine."""

    def __str__(self) -> str:
        """Return it in words."""
        strategies, requests, cores = (
            f"{count} {singular if count == 1 else plural}"
            for count, singular, plural in (
                (self.workers, "strategy", "strategies"),
                (self.requests, "request", "requests"),
                (self.cores, "core", "cores"),
            )
        )
        return f"{strategies} and {requests} at once on {cores}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """One run: every choice that decides its numbers."""

    id: str
    samples: str
    """Name of the sample set; with what `samples_label` adds where the run, or its table, has a part of it."""
    samples_digest: str
    language: str
    strategy: str
    """Canonical spec."""
    generator: str
    """Canonical spec."""
    set_size: int = 0
    """Samples of the whole set, in all its languages; 0 where nobody knows."""
    origin: Origin = Origin.RUN
    profile: str = "ctxbench"
    """The metric profile of `RunTable.metrics`."""
    ranked: bool = True
    """False for controls and published rows: shown, never ranked."""
    control: bool = False
    """Whether it was made with the answer, or its author calls it a control: never compared by a test."""
    functions: bool = False
    """Whether its samples are functions, which tests judge."""
    completions: int = 1
    """Completions a sample."""
    sampling: str = ""
    """How they were decoded, as JSON; empty if unknown."""
    benchmark: str = ""
    """The samples' benchmark, e.g. ``codereval``; ``ctxbench`` for those built here."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Strategy, generator, coder, tokenizer, ctxbench -> its version when the run began; unknown ones are missing."""
    loads: tuple[Load | None, ...] = ()
    """The distinct loads under which its seconds were measured; None for attempts without a record of it, empty if
    nothing was measured."""
    remarks: tuple[str, ...] = ()
    """Sentences that a reader of this run's numbers needs: shown below the table, and in JSON."""
    offline: Mapping[str, float | None] = field(default_factory=dict)
    """Name of `OFFLINE_COSTS` -> the cost of the summaries of APIs, which belong to no sample; empty without any."""
    cutoff: str | None = None
    """The last day of what the generator was trained on (``YYYY-MM-DD``), as its spec said; None if it said nothing."""
    repetitions: tuple[str, ...] = ()
    """Ids of the runs that were pooled because they differ only in the seed, by seed; empty for a run by itself."""

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the stored runs behind these numbers."""
        return self.repetitions or (self.id,)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTable:
    """The samples of one run in one language, as aligned columns."""

    run: RunInfo
    sample: tuple[str, ...]
    repo: tuple[str, ...]
    level: tuple[str, ...]
    """``single-line`` / ``next-line``, or the CoderEval level."""
    status: tuple[Status, ...]
    metrics: Mapping[str, tuple[float | None, ...]]
    """Metric -> values in the profile's own scale; None where the sample is not scored."""
    context_tokens: tuple[float | None, ...]
    calls: tuple[float | None, ...]
    seconds: tuple[float | None, ...]
    path: tuple[str, ...] = ()
    """The file of each sample; empty if they are unknown."""
    dated: tuple[str | None, ...] = ()
    """The day of each sample's code, as ``YYYY-MM-DD``; None where it is unknown, empty if every one is."""
    mark: tuple[str, ...] = ()
    """``broken``, ``vacuous`` or nothing, sample by sample; empty if no sample of the set is invalid."""
    costs: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    """Name of `COSTS` -> the cost of each sample, all of its model calls together; None where unknown."""
    outcomes: tuple[tuple[Status, ...], ...] = ()
    """Of pooled runs: the status of each sample in each of them; empty for a run by itself, as is the next."""
    repeated: Mapping[str, tuple[tuple[float | None, ...], ...]] = field(default_factory=dict)
    """Metric -> sample by sample what it counts as in each of the pooled runs, None where it does not; `metrics` has
    the means of these."""


PRICE = "price"
COSTS = (
    "tokens_in",
    "tokens_out",
    "tokens_cached",
    PRICE,
    "strategy_seconds",
    "generator_seconds",
    "test_seconds",
)
"""Costs of a sample: tokens of all its calls, those of them that the service had cached, US dollars, and the seconds of
the strategy's work, the model's answers and the tests of its completions."""
ENGINE_COSTS = ("index_seconds", "query_seconds", "engine_calls", "places", "places_cut", "index_bytes")
"""Costs of a sample at context engines, where any was asked; an index counts at the sample that it was made for."""
ACCESS = ("explored_recall", "explored_files")
"""What a strategy looked at for a sample: the share, in 0..1, of the definitions that the answer uses, and a number of
files. Kept as costs are: no test compares them."""
SUMMARY_COSTS = ("summary_calls", "summary_tokens_in", "summary_tokens_out", "summary_price")
"""Costs of a sample at a summariser of its own, which are in none of `COSTS`."""
OFFLINE_COSTS = ("offline_calls", "offline_tokens_in", "offline_tokens_out", "offline_price")
"""Costs of a run's summaries of APIs, all together: made once for all of its samples."""


class Measurement(StrEnum):
    """Something that a run computes of its samples at once, or leaves to `ctxbench rescore`.

    It is no part of a run's identity. Scores under the default profile are always computed.
    """

    GAIN = "gain"
    """Context gain: what the reference costs in bits, with the context and without."""
    DIAGNOSTICS = "diagnostics"
    """Use and cost of the context, and invented names."""
    PROFILES = "profiles"
    """Scores under the published profiles beside the default one."""

    @property
    def remark(self) -> str:
        """The remark on a run that has left it out; a board shows it until every sample has it."""
        return (
            f"{_NAMES[self]} not measured for every sample, and not shown: "
            f"`ctxbench rescore --measure {self}` does it; no model is asked to write."
        )


EVERY = frozenset(Measurement)
_NAMES = {
    Measurement.GAIN: "Context gain is",
    Measurement.DIAGNOSTICS: "Diagnostics are",
    Measurement.PROFILES: "Scores of published profiles are",
}
ALWAYS = "em"
"""A metric that every sample with a known answer has under the default profile."""
BITS = "bits"
"""A metric that every sample with a priced context has."""
GAINS = (GAIN, COPYABLE, BITS)
CHECKS = tuple(metric.name for metric in DIAGNOSTICS)
"""Names of what `Measurement.DIAGNOSTICS` computes."""


def left_out(remarks: Collection[str]) -> list[Measurement]:
    """Return what a run left out at some time, by its remarks."""
    return [measure for measure in Measurement if measure.remark in remarks]


def without_parts(
    columns: Mapping[str, Mapping[str, float | None]],
    scored: Collection[str],
    remarks: tuple[str, ...],
    *,
    profile: str,
) -> tuple[dict[str, Mapping[str, float | None]], tuple[str, ...]]:
    """Leave out columns that only a part of a run's samples has, and remarks on what has been made up for.

    Args:
        columns: metric -> sample -> value, None where a metric is undefined.
        scored: the samples that have scores under the default profile.
        remarks: of the run.
        profile: whose metrics are among the columns.
    """
    whole = dict(columns)
    for measure in left_out(remarks):
        if measure is Measurement.PROFILES:
            own = [name for name in columns if name not in (*GAINS, *CHECKS)]
            names = [] if profile == DEFAULT else own or [""]
        else:
            names = list(GAINS if measure is Measurement.GAIN else CHECKS)
        needed = [BITS] if measure is Measurement.GAIN else names
        if all(set(scored) <= columns.get(name, {}).keys() for name in needed):
            remarks = tuple(remark for remark in remarks if remark != measure.remark)
            continue
        for name in names:
            whole.pop(name, None)
    return whole, remarks
