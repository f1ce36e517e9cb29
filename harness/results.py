"""The tables that the leaderboard reads: the results of one run in one language, as columns. Frozen data, no I/O.

This module alone defines how a sample counts (`status_cases`, `value_cases`), with operators that values, arrays and
database columns share, so Python and SQL evaluate the same rules. It also defines what a run may omit (`Measurement`).
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
    """The outcome of one sample of a run."""

    SCORED = "scored"
    MODEL_FAILED = "model-failed"
    """The model wrote nothing usable: counts as the worst value, never skipped."""
    INFRA_FAILED = "infra-failed"
    """The machine failed or the run was interrupted: reported as missing, tried again, never counted as 0."""
    EXCLUDED = "excluded"
    """Excluded by a certificate of the benchmark, with its reason."""


Cases = tuple[tuple[Any, Any], ...]
"""Pairs (condition, result); the first true condition decides."""


def status_cases(*, excluded: Any, missing: Any, tested: Any, judged: Any, n: Any) -> Cases:
    """Return the cases in which a sample's status differs from its stored one: excluded, or missing.

    Args:
        excluded: whether the sample is excluded.
        missing: whether it has no result.
        tested: whether tests judge it; it is then missing until every completion has a verdict.
        judged: number of completions with a verdict.
        n: completions per sample.
    """
    return (
        (excluded, Status.EXCLUDED),
        (missing, Status.INFRA_FAILED),
        (tested & (judged != n), Status.INFRA_FAILED),
    )


def value_cases(*, scored: Any, model_failed: Any, own: Any, worst: Any) -> Cases:
    """Return the cases of a sample's value; only scored and model-failed samples have one.

    Args:
        scored: whether its status is `Status.SCORED`.
        model_failed: whether its status is `Status.MODEL_FAILED`.
        own: its own value.
        worst: the value of a model-failed sample; None for its own value, if it has one.
    """
    return (scored, own), (model_failed, own if worst is None else worst)


def samples_label(name: str, *, limit: int | None = None, after: date | str | None = None) -> str:
    """Return the label of a sample set, or of a part of it, on leaderboards: ``demo[after 2024-06-01][:10]``."""
    parts = [f"after {after}"] if after else []
    parts += [] if limit is None else [f":{limit}"]
    return name + "".join(f"[{part}]" for part in parts)


_RELEASED = ", asked as released"
"""Suffix of the version of a summariser that was asked with the release's template."""


def asked_by(version: str, templates: Mapping[str, str]) -> str:
    """Return a summariser's version, with a suffix if it was asked with the release's templates."""
    return version + _RELEASED * bool(templates)


def is_released(version: str) -> bool:
    """Return whether a summariser of that version was asked with the release's templates."""
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
    """Return the label of a generator on leaderboards, with every choice of the run that no other label shows.

    These are: fill in the middle, another summariser, summaries of tests' APIs, the release's template, and budgets
    counted in p50k_base.
    """
    remarks = ["fim"] if fim else []
    how = ", of tests too" * summarises_tests + _RELEASED * released_template
    remarks += [f"summaries by {summariser}{how}"] if summariser else []
    remarks += [f"budgets in {tokenizer}"] if tokenizer == P50K_BASE else []
    return spec + "".join(f" [{remark}]" for remark in remarks)


def file_label(strategy: str) -> str:
    """Return the label of a strategy: without the folder for a strategy in a file, otherwise the spec."""
    try:
        parsed = parse(strategy)
    except InputFault:
        # An imported run's label need not be a spec.
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
    """Measured by ctxbench's authors, and shipped as scores without prompts."""
    PUBLISHED = "published"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Load:
    """The concurrency of an attempt at a run; seconds measured under different loads cannot be compared."""

    workers: int
    """Strategies, and tests of functions, at once."""
    requests: int
    """Requests to the model at once; 1 if they were sequential."""
    cores: int
    """Number of the machine's cores."""

    def __str__(self) -> str:
        """Return the load in words."""
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
    """One run: every choice that affects its numbers."""

    id: str
    samples: str
    """Label of the sample set or of its part; see `samples_label`."""
    samples_digest: str
    language: str
    strategy: str
    """Canonical spec."""
    generator: str
    """Canonical spec."""
    set_size: int = 0
    """Samples of the whole set, in all its languages; 0 if unknown."""
    origin: Origin = Origin.RUN
    profile: str = "ctxbench"
    """The metric profile of `RunTable.metrics`."""
    ranked: bool = True
    """False for controls and published rows, which are shown but never ranked."""
    control: bool = False
    """Whether it used the answer, or its author declares it a control; it is never tested for significance."""
    functions: bool = False
    """Whether its samples are functions, which tests judge."""
    completions: int = 1
    """Completions per sample."""
    sampling: str = ""
    """The parameters of decoding, as JSON; empty if unknown."""
    benchmark: str = ""
    """The samples' benchmark, e.g. ``codereval``; ``ctxbench`` for sets that ctxbench built."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Strategy, generator, coder, tokenizer, ctxbench -> its version when the run began, if known."""
    loads: tuple[Load | None, ...] = ()
    """The distinct loads of the measured seconds; None for attempts without a recorded load, empty without attempts."""
    remarks: tuple[str, ...] = ()
    """Sentences for readers of this run's numbers, shown below the table and in JSON."""
    offline: Mapping[str, float | None] = field(default_factory=dict)
    """Name of `OFFLINE_COSTS` -> the cost of the summaries of APIs, which belong to no sample; may be empty."""
    cutoff: str | None = None
    """The training cutoff in the generator's spec (``YYYY-MM-DD``); None without one."""
    repetitions: tuple[str, ...] = ()
    """Ids of the pooled runs, which differ only in the seed, by seed; empty for a single run."""

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
    """Metric -> values in the profile's own scale; None for a sample without a score."""
    context_tokens: tuple[float | None, ...]
    calls: tuple[float | None, ...]
    seconds: tuple[float | None, ...]
    path: tuple[str, ...] = ()
    """The file of each sample; empty if they are unknown."""
    dated: tuple[str | None, ...] = ()
    """The day of each sample's code, as ``YYYY-MM-DD``, None if unknown; empty if all are unknown."""
    mark: tuple[str, ...] = ()
    """``broken``, ``vacuous`` or an empty text for each sample; empty if no sample of the set is invalid."""
    costs: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    """Name of `COSTS` -> the cost of each sample, over all its model calls; None if unknown."""
    outcomes: tuple[tuple[Status, ...], ...] = ()
    """The status of each sample in each pooled run; empty for a single run."""
    repeated: Mapping[str, tuple[tuple[float | None, ...], ...]] = field(default_factory=dict)
    """Metric -> value of each sample in each pooled run, None without one; `metrics` has their means."""


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
"""Costs of a sample: tokens of all its calls, cached tokens among them, US dollars, and seconds of the strategy, of the
model and of the tests."""
ENGINE_COSTS = ("index_seconds", "query_seconds", "engine_calls", "places", "places_cut", "index_bytes")
"""Costs of a sample's context engines, if any; an index counts for the sample that caused it to be built."""
ACCESS = ("explored_recall", "explored_files")
"""What a strategy read for a sample: the share (0..1) of the definitions that the answer uses, and the number of files.
They are stored like costs, and never tested for significance."""
SUMMARY_COSTS = ("summary_calls", "summary_tokens_in", "summary_tokens_out", "summary_price")
"""Costs of a sample's separate summariser, which `COSTS` do not include."""
OFFLINE_COSTS = ("offline_calls", "offline_tokens_in", "offline_tokens_out", "offline_price")
"""Costs of all summaries of APIs of a run, which are written once for all its samples."""


class Measurement(StrEnum):
    """A measurement that a run makes at once, or leaves to `ctxbench rescore`.

    It does not change a run's identity. Scores under the default profile are always computed.
    """

    GAIN = "gain"
    """Context gain: bits of the reference with and without the context."""
    DIAGNOSTICS = "diagnostics"
    """Use and cost of the context, and invented names."""
    PROFILES = "profiles"
    """Scores under the published profiles, in addition to the default one."""

    @property
    def remark(self) -> str:
        """The remark on a run without this measurement; a board shows it until every sample has it."""
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
"""A metric of every sample with a known answer under the default profile."""
BITS = "bits"
"""A metric of every sample with a priced context."""
GAINS = (GAIN, COPYABLE, BITS)
CHECKS = tuple(metric.name for metric in DIAGNOSTICS)
"""Names of the metrics of `Measurement.DIAGNOSTICS`."""


def left_out(remarks: Collection[str]) -> list[Measurement]:
    """Return the measurements that a run once left out, according to its remarks."""
    return [measure for measure in Measurement if measure.remark in remarks]


def without_parts(
    columns: Mapping[str, Mapping[str, float | None]],
    scored: Collection[str],
    remarks: tuple[str, ...],
    *,
    profile: str,
) -> tuple[dict[str, Mapping[str, float | None]], tuple[str, ...]]:
    """Return columns without those that only some samples have, and remarks without those on complete measurements.

    Args:
        columns: metric -> sample -> value, None for an undefined value.
        scored: the samples with scores under the default profile.
        remarks: the remarks of the run.
        profile: the profile of the metrics among the columns.
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
