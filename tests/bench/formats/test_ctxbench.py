"""The ctxbench format: sets are imported and exported unchanged, and every fault is named."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import write_jsonl
from ctxbench.bench.formats import ctxbench
from ctxbench.bench.formats.importing import import_set
from ctxbench.bench.home import Home
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Sample, StoredContext, StoredSnippet, Use
from tests.bench.formats.test_importing import PAY, function, line
from tests.helpers.trees import write_tree

STORED = (
    StoredContext(name="rg1", text="# é\n", snippets=(StoredSnippet(path="a.py", text="x", score=0.5, name="n"),)),
    StoredContext(name="oracle", oracle=True),
)
PAIRS = (
    line(masked=((0, 1),), uses=(Use(name="Cart", module="shop", kind="class"),), stored=STORED),
    function(hidden=("tests/",), suffix="\n"),
    line(id="late", context_start=2, prefix='        """Sum up."""\n'),
    line(id="whole, though its benchmark's prompt begins late", context_start=2),
)
PAIRS = (
    (PAIRS[0][0], replace(PAIRS[0][1], original_import="import x", fields={"gold": [1, {"a": None}]})),
    (PAIRS[1][0], replace(PAIRS[1][1], tests=("tests/test_pay.py::test_total",))),
    *PAIRS[2:],
)


def rows() -> list[dict[str, Any]]:
    return list(ctxbench.records([one for one, _ in PAIRS], {other.id: other for _, other in PAIRS}))


def imported(path: Path, home: Home, name: str, repos: Path | None = None) -> SampleSet:
    return import_set("ctxbench", [str(path)], home, name, repos=repos)


@pytest.mark.parametrize("with_repos", [False, True])
def test_an_exported_set_is_imported_unchanged(with_repos: bool, tmp_path: Path) -> None:
    home, path, out = Home(tmp_path / "home"), tmp_path / "set.jsonl", tmp_path / "out.jsonl"
    write_tree(tmp_path / "repos/demo", {"shop/pay.py": PAY})
    repos = tmp_path / "repos" if with_repos else None
    write_jsonl(path, rows())
    first = imported(path, home, "first", repos)
    assert list(first.samples) == [one for one, _ in PAIRS]
    assert first.references == {other.id: other for _, other in PAIRS}
    write_jsonl(out, ctxbench.records(first.samples, first.references))
    second = imported(out, home, "second", repos)
    assert (second.samples, second.references, second.digest) == (first.samples, first.references, first.digest)


def test_a_reference_that_is_not_in_the_file_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    write_tree(tmp_path / "repos/demo", {"shop/pay.py": PAY.replace("x + 1", "x + 2"), "a.py": "import os\n"})
    other: tuple[Sample, Any] = line(id="a", path="a.py", prefix="", cursor=replace(line()[0].cursor, line=0))
    other = (other[0], replace(other[1], target="import os"))
    pairs = [*PAIRS, other]
    write_jsonl(path, ctxbench.records([one for one, _ in pairs], {ref.id: ref for _, ref in pairs}))
    made = imported(path, Home(tmp_path / "home"), "x", tmp_path / "repos")
    assert [sample.id for sample in made.samples] == ["a"]
    assert made.manifest["unusable"] == {"source_mismatch": 4}


FAULTS = {
    "reference is text": ({"reference": "x"}, "field reference is missing, or not an object"),
    "unknown field": ({"extra": 1}, "field extra"),
    "another id": ({"reference": {"id": "other", "target": "x"}}, "field reference.id: is 'other'"),
    "unknown field of the reference": ({"reference": {"id": "l", "target": "x", "y": 1}}, "field reference.y"),
    "language at odds with the file": ({"language": "java"}, "field path: 'shop/pay.py' is not a java file"),
}


@pytest.mark.parametrize(("changes", "words"), FAULTS.values(), ids=FAULTS)
def test_faults_name_line_and_field(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    good, path = rows()[0], tmp_path / "set.jsonl"
    path.write_text(json.dumps({key: value for key, value in {**good, **changes}.items() if value is not None}) + "\n")
    with pytest.raises(InputFault) as caught:
        imported(path, Home(tmp_path / "home"), "x")
    assert str(caught.value).startswith(f"{path}:1: ") and words in str(caught.value) and caught.value.cure
