"""`openai` with a server that is not ours: transformers' own, of the same tiny model that `hf` reads."""

import json
import sysconfig
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from ctxbench.bench import samples as sets
from ctxbench.bench.home import Home
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.repositories import snapshot
from ctxbench.bench.types import Cursor, Reference
from ctxbench.harness.generators import base
from ctxbench.harness.generators.base import Request, Response
from ctxbench.harness.store import open_store
from ctxbench.harness.store.facts import prompt_texts
from tests.helpers import requests
from tests.helpers.cli import run_cli
from tests.helpers.extras import needed
from tests.helpers.requests import make_request
from tests.helpers.samples import make_sample
from tests.helpers.sets import make_set
from tests.helpers.tiny_llama import corpus, tiny_llama
from tests.helpers.transformers_server import TransformersServer

torch = needed("torch", "hf")
needed("fastapi", "serving")

pytestmark = [
    pytest.mark.slow,
    # The libraries warn of themselves.
    pytest.mark.filterwarnings("ignore"),
]
AT_ONCE = 64
PER_REPO = 24


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
    """Return prompts that end in the middle of some line, and a few that end at a line's end."""
    code = corpus()
    ends = [1000 + number * (len(code) - 2000) // count for number in range(count)]
    ends = [code.find("\n", end) + 1 if number % 8 == 0 else end for number, end in enumerate(ends)]
    return [code[end - 50 - 9 * number : end] for number, end in enumerate(ends)]


def ask(prefix: str, *, line: bool, most: int) -> Request:
    return make_request(prefix, one_line=line, max_tokens=most)


def answers(spec: str, asked: Sequence[Request]) -> list[Response]:
    with closing(base.resolve(spec)) as made:
        return requests.answers(made, *asked)


@pytest.mark.parametrize(
    ("line", "chat", "most"), [(False, False, 24), (True, False, 128), (False, True, 12)], ids=["text", "lines", "chat"]
)
def test_greedy_answers_are_those_of_the_weights_read_here(
    server: TransformersServer, line: bool, chat: bool, most: int
) -> None:
    asked = [ask(prefix, line=line, most=most) for prefix in prompts(24)]
    here = answers(f"hf(model={server.model}, chat={'on' if chat else 'off'})", asked)
    served = answers(f"{server.spec}(endpoint={'chat' if chat else 'completions'})", asked)
    assert [one.text for one in served] == [one.text for one in here]
    assert len({one.text for one in here}) > 4
    if not line:
        assert [(one.tokens_in, one.finish) for one in served] == [(one.tokens_in, one.finish) for one in here]
    else:
        # Not ten times the tokens of the line, as an answer up to the limit has.
        assert sum(one.tokens_out for one in served) < 0.5 * most * len(asked)


def test_as_many_in_flight_as_are_wanted(server: TransformersServer) -> None:
    asked = [ask(prefix, line=False, most=4) for prefix in prompts(AT_ONCE)]
    begun = time.perf_counter()
    served = answers(f"{server.spec}(concurrency={AT_ONCE}, endpoint=completions)", asked)
    wall = time.perf_counter() - begun
    here = answers(f"hf(model={server.model}, chat=off)", asked)
    assert [one.text for one in served] == [one.text for one in here]
    # The server answers one after the other, so that each waits for those before it, if it is there to wait.
    assert sum(one.seconds for one in served) > AT_ONCE / 8 * wall


def kept(home: Home) -> list[tuple[Any, ...]]:
    """Return prompt, answer and finish of every answer that is stored."""
    with open_store(home.database) as store, store.reading() as connection:
        rows = connection.execute(text("SELECT prompt_digest, text, finish FROM generation")).all()
        texts = dict(prompt_texts(connection, [digest for digest, *_ in rows]))
        return [(texts[digest], *answer) for digest, *answer in rows]


class Killer:
    """Kills the server once so many answers are stored, and starts it again."""

    def __init__(self, server: TransformersServer, home: Home, after: int) -> None:
        self.found = 0
        """Answers that were stored when it was killed."""
        self._server, self._home, self._after = server, home, after
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def join(self) -> None:
        self._over.set()
        self._thread.join(300)

    def _work(self) -> None:
        while not self._over.wait(0.02):
            self.found = len(kept(self._home))
            if self.found >= self._after:
                self._server.kill()
                self._server.start()
                return


def make_code_set(home: Home) -> int:
    """Write a set of lines of the code that the model was trained on, which it gets right now and then."""
    samples, references, entries = [], [], {}
    for number, name in enumerate(("argparse", "calendar", "configparser", "inspect")):
        path = Path(sysconfig.get_paths()["stdlib"], f"{name}.py")
        lines = path.read_text(encoding="utf-8").splitlines()[400:560]
        repo = f"shop{number}"
        (home.repos / repo / "1").mkdir(parents=True)
        (home.repos / repo / "1" / f"{name}.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
        made = snapshot.load(repo, home.repos / repo / "1", PYTHON)
        entries[repo] = {"language": "python", "checkout": f"{repo}/1", "snapshot": made.digest}
        long = [at for at, line in enumerate(lines) if at > 10 and len(line.strip()) > 16][:PER_REPO]
        for at in long:
            cursor = Cursor(line=at, column=len(lines[at]) - 8)
            prefix = "\n".join([*lines[:at], lines[at][:-8]])
            sample = make_sample(id=f"{repo}#{at}", repo=repo, path=f"{name}.py", cursor=cursor, prefix=prefix)
            samples.append(sample)
            references.append(Reference(id=sample.id, target=lines[at][-8:]))
    sets.save(home, "demo", samples, references, {"repositories": entries})
    return len(samples)


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


@pytest.mark.long
def test_a_run_over_a_killed_server_loses_nothing(
    server: TransformersServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "home")
    count = make_code_set(home)
    monkeypatch.setenv("CTXBENCH_HOME", str(home.root))
    # A busy machine takes minutes to start it again.
    spec = f"{server.spec}(concurrency={AT_ONCE}, endpoint=completions, retries=20)"
    killer = Killer(server, home, after=8)
    try:
        result = run_cli("run", "--samples", "demo", "--strategy", "lc.infile", "--generator", spec)
    finally:
        killer.join()
    assert result.code == 0, result.err
    # Many were in flight when it was killed.
    assert 8 <= killer.found < count - 20
    board = run_cli("leaderboard", "--samples", "demo", "--format", "json")
    [row] = json.loads(board.out)
    assert (row["n"], row["missing"]) == (count, 0) and row["es"]["mean"] > 0
    found = kept(home)
    here = answers(f"hf(model={server.model}, chat=off)", [ask(one[0], line=True, most=128) for one in found])
    assert [one[1:] for one in found] == [(one.text, one.finish) for one in here] and len(found) == count
