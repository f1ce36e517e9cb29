"""Broken files of every format: each kind of fault is put into a good record, and the refusal names it."""

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench import samples as sets
from ctxbench.bench.errors import InputFault
from ctxbench.bench.formats import Options, ctxbench
from ctxbench.bench.formats.importing import import_set
from ctxbench.bench.home import Home
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.python import PYTHON
from tests.bench.formats import (
    test_codereval,
    test_context_collection,
    test_crosscodeeval,
    test_projbench,
    test_repobench,
    test_repoeval,
)
from tests.bench.formats.test_importing import line


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A good record of a format, and the dotted names of its fields. In a field with a list, the last part counts."""

    format: str
    record: Mapping[str, Any]
    id: str
    target: str
    prompt: str
    path: str
    line: str
    """The field with the number that locates the cursor."""
    key: str = ""
    """The key of the list, if the file is one JSON document."""
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Kind of fault -> words of its refusal, if they differ from the usual ones."""
    skip: frozenset[str] = frozenset()
    """Kinds of fault that this format cannot have."""

    @property
    def kinds(self) -> list[str]:
        return [kind for kind in KINDS if kind not in self.skip]

    @property
    def name(self) -> str:
        return "tasks.json" if self.key else "tasks.jsonl"

    def text(self, *records: Mapping[str, Any]) -> str:
        if self.key:
            return json.dumps({self.key: list(records)}, indent=1)
        return "".join(json.dumps(record) + "\n" for record in records)

    def changed(self, name: str, value: object) -> dict[str, Any]:
        """Return the record with another value in a field. None removes the field."""
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


def _bytes(shape: Shape, folder: Path, data: bytes) -> Path:
    path = folder / shape.name
    path.write_bytes(data)
    return path


KINDS = {
    "cut json": lambda s, d: _bytes(s, d, s.text(s.record).encode()[:-20]),
    "empty file": lambda s, d: _bytes(s, d, b""),
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
"""Kind of fault -> function that writes a file with it into a folder and returns the path. `test_rows` has more."""


def _usual(shape: Shape, kind: str, path: Path) -> tuple[str, ...]:
    first = f"{path}: {shape.key}[0]" if shape.key else f"{path}:1"
    last = {name: getattr(shape, name).rpartition(".")[2] for name in ("id", "target", "prompt", "path", "line")}
    return {
        "cut json": (f"{path}:", "not valid JSON", "cut off"),
        "empty file": (str(path), "no task in the file"),
        "no target": (first, f"field {shape.target}"),
        "no id": (first, f"field {shape.id}"),
        "prompt of a wrong type": (first, f"field {shape.prompt}"),
        "target of a wrong type": (first, f"field {shape.target}"),
        "empty target": (str(path), "empty"),
        "double id": (str(path), "is also at"),
        "path out of the repository": (first, last["path"], "inside"),
        "path of another language": (first, last["path"], "main.rs"),
        "cursor at odds with the prompt": (first, last["line"]),
        "wrong language": (first, "python"),
    }[kind]


SHAPES = (
    Shape(
        format="projbench",
        record=test_projbench.record(),
        id="metadata.task_id",
        target="metadata.ground_truth",
        prompt="prompt",
        path="metadata.fpath_tuple",
        line="metadata.line_no",
    ),
    Shape(
        format="crosscodeeval",
        record=test_crosscodeeval.record(crossfile_context=test_crosscodeeval.BM25),
        id="metadata.task_id",
        target="groundtruth",
        prompt="prompt",
        path="metadata.file",
        line="metadata.groundtruth_start_lineno",
        words={
            "path of another language": ("no task in the files", "unsupported_language"),
            "cursor at odds with the prompt": ("no task in the files", "cursor_mismatch"),
        },
    ),
    Shape(
        format="repobench",
        record=test_repobench.record(),
        id="repo_name",
        target="next_line",
        prompt="all_code",
        path="file_path",
        line="gold_snippet_index",
        # The importer creates the ids, so none can be missing or occur twice.
        skip=frozenset({"double id"}),
    ),
    Shape(
        format="repoeval",
        record=test_repoeval.LINE,
        id="metadata.task_id",
        target="metadata.ground_truth",
        prompt="prompt",
        path="metadata.fpath_tuple",
        line="metadata.line_no",
    ),
    Shape(
        format="codereval",
        key="RECORDS",
        record=test_codereval.python(),
        id="_id",
        target="code",
        prompt="file_content",
        path="file_path",
        line="lineno",
        # The function is then found by its name, and the set reports the wrong record.
        skip=frozenset({"cursor at odds with the prompt"}),
    ),
    Shape(
        format="ctxbench",
        record=next(ctxbench.records([line()[0]], {"l": line()[1]})),
        id="id",
        target="reference.target",
        prompt="prefix",
        path="path",
        line="cursor.line",
    ),
    Shape(
        format="context_collection",
        record=test_context_collection.point(middle="amount", modified=None),
        id="repo",
        target="middle",
        prompt="prefix",
        path="path",
        line="revision",
        words={"path of another language": ("unsupported_language",)},
        # The cursor is where the prefix ends.
        skip=frozenset({"cursor at odds with the prompt"}),
    ),
)


@pytest.mark.parametrize(
    ("shape", "kind"),
    [(shape, kind) for shape in SHAPES for kind in shape.kinds],
    ids=lambda part: getattr(part, "format", part),
)
def test_a_broken_file_is_refused_in_one_line_and_leaves_no_set(
    shape: Shape, kind: str, home: Home, tmp_path: Path
) -> None:
    path = KINDS[kind](shape, tmp_path)
    language = JAVA if kind == "wrong language" else PYTHON
    with pytest.raises(InputFault) as caught:
        import_set(shape.format, [str(path)], home, "broken", options=Options(language=language))
    said = str(caught.value)
    assert "\n" not in said and caught.value.cure, said
    for word in shape.words.get(kind, _usual(shape, kind, path)):
        assert word.lower() in said.lower(), (word, said)
    assert sets.names(home) == ()


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.format)
def test_the_unbroken_record_is_imported(shape: Shape, home: Home, tmp_path: Path) -> None:
    assert len(import_set(shape.format, [str(_write(shape, tmp_path, shape.record))], home, "good").samples) == 1
