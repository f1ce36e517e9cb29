"""The tables that the leaderboard reads: results of one run in one language, as columns. Frozen data, no I/O.

Only this module defines how a sample counts (`status_cases`, `value_cases`). Its operators work on values, arrays and
database columns, so Python and SQL apply the same rules. It also defines what a run may omit (`Measurement`).
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
    """The outcome of a sample of a run."""

    SCORED = "scored"
    MODEL_FAILED = "model-failed"
    """The model wrote nothing usable; counts as the worst value and is never skipped."""
    INFRA_FAILED = "infra-failed"
    """The machine failed or the run was interrupted; counts as missing, never as 0, and is tried again."""
    EXCLUDED = "excluded"
    """Excluded because the sample is invalid."""


Cases = tuple[tuple[Any, Any], ...]
"""Pairs (condition, result); the first true condition decides."""


def status_cases(*, excluded: Any, missing: Any, tested: Any, judged: Any, n: Any) -> Cases:
    """Return the cases in which a sample's status differs from its stored status: excluded, or missing.

    Args:
        excluded: whether the sample is excluded.
        missing: whether the sample has no result.
        tested: whether tests judge the sample, which is then missing until every completion has a verdict.
        judged: number of completions with a verdict.
        n: completions per sample.
    """
    return (
        (excluded, Status.EXCLUDED),
        (missing, Status.INFRA_FAILED),
        (tested & (judged != n), Status.INFRA_FAILED),
    )


def value_cases(*, scored: Any, model_failed: Any, own: Any, worst: Any) -> Cases:
    """Return the cases of a sample's value; only scored and model-failed samples have a value.

    Args:
        scored: whether the status is `Status.SCORED`.
        model_failed: whether the status is `Status.MODEL_FAILED`.
        own: value of the sample.
        worst: value of a model-failed sample; None to use its own value.
    """
    return (scored, own), (model_failed, own if worst is None else worst)


def samples_label(name: str, *, limit: int | None = None, after: date | str | None = None) -> str:
    """Return the label of a sample set or a part of it on leaderboards: ``demo[after 2024-06-01][:10]``."""
    parts = [f"after {after}"] if after else []
    parts += [] if limit is None else [f":{limit}"]
    return name + "".join(f"[{part}]" for part in parts)


_RELEASED = ", asked as released"
"""Suffix of a summariser's version if the release's template was used."""


def asked_by(version: str, templates: Mapping[str, str]) -> str:
    """Return a summariser's version, with a suffix if the release's templates were used."""
    return version + _RELEASED * bool(templates)


def is_released(version: str) -> bool:
    """Return whether a summariser of that version used the release's templates."""
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
    """Return the label of a generator on leaderboards, with all choices of the run that no other label shows.

    These are: fill in the middle, a separate summariser, summaries of tests' APIs, the release's template, and budgets
    in
    p50k_base tokens.
    """
    remarks = ["fim"] if fim else []
    how = ", of tests too" * summarises_tests + _RELEASED * released_template
    remarks += [f"summaries by {summariser}{how}"] if summariser else []
    remarks += [f"budgets in {tokenizer}"] if tokenizer == P50K_BASE else []
    return spec + "".join(f" [{remark}]" for remark in remarks)


def file_label(strategy: str) -> str:
    """Return the label of a strategy: the spec, without the folder of a strategy file."""
    try:
        parsed = parse(strategy)
    except InputFault:
        # The label of an imported run may not be a spec.
        return strategy
    path, at, name = parsed.name.rpartition("@")
    return str(replace(parsed, name=f"{PurePath(path).name}@{name}")) if at else strategy


def spec_of_label(label: str) -> str:
    """Return the generator's spec in a label."""
    return label.partition(" [budgets in ")[0].partition(" [summaries by ")[0].removesuffix(" [fim]")


def only_copies(generator: str) -> bool:
    """Return whether the generator is the built-in copy model, not a language model."""
    return spec_of_label(generator).partition("(")[0] == COPY_MODEL


class Origin(StrEnum):
    """The origin of a row's numbers."""

    RUN = "run"
    IMPORTED = "imported"
    REFERENCE = "reference"
    """Measured by ctxbench's authors; ships as scores without prompts."""
    PUBLISHED = "published"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Load:
    """The concurrency of an attempt; seconds measured under different loads cannot be compared."""

    workers: int
    """Strategies and function tests that run at once."""
    requests: int
    """Model requests at once; 1 if sequential."""
    cores: int

    def __str__(self) -> str:
        """Describe the load."""
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
    """A run: all choices that affect its numbers."""

    id: str
    samples: str
    """Label of the sample set or a part of it; see `samples_label`."""
    samples_digest: str
    language: str
    strategy: str
    generator: str
    set_size: int = 0
    """Samples of the whole set, in all languages; 0 if unknown."""
    origin: Origin = Origin.RUN
    profile: str = "ctxbench"
    ranked: bool = True
    """False for controls and published rows, which are shown but never ranked."""
    control: bool = False
    """Whether the run used the answer, or its author declares it a control; controls are never tested."""
    functions: bool = False
    """Whether the samples are functions, which tests judge."""
    completions: int = 1
    sampling: str = ""
    """Decoding parameters, as JSON; empty if unknown."""
    benchmark: str = ""
    """Benchmark of the samples, such as ``codereval``; ``ctxbench`` for sets built by ctxbench."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Strategy, generator, coder, tokenizer, ctxbench -> version at the start of the run, if known."""
    loads: tuple[Load | None, ...] = ()
    """Distinct loads of the measured seconds; None for attempts without a recorded load; empty without attempts."""
    remarks: tuple[str, ...] = ()
    """Sentences for readers of the run's numbers, shown below the table and in JSON."""
    offline: Mapping[str, float | None] = field(default_factory=dict)
    """Name of `OFFLINE_COSTS` -> cost of API summaries, which belong to no sample; may be empty."""
    cutoff: str | None = None
    """Training cutoff in the generator's spec (``YYYY-MM-DD``); None without one."""
    repetitions: tuple[str, ...] = ()
    """Ids of the pooled runs, which differ only in the seed, ordered by seed; empty for a single run."""

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the stored runs that these numbers come from."""
        return self.repetitions or (self.id,)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTable:
    """The samples of a run in one language, as aligned columns."""

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
    """File of each sample; empty if unknown."""
    dated: tuple[str | None, ...] = ()
    """Day of each sample's code, as ``YYYY-MM-DD`` or None; empty if all are unknown."""
    mark: tuple[str, ...] = ()
    """``broken``, ``vacuous`` or an empty text per sample; empty if the set has no invalid sample."""
    costs: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    """Name of `COSTS` -> cost of each sample, over all its model calls; None if unknown."""
    outcomes: tuple[tuple[Status, ...], ...] = ()
    """Status of each sample in each pooled run; empty for a single run."""
    repeated: Mapping[str, tuple[tuple[float | None, ...], ...]] = field(default_factory=dict)
    """Metric -> value of each sample in each pooled run, or None; `metrics` contains their means."""


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
"""Costs per sample: tokens of all calls, cached tokens among them, US dollars, and seconds of strategy, model and
tests."""
ENGINE_COSTS = ("index_seconds", "query_seconds", "engine_calls", "places", "places_cut", "index_bytes")
"""Costs of a sample's context engines; an index counts for the sample that caused it to be built."""
ACCESS = ("explored_recall", "explored_files")
"""What a strategy read for a sample: the share (0..1) of the definitions used in the answer, and the number of files.
These values are stored like costs and never tested for significance."""
SUMMARY_COSTS = ("summary_calls", "summary_tokens_in", "summary_tokens_out", "summary_price")
"""Costs of a sample's separate summariser, which `COSTS` exclude."""
OFFLINE_COSTS = ("offline_calls", "offline_tokens_in", "offline_tokens_out", "offline_price")


class Measurement(StrEnum):
    """A measurement that a run makes at once, or leaves to `ctxbench rescore`; it does not affect the run's identity.

    Scores under the default profile are always computed.
    """

    GAIN = "gain"
    """Context gain: bits of the reference with and without the context."""
    DIAGNOSTICS = "diagnostics"
    """Use and cost of the context, and invented names."""
    PROFILES = "profiles"
    """Scores under the published profiles, besides the default profile."""

    @property
    def remark(self) -> str:
        """The remark on a run without this measurement; boards show it until every sample has the measurement."""
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
"""Names of the metrics of `Measurement.DIAGNOSTICS`."""


def left_out(remarks: Collection[str]) -> list[Measurement]:
    """Return the measurements that a run left out, according to its remarks."""
    return [measure for measure in Measurement if measure.remark in remarks]


def without_parts(
    columns: Mapping[str, Mapping[str, float | None]],
    scored: Collection[str],
    remarks: tuple[str, ...],
    *,
    profile: str,
) -> tuple[dict[str, Mapping[str, float | None]], tuple[str, ...]]:
    """Remove columns that only some samples have, and remarks on measurements that are complete.

    Args:
        columns: metric -> sample -> value, None if undefined.
        scored: samples with scores under the default profile.
        remarks: remarks of the run.
        profile: metric profile of the columns.
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
