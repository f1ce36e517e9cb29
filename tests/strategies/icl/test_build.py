"""Queries, contents, fallbacks and flags of the ICL strategies."""

import dataclasses
import textwrap

import pytest

from ctxbench.bench.types import Kind
from ctxbench.strategies.api import BlockKind, Prompt
from ctxbench.strategies.conformance import check
from ctxbench.strategies.icl.prompts import INSTRUCTIONS
from ctxbench.strategies.registry import names, resolve
from tests.strategies.icl.shop import JAVA, PYTHON, Model, Shelf, java_query, prompt_of, query

ICL = [name for name in names() if name.startswith("icl.")]
RETRIEVING = [name for name in ICL if name not in ("icl.direct", "icl.infile", "icl.selfdoc")]
EMPTY = {
    **PYTHON,
    "shop/checkout.py": 'import log\n\n\ndef checkout(store, user, rate):\n    """Pay."""\n    secret()\n',
}
ALONE = {"shop/checkout.py": "def checkout(store, user, rate):\n    secret()\n"}


def about_empty(files: dict[str, str] = EMPTY):
    before, after = files["shop/checkout.py"].split("    secret()\n")
    return query(prefix=before, suffix=after, docstring="Return the cart of a user.")


def shown(prompt: Prompt) -> list[str]:
    return [block.places[0].path for block in prompt.blocks if block.kind in (BlockKind.SIMILAR, BlockKind.API)]


def model(**changes: bool) -> Model:
    return Model(*["1. Return the cart of a user.\n2. Add the tax to an amount."] * 3, **changes)


def test_there_are_sixteen_icl_strategies() -> None:
    assert len(ICL) == 16 and len(RETRIEVING) == 13


@pytest.mark.parametrize("name", ICL)
def test_icl_strategies_conform(name: str) -> None:
    spec = name if name == "icl.direct" else f"{name}(encoder=bm25)"
    assert resolve(spec).kinds == frozenset({Kind.FUNCTION})
    assert [finding for finding in check(resolve(spec)) if not finding.passed] == []


@pytest.mark.parametrize("name", ICL)
@pytest.mark.parametrize("instructs", [True, False])
@pytest.mark.parametrize("about", [query(), java_query()])
def test_prompts_contain_only_real_places_and_never_the_answer(name: str, instructs: bool, about) -> None:
    asked = model(instructs=instructs)
    prompt = prompt_of(name, about, model=asked)
    files = PYTHON if about == query() else JAVA
    repo = Shelf(about, files)
    for role, text in [("final", prompt.text), *((role, text) for role, _, text in asked.asked)]:
        assert "secret" not in text and text.count(about.signature) == (role != "documentation")
        assert "Takes the money" not in text and "@Deprecated" not in text
    for block in prompt.blocks:
        for place in block.places if block.kind is BlockKind.SIMILAR else ():
            stored = repo.read(place.path).split("\n")[place.start : place.end]
            assert "\n".join(stored) in block.text or textwrap.dedent("\n".join(stored)) in block.text
    assert bool(asked.asked) == (instructs and resolve(name).drafts)


def test_the_search_query_is_the_signature_and_docstring_or_a_step() -> None:
    repo = Shelf(query(), PYTHON)
    resolve("icl.rag(encoder=unixcoder)")(query(), repo, Model())
    assert repo.asked[0][:3] == (f"{query().signature}\n{query().docstring}", "function", "unixcoder")
    repo = Shelf(query(), PYTHON)
    resolve("icl.ragot")(query(), repo, Model("1. **Load**: a cart.\n2. b"))
    assert [text for text, *_ in repo.asked] == ["Load: a cart.", "b"]


@pytest.mark.parametrize("name", RETRIEVING)
def test_functions_of_the_current_file_are_found_unless_it_is_shown(name: str) -> None:
    about = query(docstring="Close the store.")
    steps = Model(*["1. Close the store."] * 3)
    paths = shown(prompt_of(name, about, model=steps))
    assert paths[-1] == "shop/checkout.py" and len(paths) == 1 + ("infile" in name)


def test_the_retrieved_current_file_lacks_the_target_function() -> None:
    about = query(docstring="Close the store.")
    prompt = prompt_of("icl.filerag", about)
    assert shown(prompt) == ["shop/checkout.py"] and "Takes the money" not in prompt.text
    assert len(prompt.blocks[3].places) == 2  # before and after the removed function


def test_k_retrieves_several_functions_scopes_or_files() -> None:
    both = prompt_of("icl.rag(k=3)", query(docstring="Return the cart of a user. Add the tax to an amount."))
    assert both.text.count("#####\nFILE ") == 3
    scores = [block.score or 0 for block in both.blocks if block.kind is BlockKind.SIMILAR]
    assert scores == sorted(scores, reverse=True)
    scopes = prompt_of("icl.rag_s(k=3)", query(docstring="Add the tax to an amount. Take a discount off an amount."))
    rules = next(block.text for block in scopes.blocks if "import math" in block.text)
    assert "def apply_tax" in rules and "def apply_discount" in rules and "def step" not in rules
    assert len(shown(scopes)) == len(set(shown(scopes)))
    files = prompt_of("icl.filerag(k=3)", query(docstring="Add the tax. Return the cart. Close the store."))
    assert sorted(shown(files)) == sorted(PYTHON)


@pytest.mark.parametrize("name", ["icl.ragot", "icl.ragot_s", "icl.fileragot"])
def test_results_of_an_earlier_step_are_not_repeated(name: str) -> None:
    steps = "1. Return the cart of a user.\n2. The cart of a user.\n3. Add the tax to an amount."
    prompt = prompt_of(name, model=Model(steps))
    assert shown(prompt) == ["shop/store.py", "shop/rules.py"]
    assert "FILE 2\n" in prompt.text and "FILE 3" not in prompt.text and "3. Add the tax" in prompt.text


def test_without_candidates_the_prompt_equals_icl_direct() -> None:
    about = about_empty(ALONE)
    for name in ("icl.rag", "icl.rag_s", "icl.filerag"):
        prompt = prompt_of(name, about, ALONE)
        assert prompt.flags == ("no_candidates",) and prompt.text == prompt_of("icl.direct", about, ALONE).text
    planned = prompt_of("icl.ragot", about, ALONE, Model("1. Pay."))
    assert planned.flags == ("no_candidates",) and planned.text.startswith(INSTRUCTIONS["direct"])
    assert "Here are the steps to implement it:\n1. Pay.\n" in planned.text


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("icl.infile", "icl.rag"),
        ("icl.infile_rag", "icl.rag"),
        ("icl.infile_rag_s", "icl.rag_s"),
        ("icl.infile_filerag", "icl.filerag"),
        ("icl.infile_ragot", "icl.ragot"),
        ("icl.infile_ragot_s", "icl.ragot_s"),
        ("icl.infile_fileragot", "icl.fileragot"),
    ],
)
def test_a_current_file_without_functions_falls_back_to_retrieval(name: str, other: str) -> None:
    about = about_empty()
    kept = prompt_of(name, about, EMPTY, model())
    assert kept.flags == ("empty_current_file", f"fallback:{other}")
    assert "#####\nimport log\n\n" in kept.text and shown(kept)[-1] == "shop/checkout.py"
    files = {**ALONE, "shop/store.py": PYTHON["shop/store.py"]}
    blank = prompt_of(name, about_empty(ALONE), files, model())
    assert "shop/checkout.py" not in shown(blank)
    assert blank.text == prompt_of(other, about_empty(ALONE), files, model()).text


def test_selfdoc_documents_other_files_if_the_current_one_has_no_functions() -> None:
    prompt = prompt_of("icl.selfdoc", about_empty(), EMPTY, Model("DOCUMENT"))
    assert prompt.flags == ("empty_current_file", "fallback:icl.selfdoc") and shown(prompt) == ["shop/store.py"]
    more = prompt_of("icl.selfdoc(extra_files=2)", about_empty(), EMPTY, Model("ONE", "TWO"))
    assert more.flags == ("empty_current_file",) and len(shown(more)) == 2
    alone = prompt_of("icl.selfdoc", about_empty(ALONE), ALONE, Model())
    assert "no_candidates" in alone.flags and alone.text.startswith(INSTRUCTIONS["direct"])


def test_empty_answers_fall_back_and_are_flagged() -> None:
    prompt = prompt_of("icl.ragot_s(instruction=default)", model=Model(" \n"))
    assert prompt.flags == ("fallback:icl.rag",) and prompt.text == prompt_of("icl.rag").text
    silent = prompt_of("icl.selfdoc(extra_files=1)", query(docstring="Return the cart."), model=Model("", "DOCUMENT"))
    assert silent.flags == ("empty_documentation",) and shown(silent) == ["shop/checkout.py"]


def test_a_model_without_instructions_uses_the_docstring_as_steps() -> None:
    about = query(docstring="Return the cart of a user. Add the tax to an amount.\n\n>>> x")
    prompt = prompt_of("icl.ragot(max_steps=1)", about, model=Model(instructs=False))
    assert prompt.flags == ("plain_steps",) and shown(prompt) == ["shop/store.py"]
    assert "implement it:\n1. Return the cart of a user.\n\n###" in prompt.text
    both = prompt_of("icl.selfdoc_ragot_s", about, model=Model(instructs=False))
    assert both.flags == ("plain_steps",) and shown(both) == ["shop/store.py", "shop/rules.py"]


def test_a_file_that_does_not_parse_shows_only_the_function() -> None:
    files = {**PYTHON, "shop/store.py": PYTHON["shop/store.py"] + "\n\nx = (\n"}
    about = query(docstring="Return the cart of a user.")
    prompt = prompt_of("icl.rag_s", about, files)
    assert prompt.flags == ("parse_failed",) and prompt.text == prompt_of("icl.rag", about, files).text


def test_a_query_without_text_is_not_searched() -> None:
    bare = dataclasses.replace(query(), signature=None, docstring=None, name=None)
    repo = Shelf(bare, PYTHON)
    assert resolve("icl.rag")(bare, repo, Model()).flags == ("no_candidates",) and not repo.asked
