"""The complete prompts of RLCoder and RepoCoder for functions."""

import pytest

from ctxbench.bench.code_tokens import count
from ctxbench.bench.repository import View
from ctxbench.bench.retrieval.units import Hit
from ctxbench.strategies.api import BlockKind
from ctxbench.strategies.baselines.rlcoder import STOP, question, retrieve
from tests.strategies.baselines.shop import made, view
from tests.strategies.icl.shop import PYTHON, Model, java_query, query

HEAD = query().prefix
JAVA_HEAD = java_query().prefix
STORE = '''\
# file path: shop/store.py
# lines: 1-6
# """Where carts are kept."""
# def load_cart(user):
#     """Return the cart of a user."""
#     return {}'''
RULES = '''\
# file path: shop/rules.py
# lines: 1-22
# # A licence
# # of two lines.
# """Rules that turn a sum into a price."""
# import math
# RATE = 0.2
# if math is not None:
#     def apply_tax(amount, rate=RATE):
#         """Add the tax to an amount."""
#         return amount * (1 + rate)
# class Rules:
#     """All of them."""
#     places = 2
#     def __init__(self, rate):
#         self.rate = rate'''
JAVA_RULES = """\
// file path: src/Rules.java
// lines: 22-31
//     double tax(double amount, double rate) {
//         return amount * (1 + rate);
//     }
//     interface Part {
//         int size();
//     }
//     enum Coin { CENT, EURO; int worth() { return 1; } }
// }"""
PATH, JAVA_PATH = "\n\n# file path: shop/checkout.py\n\n", "\n\n# file path: src/Till.java\n\n"


def ranked(monkeypatch: pytest.MonkeyPatch, *words: str) -> list[list[str]]:
    """Make the encoder rank texts by the first of `words` that they contain; return what the encoder compared."""
    compared: list[list[str]] = []

    def similarity(self: View, text: str, candidates: list[str], *, ranker: str) -> tuple[float, ...]:
        compared.append([text, ranker, *candidates])
        scores = [next((1 - at / 10 for at, word in enumerate(words) if word in one), 0.0) for one in candidates]
        return tuple(scores)

    monkeypatch.setattr(View, "similarity", similarity)
    return compared


def test_rlcoder_shows_the_best_block_first_and_the_file_last(monkeypatch: pytest.MonkeyPatch) -> None:
    ranked(monkeypatch, "load_cart", "A licence", "apply_discount", STOP)
    prompt = made("base.rlcoder(blocks=2)")
    assert prompt.text == f"{STORE}\n\n{RULES}{PATH}{HEAD}" and prompt.flags == ()
    similar = [block for block in prompt.blocks if block.kind is BlockKind.SIMILAR]
    assert [(block.score, block.cut) for block in similar] == [(1.0, False), (0.9, False)]
    assert [(place.start, place.end) for place in similar[0].places] == [(0, 1), (3, 6)]
    assert prompt.blocks[-1].kind is BlockKind.INFILE


def test_rlcoder_uses_java_comments_except_for_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    ranked(monkeypatch, "interface Part", STOP)
    prompt = made("base.rlcoder", java_query())
    assert prompt.text == f"{JAVA_RULES}{JAVA_PATH}{JAVA_HEAD}"


def test_blocks_ranked_after_the_stop_block_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = ranked(monkeypatch, "load_cart", STOP, "A licence")
    prompt = made("base.rlcoder(encoder=hashed)")
    assert prompt.text == f"{STORE}{PATH}{HEAD}"
    assert [(one.reason, one.places[0].path) for one in prompt.dropped] == [("stop", "shop/rules.py")] * 2
    assert all(one.tokens for one in prompt.dropped)
    [(asked, encoder, *shown)] = compared
    assert asked == question(HEAD) and encoder == "hashed"
    assert shown[-1] == f"# {STOP}" and STORE in shown
    assert made("base.rlcoder(stop_block=off)").text.startswith(f"{STORE}\n\n# file path: shop/rules.py")


def test_no_block_is_shown_if_the_stop_block_ranks_first(monkeypatch: pytest.MonkeyPatch) -> None:
    ranked(monkeypatch, STOP, "load_cart")
    prompt = made("base.rlcoder")
    assert prompt.text == f"{PATH}{HEAD}" and prompt.flags == ("stopped",)


def test_blocks_are_cut_at_their_end_and_the_file_at_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    ranked(monkeypatch, "load_cart", "A licence", STOP)
    whole = count(STORE) + count(PATH) + 10 + 20
    prompt = made(f"base.rlcoder(budget={count(STORE)}, whole={whole}, stop_block=off)")
    shown, left = prompt.text.split(PATH)
    assert shown == STORE and HEAD.endswith(left) and count(left) == 20
    assert prompt.flags == ("overflow_trimmed",) and prompt.blocks[-1].cut
    assert [one.reason for one in prompt.dropped] == ["budget", "budget"]
    _, *others = [one for one in made("base.rlcoder(stop_block=off)").blocks if one.kind is BlockKind.SIMILAR]
    assert [one.tokens for one in prompt.dropped] == [count(block.text) for block in others]
    [block] = [one for one in made("base.rlcoder(budget=30)").blocks if one.kind is BlockKind.SIMILAR]
    assert block.cut and not STORE.endswith(block.text) and block.text in STORE


def test_a_query_has_20_lines_and_the_encoder_sees_256_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"name_{number} = other_{number} + 1" for number in range(60)]
    asked = question("\n\n".join(lines) + "\n")
    assert asked.split("\n") == lines[-20:]
    compared = ranked(monkeypatch, STOP)
    long = "\n".join(f"user_cart_{number} = load(user)" for number in range(200))
    retrieve(view(query()), long, "hashed", 50, 5)
    [(seen, *_)] = compared
    assert count(seen) == 256 and long.endswith(seen)


def test_a_repository_of_one_file_has_no_candidates() -> None:
    prompt = made("base.rlcoder(encoder=hashed)", files={"shop/checkout.py": PYTHON["shop/checkout.py"]})
    assert prompt.text == f"{PATH}{HEAD}" and prompt.flags == ("no_candidates",)


def test_repocoder_reranks_the_first_candidates_by_its_draft(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = ranked(monkeypatch, "load_cart", STOP, "A licence")
    searched: list[tuple[str, int]] = []
    search = View.search

    def noted(self: View, text: str, *, unit: str, ranker: str, top: int) -> tuple[Hit, ...]:
        searched.append((text, top))
        return search(self, text, unit=unit, ranker=ranker, top=top)

    monkeypatch.setattr(View, "search", noted)
    model = Model("    cart = load_cart(user)\n")
    prompt = made("base.repocoder_fn(encoder=hashed, first_encoder=jaccard, first_blocks=1)", model=model)
    assert prompt.text == f"{STORE}{PATH}{HEAD}" and prompt.flags == ()
    assert model.asked == [("draft", 256, f"{STORE}{PATH}{HEAD}")]
    assert searched == [(question(HEAD), 50), (question(HEAD), 100)]
    (first, ranker, *shown), (second, ranker_again, *shown_again) = compared
    assert (ranker, ranker_again) == ("jaccard", "hashed"), "the release's stages have an encoder each"
    assert second == f"{first}\n    cart = load_cart(user)\n"
    assert shown_again == [*shown, f"# {STOP}"], "the release has a stop block in its second stage only"
    assert [dropped.reason for dropped in prompt.dropped] == ["stop"] * 2
    assert "A licence" in made("base.repocoder_fn(encoder=hashed, stop_block=off)", model=Model("x")).text
    assert [ranker for _, ranker, *_ in compared[2:]] == ["hashed"] * 2


def test_repocoder_flags_an_empty_draft(monkeypatch: pytest.MonkeyPatch) -> None:
    ranked(monkeypatch, "load_cart")
    assert made("base.repocoder_fn", model=Model("")).flags == ("empty_draft",)
    assert made("base.repocoder_fn(iterations=1)").flags == ()
