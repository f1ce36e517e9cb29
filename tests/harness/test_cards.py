"""A strategy's version: it depends on its code and on the installed weights of its encoders."""

from pathlib import Path

import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.bench.retrieval import encoders
from ctxbench.bench.retrieval.encoders.hashed import Hashed
from ctxbench.harness.cells import InlineCells
from ctxbench.harness.run.runner import card_of
from tests.helpers.extras import needed

DEFAULT = """from ctxbench import Context, Query, Repository, strategy


@strategy("mine")
def mine(query: Query, repo: Repository, *, by: str = "trained") -> Context:
    return Context.ranked([])
"""


class Trained(Hashed):
    """A third-party encoder whose version changes with further training."""


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoders._REGISTRY, "_items", dict(encoders._REGISTRY._items))
    monkeypatch.setattr(encoders, "_ENCODERS", {})
    encoders.encoder("trained")(lambda: Trained(16))


def version(spec: str) -> str:
    return card_of(spec, InlineCells()).version


def model(folder: Path, weights: str) -> Path:
    """Return a folder with the file names of a model. The files have no valid content."""
    folder.mkdir(exist_ok=True)
    for name, text in (("config.json", "{}"), ("tokenizer.json", "{}"), ("model.safetensors", weights)):
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    "spec",
    [
        "lc.infercom(encoder=trained)",
        "icl.rag(encoder=trained)",
        "base.rlcoder(encoder=trained)",
        "aim(lc.infile, encoder=trained)",
        "aim(lc.infercom(encoder=trained), encoder=bm25)",
        "{file}@mine",
        "{file}@mine(by='first(of=trained)')",
    ],
)
def test_further_training_of_an_encoder_changes_the_strategy_version(
    trained: None, spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(DEFAULT)
    spec = spec.format(file=file)
    before = version(spec)
    assert before == version(spec) != InlineCells().card(spec).version
    monkeypatch.setattr(Trained, "version", "3")
    assert version(spec) != before


def test_weights_in_a_folder_are_part_of_the_version(tmp_path: Path) -> None:
    needed("torch", "hf")
    spec = f"lc.infercom(encoder='minilm(path={model(tmp_path / 'first', 'a')})')"
    other = f"lc.infercom(encoder='minilm(path={model(tmp_path / 'second', 'b')})')"
    assert version(spec) != version(other)
    (tmp_path / "second" / "model.safetensors").write_text("a")
    assert version(spec) == version(other), "the place does not matter, and an edited file is read again"
    with pytest.raises(InputFault, match="does not contain a model"):
        version("lc.infercom(encoder='minilm(path=/nowhere)')")


@pytest.mark.parametrize(
    "encoder",
    [
        "bm25",
        "'bm25(k1=1.2)'",
        "jaccard",
        "hashed",
        "'hashed(width=64)'",
        "minilm",
        "'minilm(device=cpu)'",
        "none-such",
        f"'unixcoder(revision={'5' * 40})'",
    ],
)
def test_without_user_files_the_version_depends_only_on_code(encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def unwanted(*_: object) -> None:
        raise AssertionError("no encoder is needed to know the version")

    monkeypatch.setattr(encoders, "get", unwanted)
    for spec in (f"lc.infercom(encoder={encoder})", f"aim(lc.infile, encoder={encoder})"):
        assert version(spec) == InlineCells().card(spec).version
