"""Logarithm, exponential and sum of single numbers, the same to the last bit on every processor and interpreter.

The C library's are not, which chooses among several by what the processor can do. These use only operations whose
result IEEE 754 prescribes. Logarithms and powers of two are right to 1e-15 of the result, powers of e to 1e-13.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable, Sequence

LN2 = 0.6931471805599453
LOG2_E = 1.4426950408889634
_ROOT = 0.7071067811865476
"""The square root of a half."""
_ATANH = tuple(2 / (2 * k + 1) for k in range(11, -1, -1))
"""Series of log((1 + s) / (1 - s)) / s in s squared, highest power first: enough for s up to 0.172."""
EXP2 = tuple(LN2**k / math.factorial(k) for k in range(13, -1, -1))
"""Series of the power of two, highest power first: enough for exponents from -1/2 to 1/2."""
LEAST = -1100.0
"""Powers of two below are 0."""


def log(number: float) -> float:
    """Return the natural logarithm of a positive, finite number."""
    mantissa, exponent = _parts(number)
    return exponent * LN2 + mantissa


def log2(number: float) -> float:
    """Return the logarithm to base 2 of a positive, finite number; whole for powers of two."""
    mantissa, exponent = _parts(number)
    return exponent + mantissa * LOG2_E


def exp(number: float) -> float:
    """Return e to a power; 0 far below 0.

    Raises:
        OverflowError: if it is too large for a float.
    """
    return exp2(number * LOG2_E)


def exp2(number: float) -> float:
    """Return 2 to a power; 0 far below 0.

    Raises:
        OverflowError: if it is too large for a float.
    """
    bounded = max(number, LEAST)
    whole = round(bounded)
    return math.ldexp(_polynomial(bounded - whole, EXP2), whole)


def running_sum(numbers: Iterable[float]) -> float:
    """Return the sum, rounded at each addition; `sum` compensates for that from Python 3.12 on, and not before."""
    return functools.reduce(operator.add, numbers, 0.0)


def _parts(number: float) -> tuple[float, int]:
    """Return the natural logarithm of what is left of a number near 1 without a power of two, and that power."""
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
