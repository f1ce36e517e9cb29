"""RepoBench's format, v1.1 and v0."""

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.bench.formats.importing import import_set
from ctxbench.bench.home import Home
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import NEXT_LINE


def record(**changes: Any) -> dict[str, Any]:
    """Return a record of v1.1. None removes a key."""
    fields = {
        "repo_name": "owner/shop",
        "file_path": "shop/pay.py",
        "context": [
            {"identifier": "Cart", "path": "shop/cart.py", "snippet": "class Cart: ..."},
            {"identifier": "rate", "path": "shop/tax.py", "snippet": "def rate(): ..."},
        ],
        "import_statement": "from shop.cart import Cart",
        "token_num": 120,
        "cropped_code": "def pay():",
        "all_code": "from shop.cart import Cart\n\ndef pay():\n",
        "next_line": "    total = Cart(1)",
        "gold_snippet_index": 0,
        "created_at": "2023-11-01",
        "level": "2k",
        **changes,
    }
    return {key: value for key, value in fields.items() if value is not None}


def imported(tmp_path: Path, *records: dict[str, Any], name: str = "theirs") -> SampleSet:
    path = tmp_path / f"{name}.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    return import_set("repobench", [str(path)], Home(tmp_path / "home"), name)


def test_a_record_becomes_a_next_line_sample(tmp_path: Path) -> None:
    made = imported(tmp_path, record())
    [sample] = made.samples
    assert (sample.id, sample.subkind, sample.language) == ("owner/shop/shop/pay.py#L4", NEXT_LINE, PYTHON)
    assert (sample.prefix, sample.cursor.line) == (record()["all_code"], 3)
    assert made.references[sample.id].target == "    total = Cart(1)"


def test_queries_do_not_contain_the_gold_snippet(tmp_path: Path) -> None:
    [sample] = imported(tmp_path, record()).samples
    assert [one.name for one in sample.stored] == ["context", "import_statement", "cropped_code", "gold"]
    assert [one.name for one in sample.query().stored] == ["context", "import_statement", "cropped_code"]
    assert sample.stored[-1].snippets[0].name == "Cart"


def test_code_without_a_last_newline_gets_one(tmp_path: Path) -> None:
    made = imported(tmp_path, record(all_code="import os\nx = 1"))
    [sample] = made.samples
    assert (sample.prefix, sample.cursor.line) == ("import os\nx = 1\n", 2)


def test_version_0_has_code_and_context_as_text(tmp_path: Path) -> None:
    old = record(all_code=None, cropped_code=None, code="x = 1\n", context="# shop/cart.py", gold_snippet_index=None)
    made = imported(tmp_path, old, record(repo_name="p/q", file_path="A.java"))
    first, second = made.samples
    assert (first.prefix, first.stored[0].text) == ("x = 1\n", "# shop/cart.py")
    assert second.language == JAVA


def test_two_tasks_for_one_line_have_different_ids(tmp_path: Path) -> None:
    made = imported(tmp_path, record(), record(gold_snippet_index=1))
    assert [sample.id for sample in made.samples] == ["owner/shop/shop/pay.py#L4", "owner/shop/shop/pay.py#L4:2"]


def test_parquet_and_json_lines_are_read_as_the_same_set(tmp_path: Path) -> None:
    path = tmp_path / "cross_file_first.parquet"
    library: Any = importlib.import_module("pyarrow")
    table = library.Table.from_pylist([record(), record(gold_snippet_index=-1)])
    importlib.import_module("pyarrow.parquet").write_table(table, path)
    first = imported(tmp_path, record(), record(gold_snippet_index=-1))
    second = import_set("repobench", [str(path)], Home(tmp_path / "home"), "columns")
    assert (second.samples, second.references, second.digest) == (first.samples, first.references, first.digest)


def test_repos_is_refused_because_repobench_has_no_repositories(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps(record()) + "\n")
    with pytest.raises(InputFault, match="cannot be built from repositories.*leave --repos out"):
        import_set("repobench", [str(path)], Home(tmp_path / "home"), "x", repos=tmp_path)
