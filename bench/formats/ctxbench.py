"""Our own shape of a whole set in one file: each sample's record, with its reference's under ``reference``.

It carries everything but the environment that a set's tests need, so function samples that were exported come
back without one: to hand such a set on, copy its folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ctxbench.bench import records as own
from ctxbench.bench.errors import InputFault
from ctxbench.bench.formats.checking import Odd, explained, inside, language_of
from ctxbench.bench.formats.types import Options, Table, Task, Unusable
from ctxbench.bench.types import Kind, Reference, Sample

SHAPE = (
    "What `samples export --format ctxbench` writes: the fields of a sample, and `reference` with those of its answer."
)
_CURE = "mend that record, or export it again"


def read(tables: Sequence[Table], options: Options) -> Iterator[Task | Unusable]:
    """Read files that `records` wrote; every record is a task.

    Raises:
        InputFault: if a field is missing, unknown, of a wrong type, or at odds with another.
    """
    del options
    for table in tables:
        for where, row in table.rows:
            record = dict(row)
            answer = record.pop("reference", None)
            if not isinstance(answer, dict):
                raise InputFault("field reference is missing, or no object", where=where, cure=_CURE)
            with explained(where, _CURE):
                sample: Sample = _checked(Sample, record, "")
                reference: Reference = _checked(Reference, answer, "reference.")
                _check(sample, reference)
            yield Task(sample, reference, where)


def _checked(kind: type[Any], record: Mapping[str, Any], outer: str) -> Any:
    unknown = sorted(record.keys() - {item.name for item in fields(kind)})
    if unknown:
        raise Odd(f"{outer}{unknown[0]}", "is not known")
    try:
        # Strict JSON mode: lists become tuples and words enums, but "3" is no number.
        return _adapters()[kind.__name__].validate_json(json.dumps(record), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        raise Odd(outer + ".".join(map(str, first["loc"])), first["msg"].lower()) from None


@cache
def _adapters() -> dict[str, TypeAdapter[Any]]:
    return {kind.__name__: TypeAdapter(kind) for kind in (Sample, Reference)}


def _check(sample: Sample, reference: Reference) -> None:
    inside("path", sample.path)
    inside("repo", sample.repo)
    if language_of(sample.path) is not sample.language:
        raise Odd("path", f"{sample.path!r} is no {sample.language} file")
    if not sample.id or reference.id != sample.id:
        raise Odd("reference.id", f"is {reference.id!r}, the sample's is {sample.id!r}")
    if not reference.target.strip() and not reference.fields.get("no_reference"):
        raise Odd("reference.target", "is empty")
    if sample.cursor.column < 0 or sample.context_start < 0:
        raise Odd("cursor", "lines and columns start at 0")
    # The last line of the prompt is the cursor's, and a stored prompt may begin late.
    lines = sample.prefix.split("\n")
    if sample.kind is Kind.LINE and (
        sample.cursor.line - sample.context_start != len(lines) - 1 or sample.cursor.column != len(lines[-1])
    ):
        at = f"{sample.cursor.line}:{sample.cursor.column}"
        raise Odd("cursor.line", f"the cursor is {at}, but prefix ends at another place of the file")
    if any(not 0 <= start < end for start, end in sample.masked):
        raise Odd("masked", "a span is [start, end) with start < end")


def in_repository(task: Task, text: str) -> Task | None:
    """Return the task if its answer stands at its place in the whole file, else None."""
    sample, target, lines = task.sample, task.reference.target, text.split("\n")
    if sample.span is not None:
        start, end = sample.span
        return task if sample.language.miner().lift(lines[start:end]).rstrip("\n") == target else None
    if sample.cursor.line >= len(lines):
        return None
    behind = "\n".join(lines[sample.cursor.line :])[sample.cursor.column :]
    return task if behind.startswith(target) else None


def records(samples: Iterable[Sample], references: Mapping[str, Reference]) -> Iterator[dict[str, Any]]:
    """Yield the records of samples of any kind, nothing left out."""
    for sample in samples:
        yield {**own.from_sample(sample), "reference": own.from_reference(references[sample.id])}
