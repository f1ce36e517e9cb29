# mypy: ignore-errors
"""Tests of our own for boolean.py 5.0, whose sdist has none. Expectations: the docstrings, and the package."""

import itertools

import boolean
import pytest

ALGEBRA = boolean.BooleanAlgebra()
A, B, C, D = ALGEBRA.symbols("a", "b", "c", "d")


def _absorbed(text):
    expression = ALGEBRA.parse(text)
    return expression.absorb(expression.args)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a & (a | b)", [A]),
        ("(a | b) & a", [A]),
        ("a | (a & b)", [A]),
        ("(a & b) | a", [A]),
        ("a & (~a | b)", [A, B]),
        ("a | (~a & b)", [A, B]),
        ("(~a | b) & a", [B, A]),
        ("~a & (a | b)", [~A, B]),
        ("a & b", [A, B]),
        ("a & (b | c)", [A, B | C]),
        ("a & (a | b) & (a | c) & d", [A, D]),
        ("(a | b) & (a | b | c)", [A | B]),
        ("(a | b | c) & (a | b)", [A | B]),
        ("a & b & (~a | b)", [A, B]),
        ("(a | b) & c & (~c | a) & a", [C, A]),
    ],
)
def test_absorb(text, expected):
    assert _absorbed(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "(a | b) & (~a | b | c)",
        "(a & b) | (~a & b & c)",
        "(a & b & ~c) | (a & c) | d",
        "a & (~a | (b & c)) & (b | d)",
        "(a | ~b) & (b | c) & (a | b | c)",
        "a & (~a | b) & (~b | c) & (~c | d)",
    ],
)
def test_absorption_keeps_the_meaning(text):
    expression = ALGEBRA.parse(text)
    given = list(expression.args)
    made = expression.absorb(expression.args)
    joined = made[0] if len(made) == 1 else type(expression)(*made)
    assert list(expression.args) == given
    for values in itertools.product([ALGEBRA.TRUE, ALGEBRA.FALSE], repeat=4):
        row = dict(zip((A, B, C, D), values, strict=True))
        assert joined.subs(row, simplify=True) == expression.subs(row, simplify=True)


def test_absorption_shortens_a_negated_part():
    assert _absorbed("(a | b) & (~a | b | c)") == [A | B, B | C]
    assert _absorbed("(a & b) | (~a & b & c)") == [A & B, B & C]


def test_absorb_takes_its_own_arguments_by_default():
    assert (A & (A | B)).absorb([]) == [A]
    assert (A & B).absorb([C, C | D]) == [C]


def test_pretty_symbol():
    assert A.pretty() == "Symbol('a')"
    assert A.pretty(indent=3) == "   Symbol('a')"
    assert boolean.Symbol(5).pretty() == "Symbol(5)"
    assert boolean.Symbol(("x",)).pretty(1) == " Symbol(('x',))"
    assert A.pretty(debug=True) == "Symbol(<isliteral=True, iscanonical=True>'a')"


class Named(boolean.Symbol):
    pass


def test_pretty_names_the_class():
    assert Named("a").pretty() == "Named('a')"
    assert (A & ~B).pretty() == "AND(\n  Symbol('a'),\n  NOT(Symbol('b'))\n)"
