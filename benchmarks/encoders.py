"""Texts a second of the encoders that this machine has, and the time that stored vectors save.

The texts are pieces of the standard library's source, cut to about 10 and about 100 tokens. Seconds are those
of the processor, so that a busy machine counts less; one thread does the products.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import importlib.util
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ctxbench.bench.code_tokens import pieces
from ctxbench.bench.errors import CtxbenchError
from ctxbench.bench.retrieval import encoders
from ctxbench.bench.retrieval.encoders.vectors import Vectors
from ctxbench.bench.retrieval.types import Encoder

PACKAGES = ("asyncio", "email", "logging")
SIZES = {10: 300, 100: 60}
"""Tokens a text: how many texts."""


def main() -> None:
    names = [name for name in encoders.names() if _usable(name)]
    if importlib.util.find_spec("torch") and "minilm" in names:
        names.append("minilm(backend=torch)")
    rows = {name: [_speed(encoders.get(name), _texts(size)) for size in SIZES] for name in names}
    print("texts a second of processor time")
    print(f"| encoder | {' | '.join(f'{size} tokens' for size in SIZES)} | to `hashed` |")
    print("|---|---|---|---|")
    for name, row in rows.items():
        print(f"| {name} | {' | '.join(f'{speed:.0f}' for speed in row)} | 1/{rows['hashed'][-1] / row[-1]:.0f} |")
    for name in names:
        _compare_stored(name)


def _usable(name: str) -> bool:
    try:
        encoders.get(name)
    except CtxbenchError as error:
        print(f"left out: {error}")
        return False
    return True


def _texts(size: int) -> list[str]:
    root = Path(os.__file__).parent
    tokens = [
        token
        for package in PACKAGES
        for path in sorted((root / package).glob("*.py"))
        for token in pieces(path.read_text(encoding="utf-8"))
    ]
    # A model's tokens are about four fifths of ours on code.
    step = size * 5 // 4
    return ["".join(tokens[at : at + step]) for at in range(0, SIZES[size] * step, step)]


def _speed(encoder: Encoder, texts: Sequence[str]) -> float:
    encoder.encode(texts[:2])
    began = time.process_time()
    encoder.encode(texts)
    return len(texts) / (time.process_time() - began)


def _compare_stored(name: str) -> None:
    encoder, texts = encoders.get(name), _texts(100)
    with tempfile.TemporaryDirectory() as folder:
        times = []
        for vectors in (Vectors(Path(folder)), Vectors(Path(folder))):
            began = time.perf_counter()
            matrix = vectors.of(encoder, encoders.canonical(name), texts)
            times.append(time.perf_counter() - began)
        assert np.abs(matrix - encoder.encode(texts)).max() < 1e-5
    print(
        f"{name}: {len(texts)} texts made in {times[0] * 1e3:.0f} ms, read again from disk in {times[1] * 1e3:.1f} ms"
    )


if __name__ == "__main__":
    main()
