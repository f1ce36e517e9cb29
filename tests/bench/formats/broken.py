"""Broken files of any shape: one good record in, a file with each kind of fault out, and what its refusal must say."""

import copy
import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench import languages
from ctxbench.bench import samples as sets
from ctxbench.bench.errors import InputFault
from ctxbench.bench.formats import Options
from ctxbench.bench.formats.importing import import_set
from ctxbench.bench.home import Home
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.python import PYTHON


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A good record of a format, and where in it things stand: dotted names, of a list of parts the last one counts."""

    format: str
    record: Mapping[str, Any]
    id: str
    target: str
    prompt: str
    path: str
    line: str
    """The number that says where the cursor is."""
    key: str = ""
    """For one JSON document: the key of its list."""
    language: Language = PYTHON
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Kind -> what its refusal says, where that is not what is usual."""
    skip: frozenset[str] = frozenset()
    """Kinds that this format cannot have."""

    @property
    def kinds(self) -> list[str]:
        """The kinds of broken file that a test goes through; ten at least."""
        kinds = [kind for kind in KINDS if kind not in self.skip]
        assert len(kinds) >= 10
        return kinds

    @property
    def name(self) -> str:
        """The name of its file."""
        return "tasks.json" if self.key else "tasks.jsonl"

    def text(self, *records: Mapping[str, Any]) -> str:
        """Return the text of a file with such records."""
        if self.key:
            return json.dumps({self.key: list(records)}, indent=1)
        return "".join(json.dumps(record) + "\n" for record in records)

    def changed(self, name: str, value: object) -> dict[str, Any]:
        """Return the record with another value in a field; None takes the field out."""
        made = copy.deepcopy(dict(self.record))
        inner: Any = made
        *outer, last = name.split(".")
        for part in outer:
            inner = inner[part]
        if value is None:
            del inner[last]
        elif isinstance(inner[last], list) and isinstance(value, str):
            inner[last] = [*inner[last][:-1], value]
        elif isinstance(inner[last], str) and isinstance(value, int):
            inner[last] = str(value)
        else:
            inner[last] = value
        return made


def _write(shape: Shape, folder: Path, *records: Mapping[str, Any]) -> Path:
    path = folder / shape.name
    path.write_text(shape.text(*records), encoding="utf-8")
    return path


def _bytes(shape: Shape, folder: Path, data: bytes, ending: str = "") -> Path:
    path = folder / f"{shape.name}{ending}"
    path.write_bytes(data)
    return path


def _good(shape: Shape) -> bytes:
    return shape.text(shape.record).encode()


def _in_prompt(shape: Shape, mark: bytes) -> bytes:
    value: Any = shape.record
    for part in shape.prompt.split("."):
        value = value[part]
    start = json.dumps(value).encode()[:8]
    return _good(shape).replace(start, start + mark, 1)


KINDS = {
    "cut json": lambda s, d: _bytes(s, d, _good(s)[: len(_good(s)) // 2]),
    "not an object": lambda s, d: _bytes(s, d, b'{"%s": [[1, 2]]}' % s.key.encode() if s.key else b"[1, 2]\n"),
    "empty file": lambda s, d: _bytes(s, d, b""),
    "not utf-8": lambda s, d: _bytes(s, d, _in_prompt(s, b"\xff")),
    "nul byte": lambda s, d: _bytes(s, d, _in_prompt(s, b"\0")),
    "cut gzip": lambda s, d: _bytes(s, d, gzip.compress(_good(s))[:-9], ".gz"),
    "no gzip": lambda s, d: _bytes(s, d, _good(s), ".gz"),
    "half a surrogate pair": lambda s, d: _write(s, d, s.changed(s.prompt, "x\ud800")),
    "nul character": lambda s, d: _write(s, d, s.changed(s.prompt, "x\0")),
    "no target": lambda s, d: _write(s, d, s.changed(s.target, None)),
    "no id": lambda s, d: _write(s, d, s.changed(s.id, None)),
    "prompt of a wrong type": lambda s, d: _write(s, d, s.changed(s.prompt, [7])),
    "target of a wrong type": lambda s, d: _write(s, d, s.changed(s.target, {"a": 1})),
    "empty target": lambda s, d: _write(s, d, s.changed(s.target, "  \n")),
    "double id": lambda s, d: _write(s, d, s.record, s.record),
    "path out of the repository": lambda s, d: _write(s, d, s.changed(s.path, "../secret.py")),
    "path of another language": lambda s, d: _write(s, d, s.changed(s.path, "main.rs")),
    "cursor at odds with the prompt": lambda s, d: _write(s, d, s.changed(s.line, 100_000)),
    "wrong language": lambda s, d: _write(s, d, s.record),
}
"""Kind of fault -> what writes such a file of a shape into a folder, and returns its path."""


def _usual(shape: Shape, kind: str, path: Path) -> tuple[str, ...]:
    first = f"{path}: {shape.key}[0]" if shape.key else f"{path}:1"
    last = {name: getattr(shape, name).rpartition(".")[2] for name in ("id", "target", "prompt", "path", "line")}
    return {
        "cut json": (f"{path}:", "not complete JSON", "cut off"),
        "not an object": (first, "not a JSON object"),
        "empty file": (str(path), "no task in the file"),
        "not utf-8": (f"{path}:", "is not UTF-8", "byte"),
        "nul byte": (f"{path}:", "NUL", "byte"),
        "cut gzip": (str(path), "gzip", "fetch"),
        "no gzip": (str(path), "gzip", "fetch"),
        "half a surrogate pair": (first, f"field {shape.prompt}", "surrogate"),
        "nul character": (first, f"field {shape.prompt}", "NUL"),
        "no target": (first, f"field {shape.target}"),
        "no id": (first, f"field {shape.id}"),
        "prompt of a wrong type": (first, f"field {shape.prompt}"),
        "target of a wrong type": (first, f"field {shape.target}"),
        "empty target": (str(path), "empty"),
        "double id": (str(path), "is also at"),
        "path out of the repository": (first, last["path"], "inside"),
        "path of another language": (first, last["path"], "main.rs"),
        "cursor at odds with the prompt": (first, last["line"]),
        "wrong language": (first, str(shape.language)),
    }[kind]


def assert_refused(shape: Shape, kind: str, home: Home, folder: Path) -> None:
    """Check that the import of a broken file ends in one line that says what, where and the cure, and leaves no set."""
    path = KINDS[kind](shape, folder)
    language = next(one for one in languages.every() if (one is not shape.language) is (kind == "wrong language"))
    with pytest.raises(InputFault) as caught:
        import_set(shape.format, [str(path)], home, "broken", options=Options(language=language))
    said = str(caught.value)
    assert "\n" not in said and caught.value.cure, said
    for word in shape.words.get(kind, _usual(shape, kind, path)):
        assert word.lower() in said.lower(), (word, said)
    assert sets.names(home) == ()


def assert_accepted(shape: Shape, home: Home, folder: Path) -> None:
    """Check that the good record is good, lest a refusal be for another reason."""
    path = folder / shape.name
    path.write_text(shape.text(shape.record))
    assert len(import_set(shape.format, [str(path)], home, "good").samples) == 1
