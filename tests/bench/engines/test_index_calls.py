"""Each tree is indexed once, so a slow index costs its time once per target file or once per repository."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench.home import Home
from ctxbench.harness.generators.base import Capabilities, Request
from ctxbench.sandbox.types import Environment, Limits, Report
from tests.bench.engines import rooms
from tests.bench.engines.rooms import attempt, make_set, query_database

pytestmark = pytest.mark.slow

REPOS, FILES, PER_FILE = 2, 3, 4
SAMPLES = REPOS * FILES * PER_FILE
PER_TARGET = {"base": REPOS * FILES, "save": REPOS, "index": REPOS * FILES, "search": SAMPLES}


class Counting:
    """A back end with a fake engine that answers with the first lines of a file and counts its calls."""

    name = "counting"

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    def prepare(self, environment: Environment, report: Report) -> str:
        self.calls["prepare"] += 1
        return "d" * 64

    @contextlib.contextmanager
    def converse(self, environment: Environment, *, limits: Limits) -> Iterator[Counting]:
        yield self

    def begin(self, function: str, arguments: Any) -> None:
        self.calls["begin"] += 1

    def ask(self, message: bytes, seconds: float) -> bytes:
        call = json.loads(message)["call"]
        self.calls[call] += 1
        told = {"told": ["slow", "1"], "bytes": 7}
        answers = {"base": told, "index": told, "save": "", "search": [["shop/rates.py", 0, 2, 1.0]]}
        return json.dumps({"answer": answers.get(call)}).encode()


@pytest.mark.parametrize(
    ("mode", "strategy", "expected"),
    [
        ("per-file", "engine({})", PER_TARGET),
        ("shared", "engine({})", {"index": REPOS, "update": SAMPLES, "search": SAMPLES}),
        # A wrapper asks the engine twice per sample.
        ("per-file", "aim(engine({}), encoder=bm25)", PER_TARGET),
    ],
)
def test_each_tree_is_indexed_once(tmp_path: Path, mode: str, strategy: str, expected: dict[str, int]) -> None:
    home, boxes = Home(tmp_path / "home"), Counting()
    make_set(home, repos=REPOS, files=FILES, per_file=PER_FILE)
    engine = f"ripgrep(mode={mode})"
    summary = attempt(tmp_path, boxes, engine, home=home, strategy=strategy.format(engine))  # type: ignore[arg-type]
    assert summary.scored == SAMPLES
    started = {"prepare": 1, "begin": expected["index"]}
    assert boxes.calls == {**started, **expected}
    # Only the sample that waited for an index has index seconds.
    waited = query_database(tmp_path, "SELECT sum(index_bytes > 0), count(*), sum(calls) FROM engine_use")
    assert waited == [(SAMPLES, SAMPLES, SAMPLES)]
    if mode == "per-file":
        assert query_database(tmp_path, "SELECT count(*) FROM engine_use WHERE index_seconds > 0") == [(REPOS * FILES,)]


class Walking(rooms.Coder):
    """A generator that searches once and shows the place that the engine found."""

    capabilities = Capabilities(batch_size=16, log_likelihoods=True, instructs=True)

    def __init__(self, _: object, *, version: str) -> None:
        super().__init__(self._walk, version=version)

    def _walk(self, request: Request) -> str:
        text = request.prompt.text
        if "### assistant" not in text:
            return "x"
        if "shop/rates.py:1-2\n" in text:
            return '<tool_call>{"name": "show", "arguments": {"places": ["shop/rates.py:1-2"]}}</tool_call>'
        return '<tool_call>{"name": "search", "arguments": {"text": "levy"}}</tool_call>'


def test_an_agent_keeps_its_turn_at_an_engine_while_the_model_thinks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rooms, "Coder", Walking)
    home, boxes = Home(tmp_path / "home"), Counting()
    make_set(home, repos=REPOS, files=FILES, per_file=PER_FILE)
    strategy = "agent.explore(engine=ripgrep, steps=3)"
    assert attempt(tmp_path, boxes, "", home=home, strategy=strategy).scored == SAMPLES  # type: ignore[arg-type]
    assert (boxes.calls["index"], boxes.calls["search"]) == (REPOS * FILES, SAMPLES)
    assert query_database(tmp_path, "SELECT role, count(*) FROM call GROUP BY role") == [
        ("explore", 2 * SAMPLES),
        ("final", SAMPLES),
    ]
    assert all("# def levy" in prompt for prompt in rooms.prompts(tmp_path).values())


def test_a_second_run_indexes_nothing(tmp_path: Path) -> None:
    home, boxes = Home(tmp_path / "home"), Counting()
    make_set(home)
    for _ in range(2):
        assert attempt(tmp_path, boxes, "ripgrep", home=home).missing == 0  # type: ignore[arg-type]
    assert boxes.calls["index"] == 1
