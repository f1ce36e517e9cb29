"""Arrays of doubles: sums and exponentials that are the same to the last bit on every processor.

A sum of rounded numbers depends on its order, and that is the processor's: numpy and BLAS add in the order that suits
the machine, the number of threads and the shape of an array. Here numbers are first brought to so few bits (`rounded`)
that a double holds every sum of theirs exactly; then the order cannot matter. Where speed does not, use `math.fsum`,
which rounds once. All else is done number by number with operations whose result IEEE 754 prescribes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ctxbench.bench.elementary import EXP2, LEAST, LOG2_E

Doubles: TypeAlias = NDArray[np.float64]

_WHOLE = 53
"""Bits of a whole number that a double holds exactly."""
_SLICE = 1 << 14
"""Numbers handled at once where each goes through many steps: they stay in a processor's cache."""


def term_bits(terms: int) -> int:
    """Return how many bits numbers may have, so that a double holds the sum of so many."""
    return _WHOLE - (terms - 1).bit_length()


def rounded(numbers: Doubles, axis: int, bits: int) -> Doubles:
    """Return numbers as whole multiples, of 51 `bits` at most, of a power of two that is one along an axis.

    They differ by at most a part in ``2**bits`` of the largest along the axis, which must not be empty.
    """
    largest = np.maximum(numbers.max(axis=axis, keepdims=True), -numbers.min(axis=axis, keepdims=True))
    # Next to 1.5 * 2**(52 + n), doubles are the multiples of 2**n: adding it rounds to those, taking it away is exact.
    anchor = np.ldexp(1.5, np.frexp(largest)[1] + (_WHOLE - 1 - min(bits, _WHOLE - 2)))
    multiples: Doubles = numbers + anchor
    multiples -= anchor
    return multiples


def total(numbers: Doubles) -> float:
    """Return the sum of a row of numbers added one after the other; 0 for none.

    For numbers of very different size, of which `rounded` would lose the small ones.
    """
    return float(np.cumsum(numbers)[-1]) if len(numbers) else 0.0


def exp(numbers: Doubles) -> Doubles:
    """Return e to the power of each number, which may be minus infinity but not 700 or more."""
    return exp2(numbers * LOG2_E)


def exp2(numbers: Doubles) -> Doubles:
    """Return 2 to the power of each number, which may be minus infinity but not 1000 or more; right to some 1e-15."""
    powers = np.maximum(numbers, LEAST)
    flat = powers.reshape(-1)
    for start in range(0, len(flat), _SLICE):
        x = flat[start : start + _SLICE]
        whole = np.rint(x)
        x -= whole
        x[:] = np.ldexp(_polynomial(x, EXP2), whole.astype(np.int32))
    return powers


def _polynomial(x: Doubles, coefficients: Sequence[float]) -> Doubles:
    """Return a polynomial's values, the coefficient of the highest power first."""
    values = x * coefficients[0]
    for coefficient in coefficients[1:-1]:
        values += coefficient
        values *= x
    values += coefficients[-1]
    return values
