"""BERT in numpy beside a plain writing of it, number by number, on a model of our own making."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.bench.retrieval.encoders import bert as module
from ctxbench.bench.retrieval.encoders.bert import Bert
from tests.helpers.extras import needed

CONFIG = {
    "hidden_size": 24,
    "num_attention_heads": 3,
    "num_hidden_layers": 2,
    "intermediate_size": 40,
    "layer_norm_eps": 1e-12,
    "hidden_act": "gelu",
    "model_type": "bert",
    "vocab_size": 50,
    "max_position_embeddings": 300,
    "type_vocab_size": 2,
}


def made_weights(prefix: str = "") -> dict[str, np.ndarray]:
    """Return the tensors of a small BERT; numbers large enough for the layers to matter."""
    draw = np.random.default_rng(7)
    width, inner = CONFIG["hidden_size"], CONFIG["intermediate_size"]
    found: dict[str, np.ndarray] = {}

    def dense(name: str, rows: int, columns: int) -> None:
        found[f"{name}.weight"] = draw.normal(0, 0.4, (rows, columns)).astype(np.float32)
        found[f"{name}.bias"] = draw.normal(0, 0.2, rows).astype(np.float32)

    def norm(name: str) -> None:
        found[f"{name}.weight"] = draw.normal(1, 0.1, width).astype(np.float32)
        found[f"{name}.bias"] = draw.normal(0, 0.1, width).astype(np.float32)

    for name, rows in (("word", 50), ("position", 300), ("token_type", 2)):
        found[f"embeddings.{name}_embeddings.weight"] = draw.normal(0, 1, (rows, width)).astype(np.float32)
    norm("embeddings.LayerNorm")
    for at in range(CONFIG["num_hidden_layers"]):
        layer = f"encoder.layer.{at}"
        for part in ("query", "key", "value"):
            dense(f"{layer}.attention.self.{part}", width, width)
        dense(f"{layer}.attention.output.dense", width, width)
        norm(f"{layer}.attention.output.LayerNorm")
        dense(f"{layer}.intermediate.dense", inner, width)
        dense(f"{layer}.output.dense", width, inner)
        norm(f"{layer}.output.LayerNorm")
    return {prefix + name: tensor for name, tensor in found.items()}


def plain(weights: dict[str, np.ndarray], ids: list[int]) -> np.ndarray:
    """Return the mean of the last layer's rows, written down as BERT is described, one text, in doubles."""
    w = {name: tensor.astype(np.float64) for name, tensor in weights.items()}

    def dense(name: str, rows: np.ndarray) -> np.ndarray:
        return rows @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def norm(name: str, rows: np.ndarray) -> np.ndarray:
        centred = rows - rows.mean(axis=1, keepdims=True)
        spread = np.sqrt(rows.var(axis=1, keepdims=True) + 1e-12)
        return centred / spread * w[f"{name}.weight"] + w[f"{name}.bias"]

    rows = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][: len(ids)]
    rows = norm("embeddings.LayerNorm", rows + w["embeddings.token_type_embeddings.weight"][0])
    size = CONFIG["hidden_size"] // CONFIG["num_attention_heads"]
    for at in range(CONFIG["num_hidden_layers"]):
        layer = f"encoder.layer.{at}"
        query, key, value = (dense(f"{layer}.attention.self.{part}", rows) for part in ("query", "key", "value"))
        heads = []
        for start in range(0, CONFIG["hidden_size"], size):
            part = slice(start, start + size)
            scores = np.exp(query[:, part] @ key[:, part].T / math.sqrt(size))
            heads.append(scores / scores.sum(axis=1, keepdims=True) @ value[:, part])
        mixed = dense(f"{layer}.attention.output.dense", np.concatenate(heads, axis=1))
        rows = norm(f"{layer}.attention.output.LayerNorm", rows + mixed)
        inner = dense(f"{layer}.intermediate.dense", rows)
        inner = inner * 0.5 * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
        rows = norm(f"{layer}.output.LayerNorm", rows + dense(f"{layer}.output.dense", inner))
    return rows.mean(axis=0)


def made_texts(count: int) -> list[list[int]]:
    draw = np.random.default_rng(3)
    return [draw.integers(0, 50, int(length)).tolist() for length in draw.integers(1, 200, count)]


@pytest.fixture(scope="module")
def weights() -> dict[str, np.ndarray]:
    return made_weights()


def test_it_computes_what_bert_is(weights: dict[str, np.ndarray]) -> None:
    texts = [[1], [2, 3], [4] * 10, *made_texts(12), list(range(50)) * 5]
    found = Bert(weights, CONFIG).means(texts)
    expected = np.stack([plain(weights, text) for text in texts])
    assert found.dtype == np.float32
    assert np.abs(found - expected).max() < 5e-6
    assert np.abs(expected).max() > 0.3


@pytest.mark.slow
def test_order_and_company_do_not_change_a_single_bit(weights: dict[str, np.ndarray]) -> None:
    bert, texts = Bert(weights, CONFIG), [[1, 2], [1, 2, 3], *made_texts(60)]
    together = bert.means(texts)
    assert (bert.means(texts[::-1])[::-1] == together).all()
    assert all((bert.means([text])[0] == row).all() for text, row in zip(texts, together, strict=True))


def test_equal_texts_have_equal_vectors_in_one_block(weights: dict[str, np.ndarray]) -> None:
    found = Bert(weights, CONFIG).means([[5, 6, 7]] * 40 + [[8]] * 3)
    assert (found[:40] == found[0]).all()
    assert (found[40:] == found[40]).all()


def test_nothing_gives_nothing(weights: dict[str, np.ndarray]) -> None:
    assert Bert(weights, CONFIG).means([]).shape == (0, 24)


def test_blocks_are_filled_and_keep_like_lengths_together() -> None:
    lengths = [300, 5, 5, 400, 200, 5]
    blocks = list(module._blocks(lengths))
    assert blocks == [[1, 2, 5, 4], [0], [3]]
    assert list(module._blocks([])) == []


@pytest.mark.parametrize("prefix", ["", "bert."])
def test_it_reads_a_checkpoint(tmp_path: Path, weights: dict[str, np.ndarray], prefix: str) -> None:
    numpy = needed("safetensors.numpy", "encoders")
    numpy.save_file(made_weights(prefix), tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    assert (Bert.load(tmp_path).means([[1, 2]]) == Bert(weights, CONFIG).means([[1, 2]])).all()


def test_other_models_are_refused(weights: dict[str, np.ndarray]) -> None:
    with pytest.raises(InputFault, match="no plain BERT"):
        Bert(weights, {**CONFIG, "hidden_act": "relu"})
    with pytest.raises(InputFault, match="no plain BERT"):
        Bert(weights, {**CONFIG, "position_embedding_type": "relative_key"})
    with pytest.raises(InputFault, match="has no tensor 'encoder.layer.2"):
        Bert(weights, {**CONFIG, "num_hidden_layers": 3})
