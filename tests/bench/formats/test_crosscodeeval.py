"""CrossCodeEval's format: read, joined, checked against a repository, and written back."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.bench import samples as sets
from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import write_jsonl
from ctxbench.bench.formats import Options, Table, Task, Unusable, crosscodeeval
from ctxbench.bench.formats.importing import import_set
from ctxbench.bench.home import Home
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.types import Kind
from tests.helpers.samples import make_reference, make_sample
from tests.helpers.trees import write_tree

PROMPT = "from shop.tax import add\n\n\ndef pay(cart, rate):\n    total = "
TARGET = "add(\n        cart.sum,\n        rate)"
REST = "\n    return total\n"
FILE = PROMPT + TARGET + REST
PIECES = [
    {"retrieved_chunk": "def add(amount, rate):\n    return amount + rate", "filename": "shop/tax.py", "score": 3.5},
    {"retrieved_chunk": "x = 1", "filename": "shop/x.py", "score": None},
]
BM25 = {"text": "# Here are some\n\n", "list": PIECES}


def record(**changes: Any) -> dict[str, Any]:
    """Return a record. Changes named in `METADATA` go into its metadata."""
    made: dict[str, Any] = {
        "prompt": PROMPT,
        "groundtruth": TARGET,
        "right_context": REST,
        "metadata": {
            "task_id": "project_cc_python/62",
            "repository": "owner-shop-1234567",
            "file": "shop/pay.py",
            "context_start_lineno": 0,
            "groundtruth_start_lineno": 4,
            "right_context_start_lineno": 7,
        },
        **{name: value for name, value in changes.items() if name not in METADATA},
    }
    made["metadata"] |= {name: value for name, value in changes.items() if name in METADATA}
    return made


METADATA = ("task_id", "repository", "file", "context_start_lineno", "groundtruth_start_lineno", "ctxbench", "url")


def table(*rows: Mapping[str, Any], name: str = "line_completion") -> Table:
    return Table(
        name=name,
        source="f.jsonl",
        digest="",
        rows=[(f"{name}:{at}", json.loads(json.dumps(row))) for at, row in enumerate(rows, 1)],
    )


def read(*tables: Table) -> list[Task | Unusable]:
    return list(crosscodeeval.read(tables, Options()))


def task(*tables: Table) -> Task:
    [made] = read(*tables)
    assert isinstance(made, Task)
    return made


def again(made: Task, name: str = "other") -> Task:
    return task(table(*crosscodeeval.records([made.sample], {made.sample.id: made.reference}), name=name))


def test_a_plain_record_becomes_a_line_sample() -> None:
    made = task(table(record()))
    sample = made.sample
    assert (sample.id, sample.benchmark, sample.language) == ("project_cc_python/62", "crosscodeeval", PYTHON)
    assert (sample.kind, sample.subkind) == (Kind.LINE, "statement")
    assert (sample.repo, sample.path, sample.cursor.line, sample.cursor.column) == (
        "owner-shop-1234567", "shop/pay.py", 4, 12,
    )  # fmt: skip
    assert (sample.prefix, made.reference.target, sample.suffix) == (PROMPT, TARGET, REST)
    assert sample.stored == () and sample.query().suffix is None


def test_files_of_one_release_are_joined() -> None:
    tables = [
        table(record(), record(task_id="second")),
        table(record(crossfile_context=BM25), name="line_completion_rg1_bm25"),
        table(record(crossfile_context={"text": "# y", "list": []}), name="line_completion_oracle_bm25"),
        table(record(crossfile_context={}), name="line_completion_rg1_unixcoder_cosine_sim"),
    ]
    first, second = read(*tables)
    assert isinstance(first, Task) and isinstance(second, Task)
    bm25, oracle = first.sample.stored
    assert (bm25.name, bm25.text, bm25.oracle) == ("rg1_bm25", BM25["text"], False)
    assert [(one.path, one.text, one.score) for one in bm25.snippets] == [
        (one["filename"], one["retrieved_chunk"], one["score"]) for one in PIECES
    ]
    assert (oracle.name, oracle.oracle) == ("oracle_bm25", True)
    assert first.sample.query().stored == (bm25,), "what was retrieved with the answer reaches no strategy"
    assert second.sample.stored == ()
    assert (first.where, second.where) == ("line_completion:1", "line_completion:2")
    # One retrieval file is enough. The order of the files changes only the order of the retrievals.
    assert task(tables[1]).sample.stored == (bm25,)
    assert {one.name for one in read(*tables[::-1])[0].sample.stored} == {"rg1_bm25", "oracle_bm25"}  # type: ignore[union-attr]


@pytest.mark.parametrize("nothing", [None, "", {}, {"text": "", "list": []}])
def test_empty_retrievals_are_not_stored(nothing: object) -> None:
    assert task(table(record(crossfile_context=nothing), name="line_completion_rg1_bm25")).sample.stored == ()


def test_dependency_graphs_come_last() -> None:
    piece = {**PIECES[0], "score": 4, "node_type": "function", "relation": "Calls"}
    graphs = {
        "crossfile_definition_by_dependency_graph": {"text": "# Here", "list": [piece]},
        "crossfile_reference_by_dependency_graph": {"text": "# Here", "list": []},
    }
    made = task(table(record(**graphs)), table(record(crossfile_context=BM25, **graphs), name="line_completion_rg1"))
    assert [one.name for one in made.sample.stored] == ["rg1", "definition", "reference"]
    assert [one.name for one in made.sample.stored[1].snippets] == ["function Calls"]
    written = next(crosscodeeval.records([made.sample], {made.sample.id: made.reference}))
    [piece] = written["crossfile_definition_by_dependency_graph"]["list"]
    assert (piece["relation"], piece["score"]) == ("function Calls", 4)
    assert again(made) == made


@pytest.mark.parametrize(
    ("piece", "hidden"), [("def pay(cart, rate):", False), ("\n" + TARGET, True), (FILE, True), ("def pay", True)]
)
def test_queries_have_no_snippet_of_the_target_file_after_the_cursor(piece: str, hidden: bool) -> None:
    context = {"text": "", "list": [{**PIECES[0]}, {**PIECES[0], "filename": "shop/pay.py", "retrieved_chunk": piece}]}
    made = task(table(record(crossfile_context=context), name="line_completion_rg1_bm25"))
    assert [one.oracle for one in made.sample.stored] == [hidden]
    assert len(made.sample.query().stored) == (not hidden)
    assert again(made) == made


def test_the_repository_is_not_read_from_the_task_id() -> None:
    assert task(table(record(task_id="elsewhere/62"))).sample.repo == "owner-shop-1234567"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"groundtruth": " \n"}, "empty_target"),
        ({"file": "src/pay.ts"}, "unsupported_language"),
        ({"file": "src/Pay.cs"}, "unsupported_language"),
        ({"groundtruth_start_lineno": 5}, "cursor_mismatch"),
    ],
)
def test_an_unusable_record_has_its_reason(changes: dict[str, Any], reason: str) -> None:
    [made] = read(
        table(record(**changes)), table(record(**changes, crossfile_context=BM25), name="line_completion_rg1")
    )
    assert isinstance(made, Unusable)
    assert (made.id, made.reason, made.where) == ("project_cc_python/62", reason, "line_completion:1")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"prompt": "x" + PROMPT},
            "field prompt: the value for 'project_cc_python/62' differs from the value at line_completion:1",
        ),
        ({"groundtruth": "add()"}, "field groundtruth"),
        ({"right_context": ""}, "field right_context"),
        ({"repository": "other"}, "field metadata.repository"),
        ({"file": "shop/other.py"}, "field metadata.file"),
        ({"crossfile_context": {"text": "#"}}, "field crossfile_context: 'project_cc_python/62' has another context"),
    ],
)
def test_files_that_disagree_are_refused(changes: dict[str, Any], words: str) -> None:
    first = table(record(crossfile_context=BM25, ctxbench={"context": "b"}))
    with pytest.raises(InputFault) as caught:
        read(first, table(record(**{"ctxbench": {"context": "b"}, **changes}), name="b"))
    assert words in str(caught.value) and "give files of one release" in str(caught.value)
    assert str(caught.value).startswith("b:1: ")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"crossfile_context": "some text"}, "field crossfile_context"),
        ({"crossfile_context": {"list": [{"filename": "a.py"}]}}, "field crossfile_context.list.0.retrieved_chunk"),
        ({"crossfile_context": {"list": [{**PIECES[0], "score": "1"}]}}, "field crossfile_context.list.0.score"),
        ({"repository": "owner/shop"}, "field metadata.repository"),
        ({"repository": ".."}, "field metadata.repository"),
        ({"groundtruth_start_lineno": -1}, "field metadata.groundtruth_start_lineno"),
        ({"ctxbench": {"stored": [{"name": "a", "text": "#"}] * 2}}, "field metadata.ctxbench: there are two contexts"),
    ],
)
def test_invalid_fields_are_named(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputFault) as caught:
        read(table(record(**changes)))
    assert words in str(caught.value) and str(caught.value).startswith("line_completion:1: ")


_texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
_contexts = st.fixed_dictionaries(
    {
        "text": _texts,
        "list": st.lists(
            st.fixed_dictionaries(
                {
                    "retrieved_chunk": _texts,
                    "filename": _texts,
                    "score": st.none() | st.floats(allow_nan=False, allow_infinity=False),
                },
                optional={"node_type": _texts, "relation": _texts},
            ),
            max_size=3,
        ),
    }
)


@pytest.mark.slow
@given(
    prompt=_texts,
    target=_texts.filter(str.strip),
    rest=st.none() | _texts,
    start=st.integers(0, 9),
    contexts=st.lists(_contexts | st.none(), max_size=4),
    graph=_contexts | st.none(),
)
def test_a_task_that_is_written_and_read_again_is_equal(
    prompt: str, target: str, rest: str | None, start: int, contexts: list[Any], graph: Any
) -> None:
    changes = {
        "prompt": prompt,
        "groundtruth": target,
        "right_context": rest,
        "context_start_lineno": start,
        "groundtruth_start_lineno": start + prompt.count("\n"),
        "crossfile_definition_by_dependency_graph": graph,
    }
    tables = [
        table(record(**changes, crossfile_context=one), name=f"line_completion_{'oracle' if at == 1 else 'rg1'}_{at}")
        for at, one in enumerate([None, *contexts])
    ]
    made = task(*tables)
    assert again(made) == made
    if len(tables) > 2:
        assert all("oracle" not in one.name for one in made.sample.query().stored)


def test_the_prompt_is_rebuilt_from_the_file() -> None:
    whole = task(table(record()))
    rebuilt = crosscodeeval.in_repository(whole, FILE)
    assert rebuilt == whole
    cut = task(table(record(prompt=PROMPT[27:], context_start_lineno=3, right_context=None)))
    made = crosscodeeval.in_repository(cut, FILE)
    assert made is not None
    assert (made.sample.prefix, made.sample.context_start, made.sample.suffix) == (PROMPT, 3, REST)
    [record_again] = crosscodeeval.records([made.sample], {made.sample.id: made.reference})
    assert (record_again["prompt"], record_again["metadata"]["context_start_lineno"]) == (PROMPT[27:], 3)
    crlf = task(table(record(prompt="\ufeff" + PROMPT.replace("\n", "\r\n"), groundtruth=TARGET.replace("\n", "\r\n"))))
    made = crosscodeeval.in_repository(crlf, FILE)
    assert made is not None and (made.sample.prefix, made.reference.target) == (PROMPT, TARGET)


@pytest.mark.parametrize(
    "text", [FILE.replace("add(\n", "sub(\n"), FILE.replace("rate)\n", "1)\n"), "\n" + FILE, FILE[:40], FILE[:90], ""]
)
def test_a_file_that_differs_from_the_record_is_rejected(text: str) -> None:
    assert crosscodeeval.in_repository(task(table(record())), text) is None


def test_samples_that_the_format_cannot_express_are_refused() -> None:
    reference = make_reference()
    for odd, word in ((make_sample(kind=Kind.FUNCTION), "function"), (make_sample(masked=((0, 1),)), "masked")):
        with pytest.raises(InputFault, match=word):
            list(crosscodeeval.records([odd], {reference.id: reference}))


def test_line_samples_of_other_benchmarks_can_be_written() -> None:
    sample, reference = make_sample(), make_reference()
    [written] = crosscodeeval.records([sample], {reference.id: reference})
    made = task(table(written)).sample
    assert (made.id, made.prefix, made.path, made.cursor) == (sample.id, sample.prefix, sample.path, sample.cursor)


def test_a_set_is_checked_against_its_repository_and_exported_unchanged(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    write_tree(tmp_path / "repos" / "owner-shop-1234567", {"shop/pay.py": FILE, "shop/tax.py": "def add(a, b): ...\n"})
    for name, rows in {
        "line_completion": [record(), record(task_id="2", groundtruth="gone()")],
        "line_completion_rg1_bm25": [record(crossfile_context=BM25)],
    }.items():
        write_jsonl(tmp_path / f"{name}.jsonl", rows)
    files = [str(path) for path in sorted(tmp_path.glob("*.jsonl"))]
    made = import_set("crosscodeeval", files, home, "cceval", repos=tmp_path / "repos")
    assert made.manifest["unusable"] == {"source_mismatch": 1}
    [sample] = made.samples
    assert [one.name for one in sample.stored] == ["rg1_bm25"]
    write_jsonl(tmp_path / "out.jsonl", crosscodeeval.records(made.samples, made.references))
    back = import_set("crosscodeeval", [str(tmp_path / "out.jsonl")], home, "back", repos=tmp_path / "repos")
    assert (back.samples, back.references) == (made.samples, made.references)
    assert sets.load(home, "back").digest == made.digest
