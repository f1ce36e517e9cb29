"""Result tables of runs, as columns, for leaderboards and queries; and the rules for which samples count."""

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
    """Outcome of a sample in a run."""

    SCORED = "scored"
    MODEL_FAILED = "model-failed"
    """The model wrote no usable answer. The sample gets the metric's worst value, or its own if the metric has none."""
    INFRA_FAILED = "infra-failed"
    """The machine or strategy failed, or the run was interrupted. The next attempt retries the missing sample."""
    EXCLUDED = "excluded"
    """The sample is left out as invalid, for example because its reference fails the tests."""


Cases = tuple[tuple[Any, Any], ...]
"""Pairs (condition, result). The first true condition decides."""


def value_cases(*, scored: Any, model_failed: Any, own: Any, worst: Any) -> Cases:
    """Return (condition, value) pairs: a scored sample gets `own`, a model-failed one `worst` (or `own` if None)."""
    return (scored, own), (model_failed, own if worst is None else worst)


def counting_value(status: Status, own: float | None, worst: float | None) -> float | None:
    """Return the value with which a sample enters its run's mean, by `value_cases`; None if it does not count."""
    cases = value_cases(
        scored=status is Status.SCORED, model_failed=status is Status.MODEL_FAILED, own=own, worst=worst
    )
    return next((value for holds, value in cases if holds), None)


def samples_label(name: str, *, limit: int | None = None, after: date | str | None = None) -> str:
    """Return the leaderboard label of a sample set or part of it, such as ``demo[after 2024-06-01][:10]``."""
    parts = [f"after {after}"] if after else []
    parts += [] if limit is None else [f":{limit}"]
    return name + "".join(f"[{part}]" for part in parts)


_RELEASED = ", asked as released"
"""Suffix of a summariser's label if it was asked with the paper's released template."""


def asked_by(version: str, templates: Mapping[str, str]) -> str:
    """Return a summariser's version, with a suffix if it was asked with the InferCom paper's released `templates`."""
    return version + _RELEASED * bool(templates)


def is_released(version: str) -> bool:
    """Return whether a label from `asked_by` has the suffix for released templates."""
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
    """Return the leaderboard label of a generator: its spec, and any use of FIM, a summariser, or p50k_base budgets."""
    remarks = ["fim"] if fim else []
    how = ", of tests too" * summarises_tests + _RELEASED * released_template
    remarks += [f"summaries by {summariser}{how}"] if summariser else []
    remarks += [f"budgets in {tokenizer}"] if tokenizer == P50K_BASE else []
    return spec + "".join(f" [{remark}]" for remark in remarks)


def file_label(strategy: str) -> str:
    """Return the leaderboard label of a strategy: its spec, without the folder of a strategy file."""
    try:
        parsed = parse(strategy)
    except InputFault:
        # The label of an imported run may not be a spec.
        return strategy
    path, at, name = parsed.name.rpartition("@")
    return str(replace(parsed, name=f"{PurePath(path).name}@{name}")) if at else strategy


def spec_of_label(label: str) -> str:
    """Return the generator spec contained in a `generator_label`."""
    return label.partition(" [budgets in ")[0].partition(" [summaries by ")[0].removesuffix(" [fim]")


def only_copies(generator: str) -> bool:
    """Return whether the generator is the built-in copy model, which is not a language model."""
    return spec_of_label(generator).partition("(")[0] == COPY_MODEL


class Origin(StrEnum):
    """The source of a row's numbers."""

    RUN = "run"
    IMPORTED = "imported"
    REFERENCE = "reference"
    """Scores that ctxbench's authors measured. They ship with ctxbench, without prompts."""
    PUBLISHED = "published"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Load:
    """Parallel work of an attempt at a run, and processor cores. Seconds under different loads cannot be compared."""

    workers: int
    """Maximum number of strategies in parallel, and of function tests in parallel."""
    requests: int
    """Maximum number of model requests in parallel; 1 if sequential."""
    cores: int

    def __str__(self) -> str:
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
    """A run's id and choices, with the versions, loads and remarks that boards show."""

    id: str
    samples: str
    samples_digest: str
    language: str
    strategy: str
    generator: str
    set_size: int = 0
    """Number of samples in the complete set, all languages together; 0 if unknown."""
    origin: Origin = Origin.RUN
    profile: str = "ctxbench"
    ranked: bool = True
    """Whether boards rank the run; False for controls, which boards only display."""
    control: bool = False
    """Whether the strategy is a control, such as ``gold`` or ``control.…``. Controls are in no significance test."""
    functions: bool = False
    completions: int = 1
    sampling: str = ""
    """Decoding parameters as JSON; empty if unknown."""
    benchmark: str = ""
    """Benchmarks of the samples, joined by ``+``, such as ``codereval``; ``ctxbench`` for sets that ctxbench built."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions when the run started, by component: strategy, generator, coder, tokenizer, summariser and ctxbench."""
    loads: tuple[Load | None, ...] = ()
    """Distinct loads under which seconds were measured; None for an attempt with an unknown load."""
    remarks: tuple[str, ...] = ()
    """Sentences that boards print below the table, such as limits of the numbers."""
    offline: Mapping[str, float | None] = field(default_factory=dict)
    """Total costs of API summaries, which are written once per repository, by the names in `OFFLINE_COSTS`."""
    cutoff: str | None = None
    """Last training day (``YYYY-MM-DD``) stated in the generator's spec; None if not stated."""
    began: float = field(default=0.0, compare=False)
    """Start, in seconds since 1970, of the latest attempt that did more than run tests; 0 if unknown."""
    repetitions: tuple[str, ...] = ()
    """Ids of pooled runs that differ only in their seed, ordered by seed; empty for a single run."""

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the stored runs that the numbers come from."""
        return self.repetitions or (self.id,)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTable:
    """The samples of a run in one language, as columns of equal length. Columns without a known value may be empty."""

    run: RunInfo
    sample: tuple[str, ...]
    repo: tuple[str, ...]
    level: tuple[str, ...]
    """Level of each sample: ``single-line``, ``next-line``, ``statement`` or a CoderEval level."""
    status: tuple[Status, ...]
    metrics: Mapping[str, tuple[float | None, ...]]
    """Values of all samples, by metric, on the profile's scale; None for a sample without a score."""
    context_tokens: tuple[float | None, ...]
    calls: tuple[float | None, ...]
    seconds: tuple[float | None, ...]
    path: tuple[str, ...] = ()
    dated: tuple[str | None, ...] = ()
    """Date of each sample's code (``YYYY-MM-DD`` or None); empty if all are unknown."""
    mark: tuple[str, ...] = ()
    """Mark of each sample: ``broken``, ``vacuous`` or empty. The whole column is empty if no sample is invalid."""
    costs: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    """Costs of each sample, by the names in `COSTS`, `ENGINE_COSTS`, `SUMMARY_COSTS` and `ACCESS`; None if unknown."""
    outcomes: tuple[tuple[Status, ...], ...] = ()
    """Status of each sample in each pooled run; empty for a single run."""
    repeated: Mapping[str, tuple[tuple[float | None, ...], ...]] = field(default_factory=dict)
    """Values of each sample in each pooled run, by metric. `metrics` contains their means."""


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
"""Names of costs per sample: tokens, cached tokens, US dollars, and seconds of strategy, model and tests."""
ENGINE_COSTS = ("index_seconds", "query_seconds", "engine_calls", "places", "places_cut", "index_bytes")
"""Names of context engines' costs. An index counts for the sample that triggered its building."""
ACCESS = ("explored_recall", "explored_files")
"""What a strategy read for a sample: share (0 to 1) of the definitions that the reference uses, and number of files.
Never tested for significance."""
SUMMARY_COSTS = ("summary_calls", "summary_tokens_in", "summary_tokens_out", "summary_price")
"""Costs per sample of a separate summariser. `COSTS` exclude them."""
OFFLINE_COSTS = ("offline_calls", "offline_tokens_in", "offline_tokens_out", "offline_price")


class Measurement(StrEnum):
    """A measurement that a run may leave to `ctxbench rescore`. It does not affect the run's identity.

    Scores of the default profile are always computed.
    """

    GAIN = "gain"
    """Context gain: the bits by which the context lowers the cost of the reference."""
    DIAGNOSTICS = "diagnostics"
    """Diagnostics: the share of the needed code in the context, the unused share of the context, and invented names."""
    PROFILES = "profiles"
    """Scores of the published profiles, in addition to the default profile."""

    @property
    def remark(self) -> str:
        """The sentence that boards print until every sample has this measurement."""
        return (
            f"{_NAMES[self]} not measured for every sample, and not shown; "
            f"`ctxbench rescore --measure {self}` measures the rest without new completions."
        )


EVERY = frozenset(Measurement)
_NAMES = {
    Measurement.GAIN: "Context gain is",
    Measurement.DIAGNOSTICS: "Diagnostics are",
    Measurement.PROFILES: "Scores of published profiles are",
}
ALWAYS = "em"
"""Metric of the default profile that every sample with a known reference has."""
BITS = "bits"
"""Metric that every sample with a measured context gain has."""
GAINS = (GAIN, COPYABLE, BITS)
CHECKS = tuple(metric.name for metric in DIAGNOSTICS)


def left_out(remarks: Collection[str]) -> list[Measurement]:
    """Return the measurements that a run left out, recognized by its remarks."""
    return [measure for measure in Measurement if measure.remark in remarks]


def drop_incomplete_columns(
    columns: Mapping[str, Mapping[str, float | None]],
    scored: Collection[str],
    remarks: tuple[str, ...],
    *,
    profile: str,
) -> tuple[dict[str, Mapping[str, float | None]], tuple[str, ...]]:
    """Return the columns without incomplete measurements, and the remarks without those on complete measurements.

    Args:
        columns: values by metric and sample; None if undefined.
        scored: samples with scores under the default profile.
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
