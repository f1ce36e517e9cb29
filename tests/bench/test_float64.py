"""Sums that do not depend on their order, and accurate exponentials."""

from fractions import Fraction

import numpy as np
import pytest

from ctxbench.bench import elementary, float64


def hostile_rows(count: int, length: int) -> np.ndarray:
    """Return numbers of very different sizes. Their sum in doubles depends on the order."""
    draw = np.random.default_rng(11)
    rows = draw.normal(0, 1, (count, length)) * 10.0 ** draw.integers(-12, 12, (count, length))
    rows[0], rows[1, 1:], rows[2] = 0, 0, 1
    rows[3], rows[4] = -(2.0**40), np.ldexp(1.0, np.arange(length) % 60)
    return rows


@pytest.mark.parametrize("length", [1, 2, 3, 33, 512, 3072])
def test_sums_of_rounded_terms_are_exact_and_rounding_loses_little(length: int) -> None:
    rows = hostile_rows(9, length)
    few = float64.rounded(rows, 1, float64.term_bits(length))
    assert [Fraction(number) for number in few.sum(axis=1)] == [sum(map(Fraction, row)) for row in few]
    assert (np.abs(few - rows).max(axis=1) <= np.abs(rows).max(axis=1) * 1e-12).all()


def test_numbers_are_added_in_order() -> None:
    numbers = hostile_rows(9, 3072)[8]
    whole = 0.0
    for number in numbers.tolist():
        whole += number
    assert float64.total(numbers) == whole != float64.total(numbers[::-1])
    assert float64.total(np.zeros(0)) == 0


def test_exponentials_are_accurate() -> None:
    numbers = np.concatenate([np.linspace(-700, 690, 5001), np.linspace(-1, 1, 5001)])
    assert np.abs(float64.exp(numbers) / np.exp(numbers) - 1).max() < 1e-13
    assert float64.exp(np.array([0.0, -np.inf, -1e300])).tolist() == [1, 0, 0]
    assert (float64.exp2(np.arange(-1074.0, 1000)) == np.ldexp(1.0, np.arange(-1074, 1000))).all()
    # Arrays and `elementary` compute equal numbers at every position.
    assert float64.exp2(numbers).tolist() == [elementary.exp2(number) for number in numbers.tolist()]
