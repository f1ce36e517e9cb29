"""The package's own logarithms and powers, compared with the correctly rounded ones of Python's decimals."""

from decimal import Context, Decimal

import numpy as np
import pytest

from ctxbench.bench import elementary

FINE = Context(prec=30)
POSITIVE = [*np.geomspace(1e-300, 1e300, 301).tolist(), *np.linspace(0.5, 2, 301).tolist(), 5e-324, 1e308, 1.0000001]
POWERS = [*np.linspace(-700, 700, 301).tolist(), *np.linspace(-1, 1, 301).tolist(), 0.0, 0.5, -0.5, 1e-300]


def test_logarithms_equal_those_of_decimals() -> None:
    for number in POSITIVE:
        exact = FINE.ln(Decimal(number))
        assert elementary.log(number) == pytest.approx(float(exact), rel=1e-15, abs=0), number
        assert elementary.log2(number) == pytest.approx(float(exact / FINE.ln(Decimal(2))), rel=1e-15, abs=0), number


def test_powers_equal_those_of_decimals() -> None:
    for power in POWERS:
        assert elementary.exp(power) == pytest.approx(float(FINE.exp(Decimal(power))), rel=1e-13), power
        exact = FINE.exp(Decimal(power) * FINE.ln(Decimal(2)))
        assert elementary.exp2(power) == pytest.approx(float(exact), rel=1e-15), power


def test_whole_results_are_exact() -> None:
    assert elementary.log(1) == elementary.log2(1) == 0
    assert all(elementary.log2(2.0**k) == k and elementary.exp2(k) == 2.0**k for k in range(-1074, 1000))
    assert elementary.exp(-1e300) == elementary.exp2(float("-inf")) == 0
    with pytest.raises(OverflowError):
        elementary.exp2(1025)
