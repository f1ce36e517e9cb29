"""Samples and references as JSON records, with a fixed key order and strict validation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import read_jsonl
from ctxbench.bench.types import Reference, Sample, StoredContext

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_CURE = "correct that line, or build the set again with --force"
R = TypeVar("R", Sample, Reference)


def from_sample(sample: Sample) -> dict[str, Any]:
    """Return a sample as a JSON record. Line samples lack the fields of functions."""
    record: dict[str, Any] = {
        "id": sample.id,
        "benchmark": sample.benchmark,
        "language": sample.language,
        "kind": sample.kind.value,
        "subkind": sample.subkind,
        "repo": sample.repo,
        "path": sample.path,
        "cursor": {"line": sample.cursor.line, "column": sample.cursor.column},
        "masked": [list(span) for span in sample.masked],
        "prefix": sample.prefix,
        "suffix": sample.suffix,
        "uses": [{"name": use.name, "module": use.module, "kind": use.kind} for use in sample.uses],
        "context_start": sample.context_start,
    }
    function = {
        "name": sample.name,
        "signature": sample.signature,
        "docstring": sample.docstring,
        "span": None if sample.span is None else list(sample.span),
        "hidden": list(sample.hidden) or None,
    }
    record |= {key: value for key, value in function.items() if value is not None}
    record |= {} if sample.dated is None else {"dated": sample.dated.isoformat()}
    return record | ({"stored": [_stored(context) for context in sample.stored]} if sample.stored else {})


def _stored(context: StoredContext) -> dict[str, Any]:
    snippets = [
        {"path": snippet.path, "text": snippet.text, "score": snippet.score, "name": snippet.name}
        for snippet in context.snippets
    ]
    return {"name": context.name, "text": context.text, "snippets": snippets, "oracle": context.oracle}


def from_reference(reference: Reference) -> dict[str, Any]:
    """Return a reference as a JSON record."""
    record: dict[str, Any] = {
        "id": reference.id,
        "target": reference.target,
        "tests": list(reference.tests),
        "original_import": reference.original_import,
    }
    record |= {"clocks": list(reference.clocks)} if reference.clocks else {}
    return record | ({"fields": dict(reference.fields)} if reference.fields else {})


def read_samples(path: Path) -> Iterator[Sample]:
    """Yield the samples in a ``samples.jsonl`` file, in order.

    Raises:
        InputFault: if the file cannot be read, or a record is invalid or repeats an id (the message names the line).
    """
    return _read(Sample, path)


def read_references(path: Path) -> Iterator[Reference]:
    """Yield the references in a ``references.jsonl`` file, in order.

    Raises:
        InputFault: if the file cannot be read, or a record is invalid or repeats an id (the message names the line).
    """
    return _read(Reference, path)


def _read(kind: type[R], path: Path) -> Iterator[R]:
    first_lines: dict[str, int] = {}
    for number, record in read_jsonl(path):
        where = f"{path}:{number}"
        item = checked(kind, record, where, _CURE)
        if item.id in first_lines:
            raise InputFault(f"the id {item.id!r} is also on line {first_lines[item.id]}", where=where, cure=_CURE)
        first_lines[item.id] = number
        yield item


def checked(kind: type[R], record: dict[str, Any], where: str, cure: str, outer: str = "") -> R:
    """Convert a record to a sample or reference.

    Args:
        outer: text before field names in messages.

    Raises:
        InputFault: if a field is unknown, missing, of a wrong type or out of range.
    """
    from pydantic import ValidationError  # noqa: PLC0415 - only where something is read

    unknown = sorted(record.keys() - {item.name for item in fields(kind)})
    if unknown:
        raise InputFault(f"field {outer}{unknown[0]} is not known", where=where, cure=cure)
    try:
        # JSON mode with strict checks: lists become tuples and words become enums, but "3" is not a number.
        item: R = _adapters()[kind.__name__].validate_json(json.dumps(record), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        name = ".".join(map(str, first["loc"])) or "text"
        raise InputFault(f"field {outer}{name}: {first['msg'].lower()}", where=where, cure=cure) from None
    fault = _out_of_range(item) if isinstance(item, Sample) else ""
    if fault:
        raise InputFault(f"field {outer}{fault}", where=where, cure=cure)
    return item


def _out_of_range(sample: Sample) -> str:
    if sample.path.startswith("/") or ".." in sample.path.split("/") or "\\" in sample.path:
        return f"path: {sample.path!r} is not a path inside the repository"
    if sample.cursor.line < 0 or sample.cursor.column < 0 or sample.context_start < 0:
        return "cursor: lines and columns start at 0"
    if any(not 0 <= start < end for start, end in sample.masked):
        return "masked: a span is [start, end) with start < end"
    return ""


@cache
def _adapters() -> dict[str, TypeAdapter[Any]]:
    from pydantic import TypeAdapter  # noqa: PLC0415 - only where something is read

    return {kind.__name__: TypeAdapter(kind) for kind in (Sample, Reference)}
