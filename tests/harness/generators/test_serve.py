"""Test `openai` with transformers' own server, which runs the same tiny model as `hf`."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from ctxbench.bench.home import Home
from ctxbench.harness.generators import base
from ctxbench.harness.generators.base import Request, Response
from ctxbench.harness.store import open_store
from tests.helpers import requests
from tests.helpers.cli import run_cli
from tests.helpers.extras import needed
from tests.helpers.requests import make_request
from tests.helpers.sets import make_set
from tests.helpers.tiny_llama import corpus, tiny_llama
from tests.helpers.transformers_server import TransformersServer

torch = needed("torch", "hf")
needed("fastapi", "serving")

pytestmark = [
    pytest.mark.slow,
    # The libraries raise their own warnings.
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TransformersServer]:
    assert request.config.cache is not None
    folder = tiny_llama(request.config.cache.mkdir("tiny-llama"))
    made = TransformersServer(folder, tmp_path_factory.mktemp("served"))
    made.start()
    yield made
    made.kill()


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def prompts(count: int) -> list[str]:
    """Return prompts that mostly end within a line. Every eighth ends after a line end."""
    code = corpus()
    ends = [1000 + number * (len(code) - 2000) // count for number in range(count)]
    ends = [code.find("\n", end) + 1 if number % 8 == 0 else end for number, end in enumerate(ends)]
    return [code[end - 50 - 9 * number : end] for number, end in enumerate(ends)]


def answers(spec: str, asked: Sequence[Request]) -> list[Response]:
    with closing(base.resolve(spec)) as made:
        return requests.answers(made, *asked)


@pytest.mark.parametrize(
    ("line", "chat", "most"), [(False, False, 24), (True, False, 128), (False, True, 12)], ids=["text", "lines", "chat"]
)
def test_greedy_answers_equal_those_of_hf_with_the_same_weights(
    server: TransformersServer, line: bool, chat: bool, most: int
) -> None:
    asked = [make_request(prefix, one_line=line, max_tokens=most) for prefix in prompts(24)]
    here = answers(f"hf(model={server.model}, chat={'on' if chat else 'off'})", asked)
    served = answers(f"{server.spec}(endpoint={'chat' if chat else 'completions'})", asked)
    assert [one.text for one in served] == [one.text for one in here]
    assert len({one.text for one in here}) > 4
    if not line:
        assert [(one.tokens_in, one.finish) for one in served] == [(one.tokens_in, one.finish) for one in here]
    else:
        # An answer up to the limit would have ten times the tokens of the line.
        assert sum(one.tokens_out for one in served) < 0.5 * most * len(asked)


def test_a_tiny_model_that_writes_noise_explores_within_its_budgets(server: TransformersServer, tmp_path: Path) -> None:
    home = Home(tmp_path)
    make_set(home, repos=1, per_repo=1)
    strategy, spec = "agent.explore(steps=2, infile=64)", f"{server.spec}(endpoint=chat)"
    how = ("--samples", "demo", "--strategy", strategy, "--generator", spec, "--measure", "scores")
    result = run_cli("run", *how, "--home", str(home.root))
    assert result.code == 0, result.err
    with open_store(home.database) as store, store.reading() as connection:
        roles = list(connection.scalars(text("SELECT role FROM call ORDER BY ordinal")))
        [flags] = connection.scalars(text("SELECT flags FROM result"))
    assert roles == ["explore", "explore", "final"]
    assert "agent_nonsense" in flags and "agent_unfinished" in flags
