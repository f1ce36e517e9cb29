"""Takes chance out of a test: what it draws is the same each time it is run, whatever ran before it."""

from __future__ import annotations

import contextlib
import random
import sys

_SEED = 0
_seed = random.seed


def settle() -> None:
    """Let what tests draw numbers from begin anew: the standard library's, NumPy's and Hypothesis's generators."""
    _seed(_SEED)
    numpy, hypothesis = sys.modules.get("numpy.random"), sys.modules.get("hypothesis.core")
    with contextlib.suppress(Exception):
        if numpy:
            numpy.seed(_SEED)
    with contextlib.suppress(Exception):
        if hypothesis:
            hypothesis.global_force_seed = _SEED  # type: ignore[attr-defined]
