"""The plan of a run: its samples, and those still missing. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from itertools import chain, islice, zip_longest

from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import sha256
from ctxbench.bench.types import Sample


def choose(samples: Sequence[Sample], limit: int | None) -> tuple[Sample, ...]:
    """Return the samples of a run, in the order in which they are done.

    Under a limit they are taken from the repositories in turn, within a repository in an order that is as good as
    random and always the same: a smaller limit's samples are part of a larger one's. They are done in the set's order,
    one repository after the other, so that few indices are in memory at a time.

    Raises:
        InputFault: if the limit is less than 1.
    """
    if limit is not None and limit < 1:
        raise InputFault(f"a limit of {limit} samples leaves none", cure="give --limit 1 or more")
    if limit is None or limit >= len(samples):
        return tuple(samples)
    by_repo: dict[str, list[Sample]] = defaultdict(list)
    for sample in sorted(samples, key=lambda sample: sha256(sample.id)):
        by_repo[sample.repo].append(sample)
    turns = chain.from_iterable(zip_longest(*(by_repo[repo] for repo in sorted(by_repo))))
    ids = {sample.id for sample in islice((sample for sample in turns if sample is not None), limit)}
    return tuple(sample for sample in samples if sample.id in ids)


def missing(planned: Sequence[Sample], finished: Collection[str], failed: Collection[str] = ()) -> tuple[Sample, ...]:
    """Return the samples that have no result yet, in the plan's order.

    Args:
        planned: all samples of the run.
        finished: the ids of those that have a result.
        failed: ids of samples that come last, as they are likely to fail again.
    """
    finished_ids, failed_ids = frozenset(finished), frozenset(failed)
    unfinished = [sample for sample in planned if sample.id not in finished_ids]
    return tuple(sorted(unfinished, key=lambda sample: sample.id in failed_ids))
