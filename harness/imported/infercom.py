"""InferCom's predictions: the task's line with ``pred_res``, what the model wrote, and ``choices``, a line of it.

`pred_res` is taken: it is what a run of ours stores, and the profile `infercom` cuts it as its authors did. Tasks
whose prompt has more than 8000 tokens are not in such files.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from ctxbench.bench.formats.checking import Strict, checked
from ctxbench.bench.formats.types import Row
from ctxbench.bench.types import Kind
from ctxbench.harness.imported.types import RecordedAnswer, RecordedSample

SHAPE = 'one object a line: {"metadata": {"task_id": "…"}, "pred_res": "…"}'
KIND: Kind | None = Kind.LINE
TASKS = "infercom"


class _Metadata(Strict):
    task_id: Annotated[str, Field(min_length=1)]


class _Prediction(Strict):
    metadata: _Metadata
    pred_res: str


def first_line(text: str) -> str:
    """Return the first line that is not blank, stripped; empty if there is none: what ``choices`` holds."""
    return next((line.strip() for line in text.split("\n") if line.strip()), "")


def read(rows: Iterable[Row]) -> list[RecordedSample]:
    """Read all records."""
    samples = []
    for where, record in rows:
        prediction = checked(_Prediction, record, where=where, cure=f"write {SHAPE}")
        samples.append(
            RecordedSample(
                where=where, task=prediction.metadata.task_id, answers=(RecordedAnswer(text=prediction.pred_res),)
            )
        )
    return samples
