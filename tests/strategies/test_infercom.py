import dataclasses
from typing import Any

import pytest

from ctxbench.bench.code_tokens import count
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Cursor, Place, Query
from ctxbench.strategies import BlockKind, Prompt, resolve
from ctxbench.strategies.infercom import API_HEADER, drafted_code, drafted_line
from ctxbench.strategies.layout import RULE, SIMILAR_HEADER, infile_prompt
from tests.strategies.projects import CHECKOUT, JAVA, PAY, SHOP, Scripted, case

DRAFT = "price_rules.apply_tax(cart.total, rate)\n"
SUMMARY = "Load the cart of a user"
# The worked example of the replication notes on InferCom; the class entry has a line of four spaces.
EXAMPLE = """\
# Here are some relevant code fragments from other files of the repo:
# --------------------------------------------------
# the below code fragment can be found in:
# shop/cart.py
# --------------------------------------------------
# cart = load_cart(user)
# total = price_rules.apply_tax(cart.total, rate)
# --------------------------------------------------

# Here are some APIs that may be used from other files
# demo-main/shop/price_rules.py
# def apply_tax(amount: float, rate: float = 0.2) -> float


# demo-main/shop/store.py
# class CartStore:
#     \n\
#     def load(self, user_id)



def checkout(store, user_id, rate):
    cart = store.load(user_id)
    total = """


def _prompt(*answers: str, instructs: bool = True, **given: Any) -> tuple[Prompt, Scripted]:
    model = Scripted(*(answers or (DRAFT, SUMMARY)), instructs=instructs)
    spelled = ", ".join(f"{key}={str(value).lower()}" for key, value in {"encoder": "bm25", **given}.items())
    return resolve(f"lc.infercom({spelled})")(*case(SHOP, "shop/checkout.py", CHECKOUT), model), model


def _apis(prompt: Prompt) -> list[str]:
    return [block.text.splitlines()[0].rpartition("/")[2] for block in prompt.blocks if block.kind is BlockKind.API]


def test_the_prompt_equals_the_worked_example() -> None:
    cart = (
        "# the below code fragment can be found in:\n# shop/cart.py\n" + EXAMPLE.split("\n", 4)[4].partition("\n\n")[0]
    )
    room = 20 + count(cart + "\n") + 6  # room for one block with its header
    prompt, model = _prompt(k_uer=1, k_fsr=1, similar=room)
    assert prompt.text == EXAMPLE
    assert model.calls == [("draft", 128), ("summary", 100)] and model.answers == []
    assert [(b.kind, b.places) for b in prompt.blocks if b.kind is not BlockKind.TEXT] == [
        (BlockKind.SIMILAR, (Place(path="shop/cart.py", start=0, end=2),)),
        (BlockKind.API, (Place(path="shop/price_rules.py", start=0, end=2),)),
        (BlockKind.API, (Place(path="shop/store.py", start=1, end=4),)),
        (BlockKind.INFILE, (Place(path="shop/checkout.py", start=0, end=3),)),
    ]
    assert prompt.flags == () and {d.reason for d in prompt.dropped} == {"budget"}


def test_repo_paths_adds_the_repository_name_as_in_figure_7() -> None:
    plain, _ = _prompt()
    named, model = _prompt(repo_paths=True)
    paths = {path for block in plain.blocks if block.kind is BlockKind.SIMILAR for path in block.text.splitlines()[1:2]}
    assert paths and all(path.endswith(".py") for path in paths)
    for path in paths:
        assert path not in named.text.splitlines()
        assert path.replace("# ", "# demo-main/") in model.asked[0].text.splitlines()
        assert path.replace("# ", "# demo-main/") in named.text.splitlines()


def test_the_draft_is_requested_with_repocoders_first_prompt() -> None:
    _, model = _prompt()
    query, repo = case(SHOP, "shop/checkout.py", CHECKOUT)
    first = resolve("lc.repocoder(iterations=1, empty_header=on)")(query, repo, Scripted())
    assert model.asked[0] == first
    assert "\n    total = " + DRAFT.strip() not in model.asked[1].text and "total = " + DRAFT in model.asked[1].text


@pytest.mark.parametrize(
    ("switches", "apis", "asked"),
    [
        ({"k_uer": 0, "k_fsr": 0}, [], ["draft"]),
        ({"k_fsr": 0}, ["price_rules.py"], ["draft"]),
        ({"k_uer": 0}, ["store.py"], ["draft", "summary"]),
        ({"uer": False, "fsr": False}, [], ["draft", "summary"]),
        ({"uer": True, "fsr": False}, ["price_rules.py"], ["draft", "summary"]),
    ],
)
def test_switches_select_api_lists_and_model_calls(switches: dict[str, Any], apis: list[str], asked: list[str]) -> None:
    prompt, model = _prompt(**{"k_uer": 1, "k_fsr": 1, **switches})
    assert _apis(prompt) == apis and [role for role, _ in model.calls] == asked
    assert prompt.text.count(API_HEADER) == 1
    before = prompt.text.removesuffix(CHECKOUT)
    assert len(before) - len(before.rstrip("\n")) == (4 if apis else 2)


def test_apis_that_are_not_shown_still_use_their_budget() -> None:
    full, _ = _prompt(k_uer=1, k_fsr=1)
    apis = "".join(b.text for b in full.blocks if b.kind is BlockKind.API) + "\n\n\n"
    context = count(apis + CHECKOUT) + 90
    base, _ = _prompt(context=context, uer=False, fsr=False, k_uer=1, k_fsr=1)
    none_sought, _ = _prompt(context=context, k_uer=0, k_fsr=0)
    shown = [sum(b.kind is BlockKind.SIMILAR for b in prompt.blocks) for prompt in (base, none_sought)]
    assert shown[0] < shown[1]


def test_an_api_may_occur_in_both_lists() -> None:
    twice, _ = _prompt(k_uer=2, k_fsr=2)
    assert _apis(twice) == ["price_rules.py", "store.py", "store.py", "price_rules.py"]


def test_the_last_apis_are_dropped_first() -> None:
    whole, _ = _prompt(k_uer=2, k_fsr=1)
    apis = [block for block in whole.blocks if block.kind is BlockKind.API]
    assert len(apis) >= 2
    for kept in range(len(apis)):
        text = "".join(b.text for b in apis[:kept])
        prompt, _ = _prompt(k_uer=2, k_fsr=1, context=count(f"{text}\n\n\n{CHECKOUT}"))
        assert [b.text for b in prompt.blocks if b.kind is BlockKind.API] == [b.text for b in apis[:kept]]
        gone = [d for d in prompt.dropped if d.kind is BlockKind.API]
        assert [(d.places, d.tokens) for d in gone] == [(b.places, count(b.text)) for b in apis[kept:][::-1]]
        assert SIMILAR_HEADER not in prompt.text  # fewer than the header's 20 tokens are left


def test_a_model_without_instructions_is_not_asked_for_a_summary() -> None:
    prompt, model = _prompt("load(user)\n", instructs=False)
    assert [role for role, _ in model.calls] == ["draft"] and "plain_summary" in prompt.flags
    assert "store.py" in _apis(prompt)


@pytest.mark.parametrize("draft", ["", "\n \n"])
def test_without_a_draft_the_files_last_line_is_the_query(draft: str) -> None:
    prompt, model = _prompt(draft, SUMMARY, k_uer=1, k_fsr=1)
    assert "empty_draft" in prompt.flags and "code:\ntotal =\n" in model.asked[1].text


def test_an_empty_summary_finds_no_apis() -> None:
    prompt, _ = _prompt(DRAFT, " \n", k_uer=1, k_fsr=1)
    assert _apis(prompt) == ["price_rules.py"] and prompt.flags == ("empty_summary",)


def test_a_repository_of_one_file_shows_the_file_under_headers() -> None:
    query, repo = case({}, "shop/checkout.py", CHECKOUT)
    prompt = resolve("lc.infercom(encoder=bm25)")(query, repo, Scripted(DRAFT, SUMMARY))
    assert prompt.text == f"{SIMILAR_HEADER}\n{API_HEADER}\n{CHECKOUT}"
    assert prompt.flags == ("no_apis", "no_candidates")
    bare = resolve("lc.infercom(encoder=bm25, empty_header=off)")(query, repo, Scripted(DRAFT, SUMMARY))
    assert bare.text == f"{API_HEADER}\n{CHECKOUT}"


def test_an_empty_file_and_draft_find_no_apis() -> None:
    query, repo = case(SHOP, "shop/checkout.py", "")
    prompt = resolve("lc.infercom(encoder=bm25)")(query, repo, Scripted(""))
    assert _apis(prompt) == [] and prompt.text == f"{SIMILAR_HEADER}\n{API_HEADER}\n"
    assert prompt.flags == ("empty_current_file", "no_api_query", "no_candidates", "empty_draft")


def test_drafted_lines_are_joined_to_the_line_of_the_cursor() -> None:
    assert drafted_line("def f():\n", "    return 1\n") == "    return 1"
    assert drafted_line("def f():\n    a = 1\n", "") == "    a = 1"
    assert drafted_line("a = 1\n\n", "") == "" and drafted_line("", "") == ""
    assert drafted_line("a\n    total = ", "\n  \nprice(1)\nb\n") == "    total = price(1)"
    assert drafted_code("a\n    total = ", "\nprice(1)\n\n    b\n") == "total = price(1)\n    b"


def test_an_api_of_the_same_file_is_found_only_before_the_cursor() -> None:
    before = 'def early(rate):\n    """Early."""\n    return rate\n\n\ndef late_one(rate):\n    total = '
    query, repo = case(SHOP, "shop/checkout.py", before)
    prompt = resolve("lc.infercom(encoder=bm25, k_uer=9, k_fsr=9)")(query, repo, Scripted("early(rate)\n", "early"))
    shown = [(b.places[0].path, b.text) for b in prompt.blocks if b.kind is BlockKind.API]
    assert any(path == "shop/checkout.py" and "def early(rate)" in text for path, text in shown)
    assert all("late_one" not in text for _, text in shown)


JAVA_PROMPT = """\
# Here are some APIs that may be used from other files
# demo-main/com/acme/shop/Cart.java
# public class Cart extends Base {
#     public Invoice checkout(Card card, boolean express) throws PayException;
# }



package com.acme.pay;
"""


def test_java_apis_are_found_by_usage_example() -> None:
    query, repo = case(JAVA, "com/acme/pay/Pay.java", PAY)
    spec = "lc.infercom(k_uer=1, k_fsr=0, encoder=bm25, similar=60, empty_header=off)"
    prompt = resolve(spec)(query, repo, Scripted("cart.checkout(card, true);\n"))
    assert prompt.text.startswith(JAVA_PROMPT) and prompt.text.endswith(PAY)
    assert len(prompt.text) == len(JAVA_PROMPT) + len(PAY) - len("package com.acme.pay;\n")


def test_similar_code_is_packed_twice() -> None:
    query, repo = _long()
    prompt = resolve("lc.infercom(encoder=bm25, similar=600)")(query, repo, Scripted("alpha_3()\n", "read"))
    similar = [block for block in prompt.blocks if block.kind is BlockKind.SIMILAR]
    assert similar and sum(count(b.text) for b in similar) < 600 - 20
    assert {d.reason for d in prompt.dropped if d.kind is BlockKind.SIMILAR} == {"limit", "budget"}
    scores = [block.score or 0 for block in similar]
    assert scores == sorted(scores) and prompt.text.count(RULE) == 1 + 2 * len(similar)


def test_the_target_file_is_cut_to_the_infile_limit() -> None:
    query, repo = _long()
    prompt = resolve("lc.infercom(encoder=bm25, infile=40)")(query, repo, Scripted("alpha_3()\n", "read"))
    assert prompt.blocks[-1] == infile_prompt(query, 40).blocks[0] and prompt.blocks[-1].cut


def _long() -> tuple[Query, Repository]:
    files = {f"{name}.py": "".join(f"{name}_{i}()\n" for i in range(190)) for name in ("alpha", "beta")}
    query, repo = case(files, "main.py", "".join(f"alpha_{i}()\n" for i in range(20)))
    assert query.cursor == Cursor(line=20, column=0)
    return dataclasses.replace(query, subkind="next-line"), repo
