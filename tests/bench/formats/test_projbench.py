"""The official ProjBench format: both variants are read and written back."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxbench.bench import samples as sets
from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import write_jsonl
from ctxbench.bench.formats import projbench
from ctxbench.bench.formats.importing import import_set
from ctxbench.bench.home import Home
from ctxbench.bench.lines.build import build_samples, manifest_of
from ctxbench.bench.types import NEXT_LINE, SINGLE_LINE, Kind, Reference, Sample
from tests.helpers.trees import make_snapshot, write_tree

LINES = ["import os", "from shop.cart import Cart", "", "def pay():", "    total = Cart(1)", "    return total"]


def record(prompt: str = "import os\n\n\ndef pay():\n    total = ", **metadata: Any) -> dict[str, Any]:
    """Return a task of variant one. None removes a key."""
    fields = {
        "task_id": "demo-main/0",
        "task_type": "sl",
        "ground_truth": "Cart(1)",
        "fpath_tuple": ["demo-main", "shop", "pay.py"],
        "context_start_lineno": 0,
        "line_no": 4,
        "col": 12,
        "dep": "Cart",
        "import_no": [1, 1],
        **metadata,
    }
    return {"prompt": prompt, "metadata": {key: value for key, value in fields.items() if value is not None}}


def read(made: dict[str, Any]) -> Sample:
    return projbench.task(made, where="f.jsonl:1").sample


def test_variant_one_is_read_as_a_single_line_sample() -> None:
    task = projbench.task(record(), where="")
    assert task.sample.subkind == SINGLE_LINE
    assert (task.sample.repo, task.sample.path) == ("demo-main", "shop/pay.py")
    assert (task.sample.cursor.line, task.sample.cursor.column) == (4, 12)
    assert task.sample.masked == ((1, 2),)
    assert task.sample.prefix == "import os\n\n\ndef pay():\n    total = "
    assert task.reference.target == "Cart(1)"


def test_deleted_lines_of_variant_two_are_restored() -> None:
    made = record(
        "import os\n\ndef pay():\n", col=None, col_no=-1, ground_truth="    total = Cart(1)\n", task_type=None
    )
    task = projbench.task(made, where="")
    assert (task.sample.subkind, task.sample.cursor.column) == (NEXT_LINE, 0)
    assert (task.sample.benchmark, read(record()).benchmark) == ("sota_test", "projbench")
    assert task.sample.prefix == "import os\n\n\ndef pay():\n"
    assert task.reference.target == "    total = Cart(1)"


def test_an_import_that_is_left_visible_is_blanked() -> None:
    made = record("import os\nfrom shop.cart import Cart\n\ndef pay():\n    total = ")
    assert "Cart" not in read(made).prefix


RELEASED = [
    "import os",
    "import re",
    "from shop.cart import (",
    "    Cart,",
    "    total,",
    ")",
    "import sys",
    "",
    "def pay():",
    "    paid = 0",
    "    paid = total(Cart(1))",
    "    return paid",
]


def released_record(start: int, *, next_line: bool, task_id: str = "demo-main/0") -> dict[str, Any]:
    """Return a task as released: the file lacks the import, and the prompt begins at line `start` of the rest."""
    line, column = 10, 11
    rest = [*RELEASED[:2], *RELEASED[6:line]][start:]
    return {
        "prompt": "".join(f"{text}\n" for text in rest) + ("" if next_line else RELEASED[line][:column]),
        "metadata": {
            "task_id": task_id,
            "ground_truth": (RELEASED[line] if next_line else RELEASED[line][column:]) + "\n",
            "fpath_tuple": ["demo-main", "shop", "pay.py"],
            "context_start_lineno": start,
            "line_no": line,
            "col_no": -1 if next_line else column,
            "import_no": [2, 5],
        },
    }


@pytest.mark.parametrize("next_line", [True, False])
@pytest.mark.parametrize(("start", "first_line"), [(0, 0), (1, 1), (2, 6), (3, 7), (5, 9)])
def test_lines_deleted_in_and_before_the_prompt_are_counted(start: int, first_line: int, next_line: bool) -> None:
    task = projbench.task(released_record(start, next_line=next_line), where="f.jsonl:1")
    whole = ["" if 2 <= number <= 5 else text for number, text in enumerate(RELEASED[:10])]
    partial = "" if next_line else RELEASED[10][:11]
    assert task.sample.context_start == first_line
    assert task.sample.prefix == "".join(f"{text}\n" for text in whole[first_line:]) + partial
    assert (task.sample.cursor.line, task.sample.masked) == (10, ((2, 6),))
    [exported] = projbench.records([task.sample], {task.sample.id: task.reference})
    assert projbench.task(exported, where="again.jsonl:1") == task


def test_exported_samples_of_a_released_file_are_imported_unchanged(home: Home, tmp_path: Path) -> None:
    made = [released_record(start, next_line=bool(start % 2), task_id=f"demo-main/{start}") for start in range(6)]
    path, again = task_file(tmp_path, *made), tmp_path / "again.jsonl"
    stored = import_set("projbench", [path], home, "stored")
    assert len(stored.samples) == 6
    write_jsonl(again, projbench.records(stored.samples, stored.references))
    assert import_set("projbench", [str(again)], home, "stored-again").digest == stored.digest
    rebuilt = import_set("projbench", [path], home, "rebuilt", repos=repository(tmp_path, RELEASED))
    assert not rebuilt.manifest["unusable"]
    for sample, whole in zip(stored.samples, rebuilt.samples, strict=True):
        assert whole.prefix.endswith(sample.prefix) and whole.prefix.count("\n") == 10


def test_records_of_the_released_file_are_read(shared: Path) -> None:
    path = shared / "projbench" / "released_first24.jsonl"
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        task = projbench.task(json.loads(line), where=f"{path}:{number}")
        assert task.sample.prefix.count("\n") == task.sample.cursor.line - task.sample.context_start


FAULTS = {
    "no prompt": ({"metadata": record()["metadata"]}, "field prompt"),
    "no metadata": ({"prompt": "x"}, "field metadata"),
    "empty id": (record(task_id=""), "field metadata.task_id"),
    "empty answer": (record(ground_truth="  \n"), "field metadata.ground_truth: is empty"),
    "answer of two lines": (record(ground_truth="a\nb"), "field metadata.ground_truth: has several lines"),
    "line number as text": (record(line_no="4"), "field metadata.line_no"),
    "negative line": (record(line_no=-4), "field metadata.line_no"),
    "no column": (record(col=None), "field metadata.col: is missing"),
    "column does not fit the prompt": (record(col=3), "field metadata.col: is 3, but the last line"),
    "next-line inside a line": (record(col=-1), "field metadata.col: is -1"),
    "too few lines": (record(line_no=40), "field metadata.line_no: prompt has 4 whole lines"),
    "some masked lines deleted": (
        record("import os\n\ndef pay():\n    total = ", import_no=[1, 2]),
        "prompt has 3 whole lines from line 0, not 4, or 2 where its masked lines are deleted",
    ),
    "start after the line": (record(context_start_lineno=9), "field metadata.line_no"),
    "path is text": (record(fpath_tuple="a/b.py"), "field metadata.fpath_tuple"),
    "path without file": (record(fpath_tuple=["demo-main"]), "field metadata.fpath_tuple"),
    "another language": (record(fpath_tuple=["demo-main", "x.rs"]), "neither a Python nor a Java file"),
    "import of three numbers": (record(import_no=[1, 2, 3]), "field metadata.import_no"),
    "import backwards": (record(import_no=[2, 1]), "field metadata.import_no"),
    "import after the line": (record(import_no=[4, 4]), "field metadata.import_no"),
}


@pytest.mark.parametrize(("made", "words"), FAULTS.values(), ids=FAULTS)
def test_faults_name_line_and_field(made: dict[str, Any], words: str) -> None:
    with pytest.raises(InputFault) as caught:
        projbench.task(made, where="f.jsonl:7")
    assert str(caught.value).startswith("f.jsonl:7: ") and words in str(caught.value)
    assert "--help" in str(caught.value)


def task_file(tmp_path: Path, *made: dict[str, Any]) -> str:
    path = tmp_path / "tasks.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in made))
    return str(path)


def repository(tmp_path: Path, lines: list[str] = LINES) -> Path:
    write_tree(
        tmp_path / "repos" / "demo-main", {"shop/pay.py": "\n".join(lines) + "\n", "shop/cart.py": "class Cart: ...\n"}
    )
    return tmp_path / "repos"


def test_an_import_with_the_repository_rebuilds_the_prompt(home: Home, tmp_path: Path) -> None:
    path = task_file(tmp_path, record("def pay():\n    total = ", context_start_lineno=3))
    made = import_set("projbench", [path], home, "theirs", repos=repository(tmp_path))
    [sample] = made.samples
    assert sample.prefix == "import os\n\n\ndef pay():\n    total = "
    assert (sample.context_start, sample.suffix) == (3, "    return total\n")
    [record_again] = projbench.records([sample], made.references)
    assert record_again["prompt"] == "def pay():\n    total = "
    assert made.references[sample.id].original_import == "from shop.cart import Cart"
    assert set(sets.snapshots(home, made)["demo-main"].files) == {"shop/pay.py", "shop/cart.py"}


@pytest.mark.parametrize("import_no", [[2, 2], None])
@pytest.mark.parametrize("start", [0, 1])
def test_a_blanked_line_stays_blank_in_the_rebuilt_prompt(start: int, import_no: list[int] | None) -> None:
    """`import_no` is optional and names at most one span, so blank lines must be detected."""
    lines = ["from shop.rules import apply", *LINES]
    prompt = "\n".join(["", "import os", "", "", "def pay():", "    total = "][start:])
    made = record(prompt, context_start_lineno=start, line_no=5, import_no=import_no)
    rebuilt = projbench.in_repository(projbench.task(made, where=""), "\n".join(lines))
    assert rebuilt is not None and set(rebuilt.sample.masked) == ({(2, 3)} if start else {(0, 1), (2, 3)})
    first = lines[0] if start else ""
    assert rebuilt.sample.prefix == f"{first}\nimport os\n\n\ndef pay():\n    total = "
    hidden = str(rebuilt.reference.original_import).split("\n")
    assert sorted(hidden) == ["from shop.cart import Cart", *([] if start else [lines[0]])]


@pytest.mark.parametrize("number", [0, 3, 4])
def test_a_prompt_from_another_version_of_the_file_is_left_out(number: int) -> None:
    prompt = ["import os", "", "", "def pay():", "    total = "]
    prompt[number] = prompt[number].replace("o", "0").replace("d", "b")
    task = projbench.task(record("\n".join(prompt)), where="")
    assert projbench.in_repository(task, "\n".join(LINES)) is None
    carriage = projbench.task(record("\ufeffimport os\r\n\r\n\r\ndef pay():\r\n    total = "), where="")
    assert projbench.in_repository(carriage, "\n".join(LINES)) is not None


def test_an_import_without_the_repository_keeps_the_stored_prompt(home: Home, tmp_path: Path) -> None:
    made = import_set("projbench", [task_file(tmp_path, record())], home, "theirs")
    assert made.manifest["prompts"] == "stored"
    assert sets.snapshots(home, made) == {}


def test_tasks_missing_from_the_repository_are_dropped_and_counted(home: Home, tmp_path: Path) -> None:
    said: list[str] = []
    path = task_file(
        tmp_path,
        record(),
        record(task_id="demo-main/1", ground_truth="Cart(2)"),
        record(task_id="demo-main/2", fpath_tuple=["demo-main", "gone.py"]),
    )
    made = import_set("projbench", [path], home, "theirs", repos=repository(tmp_path), report=said.append)
    assert made.manifest["repositories"]["demo-main"]["drops"] == {"file_missing": 1, "source_mismatch": 1}
    assert [sample.id for sample in made.samples] == ["demo-main/0"]
    assert said == [
        f"{path}:2: demo-main/1 left out: source_mismatch"
        " (shop/pay.py does not contain prompt and answer at the recorded place)",
        f"{path}:3: demo-main/2 left out: file_missing (gone.py)",
        "demo-main: 2 of 3 tasks left out (file_missing 1, source_mismatch 1)",
    ]
    assert made.manifest["unusable"] == {"file_missing": 1, "source_mismatch": 1}


def test_a_faulty_import_names_its_cause_and_saves_no_set(home: Home, tmp_path: Path) -> None:
    with pytest.raises(InputFault, match=r"tasks.jsonl:2.*demo-main/0.*also at .*tasks.jsonl:1"):
        import_set("projbench", [task_file(tmp_path, record(), record())], home, "theirs")
    with pytest.raises(InputFault, match="no folder 'demo-main'.*put the repository at"):
        empty = tmp_path / "empty"
        empty.mkdir()
        import_set("projbench", [task_file(tmp_path, record())], home, "theirs", repos=empty)
    with pytest.raises(InputFault, match="several languages.*as its own set"):
        java = record(task_id="demo-main/1", fpath_tuple=["demo-main", "Pay.java"])
        import_set("projbench", [task_file(tmp_path, record(), java)], home, "theirs")
    with pytest.raises(InputFault, match="no task in the files"):
        import_set("projbench", [task_file(tmp_path)], home, "theirs")
    with pytest.raises(InputFault, match="no task matches"):
        path = task_file(tmp_path, record(ground_truth="other"))
        import_set("projbench", [path], home, "theirs", repos=repository(tmp_path))
    assert sets.names(home) == ()


def test_a_built_set_is_exported_and_imported_unchanged(home: Home, tmp_path: Path) -> None:
    body = "\n".join(f"    value_{i} = total(Cart({i}))" for i in range(30))
    files = {
        "shop/__init__.py": "",
        "shop/cart.py": "class Cart: ...\ndef total(x): ...\n",
        "shop/tax.py": "def rate(x): ...\n",
        "shop/pay.py": "from shop.cart import Cart, total\nfrom shop.tax import rate\n"
        f"x = rate(Cart(5), 'é')\ndef f():\n{body}\n",
    }
    snapshot = make_snapshot(tmp_path / "repos" / "demo", files)
    made = build_samples([snapshot], per_repo=100, seed=0)
    built = sets.save(
        home, "ours", made.samples, made.references, manifest_of(made, [snapshot], {}, seed=0, per_repo=100)
    )
    assert any(len(sample.masked) == 2 for sample in built.samples)

    path = tmp_path / "out.jsonl"
    write_jsonl(path, projbench.records(built.samples, built.references))
    again = import_set("projbench", [str(path)], home, "again", repos=tmp_path / "repos")
    assert [replace(b, id="", benchmark="") for b in again.samples] == [
        replace(a, id="", benchmark="") for a in built.samples
    ]
    assert [replace(again.references[b.id], id="") for b in again.samples] == [
        replace(built.references[a.id], id="") for a in built.samples
    ]

    write_jsonl(path, projbench.records(again.samples, again.references))
    third = import_set("projbench", [str(path)], home, "third", repos=tmp_path / "repos")
    assert (third.samples, third.references) == (again.samples, again.references)
    assert third.digest == again.digest


_text = st.text(alphabet=st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), max_size=12)


@given(
    before=st.lists(_text, max_size=6),
    partial=_text,
    target=_text.filter(lambda text: bool(text.strip())),
    masked=st.booleans(),
    start=st.integers(0, 9),
    variant=st.sampled_from(["one", "two"]),
)
@settings(max_examples=80, deadline=None)
def test_any_task_is_read_back_unchanged(
    before: list[str], partial: str, target: str, masked: bool, start: int, variant: str
) -> None:
    made = {
        "prompt": "\n".join([*before, partial]),
        "metadata": {
            "task_id": "demo/0",
            "task_type": "sl" if partial else "nl",
            "ground_truth": target,
            "fpath_tuple": ["demo", "a.py"],
            "context_start_lineno": start,
            "line_no": start + len(before),
            "col" if variant == "one" else "col_no": len(partial) if variant == "one" or partial else -1,
            **({"import_no": [start, start]} if masked and before else {}),
        },
    }
    first = projbench.task(made, where="f:1")
    [again] = projbench.records([first.sample], {first.sample.id: first.reference})
    second = projbench.task(json.loads(json.dumps(again)), where="f:1")
    assert (second.sample, second.reference) == (first.sample, first.reference)
    assert first.reference.target == target.rstrip()


@pytest.mark.parametrize(
    ("changes", "target", "words"),
    [
        ({"kind": Kind.FUNCTION}, "x", "only line samples"),
        ({}, "x(\n)", "an answer of several lines"),
        ({"repo": "owner/demo"}, "x", "not a folder name"),
    ],
)
def test_samples_that_the_format_cannot_express_are_refused(changes: dict[str, Any], target: str, words: str) -> None:
    sample = replace(read(record()), **changes)
    with pytest.raises(InputFault, match=words):
        list(projbench.records([sample], {sample.id: Reference(id=sample.id, target=target)}))
