"""RepoBench, v1.1 and v0: the next line of a file, with snippets of other files, but without repositories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import Field

from ctxbench.bench.checking import FieldError, Strict, checked, explained, inside, language_of
from ctxbench.bench.files import plain_newlines
from ctxbench.bench.formats import BenchmarkFormat, Options, SampleFiles, Table, Task, Unusable, register
from ctxbench.bench.types import NEXT_LINE, Cursor, Kind, Reference, Sample, StoredContext, StoredSnippet

SHAPE = (
    "`repo_name`, `file_path`, `context` (list of `identifier`, `path`, `snippet`; v0 also text), `import_statement`, "
    "`cropped_code`, `all_code` (v0: `code`), `next_line`, `gold_snippet_index`, and optionally any other field."
)
BENCHMARK = "repobench"
SNIPPETS, IMPORTS, CROPPED, GOLD = "context", "import_statement", "cropped_code", "gold"
_CURE = "correct that record; `ctxbench samples import --help` describes the fields"
_Word = Annotated[str, Field(min_length=1)]


class _Snippet(Strict):
    identifier: str = ""
    path: _Word
    snippet: str


class _Record(Strict):
    repo_name: _Word
    file_path: _Word
    context: list[_Snippet] | str
    import_statement: str = ""
    cropped_code: str | None = None
    all_code: str | None = None
    code: str | None = None
    next_line: str
    gold_snippet_index: Annotated[int, Field(ge=-1)] = -1


def read(tables: Sequence[Table], options: Options) -> Iterator[Task | Unusable]:
    """Read files of Python or Java tasks. A task's id consists of repository, file and line, and a number if it recurs.

    Raises:
        InputFault: if a field is missing, of a wrong type, or contradicts another.
    """
    del options
    id_counts: Counter[str] = Counter()
    for table in tables:
        for where, row in table.rows:
            record = checked(_Record, row, where=where, cure=_CURE)
            with explained(where, _CURE):
                task = _task(record, id_counts, where)
            yield task


def _task(record: _Record, id_counts: Counter[str], where: str) -> Task | Unusable:
    text = _code(record)
    prefix = text if text.endswith("\n") or not text else f"{text}\n"
    path, line = inside("file_path", record.file_path), prefix.count("\n")
    inside("repo_name", record.repo_name)
    language = language_of(path)
    if language is None:
        raise FieldError("file_path", f"{path!r} is neither a Python nor a Java file")
    snippets = 0 if isinstance(record.context, str) else len(record.context)
    if record.gold_snippet_index >= snippets:
        what = f"is {record.gold_snippet_index}, but context has {snippets} snippets"
        raise FieldError("gold_snippet_index", what)
    name = f"{record.repo_name}/{path}#L{line + 1}"
    id_counts[name] += 1
    name = name if id_counts[name] == 1 else f"{name}:{id_counts[name]}"
    target = record.next_line.rstrip()
    if not target:
        return Unusable(id=name, reason="empty_target", where=where)
    if "\n" in target or "\r" in target:
        raise FieldError("next_line", "has several lines")
    sample = Sample(
        id=name,
        benchmark=BENCHMARK,
        language=language,
        kind=Kind.LINE,
        subkind=NEXT_LINE,
        repo=record.repo_name,
        path=path,
        cursor=Cursor(line=line, column=0),
        prefix=prefix,
        stored=_contexts(record),
    )
    return Task(sample, Reference(id=name, target=target), where)


def _code(record: _Record) -> str:
    text = record.all_code if record.all_code is not None else record.code
    if text is None:
        raise FieldError("all_code", "is missing (all_code, or code in v0)")
    return plain_newlines(text)


def _contexts(record: _Record) -> tuple[StoredContext, ...]:
    cross_file = record.context
    text, listed = (cross_file, ()) if isinstance(cross_file, str) else ("", cross_file)
    snippets = tuple(StoredSnippet(path=row.path, text=row.snippet, name=row.identifier) for row in listed)
    contexts = [StoredContext(name=SNIPPETS, text=text, snippets=snippets)]
    contexts.append(StoredContext(name=IMPORTS, text=record.import_statement))
    if record.cropped_code is not None:
        contexts.append(StoredContext(name=CROPPED, text=record.cropped_code))
    if record.gold_snippet_index >= 0:
        contexts.append(StoredContext(name=GOLD, snippets=(snippets[record.gold_snippet_index],), oracle=True))
    return tuple(contexts)


register(BenchmarkFormat(name=BENCHMARK, samples=SampleFiles(shape=SHAPE, read=read)))
