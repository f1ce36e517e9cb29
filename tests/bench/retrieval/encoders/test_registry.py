"""The registry of encoders: one instance per spec, one-line faults, encoders of other packages."""

from collections.abc import Sequence

import numpy as np
import pytest

from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.bench.retrieval import encoders
from ctxbench.bench.retrieval.encoders import canonical, get, names, summary
from tests.helpers.threads import together


class Letters:
    """An encoder of another package. It counts the first letters of the alphabet in a text."""

    version = "1"

    def __init__(self, width: int, weight: float, fold: bool) -> None:
        self.width, self.weight, self.fold = width, weight, fold

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        rows = [[text.count(chr(97 + at)) + 1e-3 for at in range(self.width)] for text in texts]
        found = np.array(rows, dtype=np.float32).reshape(len(texts), self.width)
        return found / np.linalg.norm(found, axis=1, keepdims=True)


@pytest.fixture
def letters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoders._REGISTRY, "_items", dict(encoders._REGISTRY._items))
    monkeypatch.setattr(encoders, "_ENCODERS", {})

    @encoders.encoder("letters")
    def factory(*, width: int = 3, weight: float = 1.0, fold: bool = False) -> Letters:
        """Letters counted.

        More of it.
        """
        return Letters(width, weight, fold)


def test_every_encoder_of_the_papers_has_a_name() -> None:
    assert {"hashed", "minilm", "codet5p-110m", "unixcoder", "contriever", "mpnet"} <= set(names())


def test_equivalent_specs_return_the_same_encoder(letters: None) -> None:
    assert canonical(" letters( width = 3 ) ") == "letters"
    assert canonical("letters(weight=2, fold=on)") == "letters(fold=true, weight=2.0)"
    assert get("letters(width=3)") is get("letters")
    assert get("letters(width=4)") is not get("letters")
    assert summary("letters") == "Letters counted."


def test_threads_share_one_instance(letters: None) -> None:
    found: list[object] = []
    together(8, lambda: found.append(get("letters(width=5)")))
    assert len(found) == 8
    assert len(set(map(id, found))) == 1


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("leters", "no encoder is called 'leters'; did you mean letters"),
        ("letters(depth=2)", "letters has no parameter 'depth'; known parameters: width, weight, fold"),
        ("letters(width=2.5)", "letters: width=2.5 is invalid; give a whole number"),
        ("letters(fold=maybe)", "letters: fold=maybe is invalid; give true or false"),
        ("letters(", "'letters(' is not a spec"),
    ],
)
def test_faults_name_a_fix_in_one_line(letters: None, spec: str, says: str) -> None:
    with pytest.raises(InputFault) as caught:
        get(spec)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    if spec == "leters":
        assert isinstance(caught.value, UnknownName)


def test_parameters_of_a_factory_must_be_keyword_only(letters: None) -> None:
    with pytest.raises(InputFault, match="'width' is not keyword-only"):

        @encoders.encoder("bad")
        def factory(width: int = 3) -> Letters:
            return Letters(width, 1, False)


def test_a_name_cannot_be_registered_twice(letters: None) -> None:
    with pytest.raises(InputFault, match="registered twice"):

        @encoders.encoder("letters")
        def other(*, width: int = 3) -> Letters:
            return Letters(width, 1, False)
