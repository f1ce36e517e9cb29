"""Logarithm (relative error 1e-15), exponential (1e-13) and float sum, bit-identical on all processors and Pythons."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable, Sequence

LN2 = 0.6931471805599453
LOG2_E = 1.4426950408889634
_ROOT = 0.7071067811865476
_ATANH = tuple(2 / (2 * k + 1) for k in range(11, -1, -1))
"""Coefficients of log((1 + s) / (1 - s)) / s in powers of s squared, highest first. Accurate for s up to 0.172."""
EXP2 = tuple(LN2**k / math.factorial(k) for k in range(13, -1, -1))
"""Coefficients of 2 to the power of x in powers of x, highest first. Accurate for x from -1/2 to 1/2."""
LEAST = -1100.0
"""Exponent at and below which a power of two counts as 0."""


def log(number: float) -> float:
    """Return the natural logarithm of a positive, finite number."""
    mantissa, exponent = _parts(number)
    return exponent * LN2 + mantissa


def log2(number: float) -> float:
    """Return the base-2 logarithm of a positive, finite number. It is exact for powers of two."""
    mantissa, exponent = _parts(number)
    return exponent + mantissa * LOG2_E


def exp(number: float) -> float:
    """Return e to the power of `number`; 0 for very negative numbers.

    Raises:
        OverflowError: if the result is too large for a float.
    """
    return exp2(number * LOG2_E)


def exp2(number: float) -> float:
    """Return 2 to the power of `number`; 0 for very negative numbers.

    Raises:
        OverflowError: if the result is too large for a float.
    """
    bounded = max(number, LEAST)
    whole = round(bounded)
    return math.ldexp(_polynomial(bounded - whole, EXP2), whole)


def running_sum(numbers: Iterable[float]) -> float:
    """Return the sum of numbers, rounded after each addition, as `sum` did before Python 3.12."""
    return functools.reduce(operator.add, numbers, 0.0)


def _parts(number: float) -> tuple[float, int]:
    mantissa, exponent = math.frexp(number)
    if mantissa < _ROOT:
        mantissa, exponent = 2 * mantissa, exponent - 1
    s = (mantissa - 1) / (mantissa + 1)
    return s * _polynomial(s * s, _ATANH), exponent


def _polynomial(x: float, coefficients: Sequence[float]) -> float:
    value = 0.0
    for coefficient in coefficients:
        value = value * x + coefficient
    return value
