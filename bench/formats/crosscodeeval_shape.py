"""One record of CrossCodeEval's shape: what it must hold, its contexts, and how it is written. Pure.

What the shape has no place for (a context's name, more contexts than one) goes under ``metadata.ctxbench``, which
other readers pass over; what a sample has no place for goes to the reference's fields and comes back on export.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from ctxbench.bench.formats.checking import Odd
from ctxbench.bench.types import Reference, Sample, Snippet, StoredContext

BENCHMARK = "crosscodeeval"
GRAPHS = {
    "definition": "crossfile_definition_by_dependency_graph",
    "reference": "crossfile_reference_by_dependency_graph",
}
"""The contexts of RepoFuse's dependency graphs, and their fields."""
_Line = Annotated[int, Field(ge=0)]
_Word = Annotated[str, Field(min_length=1)]


class _Loose(BaseModel):
    """A model that is strict about its own fields and keeps unknown ones."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)


class _Item(_Loose):
    retrieved_chunk: str
    filename: str
    score: Annotated[float, Field(allow_inf_nan=False)] | None = None


class _Context(_Loose):
    text: str | None = None
    items: list[_Item] | None = Field(None, alias="list")


class _Named(_Context):
    name: _Word


class _Extension(_Loose):
    context: str = ""
    stored: list[_Named] = []


class _Metadata(_Loose):
    task_id: _Word
    repository: _Word
    file: _Word
    context_start_lineno: _Line = 0
    groundtruth_start_lineno: _Line
    ctxbench: _Extension | None = None


_Maybe = Annotated[_Context | None, BeforeValidator(lambda value: value or None)]
"""The authors' program writes an empty text or object where it found nothing."""


class CrossCodeEvalRecord(_Loose):
    """A record as it stands in a file."""

    prompt: str
    groundtruth: str
    right_context: str | None = None
    metadata: _Metadata
    crossfile_context: _Maybe = None
    crossfile_definition_by_dependency_graph: _Maybe = None
    crossfile_reference_by_dependency_graph: _Maybe = None


def contexts_of(record: CrossCodeEvalRecord, file: str) -> tuple[StoredContext, ...]:
    """Return the contexts of a record, in the order of `ordered`; empty ones are none.

    Args:
        record: what was read.
        file: the name of a context that the record does not name itself.

    Raises:
        Odd: if two have one name.
    """
    contexts: dict[str, StoredContext] = {}
    for name, context in _named(record, file):
        if name in contexts:
            raise Odd("metadata.ctxbench", f"there are two contexts {name!r}")
        snippets = tuple(
            Snippet(
                path=item.filename, text=item.retrieved_chunk, score=item.score, name=_relation(item.model_extra or {})
            )
            for item in context.items or ()
        )
        # The benchmark's authors say in a name that a context was made with the answer.
        oracle = "oracle" in name.lower() or any(_reaches_past(snippet, record) for snippet in snippets)
        contexts[name] = StoredContext(name=name, text=context.text or "", snippets=snippets, oracle=oracle)
    return ordered(contexts.values())


def ordered(contexts: Iterable[StoredContext]) -> tuple[StoredContext, ...]:
    """Return retrieved contexts first, dependency graphs last, each in the order given."""
    last = {name: number for number, name in enumerate(GRAPHS, 1)}
    return tuple(sorted(contexts, key=lambda context: last.get(context.name, 0)))


def rest_of(record: CrossCodeEvalRecord, file: str) -> dict[str, Any]:
    """Return what a sample has no place for: unknown fields of the record, of its metadata and of its pieces."""
    pieces = {
        name: [dict(item.model_extra or {}) for item in context.items or ()] for name, context in _named(record, file)
    }
    return filled(
        {
            "record": dict(record.model_extra or {}),
            "metadata": dict(record.metadata.model_extra or {}),
            "pieces": {name: extras for name, extras in pieces.items() if any(extras)},
        }
    )


def filled(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts that hold something."""
    return {key: value for key, value in parts.items() if value}


def record_of(sample: Sample, reference: Reference) -> dict[str, Any]:
    """Return the record of a line sample, its first retrieved context as ``crossfile_context``."""
    fields = reference.fields if sample.benchmark == BENCHMARK else {}
    pieces = fields.get("pieces", {})
    contexts = {context.name: _context(context, pieces.get(context.name)) for context in sample.stored}
    graphs = {field: contexts.pop(name) for name, field in GRAPHS.items() if name in contexts}
    first, *others = contexts or [""]
    ours: dict[str, Any] = {"context": first} if first else {}
    ours |= {"stored": [{"name": name, **contexts[name]} for name in others]} if others else {}
    metadata = {
        "task_id": sample.id,
        "repository": sample.repo,
        "file": sample.path,
        "context_start_lineno": sample.context_start,
        "groundtruth_start_lineno": sample.cursor.line,
        **fields.get("metadata", {}),
    }
    return {
        "prompt": sample.prefix,
        "groundtruth": reference.target,
        **({} if sample.suffix is None else {"right_context": sample.suffix}),
        "metadata": metadata | ({"ctxbench": ours} if ours else {}),
        **({"crossfile_context": contexts[first]} if first else {}),
        **graphs,
        **fields.get("record", {}),
    }


def _named(record: CrossCodeEvalRecord, file: str) -> list[tuple[str, _Context]]:
    ours = record.metadata.ctxbench or _Extension()
    named = [
        (ours.context or file or "crossfile", record.crossfile_context),
        *((context.name, context) for context in ours.stored),
        *((name, getattr(record, field)) for name, field in GRAPHS.items()),
    ]
    return [(name, context) for name, context in named if context is not None and (context.text or context.items)]


def _reaches_past(piece: Snippet, record: CrossCodeEvalRecord) -> bool:
    """Return whether a piece is of the task's own file and not wholly before the cursor."""
    return piece.path == record.metadata.file and f"\n{_code(piece.text)}\n" not in f"\n{_code(record.prompt)}\n"


def _code(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


def _relation(extra: Mapping[str, Any]) -> str:
    """Return what a dependency graph says of a piece, e.g. ``function Calls``."""
    return " ".join(str(extra[key]) for key in ("node_type", "relation") if extra.get(key))


def _context(stored_context: StoredContext, extras: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    items = [
        {"retrieved_chunk": snippet.text, "filename": snippet.path, "score": snippet.score}
        for snippet in stored_context.snippets
    ]
    more = extras or [{}] * len(items)
    return {"text": stored_context.text, "list": [{**item, **extra} for item, extra in zip(items, more, strict=True)]}
