"""Numbers as text, never with more digits than their interval justifies, and the steps of axes. Pure."""

from __future__ import annotations

from decimal import Decimal

UNKNOWN = "-"


def half_width(low: float | None, high: float | None) -> float | None:
    """Return half the width of an interval, None if there is none."""
    return None if low is None or high is None else (high - low) / 2


def value(number: float | None, half: float | None, *, sign: bool = False) -> str:
    """Write a number to two digits of its interval's half width: no decimals from 10 on, one from 1 on, else two."""
    if number is None:
        return UNKNOWN
    decimals = 1 if not half else 0 if half >= 10 else 1 if half >= 1 else 2
    text = f"{number:{'+' if sign else ''}.{decimals}f}"
    # Rounded to nothing, a negative number must not leave its sign behind.
    return text.replace("-", "+" if sign else "") if not float(text) else text


def interval(number: float | None, low: float | None, high: float | None, *, sign: bool = False) -> str:
    """Write ``mean [low, high]``, or the mean alone where there is no interval."""
    half = half_width(low, high)
    if number is None or half is None:
        return value(number, None, sign=sign)
    return f"{value(number, half, sign=sign)} [{value(low, half, sign=sign)}, {value(high, half, sign=sign)}]"


def p_value(p: float | None) -> str:
    """Write a p-value to three decimals, or ``<0.001``; never rounded down to the 5% line or below it."""
    if p is None:
        return UNKNOWN
    if p < 0.001:
        return "<0.001"
    decimals = 3
    while p > 0.05 >= float(f"{p:.{decimals}f}"):
        decimals += 1
    return f"{p:.{decimals}f}"


def dollars(number: float | None) -> str:
    """Write a mean price: three significant digits, at least cents, never with an exponent."""
    if number is None:
        return UNKNOWN
    decimals = 2 - Decimal(number).adjusted() if number else 0
    return f"{number:.{max(2, decimals)}f}"


def amount(number: float | None) -> str:
    """Write a mean count or time: three significant digits, whole from 100 on."""
    if number is None:
        return UNKNOWN
    return f"{number:.0f}" if abs(number) >= 100 else f"{number:.3g}"


def round_step(rough: float) -> float:
    """Return the least of 1, 2 or 5 times a power of ten that is no less."""
    power = float(f"1e{Decimal(rough).adjusted()}")
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))


def percent(number: float | None) -> str:
    """Write a mean share, 0..1, in percent."""
    return UNKNOWN if number is None else f"{100 * number:.1f}"
