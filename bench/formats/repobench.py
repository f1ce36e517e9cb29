"""RepoBench, v1.1 and v0: the next line of a file, with snippets of other files, but without repositories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from ctxbench.bench.checking import FieldError, Strict, checked, explained, inside, language_of
from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import plain_newlines
from ctxbench.bench.formats import BenchmarkFormat, Options, SampleFiles, Table, Task, Unusable, register
from ctxbench.bench.types import NEXT_LINE, Cursor, Kind, Reference, Sample, StoredContext, StoredSnippet

SHAPE = (
    "`repo_name`, `file_path`, `context` (list of `identifier`, `path`, `snippet`; v0 also text), `import_statement`, "
    "`cropped_code`, `all_code` (v0: `code`), `next_line`, `gold_snippet_index`, and optionally any other."
)
BENCHMARK = "repobench"
PIECES, IMPORTS, CROPPED, GOLD = "context", "import_statement", "cropped_code", "gold"
_CURE = "correct that record; `ctxbench samples import --help` describes the fields"
_Word = Annotated[str, Field(min_length=1)]


class _Piece(Strict):
    identifier: str = ""
    path: _Word
    snippet: str


class _Ours(Strict):
    id: _Word


class _Record(Strict):
    model_config = ConfigDict(strict=True, extra="allow", frozen=True)

    repo_name: _Word
    file_path: _Word
    context: list[_Piece] | str
    import_statement: str = ""
    cropped_code: str | None = None
    all_code: str | None = None
    code: str | None = None
    next_line: str
    gold_snippet_index: Annotated[int, Field(ge=-1)] = -1
    ctxbench: _Ours | None = None


def read(tables: Sequence[Table], options: Options) -> Iterator[Task | Unusable]:
    """Read files of either language. Ids consist of repository, file and line.

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
    text, field = _code(record)
    prefix = text if text.endswith("\n") or not text else f"{text}\n"
    path, line = inside("file_path", record.file_path), prefix.count("\n")
    inside("repo_name", record.repo_name)
    language = language_of(path)
    if language is None:
        raise FieldError("file_path", f"{path!r} is neither a Python nor a Java file")
    pieces = 0 if isinstance(record.context, str) else len(record.context)
    if record.gold_snippet_index >= pieces:
        what = f"is {record.gold_snippet_index}, but context has {pieces} pieces"
        raise FieldError("gold_snippet_index", what)
    name = f"{record.repo_name}/{path}#L{line + 1}"
    id_counts[name] += 1
    name = record.ctxbench.id if record.ctxbench else name if id_counts[name] == 1 else f"{name}:{id_counts[name]}"
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
    fields = {
        "gold_snippet_index": record.gold_snippet_index,
        "code": field,
        "ended": text == prefix,
        "record": dict(record.model_extra or {}),
    }
    return Task(sample, Reference(id=name, target=target, fields=fields), where)


def _code(record: _Record) -> tuple[str, str]:
    field = "code" if record.all_code is None else "all_code"
    text = record.all_code if record.all_code is not None else record.code
    if text is None:
        raise FieldError("all_code", "is missing (all_code, or code of v0)")
    return plain_newlines(text), field


def _contexts(record: _Record) -> tuple[StoredContext, ...]:
    cross_file = record.context
    text, listed = (cross_file, ()) if isinstance(cross_file, str) else ("", cross_file)
    pieces = tuple(StoredSnippet(path=piece.path, text=piece.snippet, name=piece.identifier) for piece in listed)
    contexts = [StoredContext(name=PIECES, text=text, snippets=pieces)]
    contexts.append(StoredContext(name=IMPORTS, text=record.import_statement))
    if record.cropped_code is not None:
        contexts.append(StoredContext(name=CROPPED, text=record.cropped_code))
    if record.gold_snippet_index >= 0:
        contexts.append(StoredContext(name=GOLD, snippets=(pieces[record.gold_snippet_index],), oracle=True))
    return tuple(contexts)


def records(samples: Iterable[Sample], references: Mapping[str, Reference]) -> Iterator[dict[str, Any]]:
    """Yield the records of RepoBench's samples.

    Raises:
        InputFault: if a sample is of another benchmark.
    """
    for sample in samples:
        if sample.benchmark != BENCHMARK:
            what = f"{sample.id} is of {sample.benchmark}: its samples have no pieces"
            raise InputFault(what, cure="choose another --format, e.g. ctxbench")
        reference = references[sample.id]
        fields, stored = reference.fields, {context.name: context for context in sample.stored}
        pieces = [
            {"identifier": piece.name, "path": piece.path, "snippet": piece.text} for piece in stored[PIECES].snippets
        ]
        yield {
            "repo_name": sample.repo,
            "file_path": sample.path,
            "context": stored[PIECES].text or pieces,
            "import_statement": stored[IMPORTS].text,
            **({"cropped_code": stored[CROPPED].text} if CROPPED in stored else {}),
            fields["code"]: sample.prefix if fields["ended"] else sample.prefix.removesuffix("\n"),
            "next_line": reference.target,
            "gold_snippet_index": fields["gold_snippet_index"],
            **fields["record"],
            "ctxbench": {"id": sample.id},
        }


register(BenchmarkFormat(name=BENCHMARK, samples=SampleFiles(shape=SHAPE, read=read, records=records)))
