"""The official ProjBench shape of one line task, in both of its known variants; pure conversions.

Variant one has ``col``, and masked imports are empty lines of the prompt. Variant two has ``col_no`` (-1
for next-line), and masked imports are missing from the prompt while ``line_no`` still counts them.
What the shape has no place for (several masked statements, what is used) goes under ``metadata.ctxbench``,
which other readers pass over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bench.errors import InputFault
from bench.languages.facts import Span
from bench.projbench.repository import blanked
from bench.types import NEXT_LINE, SINGLE_LINE, Cursor, Kind, Language, Reference, Sample, Use

BENCHMARK = "projbench"
_CURE = "mend that line; the shape is described under `ctxbench samples import --help`"
_Line = Annotated[int, Field(ge=0)]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class _UseRecord(_Strict):
    name: str
    module: str
    kind: str


class _Extension(_Strict):
    masked: list[Annotated[list[_Line], Field(min_length=2, max_length=2)]] = []
    uses: list[_UseRecord] = []


class _Metadata(_Strict):
    task_id: Annotated[str, Field(min_length=1)]
    task_type: str | None = None
    ground_truth: str
    fpath_tuple: Annotated[list[str], Field(min_length=2)]
    context_start_lineno: _Line = 0
    line_no: _Line
    col: Annotated[int, Field(ge=-1)] | None = None
    col_no: Annotated[int, Field(ge=-1)] | None = None
    dep: Any = None
    import_no: list[_Line] | None = None
    ctxbench: _Extension | None = None


class _Task(_Strict):
    prompt: str
    metadata: _Metadata


@dataclass(frozen=True, slots=True)
class Task:
    """One line of a ProjBench file: the sample as far as the file alone tells it, and its answer."""

    sample: Sample
    reference: Reference


def records(samples: Iterable[Sample], references: Mapping[str, Reference]) -> Iterator[dict[str, Any]]:
    """Yield the ProjBench records of line samples, numbered within each repository.

    Raises:
        InputFault: at a sample that is not a line sample.
    """
    numbers: dict[str, int] = {}
    for sample in samples:
        if sample.kind is not Kind.LINE:
            raise InputFault(f"{sample.id} is a {sample.kind} sample", cure="ProjBench has line samples only")
        number = numbers.get(sample.repo, 0)
        numbers[sample.repo] = number + 1
        single = sample.subkind == SINGLE_LINE
        metadata: dict[str, Any] = {
            "task_id": sample.id if sample.benchmark == BENCHMARK else f"{sample.repo}/{number}",
            "task_type": "sl" if single else "nl",
            "ground_truth": references[sample.id].target,
            "fpath_tuple": [sample.repo, *sample.path.split("/")],
            "context_start_lineno": sample.context_start,
            "line_no": sample.cursor.line,
            "col": sample.cursor.column,
            "dep": sample.uses[0].name if sample.uses else "",
        }
        if sample.masked:
            start, end = sample.masked[0]
            metadata["import_no"] = [start, end - 1]
        metadata["ctxbench"] = {
            "masked": [list(span) for span in sample.masked],
            "uses": [{"name": use.name, "module": use.module, "kind": use.kind} for use in sample.uses],
        }
        yield {"prompt": sample.prefix, "metadata": metadata}


def task(record: Mapping[str, Any], *, where: str) -> Task:
    """Read one record.

    Raises:
        InputFault: if a field is missing, of a wrong type, or at odds with another; it names the field.
    """
    try:
        parsed = _Task.model_validate(record)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        raise InputFault(f"field {name}: {first['msg'].lower()}", where=where, cure=_CURE) from None
    try:
        return _converted(parsed)
    except _Odd as odd:
        raise InputFault(f"field {odd.field}: {odd.what}", where=where, cure=_CURE) from None


class _Odd(Exception):
    """A field at odds with another."""

    def __init__(self, field: str, what: str) -> None:
        super().__init__(what)
        self.field, self.what = field, what


def _converted(parsed: _Task) -> Task:
    data = parsed.metadata
    repo, path, language = _place(data.fpath_tuple)
    target = data.ground_truth.rstrip()
    if not target:
        raise _Odd("metadata.ground_truth", "is empty")
    if "\n" in target or "\r" in target:
        raise _Odd("metadata.ground_truth", "has several lines")
    for field, text in (("prompt", parsed.prompt), ("metadata.ground_truth", target)):
        if not _is_unicode(text):
            raise _Odd(field, "holds half of a surrogate pair")
    subkind, column = _cursor(parsed)
    masked = _masked(data)
    uses = (
        tuple(Use(name=use.name, module=use.module, kind=use.kind) for use in data.ctxbench.uses)
        if data.ctxbench
        else ()
    )
    if not uses and isinstance(data.dep, str) and data.dep:
        uses = (Use(name=data.dep, module="", kind="unknown"),)
    sample = Sample(
        id=data.task_id,
        benchmark=BENCHMARK,
        language=language,
        kind=Kind.LINE,
        subkind=subkind,
        repo=repo,
        path=path,
        cursor=Cursor(line=data.line_no, column=column),
        masked=masked,
        prefix=_prefix(parsed, masked),
        uses=uses,
        context_start=data.context_start_lineno,
    )
    return Task(sample, Reference(id=data.task_id, target=target))


def _place(parts: list[str]) -> tuple[str, str, Language]:
    if any(part in ("", ".", "..") or "/" in part or "\\" in part for part in parts):
        raise _Odd("metadata.fpath_tuple", f"{parts} are not the parts of a path inside a repository")
    path = "/".join(parts[1:])
    for language in Language:
        if path.endswith(language.suffix):
            return parts[0], path, language
    raise _Odd("metadata.fpath_tuple", f"{parts[-1]!r} is neither a Python nor a Java file")


def _cursor(parsed: _Task) -> tuple[str, int]:
    """Return the subkind and the column; the prompt must end where the column says."""
    data = parsed.metadata
    field = "col" if data.col is not None else "col_no"
    column = data.col if data.col is not None else data.col_no
    if column is None:
        raise _Odd("metadata.col", "is missing (col or col_no)")
    partial = len(parsed.prompt.rpartition("\n")[2])
    if partial != max(column, 0):
        raise _Odd(f"metadata.{field}", f"is {column}, but the last line of prompt has {partial} characters")
    if column == -1 or (column == 0 and data.task_type != "sl"):
        return NEXT_LINE, 0
    return SINGLE_LINE, column


def _masked(data: _Metadata) -> tuple[Span, ...]:
    if data.import_no and (len(data.import_no) != 2 or data.import_no[0] > data.import_no[1]):
        raise _Odd("metadata.import_no", f"{data.import_no} is not [first line, last line]")
    spans = [(data.import_no[0], data.import_no[1] + 1)] if data.import_no else []
    if data.ctxbench is not None and data.ctxbench.masked:
        spans = [(start, end) for start, end in data.ctxbench.masked]
    for start, end in spans:
        if not start < end <= data.line_no:
            raise _Odd("metadata.import_no", f"lines {start} to {end - 1} are not before line_no {data.line_no}")
    return tuple(spans)


def _prefix(parsed: _Task, masked: tuple[Span, ...]) -> str:
    """Return the prompt with every masked line empty, whichever variant it is."""
    data = parsed.metadata
    start = data.context_start_lineno
    hidden = {line for span in masked for line in range(*span) if line >= start}
    lines = parsed.prompt.split("\n")
    wanted = data.line_no - start
    if len(lines) - 1 == wanted:
        return "\n".join("" if number in hidden else line for number, line in enumerate(lines, start))
    if len(lines) - 1 != wanted - len(hidden):
        raise _Odd("metadata.line_no", f"prompt has {len(lines) - 1} whole lines from line {start}, not {wanted}")
    shown = iter(lines)
    return "\n".join("" if number in hidden else next(shown) for number in range(start, data.line_no + 1))


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def in_repository(found: Task, text: str) -> Task | None:
    """Return the task with its prompt rebuilt from the whole file; None if the answer does not stand at its cursor."""
    sample, lines = found.sample, text.split("\n")
    line, column = sample.cursor.line, sample.cursor.column
    if line >= len(lines) or lines[line][column:].rstrip() != found.reference.target:
        return None
    visible = blanked(lines[:line], sample.masked)
    hidden = "\n".join("\n".join(lines[start:end]) for start, end in sample.masked)
    rebuilt = replace(
        sample,
        prefix="".join(f"{shown}\n" for shown in visible) + lines[line][:column],
        suffix="\n".join(lines[line + 1 :]),
        context_start=0,
    )
    return Task(rebuilt, replace(found.reference, original_import=hidden or None))
