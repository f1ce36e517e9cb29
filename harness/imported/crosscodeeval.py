"""CrossCodeEval's predictions: a line a task, with the text that follows the cursor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from ctxbench.bench.formats.checking import Strict, checked
from ctxbench.bench.formats.types import Row
from ctxbench.bench.types import Kind
from ctxbench.harness.imported.types import RecordedAnswer, RecordedSample

SHAPE = 'one object a line: {"task_id": "…", "pred": "…"}'
KIND: Kind | None = Kind.LINE
TASKS = "crosscodeeval"


class _Prediction(Strict):
    task_id: Annotated[str, Field(min_length=1)]
    pred: str


def read(rows: Iterable[Row]) -> list[RecordedSample]:
    """Read all records."""
    samples = []
    for where, record in rows:
        prediction = checked(_Prediction, record, where=where, cure=f"write {SHAPE}")
        samples.append(
            RecordedSample(where=where, task=prediction.task_id, answers=(RecordedAnswer(text=prediction.pred),))
        )
    return samples
