"""Texts and vectors as all encoders want them: whole characters in, length 1 out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctxbench.bench.retrieval.types import Floats


def utf8(text: str) -> str:
    """Return a text that can be written as UTF-8: half characters, which tokenizers refuse, become ``?``."""
    return text.encode("utf-8", "replace").decode("utf-8")


def unit_length(vectors: Floats) -> Floats:
    """Return the rows brought to length 1; a row of zeros becomes the first unit vector."""
    import numpy as np  # noqa: PLC0415 - generators that only need `utf8` do without it

    rows = np.array(vectors, dtype=np.float64)
    # By `fsum`, which rounds once: the order of numpy's own sums is the processor's.
    lengths = np.array([math.sqrt(math.fsum(row)) for row in np.square(rows).tolist()])
    rows[lengths == 0, :1] = lengths[lengths == 0] = 1
    scaled: Floats = (rows / lengths[:, None]).astype(np.float32)
    return scaled
