"""How a published model becomes an encoder. A fake model stands in for torch."""

import importlib.util
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxbench.bench.code_tokens import utf8
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.retrieval import encoders
from ctxbench.bench.retrieval.encoders import get, names, weights
from ctxbench.bench.retrieval.encoders.recipes import EncoderRecipe, RecipeEncoder, unit_length
from tests.helpers.extras import needed

RECIPE = EncoderRecipe(model="someone/something", limit=8, architecture="BertModel")


class Fake:
    """A model whose tokens are letters and whose vectors reveal its input."""

    def __init__(self) -> None:
        self.batches: list[list[list[int]]] = []
        self.poolings: set[str] = set()

    def tokens(self, text: str) -> list[int]:
        return [ord(letter) for letter in text]

    def special(self, name: str) -> int:
        return {"first": 1, "last": 2, "<mode>": 3}.get(name, -1)

    def pooled(self, batch: Sequence[Sequence[int]], pooling: str) -> np.ndarray:
        assert len({len(text) for text in batch}) == 1, "padding would be needed"
        self.batches.append([list(text) for text in batch])
        self.poolings.add(pooling)
        return np.array([[sum(text), len(text), 1] for text in batch], dtype=np.float32)


def made(
    tmp_path: Path, recipe: EncoderRecipe = RECIPE, *, batch: int = 3, config: object = None
) -> tuple[RecipeEncoder, Fake]:
    (tmp_path / "config.json").write_text(json.dumps({"hidden_size": 3} if config is None else config))
    fake = Fake()
    return RecipeEncoder("fake", recipe, tmp_path, batch=batch, load=lambda: fake), fake


def test_vectors_are_in_text_order_and_have_length_one(tmp_path: Path) -> None:
    encoder, fake = made(tmp_path)
    texts = ["ab", "", "a long text that is cut", "ba", "zz", "xy", "half \udc80"]
    found = encoder.encode(texts)
    assert np.allclose(np.linalg.norm(found, axis=1), 1)
    assert (found[0] == found[3]).all()
    assert (np.argsort(found[:, 1] / found[:, 2])[:1] == [1]).all()
    assert max(len(text) for batch in fake.batches for text in batch) == 8
    assert [1, *b"a long", 2] in [text for batch in fake.batches for text in batch]
    assert [1, *b"half ?", 2] in [text for batch in fake.batches for text in batch]
    assert max(map(len, fake.batches)) == 3
    assert fake.poolings == {"mean"}


def test_an_empty_list_does_not_load_the_model(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"hidden_size": 3}')

    def load() -> Fake:
        raise AssertionError("read for nothing")

    assert RecipeEncoder("fake", RECIPE, tmp_path, batch=1, load=load).encode([]).shape == (0, 3)


def test_the_mode_token_is_between_the_first_token_and_a_separator(tmp_path: Path) -> None:
    recipe = EncoderRecipe(model="m", limit=6, architecture="RobertaModel", mode="<mode>", pooling="first")
    encoder, fake = made(tmp_path, recipe)
    encoder.encode(["abcdef"])
    assert fake.batches == [[[1, 3, 2, *b"ab", 2]]]
    assert fake.poolings == {"first"}


def test_a_model_without_the_special_token_is_a_fault(tmp_path: Path) -> None:
    encoder, _ = made(tmp_path, EncoderRecipe(model="m", limit=6, architecture="RobertaModel", mode="<other>"))
    with pytest.raises(InputFault, match="fake: the tokenizer lacks the special tokens of m"):
        encoder.encode(["a"])


@pytest.mark.parametrize(
    ("config", "projected", "width"),
    [({"hidden_size": 3}, False, 3), ({"d_model": 5}, False, 5), ({"d_model": 5, "embed_dim": 2}, True, 2)],
)
def test_the_width_is_read_from_the_configuration(tmp_path: Path, config: object, projected: bool, width: int) -> None:
    encoder, _ = made(
        tmp_path, EncoderRecipe(model="m", limit=6, architecture="BertModel", projected=projected), config=config
    )
    assert encoder.width == width


def test_a_configuration_without_a_width_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(InputFault, match=r"config\.json: the model's configuration has no hidden_size"):
        made(tmp_path, config={})[0].width  # noqa: B018


def test_a_failed_computation_is_a_machine_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, fake = made(tmp_path)

    def pooled(batch: object, pooling: str) -> np.ndarray:
        raise RuntimeError("CUDA out of memory.\nTried to allocate")

    monkeypatch.setattr(fake, "pooled", pooled)
    with pytest.raises(
        MachineFault, match=r"fake: the model cannot encode a text \(CUDA out of memory\.\); try batch=1"
    ):
        encoder.encode(["a"])


def test_the_version_changes_with_weights_tokenizer_and_pooling(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"1")
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / "README.md").write_text("a")
    versions = [made(tmp_path)[0].version]
    (tmp_path / "README.md").write_text("b")
    (tmp_path / "pytorch_model.bin").write_bytes(b"not read where the other is")
    assert made(tmp_path)[0].version == versions[0]
    versions.append(
        made(tmp_path, EncoderRecipe(model="m", limit=8, architecture="BertModel", pooling="first"))[0].version
    )
    (tmp_path / "model.safetensors").write_bytes(b"2")
    versions.append(made(tmp_path)[0].version)
    (tmp_path / "tokenizer.json").write_text("{ }")
    versions.append(made(tmp_path)[0].version)
    assert len(set(versions)) == 4
    assert versions[0].startswith("torch-2-mean-")


def test_zero_vectors_are_replaced_by_vectors_of_length_one() -> None:
    found = unit_length(np.array([[0, 0], [3, 4]], dtype=np.float32))
    assert found.tolist() == [[1, 0], [pytest.approx(0.6), pytest.approx(0.8)]]
    assert unit_length(np.empty((0, 2), dtype=np.float32)).shape == (0, 2)


@settings(deadline=None)
@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_any_text_can_be_encoded_as_utf_8(text: str) -> None:
    assert len(utf8(text)) == len(text)
    utf8(text).encode("utf-8")


PAPERS = ("codet5p-110m", "unixcoder", "contriever", "mpnet")


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Pretend that torch and transformers are installed and that the hub's cache is empty."""
    found = importlib.util.find_spec
    there = ("torch", "transformers")
    monkeypatch.setattr(weights.importlib.util, "find_spec", lambda name: name in there or found(name))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(encoders, "_ENCODERS", {})


@pytest.mark.parametrize("name", PAPERS)
def test_missing_packages_are_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert name in names()
    monkeypatch.setattr(weights.importlib.util, "find_spec", lambda wanted: None)
    with pytest.raises(InputFault) as caught:
        get(f"{name}(batch=7)")
    assert str(caught.value) == (f"{name}: torch and transformers must be installed; pip install 'ctxbench[hf]'")


@pytest.mark.parametrize("name", PAPERS)
def test_missing_weights_are_named_and_not_fetched(name: str, packages: None, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = needed("huggingface_hub", "encoders")
    asked: list[bool] = []
    look = hub.snapshot_download

    def watched(*given: object, local_files_only: bool = False, **options: object) -> str:
        asked.append(local_files_only)
        return str(look(*given, local_files_only=local_files_only, **options))

    monkeypatch.setattr(hub, "snapshot_download", watched)
    with pytest.raises(InputFault) as caught:
        get(name)
    assert "are not on this machine" in str(caught.value)
    assert f"{name}(path=…)" in str(caught.value)
    assert asked == [True]


def test_invalid_parameters_are_faults(packages: None, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"hidden_size": 4}')
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(InputFault, match="unixcoder: pooling=last is invalid; give mean or first"):
        get(f"unixcoder(path={tmp_path}, pooling=last)")
    with pytest.raises(InputFault, match="mpnet: batch=0 is invalid"):
        get(f"mpnet(path={tmp_path}, batch=0)")
    with pytest.raises(InputFault, match="contriever: /nowhere does not contain a model"):
        get("contriever(path=/nowhere)")
    assert get(f"contriever(path={tmp_path})").width == 4
