"""CoCoGen's complete prompts and its repairs."""

import pytest

from ctxbench.bench.repository import View
from ctxbench.bench.types import Cursor
from ctxbench.strategies.api import BlockKind
from ctxbench.strategies.baselines.cocogen import Category, Checker, Symbols, placed
from tests.strategies.baselines.shop import made, view
from tests.strategies.icl.shop import PYTHON, Model, query

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


def test_a_draft_without_faults_is_requested_again_with_the_same_prompt() -> None:
    model = Model(RIGHT)
    prompt = made(SPEC, model=model)
    assert model.asked == [("draft", 1024, FIRST)]
    assert prompt.text == FIRST and prompt.flags == ()
    assert [block.text for block in prompt.blocks if block.kind is BlockKind.SIMILAR] == [LOAD.rstrip("\n")]


def test_a_repair_prompt_shows_the_last_answer_without_retrieved_code() -> None:
    model = Model(UNKNOWN, WRONG, RIGHT)
    prompt = made(SPEC, model=model)
    assert [text for _, _, text in model.asked] == [FIRST, REPAIR, BROKEN]
    assert prompt.text == BROKEN and prompt.flags == ("repaired",)
    assert [one for one in prompt.blocks if one.kind is BlockKind.SIMILAR] == []


def test_the_last_of_three_repairs_is_the_returned_prompt() -> None:
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


def test_the_prompt_contains_nothing_of_the_reference() -> None:
    prompt = made("base.cocogen(encoder=hashed, contexts=9, repairs=0)")
    assert "secret" not in prompt.text and "checkout(store, user, rate):" not in prompt.text


def test_a_model_without_instructions_gets_signatures_as_hints() -> None:
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


def test_a_repository_of_one_file_has_no_candidates() -> None:
    head = "def checkout(store, user, rate):\n"
    about = query(prefix=head, suffix="", cursor=Cursor(line=1, column=0))
    prompt = made(SPEC, about, files={}, model=Model(f"{head}    return rate\n"))
    assert prompt.flags == ("no_candidates",) and prompt.text == f"{SHOTS}```\n\n```\n{PROBLEM}A:\n"


HEAD = query().prefix
FILES = {**PYTHON, "shop/__init__.py": ""}


def found(body: str, head: str = HEAD, files: dict[str, str] | None = None) -> list[tuple[Category, str, str]]:
    """Return the category, name and line of each fault in a body."""
    about = query(prefix=head)
    draft = placed(about, body)
    assert draft is not None
    faults = Checker(about, view(about, files or FILES)).faults(draft)
    return [(one.category, one.name, draft.line(one.line)) for one in faults]


def test_good_code_has_no_faults() -> None:
    assert found("    import math\n    tax = apply_tax(store[user], rate)\n    return math.floor(tax)\n") == []
    assert found("    return '\\d' is store\n") == [], "what warns is read in silence"
    assert found("    global RATE\n    RATE = [x for x in store]\n    return lambda y: (y, __file__, RATE)\n") == []


def test_undefined_names_and_members_are_faults() -> None:
    assert len(found("    return nothing + nothing\n")) == 1
    body = "    from shop import rules\n    a = rules.round_up(rate)\n    b = rules.RATE\n    return load_cart(a) + b\n"
    assert found(body) == [
        (Category.MEMBER, "rules.round_up", "a = rules.round_up(rate)"),
        (Category.UNDEFINED, "load_cart", "return load_cart(a) + b"),
    ]


def test_importing_a_missing_member_of_the_project_is_a_fault() -> None:
    [(category, name, line)] = found("    from shop.rules import add_tax\n    return add_tax(1)\n")
    assert category is Category.MEMBER and "add_tax" in name and line == "from shop.rules import add_tax"


def test_redefined_functions_and_invalid_format_calls_are_faults() -> None:
    body = "    def help():\n        return 1\n    def help():\n        return 2\n    return help()\n"
    assert found(body) == [(Category.REDEFINED, "help", "def help():")]
    assert [each[0] for each in found("    return '{} {}'.format(rate)\n")] == [Category.OTHER]


@pytest.mark.parametrize("body", ["    return (1\n", "    x = = 1\n", "\treturn 1\n        return 2\n", "    a = '\n"])
def test_a_syntax_error_is_the_only_reported_fault(body: str) -> None:
    [(category, name, _)] = found(f"{body}    return undefined_name\n")
    assert category is Category.SYNTAX and name == ""


def test_a_string_at_the_margin_adds_no_faults_to_a_method() -> None:
    head = "class Shop:\n    def checkout(self):\n        "
    body = 'text = """\nat the margin\n"""\n        return text\n'
    assert found(body, head) == found(f"class Shop:\n    def checkout(self):\n        {body}", head) == []
    assert found("```\ntext = 1\nreturn txt\n```", head) == [(Category.UNDEFINED, "txt", "return txt")]


def test_faults_outside_the_function_are_ignored() -> None:
    assert found("    return 1\n", f"undefined_above()\n{HEAD}") == []
    # Python 2 code above the function prevents the check.
    assert found("    return undefined_name\n", f"print 'two'\n{HEAD}") == []
    # The file defines the function twice.
    assert found("    return 1\n", f"def checkout():\n    pass\n\n\n{HEAD}") == []


def test_methods_are_checked_against_their_class() -> None:
    head = "class Till:\n    def __init__(self):\n        self.sum = 0\n\n    def checkout(self, rate):\n"
    assert found("        return self.sum + self.total(rate)\n", head) == [
        (Category.MEMBER, "self.total", "return self.sum + self.total(rate)")
    ]


def symbols(name: str, line: str = "", repo: View | None = None) -> list[str]:
    return [one.text for one in Symbols(repo or view(query(), FILES), query().path, "hashed").find(name, line)]


def test_symbols_with_an_equal_name_include_their_import() -> None:
    assert symbols("apply_tax") == ["from shop.rules import apply_tax\ndef apply_tax(amount, rate=RATE)"]
    assert symbols("Rules") == ["from shop.rules import Rules\nclass Rules"]
    assert symbols("step") == ["from shop.rules import Rules\nclass Rules:\n    def step(self)"]
    assert symbols("refund") == ["def refund(store, user)"]  # in the target file


def test_without_an_equal_name_the_most_similar_symbols_are_found() -> None:
    listed = symbols("add_tax_to_amount", "total = add_tax_to_amount(amount, rate)")
    assert len(listed) == 5 and listed[0].endswith("def apply_tax(amount, rate=RATE)")
    # Inner functions cannot be imported.
    assert all("power" not in one for one in symbols("power"))


def test_the_target_is_not_listed_as_a_symbol() -> None:
    assert all("checkout(" not in one for one in symbols("chekout", "chekout(store, user, rate)"))
