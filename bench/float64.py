"""Sums and exponentials of float64 arrays, bit-identical on every processor.

Numpy's order of addition depends on the machine. Sums of `rounded` numbers are exact; `total` adds in a fixed order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ctxbench.bench.elementary import EXP2, LEAST, LOG2_E

Doubles: TypeAlias = NDArray[np.float64]

_WHOLE = 53
_SLICE = 1 << 14
"""Numbers per batch. A batch fits into the processor's cache."""


def term_bits(terms: int) -> int:
    """Return how many bits `rounded` may keep of each number so that a sum of `terms` numbers is exact."""
    return _WHOLE - (terms - 1).bit_length()


def rounded(numbers: Doubles, axis: int, bits: int) -> Doubles:
    """Round numbers along an axis to multiples of a power of two that keeps `bits` bits (at most 51) of the largest.

    The error is at most ``2**-bits`` of the largest magnitude along the axis, which must not be empty.
    """
    largest = np.maximum(numbers.max(axis=axis, keepdims=True), -numbers.min(axis=axis, keepdims=True))
    # Near 1.5 * 2**(52 + n), doubles are the multiples of 2**n: adding it rounds to them, subtracting it is exact.
    anchor = np.ldexp(1.5, np.frexp(largest)[1] + (_WHOLE - 1 - min(bits, _WHOLE - 2)))
    multiples: Doubles = numbers + anchor
    multiples -= anchor
    return multiples


def total(numbers: Doubles) -> float:
    """Sum numbers from first to last; 0 if there are none."""
    return float(np.cumsum(numbers)[-1]) if len(numbers) else 0.0


def exp(numbers: Doubles) -> Doubles:
    """Return e to the power of each number, which must be below 700. Minus infinity yields 0."""
    return exp2(numbers * LOG2_E)


def exp2(numbers: Doubles) -> Doubles:
    """Return 2 to the power of each number (relative error about 1e-15). Numbers must be below 1000; -inf yields 0."""
    powers = np.maximum(numbers, LEAST)
    flat = powers.reshape(-1)
    for start in range(0, len(flat), _SLICE):
        x = flat[start : start + _SLICE]
        whole = np.rint(x)
        x -= whole
        x[:] = np.ldexp(_polynomial(x, EXP2), whole.astype(np.int32))
    return powers


def _polynomial(x: Doubles, coefficients: Sequence[float]) -> Doubles:
    values = x * coefficients[0]
    for coefficient in coefficients[1:-1]:
        values += coefficient
        values *= x
    values += coefficients[-1]
    return values
