from __future__ import annotations

import pytest

from ctxbench.strategies.icl.prompts import numbered_list, parse_steps, plain_steps, step_question
from tests.strategies.icl.shop import query


@pytest.mark.parametrize(
    ("answer", "steps"),
    [
        ("1. **A**: do a.\n2. **B**: do b.", ("**A**: do a.", "**B**: do b.")),
        ("  3) a\n 10. b\n", ("a", "b")),
        ("Here they are:\n\n1. a\n   more of a\n\n2. b\n", ("a\n   more of a", "b")),
        ("Load it.\nThen sum it.", ("Load it.\nThen sum it.",)),
        ("1.5 is no number of a step", ("1.5 is no number of a step",)),
        ("", ()),
        (" \n\n", ()),
        ("1. \n2. b", ("b",)),
    ],
)
def test_steps_are_numbered_lines_and_what_follows_them(answer: str, steps: tuple[str, ...]) -> None:
    assert parse_steps(answer) == steps


def test_they_are_shown_numbered_from_one() -> None:
    assert (
        numbered_list(parse_steps("4. **A**: a\n7) b")) == "Here are the steps to implement it:\n1. **A**: a\n2. b\n\n"
    )


def test_asterisks_are_not_looked_for() -> None:
    assert step_question("**Add tax**: to *amount*.") == "Add tax: to amount."


@pytest.mark.parametrize(
    ("docstring", "steps"),
    [
        ("Load the cart. Add the tax!\nRound it. Say so.", ("Load the cart.", "Add the tax!", "Round it.")),
        ("Load the\ncart e.g. from disk.\n\nArgs:\n    a: Not this.", ("Load the cart e.g. from disk.",)),
        ("Add.\n>>> add(1)\n2", ("Add.",)),
        ("Add.\n\n:param a: Not this.", ("Add.",)),
        ("Pays.\n\n@param a Not this.", ("Pays.",)),
        ("Add.\n\nParameters\n----------\na", ("Add.",)),
        (":param a: Only this.", ("check out",)),
        ("", ("check out",)),
        ("...", ("check out",)),
    ],
)
def test_plain_steps_are_the_first_sentences(docstring: str, steps: tuple[str, ...]) -> None:
    assert plain_steps(query(docstring=docstring, name="Shop.checkOut(int)"), 3) == steps


def test_nothing_to_plan_with_gives_no_steps() -> None:
    assert plain_steps(query(docstring="", name=None), 3) == ()
