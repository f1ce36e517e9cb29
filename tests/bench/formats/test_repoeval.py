"""RepoEval's format: lines and API calls are read and written back, and functions are counted."""

import json
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import write_jsonl
from ctxbench.bench.formats import Options, Table, Task, repoeval
from ctxbench.bench.formats.crosscodeeval import STATEMENT
from ctxbench.bench.formats.importing import import_set
from ctxbench.bench.home import Home
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import NEXT_LINE, Kind, Reference, Sample
from tests.helpers.trees import write_tree

FILE = dedent('''\
    from shop.cart import Cart


    class Pay:
        @staticmethod
        async def pay(
            amount,
        ):
            """Pay an amount.

            And no more.
            """
            text = """
    left
    """
            return Cart(
                amount,
            ), text

        def other(self):
            return 1
''')
LINES = FILE.split("\n")


def record(line: int, target: str, **metadata: Any) -> dict[str, Any]:
    """Return a task at the beginning of a line of `FILE`. None removes a key."""
    fields = {
        "task_id": f"demo/{line}",
        "ground_truth": target,
        "fpath_tuple": ["demo", "shop", "pay.py"],
        "context_start_lineno": 0,
        "line_no": line,
        **metadata,
    }
    prompt = "".join(f"{text}\n" for text in LINES[fields["context_start_lineno"] : line])
    return {"prompt": prompt, "metadata": {key: value for key, value in fields.items() if value is not None}}


LINE = record(20, "        return 1")
CALL = record(15, "\n".join(LINES[15:18]))
FUNCTION = record(12, "\n".join(LINES[12:18]), line_no=None, lineno=5)


def imported(tmp_path: Path, *records: dict[str, Any], name: str = "theirs", repos: Path | None = None) -> SampleSet:
    path = tmp_path / f"{name}.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    return import_set("repoeval", [str(path)], Home(tmp_path / "home"), name, repos=repos)


def repositories(tmp_path: Path) -> Path:
    write_tree(tmp_path / "repos" / "demo", {"shop/pay.py": FILE.encode(), "shop/cart.py": "class Cart: ...\n"})
    return tmp_path / "repos"


def test_lines_and_api_calls_become_samples(tmp_path: Path) -> None:
    made = imported(tmp_path, LINE, CALL)
    line, call = made.samples
    assert (line.kind, line.subkind, line.cursor.line, line.cursor.column) == (Kind.LINE, NEXT_LINE, 20, 0)
    assert call.subkind == STATEMENT
    assert made.references[call.id].target == "        return Cart(\n            amount,\n        ), text"


def test_the_repository_supplies_the_rest_of_the_file(tmp_path: Path) -> None:
    late = record(15, "\n".join(LINES[15:18]), context_start_lineno=4)
    [call] = imported(tmp_path, late, repos=repositories(tmp_path)).samples
    assert (call.prefix, call.context_start) == ("".join(f"{text}\n" for text in LINES[:15]), 4)
    assert call.suffix == "\n    def other(self):\n        return 1\n"


def test_functions_are_left_out_and_counted(tmp_path: Path) -> None:
    made = imported(tmp_path, LINE, FUNCTION)
    assert made.manifest["unusable"] == {"no_tests": 1}


def test_prompts_of_joined_lines_get_their_last_newline(tmp_path: Path) -> None:
    blank = record(3, "class Pay:")  # the line before it is blank
    records = [{**one, "prompt": one["prompt"].removesuffix("\n")} for one in (LINE, CALL, blank)]
    made = imported(tmp_path, *records)
    assert made.samples == imported(tmp_path, LINE, CALL, blank, name="whole").samples


@pytest.mark.parametrize("with_repos", [False, True])
def test_an_exported_set_is_imported_unchanged(with_repos: bool, tmp_path: Path) -> None:
    repos = repositories(tmp_path) if with_repos else None
    first = imported(tmp_path, LINE, CALL, repos=repos)
    assert len(first.samples) == 2
    out = tmp_path / "out.jsonl"
    write_jsonl(out, repoeval.records(first.samples, first.references))
    second = import_set("repoeval", [str(out)], Home(tmp_path / "home"), "second", repos=repos)
    assert (second.samples, second.references) == (first.samples, first.references)
    assert second.digest == first.digest


def test_samples_that_the_format_cannot_express_are_refused() -> None:
    def sample(**changes: Any) -> Sample:
        [task] = repoeval.read([Table(name="", source="", digest="", rows=[("f:1", LINE)])], Options())
        assert isinstance(task, Task)
        return replace(task.sample, **changes)

    for changes, words in (
        ({"masked": ((1, 2),)}, "masked"),
        ({"prefix": "x = "}, "inside a line"),
        ({"kind": Kind.FUNCTION}, "function"),
    ):
        made = sample(**changes)
        with pytest.raises(InputFault, match=words):
            list(repoeval.records([made], {made.id: Reference(id=made.id, target="x")}))


_word = st.text(alphabet=st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), max_size=12)


@given(
    before=st.lists(_word, max_size=6),
    target=st.lists(_word, min_size=1, max_size=3).filter(lambda lines: lines[-1].strip()),
    start=st.integers(0, 50),
)
@settings(max_examples=60, deadline=None)
def test_any_lines_are_read_back_unchanged(before: list[str], target: list[str], start: int) -> None:
    made = {
        "prompt": "".join(f"{line}\n" for line in before),
        "metadata": {
            "task_id": "demo/0",
            "ground_truth": "\n".join(target),
            "fpath_tuple": ["demo", "a.py"],
            "context_start_lineno": start,
            "line_no": start + len(before),
        },
    }
    first = _read(made)
    [again] = repoeval.records([first.sample], {first.sample.id: first.reference})
    second = _read(json.loads(json.dumps(again)))
    assert (second.sample, second.reference) == (first.sample, first.reference)
    assert (again["prompt"], again["metadata"]["ground_truth"]) == (made["prompt"], "\n".join(target).rstrip())


def _read(made: dict[str, Any]) -> Task:
    [task] = repoeval.read([Table(name="", source="", digest="", rows=[("f:1", made)])], Options())
    assert isinstance(task, Task)
    return task
