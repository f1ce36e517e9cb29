"""CoCoGen's prompts, written out, and what its repairs do."""

from __future__ import annotations

from ctxbench.bench.types import Cursor
from ctxbench.strategies.api import BlockKind
from tests.strategies.baselines.shop import made
from tests.strategies.icl.shop import Model, query

SHOTS = """\
Q: "Write a function.
Function name: clamp
Function signature:  def clamp(value, low, high)
Function Description:
Return the value, or the nearer bound if it lies outside of them."
A:
def clamp(value, low, high):
    return max(low, min(value, high))
[END OF CODE]

Q: "Write a function.
Function name: group_by_length
Function signature:  def group_by_length(words)
Function Description:
Return a dictionary from a length to the words that have it, in their order."
A:
def group_by_length(words):
    groups = {}
    for word in words:
        groups.setdefault(len(word), []).append(word)
    return groups
[END OF CODE]

"""
PROBLEM = """\
Q: "Write a function.
Function name: checkout
Function signature:  def checkout(store, user, rate)
Function Description:
Take the money of a user.

Add the tax to the cart.
"
"""
LOAD = '''\
def load_cart(user):
    """Return the cart of a user."""
    return {}
'''
FIRST = f"{SHOTS}```\n{LOAD}```\n{PROBLEM}A:\n"
WRONG = "def checkout(store, user, rate):\n    cart = load_cart(user)\n    return (cart\n"
UNKNOWN = "```python\ndef checkout(store, user, rate):\n    return load_cart(user)\n```\n[END OF CODE]"
RIGHT = "def checkout(store, user, rate):\n    return apply_tax(store[user], rate)\n[END OF CODE]"
REPAIR = f"""\
{SHOTS}{PROBLEM}
Previous Answer: \n\
```
def checkout(store, user, rate):
    return load_cart(user)
```
Fail Reason:In line: return load_cart(user)
Error: there is no symbol 'load_cart' in this context.
Current Module: shop.checkout
Symbols of the repository that may be used:
```
from shop.store import load_cart
def load_cart(user) ...
```
A:
"""
BROKEN = f"""\
{SHOTS}{PROBLEM}
Previous Answer: \n\
```
def checkout(store, user, rate):
    cart = load_cart(user)
    return (cart
```
Fail Reason:In line: return (cart . '(' was never closed
A:
"""
SPEC = "base.cocogen(encoder=hashed)"


def test_a_draft_without_faults_is_asked_for_again_as_it_was() -> None:
    model = Model(RIGHT)
    prompt = made(SPEC, model=model)
    assert model.asked == [("draft", 1024, FIRST)]
    assert prompt.text == FIRST and prompt.flags == ()
    assert [block.text for block in prompt.blocks if block.kind is BlockKind.SIMILAR] == [LOAD.rstrip("\n")]


def test_repairs_show_the_last_answer_and_nothing_retrieved() -> None:
    model = Model(UNKNOWN, WRONG, RIGHT)
    prompt = made(SPEC, model=model)
    assert [text for _, _, text in model.asked] == [FIRST, REPAIR, BROKEN]
    assert prompt.text == BROKEN and prompt.flags == ("repaired",)
    assert [one for one in prompt.blocks if one.kind is BlockKind.SIMILAR] == []


def test_there_are_three_repairs_and_the_harness_asks_for_the_last() -> None:
    model = Model(UNKNOWN, UNKNOWN, WRONG)
    assert made(SPEC, model=model).text == BROKEN and not model.answers
    assert made("base.cocogen(encoder=hashed, repairs=1)", model=Model(UNKNOWN)).text == REPAIR
    assert made("base.cocogen(encoder=hashed, repairs=0)", model=Model()).text == FIRST


def test_the_most_similar_context_is_last() -> None:
    prompt = made("base.cocogen(encoder=hashed, contexts=3, repairs=0)")
    scores = [block.score for block in prompt.blocks if block.kind is BlockKind.SIMILAR]
    assert len(scores) == 3 and scores == sorted(scores, key=lambda one: one or 0)
    assert f"{LOAD}```\n{PROBLEM}" in prompt.text
    assert made("base.cocogen(encoder=hashed, contexts=0, repairs=0)").text == f"{SHOTS}```\n\n```\n{PROBLEM}A:\n"


def test_nothing_is_seen_of_the_reference() -> None:
    prompt = made("base.cocogen(encoder=hashed, contexts=9, repairs=0)")
    assert "secret" not in prompt.text and "checkout(store, user, rate):" not in prompt.text


def test_a_model_that_goes_on_is_hinted_by_signatures() -> None:
    model = Model("    return load_cart(user)\n", "    return apply_tax(1)\n", instructs=False)
    prompt = made(SPEC, model=model)
    head = query().prefix
    hint = f"from shop.store import load_cart\ndef load_cart(user)\n\n\n{head}"
    assert [text for _, _, text in model.asked] == [f"{LOAD}\n{head}", hint]
    assert prompt.text == hint and prompt.flags == ("no_instructions", "repaired")
    assert [block.kind for block in prompt.blocks] == [BlockKind.API, BlockKind.TEXT, BlockKind.INFILE]


def test_an_empty_draft_ends_the_repairs() -> None:
    prompt = made(SPEC, model=Model(" "))
    assert prompt.text == FIRST and prompt.flags == ("empty_draft",)


def test_a_lone_file_has_no_candidates() -> None:
    head = "def checkout(store, user, rate):\n"
    about = query(prefix=head, suffix="", cursor=Cursor(line=1, column=0))
    prompt = made(SPEC, about, files={}, model=Model(f"{head}    return rate\n"))
    assert prompt.flags == ("no_candidates",) and prompt.text == f"{SHOTS}```\n\n```\n{PROBLEM}A:\n"
