import pytest

from ctxbench.bench.types import Cursor
from ctxbench.strategies.baselines.cocogen import placed
from tests.strategies.icl.shop import CHECKOUT, java_query, query

BODY = "    secret = store.load(user)\n    return secret\n"
RESTATED = f"def checkout(store, user, rate):\n{BODY}"


@pytest.mark.parametrize(
    "answer",
    [
        BODY,
        "secret = store.load(user)\n    return secret\n",
        f"{BODY}\n\ndef other():\n    pass\n",
        f"{BODY}[END OF CODE]\n\nQ: more",
    ],
)
def test_a_body_is_placed_after_the_head(answer: str) -> None:
    draft = placed(query(), answer)
    assert draft is not None and draft.text == CHECKOUT
    assert (draft.start, draft.end) == (11, 18) and draft.line(16) == "secret = store.load(user)"
    assert draft.line(99) == ""


@pytest.mark.parametrize(
    "answer",
    [
        RESTATED,
        f"Here it is:\n```python\n{RESTATED}```\nIt works.",
        f"```\nnothing\n```\n```py\n@log\n{RESTATED}\ndef helper():\n    pass\n```",
        f"class Shop:\n    {RESTATED.replace(chr(10), chr(10) + '    ')}",
    ],
)
def test_a_restated_function_replaces_the_head(answer: str) -> None:
    draft = placed(query(), answer)
    assert draft is not None and draft.function == RESTATED.rstrip()
    assert draft.text == CHECKOUT.replace(
        '    """Take the money of a user.\n\n    Add the tax to the cart.\n    """\n', ""
    )


def test_a_method_is_indented_as_in_its_class() -> None:
    about = query(
        prefix="class Shop:\n    def pay(self):\n        ",
        suffix="\n    x = 1\n",
        name="Shop.pay",
        cursor=Cursor(line=2, column=8),
    )
    margin, behind_the_cursor, deeper = (
        "x = 0\nreturn 1",
        "x = 0\n        return 1\n",
        "        x = 0\n        return 1\n",
    )
    method = f"    def pay(self):\n{deeper}"
    answers = (margin, behind_the_cursor, deeper, f"{deeper}    x = 2\n", f"class Shop:\n{method}")
    for answer in (*answers, *(f"```\n{code}\n```" for code in (margin, deeper, method, f"class Shop:\n{method}"))):
        draft = placed(about, answer)
        assert draft is not None
        assert draft.text == "class Shop:\n    def pay(self):\n        x = 0\n        return 1\n\n    x = 1\n"


def test_multi_line_strings_are_unchanged() -> None:
    about = query(prefix="class Shop:\n    def pay(self):\n        ", name="Shop.pay", cursor=Cursor(line=2, column=8))
    body = '        deep = """\n            deep\n"""\n        return """\nat the margin\n"""'
    method = f"    def pay(self):\n{body}"
    moved = 'def pay(self):\n    deep = """\n            deep\n"""\n    return """\nat the margin\n"""'
    answers = (body, body.lstrip(), f"class Shop:\n{method}\n", moved)
    for answer in (*answers, *(f"```python\n{code}\n```" for code in (body, method, f"class Shop:\n{method}", moved))):
        draft = placed(about, answer)
        assert draft is not None and draft.function == method


def test_a_function_that_does_not_parse_keeps_its_lines() -> None:
    draft = placed(query(), "Sure:\ndef checkout(store, user:\n    return (1\nThat is all")
    assert draft is not None and draft.function == "def checkout(store, user:\n    return (1"


def test_an_empty_answer_a_missing_head_or_java_has_no_draft() -> None:
    assert placed(query(), " \n") is None and placed(query(prefix="", name="checkout"), BODY) is None
    assert placed(java_query(), "return 1;") is None
