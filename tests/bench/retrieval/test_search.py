"""Searches of a view: which units are candidates, and which parts of the target file are not."""

from typing import Any

import pytest

from ctxbench.bench.errors import InputFault, MachineFault, UnknownName
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.repository import View
from ctxbench.bench.retrieval.retrieval import NoRanker, Retrieval
from ctxbench.bench.retrieval.units import Hit
from ctxbench.bench.types import Cursor, Kind
from tests.helpers.samples import make_sample
from tests.helpers.views import make_view

TARGET = "shop/checkout.py"
BEFORE = '''\
from shop.store import load


def quote(user):
    """Say the price."""
    return load(user).total


def pay(user):
    """Take the money."""
    cart = load(user)
'''
AFTER = '''\
    total = cart.total
    return total


def refund(user):
    """Give the money back."""
    return -load(user).total
'''
TEXTS = {
    "shop/cart.py": "class Cart:\n    def add(self, item):\n        self.items.append(item)\n",
    TARGET: BEFORE + AFTER,
    "shop/store.py": 'def load(user):\n    """Return the cart."""\n    return user.cart\n',
    "tests/test_pay.py": "def test_pay(user):\n    assert pay(user) == quote(user)\n",
}
RANKERS = ("bm25", "jaccard", "hashed")


def pay_view(texts: dict[str, str] | None = None, retrieval: Retrieval | None = None, **changes: Any) -> View:
    """Return a view whose cursor is at the start of a function. By default the files are the shop's."""
    fields = {"prefix": BEFORE, "cursor": Cursor(line=11, column=0), **changes}
    hidden = fields.pop("hidden", ())
    query = make_sample(**fields).query()
    return make_view(query, TEXTS if texts is None else texts, hidden=hidden, retrieval=retrieval)


def _names(hits: tuple[Hit, ...]) -> set[str]:
    return {hit.name for hit in hits}


LINE_FUNCTIONS = {"Cart.add", "load", "quote", "test_pay"}


@pytest.mark.parametrize("ranker", RANKERS)
@pytest.mark.parametrize("unit", ["function", "usage", "summary"])
def test_functions_before_the_cursor_are_candidates(unit: str, ranker: str) -> None:
    hits = pay_view().search("pay total refund money", unit=unit, ranker=ranker, top=99)
    assert _names(hits) == LINE_FUNCTIONS
    assert all(hit.place.end <= 6 for hit in hits if hit.place.path == TARGET)


def test_a_function_that_may_continue_at_the_cursor_is_not_a_candidate() -> None:
    """The cursor is after ``quote``. Only the answer reveals whether the next line still belongs to ``quote``."""
    cursor, prefix = Cursor(line=6, column=0), "\n".join(BEFORE.split("\n")[:6]) + "\n"
    assert "quote" not in _names(pay_view(cursor=cursor, prefix=prefix).search("x", ranker="hashed", top=99))
    cursor, prefix = Cursor(line=8, column=4), "\n".join(BEFORE.split("\n")[:8]) + "\ndef "
    assert "quote" in _names(pay_view(cursor=cursor, prefix=prefix).search("x", ranker="hashed", top=99))


FUNCTION = {
    "kind": Kind.FUNCTION,
    "prefix": BEFORE[: BEFORE.index("    cart =")],
    "suffix": AFTER[AFTER.index("\n\ndef refund") :],
    "cursor": Cursor(line=10, column=0),
}


@pytest.mark.parametrize("ranker", RANKERS)
@pytest.mark.parametrize("unit", ["function", "usage", "summary"])
def test_function_samples_have_all_functions_but_the_target_as_candidates(unit: str, ranker: str) -> None:
    view = pay_view(**FUNCTION)
    hits = view.search("pay total refund money", unit=unit, ranker=ranker, top=99)
    assert _names(hits) == LINE_FUNCTIONS | {"refund"}
    lines = view.read(TARGET).split("\n")
    [refund] = [hit for hit in hits if hit.name == "refund"]
    assert lines[refund.place.start].startswith("def refund")  # the place refers to the file as the view shows it


def test_a_target_without_docstring_does_not_swallow_the_next_function() -> None:
    prefix = "def pay(user):\n"
    suffix = "def refund(user):\n    return 2\n"
    view = pay_view(
        {TARGET: prefix + "    return 1\n" + suffix},
        kind=Kind.FUNCTION,
        prefix=prefix,
        suffix=suffix,
        cursor=Cursor(line=1, column=0),
    )
    [hit] = view.search("pay", ranker="bm25")
    assert (hit.name, hit.text, hit.place.start) == ("refund", suffix.rstrip(), 1)


def test_a_java_target_method_and_its_class_are_not_candidates() -> None:
    prefix = "class Cart {\n    int size() { return 1; }\n\n    /** Adds. */\n    void add(int item) {"
    suffix = "}\n\n    void clear() {\n        size();\n    }\n}\n"
    texts = {"Cart.java": prefix + "\n        items.add(item);\n    " + suffix, "A.java": "class A { void a() {} }\n"}
    view = pay_view(
        texts,
        language=JAVA,
        path="Cart.java",
        kind=Kind.FUNCTION,
        prefix=prefix,
        suffix=suffix,
        cursor=Cursor(line=4, column=len(prefix.rsplit("\n", maxsplit=1)[-1])),
    )
    assert _names(view.search("add items", ranker="bm25")) == {"Cart.size", "Cart.clear", "A.a"}


@pytest.mark.parametrize("unit", ["chunk(lines=2)", "mini-block(lines=3)", "words(count=4)"])
@pytest.mark.parametrize("ranker", RANKERS)
def test_chunks_of_the_target_file_end_before_the_shown_context(unit: str, ranker: str) -> None:
    assert all(hit.place.path != TARGET for hit in pay_view().search(BEFORE, unit=unit, ranker=ranker, top=99))
    hits = pay_view(context_start=7).search(BEFORE, unit=unit, ranker=ranker, top=99)
    here = [hit for hit in hits if hit.place.path == TARGET]
    assert here and all(hit.place.end <= 7 for hit in here)
    assert {hit.place.path for hit in hits} == set(TEXTS)


def test_hidden_files_have_no_units_and_do_not_affect_scores() -> None:
    with_tests = pay_view(hidden=("tests/",))
    texts = {path: text for path, text in TEXTS.items() if not path.startswith("tests/")}
    for ranker in RANKERS:
        hits = with_tests.search("assert pay(user) == quote(user)", ranker=ranker, top=99)
        assert hits == pay_view(texts).search("assert pay(user) == quote(user)", ranker=ranker, top=99)
        assert all(hit.place.path != "tests/test_pay.py" for hit in hits)
    assert "test_pay" in _names(pay_view().search("assert", ranker="bm25"))


def test_only_the_stored_prefix_of_a_changed_file_is_searched() -> None:
    view = pay_view({**TEXTS, TARGET: "# newer\n" + BEFORE + AFTER}, context_start=7)
    assert {hit.name for hit in view.search("x", ranker="hashed", top=99) if hit.place.path == TARGET} == {"quote"}
    assert all(hit.place.path != TARGET for hit in view.search("x", unit="chunk(lines=1)", ranker="hashed", top=99))


def test_hits_of_a_target_outside_the_snapshot_are_ordered_by_path() -> None:
    texts = {"a.py": "def f(): return 1\n", "z.py": "def f(): return 1\n"}
    view = pay_view(texts, path="m.py", prefix="def f(): return 1\n\nx = ", cursor=Cursor(line=2, column=4))
    for ranker in RANKERS:
        assert [hit.place.path for hit in view.search("f", ranker=ranker)] == ["a.py", "m.py", "z.py"]


def test_a_hit_names_the_key_most_similar_to_the_query() -> None:
    [hit] = pay_view().search("store.load(user)", unit="usage", ranker="jaccard", top=1)
    assert (hit.name, hit.matched, hit.score) == ("load", "store.load(user)", 1.0)
    assert hit.text == "def load(user)"
    [hit] = pay_view().search("return the cart", unit="summary", ranker="jaccard", top=1)
    assert (hit.name, hit.matched) == ("load", "return the cart")
    [hit] = pay_view().search("def load(user): return the cart", ranker="jaccard", top=1)
    assert hit.matched == "" and hit.text == TEXTS["shop/store.py"].rstrip()


def test_hits_fill_the_list_and_a_blank_query_finds_nothing() -> None:
    hits = pay_view().search("cart", ranker="bm25", top=99)
    assert len(hits) == 4 and hits[-1].score == 0
    for ranker in RANKERS:
        assert pay_view().search(" \n", ranker=ranker) == ()
        assert pay_view({}, path="a.py", prefix="", cursor=Cursor(line=0, column=0)).search("x", ranker=ranker) == ()
    assert pay_view().search("+++", ranker="bm25") == ()
    assert len(pay_view().search("cart", ranker="bm25", top=2)) == 2


@pytest.mark.parametrize("text", ["\ud800 cart", "\0", "a" * 100_000])
@pytest.mark.parametrize("ranker", RANKERS)
def test_any_text_can_be_searched_for(text: str, ranker: str) -> None:
    assert len(pay_view().search(text, ranker=ranker)) == (0 if (text, ranker) == ("\0", "bm25") else 4)
    assert len(pay_view().similarity(text, ["cart", text], ranker=ranker)) == 2


def test_summaries_are_requested_once_per_snapshot_for_visible_functions() -> None:
    asked: list[str] = []

    def summarise(language: Language, units: Any) -> list[str]:
        asked.extend(unit.code for unit in units)
        return ["" if unit.name == "load" else f"does {unit.name}" for unit in units]

    retrieval = Retrieval(summarise=summarise)
    for _ in range(2):
        hits = pay_view(retrieval=retrieval).search("does quote", unit="summary", ranker="jaccard", top=99)
    assert hits[0].matched == "does quote"
    assert {hit.name: hit.matched for hit in hits}["load"]  # without a summary, another key still matches
    assert len(asked) == 6 + 1  # the functions of the snapshot, and the only candidate in the target file


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"ranker": "bm52"}, NoRanker, "no encoder is called 'bm52'; did you mean bm25"),
        ({"ranker": "bm25(k1=2)"}, InputFault, "has no parameter 'k1'"),
        ({"ranker": "bm25(split=words)"}, InputFault, "split=words is invalid"),
        ({"ranker": "hashed(width=1)"}, NoRanker, "width=1"),
        ({"ranker": "hashd"}, NoRanker, "did you mean"),
        ({"ranker": "hashed("}, InputFault, "is not a spec"),
        ({"unit": "windows"}, UnknownName, "no unit is called 'windows'"),
        ({"top": 0}, InputFault, "whole number from 1"),
        ({"top": True}, InputFault, "whole number from 1"),
    ],
)
def test_invalid_arguments_are_one_line_faults(arguments: dict[str, Any], kind: type[InputFault], words: str) -> None:
    with pytest.raises(kind) as caught:
        pay_view().search("x", **{"ranker": "bm25", **arguments})
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_a_closed_retrieval_encodes_no_more_texts() -> None:
    retrieval = Retrieval()
    retrieval.close()
    with pytest.raises(MachineFault, match="texts encoded"):
        pay_view(retrieval=retrieval).search("cart", ranker="hashed")
    assert pay_view(retrieval=retrieval).search("cart", ranker="bm25")


def test_windows_are_compared_with_the_tokenizer_of_the_retrieval() -> None:
    ours, others = (
        pay_view(retrieval=retrieval) for retrieval in (Retrieval(), Retrieval(tokens=lambda text: text.split("_")))
    )
    scores = [[hit.score for hit in view.similar_windows("pay_tax(cart)", size=2, stride=1)] for view in (ours, others)]
    assert scores[0] != scores[1]
    assert scores[0] == [hit.score for hit in ours.similar_windows("pay_tax(cart)", size=2, stride=1)]
