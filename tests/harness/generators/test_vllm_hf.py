"""`vllm` says what `hf` says: the stand-in for the package computes with the same tiny trained Llama."""

import importlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.retrieval.encoders import weights
from ctxbench.bench.types import Kind
from ctxbench.harness.generators.base import Request, Response
from ctxbench.harness.generators.hf import HF, hf
from ctxbench.harness.generators.vllm import VLLM, vllm
from tests.helpers.extras import needed
from tests.helpers.requests import make_request
from tests.helpers.tiny_llama import tiny_llama
from tests.helpers.vllm_fake import FakeVLLM

torch = needed("torch", "hf")
needed("transformers", "hf")

pytestmark = [
    pytest.mark.slow,
    # Both libraries warn of themselves.
    pytest.mark.filterwarnings("ignore"),
]
CODE = [
    "import os\n\n\ndef main():\n    parser = argparse.",
    "class Cart:\n    def __init__(self, name):\n        self.name = ",
    "for item in ",
    "def test_all(self):\n    self.assert",
    "if value:\n    pass\n",
    "x = 1\n\n",
    "    def é(a, b):\n        return ",
]
LONGEST = 20


@pytest.fixture(scope="module")
def model(request: pytest.FixtureRequest) -> Iterator[HF]:
    assert request.config.cache is not None
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    made = hf(model=str(tiny_llama(request.config.cache.mkdir("tiny-llama"))))
    yield made
    made.close()
    torch.set_num_threads(threads)


@pytest.fixture
def other(model: HF, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[VLLM, FakeVLLM]]:
    """Return the generator, with a package whose engine is the library's own model."""
    folder = Path(model._settings.model)
    own = importlib.import_module("transformers").AutoModelForCausalLM.from_pretrained(folder).eval()

    @torch.inference_mode()
    def logs(ids: list[int]) -> Any:
        return own(torch.tensor([ids])).logits[0, -1].double().log_softmax(-1)

    monkeypatch.setattr(weights, "need", lambda *_, **__: None)
    fake = FakeVLLM(
        lambda ids, _: int(logs(ids).argmax()),
        model._tokens.text,
        ends=sorted(model._tokens.ends),
        log=lambda before, token: float(logs(before)[token]),
    )
    fake.install(monkeypatch)
    made = vllm(model=str(folder))
    yield made, fake
    made.close()


def request(text: str, *, line: bool, **changes: Any) -> Request:
    kind = Kind.LINE if line else Kind.FUNCTION
    return make_request(text, kind=kind, one_line=line, max_tokens=LONGEST, **changes)


def test_answers_are_those_of_hf(model: HF, other: tuple[VLLM, FakeVLLM]) -> None:
    made, fake = other
    requests = [request(text, line=line) for text in CODE for line in (True, False)]
    requests.append(request(CODE[1], line=False, stop=("self",)))
    ours, theirs = made.generate(requests), model.generate(requests)
    for one, found, wanted in zip(requests, ours, theirs, strict=True):
        assert isinstance(found, Response) and isinstance(wanted, Response)
        assert (found.text, found.finish, found.tokens_in) == (wanted.text, wanted.finish, wanted.tokens_in)
        # What was asked to go on more than twice went on beyond its line.
        assert found.tokens_out == wanted.tokens_out or (one.one_line and found.tokens_out > wanted.tokens_out)
    assert 2 <= len(fake.calls) <= 4 and len(fake.calls[1]) < len(CODE)


def test_prices_are_those_of_hf(model: HF, other: tuple[VLLM, FakeVLLM]) -> None:
    prompts = [request(text, line=True).prompt for text in CODE]
    texts = ["self.name"] * len(CODE)
    found = other[0].bits(prompts, texts, PYTHON)
    assert found == pytest.approx(model.bits(prompts, texts, PYTHON), rel=1e-4)
    assert all(math.isfinite(one) and one > 0 for one in found)
