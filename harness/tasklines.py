"""Samples as the tasks of a benchmark's own file, which files of predictions refer to. Pure."""

from __future__ import annotations

from typing import Any

from ctxbench.bench import formats
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Kind

SHAPES = ("crosscodeeval", "infercom", "projbench", "repocoder")
"""Shapes of predictions that refer to such tasks."""


def task_lines(shape: str, sample_set: SampleSet) -> dict[str, dict[str, Any]]:
    """Return sample id -> its task; ``metadata.task_id`` is the task's name.

    Args:
        shape: one of `SHAPES`.
        sample_set: the samples.

    Raises:
        InputFault: if the shape has no place for one of the samples.
    """
    records = formats.named(_tasks(shape, sample_set)).records(sample_set.samples, sample_set.references)
    return {sample.id: record for sample, record in zip(sample_set.samples, records, strict=True)}


def _tasks(shape: str, sample_set: SampleSet) -> str:
    """Return the shape of the tasks: RepoCoder's scorer reads RepoEval's and lines of ProjBench."""
    if shape == "crosscodeeval":
        return shape
    lines = all(sample.kind is Kind.LINE and sample.benchmark != "repoeval" for sample in sample_set.samples)
    return "projbench" if lines or shape != "repocoder" else "repoeval"
