"""A language that nobody has taught to take functions out of answers."""

import pytest

from ctxbench.bench.languages.base import Language
from ctxbench.bench.types import Cursor, Kind
from ctxbench.harness.generators.answers import Extracted, body, extract
from tests.helpers.samples import make_sample


class Kotlin(Language):
    """Lines only."""


HEAD = "/** Doubles. */\nfun twice(n: Int): Int {\n"
BODY = "    return 2 * n\n}"
SAMPLE = make_sample(
    language=Kotlin("kotlin"),
    kind=Kind.FUNCTION,
    subkind="untested",
    name="twice",
    path="twice.kt",
    prefix=HEAD,
    cursor=Cursor(line=2, column=0),
    span=(1, 4),
)


@pytest.mark.parametrize(
    "answer",
    [
        BODY,
        f"Here:\n\n```kotlin\nfun twice(n: Int): Int {{\n{BODY}\n```",
        f"[CODE]fun twice(n: Int): Int {{\n{BODY}[/CODE]",
        f"{BODY}\n```",
        f"{BODY}\n```\n\nUse it so:\n\n```kotlin\ntwice(1)\n```\n",
    ],
)
def test_code_or_what_continues_the_prompt_is_taken_as_it_is(answer: str) -> None:
    function = extract(SAMPLE, answer).text.rstrip("\n")
    assert function == f"fun twice(n: Int): Int {{\n{BODY}"
    assert body(SAMPLE, function) == BODY


def test_blank_answers_are_no_function() -> None:
    assert extract(SAMPLE, " \n") == Extracted(text="", flags=("parse_failed",))
