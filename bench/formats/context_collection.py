"""The Context Collection Competition of 2025: code that a commit wrote between a prefix and a suffix.

Each stage of the competition has a file of completion points (``python-public.jsonl``) and a file of answers
(``answers-python-public.jsonl``) with records in the same order. The repositories are from before the commit, so they
contain no answer. A completion point's file may be missing or older in them, so views show the prefix as recorded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

from pydantic import Field

from ctxbench.bench.checking import Strict, checked, explained, inside, language_of
from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import plain_newlines
from ctxbench.bench.formats import BenchmarkFormat, Options, Row, SampleFiles, Table, Task, Unusable, register
from ctxbench.bench.formats.crosscodeeval import STATEMENT
from ctxbench.bench.types import VERSION_MARK, Cursor, Kind, Reference, Sample

SHAPE = (
    "`repo`, `revision`, `path`, `prefix`, `suffix`, and optionally any other field (`id`, `modified`, …); the "
    "file `answers-LANGUAGE-STAGE.jsonl` beside `LANGUAGE-STAGE.jsonl` contains `middle`, in the same order."
)
BENCHMARK = "context_collection"
_ANSWERS = "answers-"
_CURE = "correct that record; `ctxbench samples import --help` describes the fields"
_Word = Annotated[str, Field(min_length=1)]


class _Point(Strict):
    repo: _Word
    revision: _Word
    path: _Word
    prefix: str
    suffix: str
    id: _Word | None = None
    middle: str | None = None


class _Answer(Strict):
    middle: str
    id: _Word | None = None


def read(tables: Sequence[Table], options: Options) -> Iterator[Task | Unusable]:
    """Read files of completion points with their files of answers, and yield the tasks.

    Raises:
        InputFault: if a field is missing or invalid, or the two files of a stage do not match.
    """
    del options
    answers = {table.name: table for table in tables if table.name.startswith(_ANSWERS)}
    points = [table for table in tables if table.name not in answers]
    id_counts: Counter[str] = Counter()
    for table in points:
        middles = _middles(answers.pop(f"{_ANSWERS}{table.name}", None))
        for where, row in table.rows:
            point = checked(_Point, row, where=where, cure=_CURE)
            middle = _middle(point, middles, f"{_ANSWERS}{table.name}.jsonl", where)
            with explained(where, _CURE):
                task = _task(point, middle, id_counts, where)
            yield task
        if middles is not None and (left := next(middles, None)) is not None:
            raise InputFault(
                f"the file has more answers than {table.name} has records",
                where=left[0],
                cure="use both complete files",
            )
    if answers:
        name, table = next(iter(answers.items()))
        cure = f"give {name.removeprefix(_ANSWERS)}.jsonl too"
        raise InputFault("the completion points of these answers were not given", where=table.source, cure=cure)


def _middles(table: Table | None) -> Iterator[Row] | None:
    return None if table is None else iter(table.rows)


def _middle(point: _Point, middles: Iterator[Row] | None, file: str, where: str) -> str:
    if middles is None and point.middle is not None:
        return point.middle
    place, row = next(middles or iter(()), ("", None))
    if row is None:
        raise InputFault("field middle is missing", where=where, cure=f"give {file} too, with as many records")
    answer = checked(_Answer, row, where=place, cure=_CURE)
    if point.id is not None and answer.id not in (None, point.id):
        what = f"field id is {point.id!r}, but the answer in its place ({place}) belongs to {answer.id!r}"
        raise InputFault(what, where=where, cure="use both files as they were published")
    return answer.middle


def _task(point: _Point, middle: str, id_counts: Counter[str], where: str) -> Task | Unusable:
    prefix, middle, suffix = (plain_newlines(text) for text in (point.prefix, middle, point.suffix))
    line = prefix.count("\n")
    name = point.id or f"{point.repo}{VERSION_MARK}{point.revision[:12]}/{point.path}#L{line + 1}"
    id_counts[name] += 1
    # Number further points on the same line of a commit. Ids from the files must be unique already.
    name = name if point.id or id_counts[name] == 1 else f"{name}:{id_counts[name]}"
    language = language_of(inside("path", point.path))
    if language is None:
        return Unusable(id=name, reason="unsupported_language", where=where, detail=point.path)
    if not middle.strip():
        return Unusable(id=name, reason="empty_target", where=where)
    sample = Sample(
        id=name,
        benchmark=BENCHMARK,
        language=language,
        kind=Kind.LINE,
        subkind=STATEMENT,
        repo=f"{inside('repo', point.repo).replace('/', '__')}{VERSION_MARK}{inside('revision', point.revision)}",
        path=point.path,
        cursor=Cursor(line=line, column=len(prefix.rpartition("\n")[2])),
        prefix=prefix,
        suffix=suffix,
    )
    return Task(sample, Reference(id=name, target=middle), where)


def in_snapshot(task: Task, texts: Mapping[str, str]) -> Task:
    """Return the task as recorded. Its repository is older than its answer, so nothing can be compared."""
    del texts
    return task


def remarks(tasks: Sequence[Task]) -> Sequence[str]:
    """Return one sentence: how many answers have several lines, and how the competition scored."""
    several = sum("\n" in task.reference.target for task in tasks)
    return (
        f"{several} of {len(tasks)} answers span several lines; the competition compared whole completions by chrF "
        "(--profile context_collection) and showed the text after the cursor (--fim)",
    )


register(
    BenchmarkFormat(
        name=BENCHMARK,
        samples=SampleFiles(shape=SHAPE, read=read, in_snapshot=in_snapshot, remarks=remarks),
    )
)
