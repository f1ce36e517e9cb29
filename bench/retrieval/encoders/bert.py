"""A BERT encoder in numpy: token ids in, the mean of the last layer's vectors out, no torch needed.

Texts are not padded to a common length. The rows of several texts are laid one after another for the
products with the weights, and only the attention looks at each text alone. A row's sums do not depend on
the rows around it, so a vector is the same to the last bit whatever is encoded with it; the last bit may
differ between machines, whose BLAS add in other orders.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.errors import InputFault

if TYPE_CHECKING:
    from bench.retrieval.types import Floats

_ROWS = 256
"""Tokens handled at once: enough for the products with the weights to be quick, few enough for the caches."""
_STEP = 16
"""Rows come in multiples of this, as BLAS may add in another order at ragged ends."""
_SLICE = 64
"""Rows whose inner layer fits a processor's cache."""


@dataclass(frozen=True, slots=True)
class _Layer:
    """The weights of one layer; matrices have shape (inputs, outputs)."""

    qkv: Floats
    qkv_bias: Floats
    out: Floats
    out_bias: Floats
    norm: tuple[Floats, Floats]
    inner: Floats
    inner_bias: Floats
    back: Floats
    back_bias: Floats
    last_norm: tuple[Floats, Floats]


class Bert:
    """The layers of one model."""

    def __init__(self, weights: dict[str, Floats], config: dict[str, Any]) -> None:
        """Take a model's tensors under the names they have in a checkpoint, and its ``config.json``.

        Raises:
            InputFault: if it is no plain BERT, or a tensor is missing.
        """
        if config.get("hidden_act") != "gelu" or config.get("position_embedding_type", "absolute") != "absolute":
            raise InputFault("is no plain BERT", where="config.json", cure="give the folder of a BERT model")
        self.width: int = config["hidden_size"]
        self._heads: int = config["num_attention_heads"]
        self._epsilon: float = config["layer_norm_eps"]
        try:
            # Position and segment (always the first) are added to every text alike.
            segment = weights["embeddings.token_type_embeddings.weight"][0]
            self._words = weights["embeddings.word_embeddings.weight"]
            self._positions = weights["embeddings.position_embeddings.weight"] + segment
            self._norm = _norm(weights, "embeddings.LayerNorm")
            self._layers = [_layer(weights, f"encoder.layer.{at}.") for at in range(config["num_hidden_layers"])]
        except KeyError as error:
            raise InputFault(
                f"has no tensor {error}", where="model.safetensors", cure="fetch the model again"
            ) from None

    @classmethod
    def load(cls, folder: Path) -> Bert:
        """Read ``config.json`` and ``model.safetensors`` of a folder."""
        from safetensors.numpy import load_file  # noqa: PLC0415 - an extra, and not quick to import

        weights = {
            name.removeprefix("bert."): tensor for name, tensor in load_file(folder / "model.safetensors").items()
        }
        return cls(weights, json.loads((folder / "config.json").read_text(encoding="utf-8")))

    def means(self, texts: Sequence[Sequence[int]]) -> Floats:
        """Return the mean vector of each text's tokens: shape (texts, width).

        Args:
            texts: token ids of each text, special ones included; none empty, none longer than the model's positions.
        """
        found = np.empty((len(texts), self.width), dtype=np.float32)
        blocks = list(_blocks([len(text) for text in texts]))

        def work(block: list[int]) -> Floats:
            return self._block_means([texts[at] for at in block])

        if len(blocks) < 2:
            for block in blocks:
                found[block] = work(block)
            return found
        # Threads of our own, each with whole texts: BLAS' threads would meet after every single product.
        with ThreadPoolExecutor(min(len(blocks), _cores())) as pool:
            for block, means in zip(blocks, pool.map(work, blocks), strict=True):
                found[block] = means
        return found

    def _block_means(self, texts: Sequence[Sequence[int]]) -> Floats:
        lengths = [len(text) for text in texts]
        hidden = self._run(texts, lengths)
        starts = itertools.accumulate(lengths, initial=0)
        parts = (hidden[start : start + length] for start, length in zip(starts, lengths, strict=False))
        return np.stack([part.sum(axis=0) / np.float32(len(part)) for part in parts])

    def _run(self, texts: Sequence[Sequence[int]], lengths: Sequence[int]) -> Floats:
        """Return the last layer's rows of texts that stand one after another."""
        tokens = sum(lengths)
        hidden = np.zeros((-(-tokens // _STEP) * _STEP, self.width), dtype=np.float32)
        hidden[:tokens] = self._words[np.concatenate([np.asarray(text, dtype=np.int64) for text in texts])]
        hidden[:tokens] += np.concatenate([self._positions[:length] for length in lengths])
        _normalise(hidden, self._norm, self._epsilon)
        for layer in self._layers:
            mixed = self._attention(hidden @ layer.qkv + layer.qkv_bias, lengths)
            hidden += mixed @ layer.out
            hidden += layer.out_bias
            _normalise(hidden, layer.norm, self._epsilon)
            inner = hidden @ layer.inner
            inner += layer.inner_bias
            _gelu(inner)
            hidden += inner @ layer.back
            hidden += layer.back_bias
            _normalise(hidden, layer.last_norm, self._epsilon)
        return hidden

    def _attention(self, qkv: Floats, lengths: Sequence[int]) -> Floats:
        """Mix each text's rows; texts of equal length, which stand side by side, go together."""
        mixed = np.zeros((len(qkv), self.width), dtype=np.float32)
        size = self.width // self._heads
        start = 0
        for length, group in itertools.groupby(lengths):
            count = sum(1 for _ in group)
            end = start + count * length
            parts = qkv[start:end].reshape(count, length, 3, self._heads, size)
            query, key, value = (parts[:, :, at].transpose(0, 2, 1, 3) for at in range(3))
            scores = np.matmul(query, key.swapaxes(2, 3))
            scores /= np.float32(np.sqrt(size))
            scores -= scores.max(axis=3, keepdims=True)
            np.exp(scores, out=scores)
            scores /= scores.sum(axis=3, keepdims=True)
            mixed[start:end] = np.matmul(scores, value).transpose(0, 2, 1, 3).reshape(end - start, self.width)
            start = end
        return mixed


def _cores() -> int:
    """Return the number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _blocks(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield which texts are handled at once: of like length, and few enough tokens together."""
    block: list[int] = []
    rows = 0
    for at in sorted(range(len(lengths)), key=lengths.__getitem__):
        if block and rows + lengths[at] > _ROWS:
            yield block
            block, rows = [], 0
        block.append(at)
        rows += lengths[at]
    if block:
        yield block


def _layer(weights: dict[str, Floats], name: str) -> _Layer:
    attention = [f"{name}attention.self.{part}" for part in ("query", "key", "value")]
    return _Layer(
        qkv=np.ascontiguousarray(np.concatenate([weights[f"{part}.weight"] for part in attention]).T),
        qkv_bias=np.concatenate([weights[f"{part}.bias"] for part in attention]),
        out=np.ascontiguousarray(weights[f"{name}attention.output.dense.weight"].T),
        out_bias=weights[f"{name}attention.output.dense.bias"],
        norm=_norm(weights, f"{name}attention.output.LayerNorm"),
        inner=np.ascontiguousarray(weights[f"{name}intermediate.dense.weight"].T),
        inner_bias=weights[f"{name}intermediate.dense.bias"],
        back=np.ascontiguousarray(weights[f"{name}output.dense.weight"].T),
        back_bias=weights[f"{name}output.dense.bias"],
        last_norm=_norm(weights, f"{name}output.LayerNorm"),
    )


def _norm(weights: dict[str, Floats], name: str) -> tuple[Floats, Floats]:
    return weights[f"{name}.weight"], weights[f"{name}.bias"]


def _normalise(rows: Floats, norm: tuple[Floats, Floats], epsilon: float) -> None:
    """Bring each row to mean 0 and variance 1, then stretch and move it; in place."""
    rows -= rows.mean(axis=1, keepdims=True)
    variance = np.einsum("ij,ij->i", rows, rows)[:, None] / np.float32(rows.shape[1])
    rows /= np.sqrt(variance + np.float32(epsilon))
    rows *= norm[0]
    rows += norm[1]


_ERF = tuple(np.float32(number) for number in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592))


def _gelu(rows: Floats) -> None:
    """Apply x * Phi(x) in place.

    Phi by Abramowitz and Stegun 7.1.26, whose error of 1.5e-7 is that of the numbers themselves:
    1 - erf(a) = (((((c1*t + c2)*t + c3)*t + c4)*t + c5)*t) * exp(-a*a) with t = 1/(1 + 0.3275911*a).
    """
    for start in range(0, len(rows), _SLICE):
        x = rows[start : start + _SLICE]
        half = np.abs(x)
        a = half * np.float32(np.sqrt(0.5))
        t = 1 / (1 + np.float32(0.3275911) * a)
        tail = t * _ERF[0]
        for number in _ERF[1:]:
            tail += number
            tail *= t
        np.multiply(a, a, out=a)
        np.negative(a, out=a)
        np.exp(a, out=a)
        tail *= a
        # x * Phi(x) is x less a tail for positive x, and minus that tail for negative x.
        half *= np.float32(0.5)
        half *= tail
        np.maximum(x, 0, out=x)
        x -= half
