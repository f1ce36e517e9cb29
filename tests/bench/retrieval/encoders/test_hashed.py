"""The encoder without dependencies: unit length, equal vectors everywhere, similar vectors for similar spellings."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxbench.bench.errors import InputFault
from ctxbench.bench.retrieval.encoders import get

GOLDEN = "46537b1487700ff207ccf6d40da8630e82c09246b3be13db4239ee1fbeb4b203"
"""Digest of one text's vector, rounded to hundred-thousandths."""


def likeness(left: str, right: str) -> float:
    a, b = get("hashed").encode([left, right])
    return float(a @ b)


@settings(deadline=None)
@given(st.lists(st.text(max_size=60), max_size=5))
def test_the_vector_of_any_text_has_length_one(texts: list[str]) -> None:
    vectors = get("hashed").encode(texts)
    assert vectors.shape == (len(texts), 512)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_a_vector_does_not_depend_on_the_other_texts() -> None:
    texts = ["def load(path):", "", "class Cart:\n    total = 0", "load load load"]
    encoder = get("hashed")
    together = encoder.encode(texts)
    assert all((encoder.encode([text])[0] == row).all() for text, row in zip(texts, together, strict=True))


def test_texts_without_words_share_one_vector() -> None:
    vectors = get("hashed").encode(["", "  \n", "(+)", "été"[1:2]])
    assert (vectors[0] == vectors).all(axis=1).tolist() == [True, True, True, False]


def test_word_order_does_not_matter_and_word_counts_matter_little() -> None:
    encoder = get("hashed")
    a, b, c = encoder.encode(["read the file", "file the read", "read read read the file"])
    assert (a == b).all()
    assert 0.8 < float(a @ c) < 1


def test_similar_spellings_have_similar_vectors() -> None:
    assert likeness("loadJsonFile", "load_json_file") > 0.6
    assert likeness("def load(path):", "def loads(path):") > likeness("def load(path):", "def read(path):") + 0.05
    assert abs(likeness("compute the tax of a cart", "zoom window")) < 0.2


def test_each_width_is_a_separate_encoder() -> None:
    assert get("hashed(width=64)").encode(["a"]).shape == (1, 64)
    assert get("hashed(width=64)") is not get("hashed")
    with pytest.raises(InputFault, match="width=3"):
        get("hashed(width=3)")


@pytest.mark.slow
def test_hashed_vectors_are_equal_in_every_process_and_release() -> None:
    program = (
        "from ctxbench.bench.retrieval.encoders import get; import hashlib, sys;"
        "v = get('hashed').encode(['def load_json(path): return json.load(path)']);"
        "sys.stdout.write(hashlib.sha256((v * 1e5).round().astype('<i4').tobytes()).hexdigest())"
    )
    run = [sys.executable, "-c", program]
    digests = {
        subprocess.run(run, env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True).stdout
        for seed in ("1", "2")
    }
    assert digests == {GOLDEN}, "its vectors changed: give it another version"
