"""A BERT encoder in numpy: token ids in, the mean of the last layer's vectors out, no torch needed.

Texts are not padded to a common length. The rows of several texts are laid one after another for the
products with the weights, and only the attention looks at each text alone.

A vector is the same to the last bit whatever is encoded with it, on every processor and with any number of threads.
BLAS adds in an order of its own, which changes with the processor and with the shape of a product. So all sums here
are exact, in whatever order they are made, and all the rest is done number by number: see `bench.doubles`.

That is why no inference library stands in its place. ONNX Runtime 1.32.0 with the same weights gives vectors that
differ by up to 1e-6, so that rankings, prompts and stored boards could change, and chooses its kernels by the
processor. It takes 50 to 57 seconds of processor time for 1,000 texts of 15 lines on an overloaded machine, against
77 to 111 here on an idle one (`docs/encoders.md`); but it is 78 MB, and the weights' package holds no ONNX model, so
that one would have to be written by hand, layer by layer, as here, or exported with torch.
"""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ctxbench.bench.doubles import SLICE, Doubles, exp, factor_bits, polynomial, rounded, sums
from ctxbench.bench.errors import InputFault

if TYPE_CHECKING:
    from ctxbench.bench.retrieval.types import Floats

_ROWS = 256
"""Tokens handled at once: enough for the products with the weights to be quick, few enough for the caches."""


@dataclass(frozen=True, slots=True)
class _Layer:
    """The weights of one layer; matrices have shape (inputs, outputs), their columns rounded."""

    qkv: Doubles
    qkv_bias: Doubles
    out: Doubles
    out_bias: Doubles
    norm: tuple[Doubles, Doubles]
    inner: Doubles
    inner_bias: Doubles
    back: Doubles
    back_bias: Doubles
    last_norm: tuple[Doubles, Doubles]


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
        wide = {name: tensor.astype(np.float64) for name, tensor in weights.items()}
        try:
            # Position and segment (always the first) are added to every text alike.
            segment = wide["embeddings.token_type_embeddings.weight"][0]
            self._words = weights["embeddings.word_embeddings.weight"]
            self._positions = wide["embeddings.position_embeddings.weight"] + segment
            self._norm = _norm(wide, "embeddings.LayerNorm")
            self._layers = [_layer(wide, f"encoder.layer.{at}.") for at in range(config["num_hidden_layers"])]
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
        vectors = np.empty((len(texts), self.width), dtype=np.float32)
        blocks = list(_blocks([len(text) for text in texts]))

        def work(block: list[int]) -> Doubles:
            return self._block_means([texts[at] for at in block])

        if len(blocks) < 2:
            for block in blocks:
                vectors[block] = work(block)
            return vectors
        # Threads of our own, each with whole texts: BLAS' threads would meet after every single product.
        with ThreadPoolExecutor(min(len(blocks), _cores())) as pool:
            for block, means in zip(blocks, pool.map(work, blocks), strict=True):
                vectors[block] = means
        return vectors

    def _block_means(self, texts: Sequence[Sequence[int]]) -> Doubles:
        lengths = [len(text) for text in texts]
        hidden = self._run(texts, lengths)
        starts = itertools.accumulate(lengths, initial=0)
        parts = (hidden[start : start + length] for start, length in zip(starts, lengths, strict=False))
        return np.stack([sums(part, axis=0)[0] / len(part) for part in parts])

    def _run(self, texts: Sequence[Sequence[int]], lengths: Sequence[int]) -> Doubles:
        """Return the last layer's rows of texts that stand one after another."""
        hidden: Doubles = self._words[np.concatenate([np.asarray(text) for text in texts])].astype(np.float64)
        hidden += np.concatenate([self._positions[:length] for length in lengths])
        _normalise(hidden, self._norm, self._epsilon)
        for layer in self._layers:
            mixed = self._attention(_product(hidden, layer.qkv) + layer.qkv_bias, lengths)
            hidden += _product(mixed, layer.out)
            hidden += layer.out_bias
            _normalise(hidden, layer.norm, self._epsilon)
            inner = _product(hidden, layer.inner)
            inner += layer.inner_bias
            _gelu(inner)
            hidden += _product(inner, layer.back)
            hidden += layer.back_bias
            _normalise(hidden, layer.last_norm, self._epsilon)
        return hidden

    def _attention(self, qkv: Doubles, lengths: Sequence[int]) -> Doubles:
        """Mix each text's rows; texts of equal length, which stand side by side, go together."""
        mixed = np.empty((len(qkv), self.width))
        size = self.width // self._heads
        start = 0
        for length, group in itertools.groupby(lengths):
            count = sum(1 for _ in group)
            end = start + count * length
            parts = qkv[start:end].reshape(count, length, 3, self._heads, size)
            query, key, value = (parts[:, :, at].transpose(0, 2, 1, 3) for at in range(3))
            scores = np.matmul(rounded(query, 3, factor_bits(size)), rounded(key, 3, factor_bits(size)).swapaxes(2, 3))
            scores /= math.sqrt(size)
            scores -= scores.max(axis=3, keepdims=True)
            scores = rounded(exp(scores), 3, factor_bits(length))
            attended = np.matmul(scores, rounded(value, 2, factor_bits(length)))
            attended /= scores.sum(axis=3, keepdims=True)
            mixed[start:end] = attended.transpose(0, 2, 1, 3).reshape(end - start, self.width)
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


def _layer(weights: dict[str, Doubles], name: str) -> _Layer:
    attention = [f"{name}attention.self.{part}" for part in ("query", "key", "value")]
    return _Layer(
        qkv=_matrix(np.concatenate([weights[f"{part}.weight"] for part in attention])),
        qkv_bias=np.concatenate([weights[f"{part}.bias"] for part in attention]),
        out=_matrix(weights[f"{name}attention.output.dense.weight"]),
        out_bias=weights[f"{name}attention.output.dense.bias"],
        norm=_norm(weights, f"{name}attention.output.LayerNorm"),
        inner=_matrix(weights[f"{name}intermediate.dense.weight"]),
        inner_bias=weights[f"{name}intermediate.dense.bias"],
        back=_matrix(weights[f"{name}output.dense.weight"]),
        back_bias=weights[f"{name}output.dense.bias"],
        last_norm=_norm(weights, f"{name}output.LayerNorm"),
    )


def _matrix(weight: Doubles) -> Doubles:
    """Return a checkpoint's matrix (outputs, inputs) as `_product` takes it."""
    return np.ascontiguousarray(rounded(weight, 1, factor_bits(weight.shape[1])).T)


def _norm(weights: dict[str, Doubles], name: str) -> tuple[Doubles, Doubles]:
    return weights[f"{name}.weight"], weights[f"{name}.bias"]


def _product(rows: Doubles, matrix: Doubles) -> Doubles:
    """Return the product with a layer's matrix, whose columns have been rounded already."""
    product: Doubles = rounded(rows, 1, factor_bits(len(matrix))) @ matrix
    return product


def _normalise(rows: Doubles, norm: tuple[Doubles, Doubles], epsilon: float) -> None:
    """Bring each row to mean 0 and variance 1, then stretch and move it; in place."""
    rows -= sums(rows, 1) / rows.shape[1]
    rows /= np.sqrt(sums(rows * rows, 1) / rows.shape[1] + epsilon)
    rows *= norm[0]
    rows += norm[1]


_ERF = (0.0000430638, 0.0002765672, 0.0001520143, 0.0092705272, 0.0422820123, 0.0705230784, 1.0)


def _gelu(rows: Doubles) -> None:
    """Apply x * Phi(x) in place.

    Phi by Abramowitz and Stegun 7.1.28, whose error is 3e-7 at most and which takes no exponential:
    1 - erf(a) = 1 / (1 + c1*a + c2*a**2 + ... + c6*a**6)**16.
    """
    flat = rows.reshape(-1)
    for start in range(0, len(flat), SLICE):
        x = flat[start : start + SLICE]
        half = np.abs(x)
        # From 10 on there is nothing left of the tail, and the power might overflow.
        a = np.minimum(half, 10.0) * math.sqrt(0.5)
        tail = polynomial(a, _ERF)
        for _ in range(4):
            np.square(tail, out=tail)
        half *= 0.5
        half /= tail
        # x * Phi(x) is x less a tail for positive x, and minus that tail for negative x.
        np.maximum(x, 0, out=x)
        x -= half
