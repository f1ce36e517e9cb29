"""ctxbench's own format: a whole set in one file, without the environment of its tests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from ctxbench.bench import records as own
from ctxbench.bench.checking import FieldError, Own, checked, explained, inside, language_of
from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import sha256
from ctxbench.bench.formats import (
    BenchmarkFormat,
    Options,
    PredictionFiles,
    RecordedAnswer,
    RecordedSample,
    Row,
    SampleFiles,
    Table,
    Task,
    Unusable,
    register,
)
from ctxbench.bench.judging.types import MOST_FLAGS, Verdict, short
from ctxbench.bench.types import Kind, Reference, Sample

SHAPE = "The output of `samples export --format ctxbench`: a sample's fields, and its answer's fields in `reference`."
_CURE = "correct that record, or export the set again"
_PREDICTION_SHAPE = (
    'one object per line: {"sample": "…", "text": "…"}, and optionally index (a whole number), strategy, generator, '
    "verdict (PASSED, FAILED, TIMED_OUT, NO_TESTS), reason and flags"
)
_PREDICTION_CURE = f"write {_PREDICTION_SHAPE}"


def read(tables: Sequence[Table], options: Options) -> Iterator[Task | Unusable]:
    """Read files that `records` wrote.

    Raises:
        InputFault: if a field is missing, unknown, of a wrong type, or contradicts another.
    """
    del options
    for table in tables:
        for where, row in table.rows:
            record = dict(row)
            answer = record.pop("reference", None)
            if not isinstance(answer, dict):
                raise InputFault("field reference is missing, or not an object", where=where, cure=_CURE)
            sample = own.checked(Sample, record, where, _CURE)
            reference = own.checked(Reference, answer, where, _CURE, "reference.")
            with explained(where, _CURE):
                _check(sample, reference)
            yield Task(sample, reference, where)


def _check(sample: Sample, reference: Reference) -> None:
    inside("path", sample.path)
    inside("repo", sample.repo)
    if language_of(sample.path) is not sample.language:
        raise FieldError("path", f"{sample.path!r} is not a {sample.language} file")
    if not sample.id or reference.id != sample.id:
        raise FieldError("reference.id", f"is {reference.id!r}, but the sample's id is {sample.id!r}")
    if not reference.target.strip() and not reference.fields.get("no_reference"):
        raise FieldError("reference.target", "is empty")
    # The prefix is the whole file up to the cursor, or the benchmark's stored prompt.
    lines = sample.prefix.split("\n")
    if sample.kind is Kind.LINE and (
        sample.first_line not in (0, sample.context_start) or sample.cursor.column != len(lines[-1])
    ):
        at = f"{sample.cursor.line}:{sample.cursor.column}"
        raise FieldError("cursor.line", f"the cursor is {at}, but prefix ends elsewhere in the file")


def in_repository(task: Task, text: str) -> Task | None:
    """Return the task if its answer is at the recorded place in the file; otherwise None."""
    sample, target, lines = task.sample, task.reference.target, text.split("\n")
    if sample.span is not None:
        start, end = sample.span
        return task if sample.language.miner().lift(lines[start:end]).rstrip("\n") == target else None
    if sample.cursor.line >= len(lines):
        return None
    rest = "\n".join(lines[sample.cursor.line :])[sample.cursor.column :]
    return task if rest.startswith(target) else None


def records(samples: Iterable[Sample], references: Mapping[str, Reference]) -> Iterator[dict[str, Any]]:
    """Yield the complete records of samples, with their references."""
    for sample in samples:
        yield {**own.from_sample(sample), "reference": own.from_reference(references[sample.id])}


class CompletionRecord(Own):
    """A line of a completions file."""

    sample: Annotated[str, Field(min_length=1)]
    text: str
    index: Annotated[int, Field(ge=0)] | None = None
    strategy: str = ""
    generator: str = ""
    verdict: Verdict | None = Field(default=None, strict=False)
    reason: str = ""
    flags: Annotated[tuple[str, ...], Field(strict=False)] = ()


def completions(rows: Iterable[Row]) -> Iterator[tuple[str, CompletionRecord, int]]:
    """Yield (location, completion, index). Indices are per sample, strategy and generator.

    Raises:
        InputFault: if a record is malformed, an index is repeated, or a record without an index repeats a text,
            perhaps by mistake.
    """
    places: dict[tuple[str, str, str], dict[int, str]] = defaultdict(dict)
    texts: dict[tuple[str, str, str, str], str] = {}
    for where, record in rows:
        completion = checked(CompletionRecord, record, where=where, cure=_PREDICTION_CURE)
        key = (completion.sample, completion.strategy, completion.generator)
        index = len(places[key]) if completion.index is None else completion.index
        with explained(where, f"{_PREDICTION_CURE}; a text may occur twice if both records have an index"):
            if index in places[key]:
                raise FieldError("index", f"{index} of {completion.sample!r} is also at {places[key][index]}")
            first = texts.setdefault((*key, sha256(completion.text)), where)
            if completion.index is None and first != where:
                raise FieldError("text", f"{completion.sample!r} has the same text at {first}")
        places[key][index] = where
        yield where, completion, index


def _read_predictions(rows: Iterable[Row]) -> list[RecordedSample]:
    wheres: dict[tuple[str, str, str], str] = {}
    grouped: dict[tuple[str, str, str], dict[int, RecordedAnswer]] = defaultdict(dict)
    for where, completion, index in completions(rows):
        with explained(where, _PREDICTION_CURE):
            if completion.verdict is Verdict.BROKEN:
                raise FieldError("verdict", "BROKEN means that the machine failed; leave the record out")
            if len(completion.flags) > MOST_FLAGS or any(flag != short(flag) for flag in completion.flags):
                raise FieldError(
                    "flags", f"there are more than {MOST_FLAGS} flags, or a flag is too long or contains line ends"
                )
        key = (completion.sample, completion.strategy, completion.generator)
        grouped[key][index] = RecordedAnswer(
            text=completion.text,
            verdict=completion.verdict,
            reason=" ".join(completion.reason.split()),
            reached=completion.flags,
        )
        wheres.setdefault(key, where)
    recorded = []
    for key, by_index in grouped.items():
        task, strategy, generator = key
        answers = tuple(answer for _, answer in sorted(by_index.items()))
        if sorted(by_index) != list(range(len(by_index))):
            raise InputFault(
                f"field index: the indices of {task!r} are {', '.join(map(str, sorted(by_index)))}",
                where=wheres[key],
                cure="number the completions of a sample from 0 on, or leave index out",
            )
        recorded.append(
            RecordedSample(where=wheres[key], task=task, answers=answers, strategy=strategy, generator=generator)
        )
    return recorded


def _write_predictions(sample: RecordedSample, _: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    labels = {"strategy": sample.strategy, "generator": sample.generator}
    for index, answer in enumerate(sample.answers):
        judged: dict[str, Any] = {}
        if answer.verdict is not None:
            judged = {"verdict": str(answer.verdict), "reason": answer.reason}
        judged |= {"flags": list(answer.reached)} if answer.reached else {}
        yield {"sample": sample.task, "index": index, "text": answer.text, **labels, **judged}


register(
    BenchmarkFormat(
        name="ctxbench",
        samples=SampleFiles(shape=SHAPE, read=read, records=records, in_repository=in_repository),
        predictions=PredictionFiles(shape=_PREDICTION_SHAPE, read=_read_predictions, write=_write_predictions),
    )
)
