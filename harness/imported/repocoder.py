"""RepoCoder's predictions: the task's line with ``choices``, each what follows the cursor, also of functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from ctxbench.bench.formats.checking import Strict, checked
from ctxbench.bench.formats.types import Row
from ctxbench.bench.types import Kind
from ctxbench.harness.imported.types import RecordedAnswer, RecordedSample

SHAPE = 'one object a line: {"metadata": {"task_id": "…"}, "choices": [{"text": "…"}]}'
KIND: Kind | None = None
TASKS = "repocoder"


class _Metadata(Strict):
    task_id: Annotated[str, Field(min_length=1)]


class _Choice(Strict):
    text: str


class _Prediction(Strict):
    metadata: _Metadata
    choices: Annotated[list[_Choice], Field(min_length=1)]


def read(rows: Iterable[Row]) -> list[RecordedSample]:
    """Read all records."""
    samples = []
    for where, record in rows:
        prediction = checked(_Prediction, record, where=where, cure=f"write {SHAPE}")
        answers = tuple(RecordedAnswer(text=choice.text, behind=True) for choice in prediction.choices)
        samples.append(RecordedSample(where=where, task=prediction.metadata.task_id, answers=answers))
    return samples
