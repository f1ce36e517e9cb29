"""Messages from strategies are bounded and validated, and a bad message fails only its own sample."""

import copy
import json
import math
import struct
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxbench.bench.home import Home
from ctxbench.bench.types import Kind
from ctxbench.harness.cells import Cells, StrategyFault, open_cells, protocol, wire
from ctxbench.harness.cells.pool import ForkedCells
from ctxbench.harness.cells.protocol import Excess, StrategyBounds, UsageMeter
from ctxbench.harness.generators.base import TooLong
from ctxbench.harness.generators.openai.wire import chat_fields
from ctxbench.harness.results import Status
from ctxbench.harness.run.runner import run
from ctxbench.harness.run.scoring import _blocks
from ctxbench.harness.store import open_store
from ctxbench.harness.store.runs import run_tables
from ctxbench.strategies.api import Prompt
from ctxbench.strategies.chat import Chat
from ctxbench.strategies.tiny import query_for, view_for
from tests.harness.cells import misbehaving
from tests.helpers.cli import run_cli
from tests.helpers.memory import forget_peak, peak
from tests.helpers.models import Model
from tests.helpers.sets import make_set

GIGABYTE = 1 << 30
HONEST = ("lc.infile", "lc.repocoder", "lc.repofuse(encoder=hashed)")
SMALL = StrategyBounds(questions=500, searches=200, drafts=20, seconds=20.0)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("strategies") / "hostile.py"
    path.write_text(misbehaving.source())
    return path


# The short wait limit of the waiting strategies could end the others on a busy machine.
@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(("waiting", "wait"), [(False, 300.0), (True, 2.0)])
def test_hostile_strategies_fail_without_changing_other_scores(
    home: Home, file: Path, waiting: bool, wait: float
) -> None:
    def small_cells(hidden: Sequence[Path], workers: int) -> AbstractContextManager[Cells]:
        return open_cells(hidden, workers, limits=replace(SMALL, wait=wait))

    held = forget_peak()
    samples = make_set(home, repos=2, per_repo=1)
    names = [name for name in misbehaving.HOSTILE if (name in misbehaving.WAITING) == waiting]
    specs = [HONEST[0], *(f"{file}@{name}" for name in names), *HONEST[1:]]
    with open_store(f"sqlite:///{home.root}/alone.db") as store:
        run(home, store, samples, strategies=HONEST, generator="incontext")
        alone = {table.run.strategy: table for table in run_tables(store)}
    with open_store(home.database) as store:
        summaries = run(home, store, samples, strategies=specs, generator="incontext", cells=small_cells)
        tables = {table.run.strategy: table for table in run_tables(store)}
    for spec in HONEST:
        assert tables[spec].metrics == alone[spec].metrics and set(tables[spec].status) == {Status.SCORED}, spec
    for summary in summaries:
        name = summary.strategy.rpartition("@")[2]
        words = misbehaving.HOSTILE[name][1] if name in misbehaving.HOSTILE else None
        if words is None:
            assert summary.missing == 0, (name, summary.faults)
            continue
        assert summary.missing == 2 and {fault.kind for fault in summary.faults} == {"strategy"}, (name, summary)
        for fault in summary.faults:
            assert words in fault.message, (name, fault.message[:1000])
            assert "\n" not in fault.message and len(fault.message) < 6000 and len(fault.detail) < 30_000
    assert peak() - held < GIGABYTE
    shown = run_cli("leaderboard", "--samples", "demo", "--format", "json", "--home", str(home.root))
    assert shown.code == 0 and len(json.loads(shown.out)) >= len(HONEST)
    for name in {"odd-path", "odd-text"}.intersection(names):
        out = run_cli("runs", "show", next(s.run for s in summaries if name in s.strategy), "--home", str(home.root))
        assert "\x1b" not in out.out + out.err and "Traceback" not in out.err


@pytest.fixture(scope="module")
def cells() -> Iterator[ForkedCells]:
    with open_cells([], 2, limits=SMALL) as opened:
        yield opened


@pytest.mark.slow
def test_a_strategy_that_exceeds_its_processor_time_is_stopped(file: Path) -> None:
    query = query_for(Kind.LINE)
    path = file.with_name("busy.py")
    path.write_text(
        f"{misbehaving.HEAD}\n@strategy('busy')\ndef busy(query: Query, repo: Repository) -> Prompt:\n"
        "    while True: repo.similar_windows(query.prefix)\n"
    )
    with open_cells([], 1, limits=StrategyBounds(seconds=0.05)) as cells, pytest.raises(StrategyFault) as caught:
        cells.run(f"{path}@busy", query, view_for(query), Model())
    assert "more than 0.05 seconds" in str(caught.value)


def test_building_a_shared_index_is_not_charged_to_the_sample() -> None:
    account = UsageMeter(StrategyBounds(seconds=0.0001, indices=1))
    with account.asking("windows"):
        sum(range(3_000_000))
    assert account._indexing > 0.0001
    with pytest.raises(Excess, match="more than 1 indices"), account.asking("units"):
        pass
    with account.asking("windows"):
        sum(range(3_000_000))
    with pytest.raises(Excess, match="seconds of processor time for its questions"):
        account.check_time()


@pytest.mark.slow
def test_bytes_are_counted_in_both_directions(file: Path) -> None:
    query = query_for(Kind.LINE)
    for limits, words in ((StrategyBounds(sent=10), "bytes requested"), (StrategyBounds(received=10), "bytes sent")):
        with open_cells([], 1, limits=limits) as cells, pytest.raises(StrategyFault, match=words):
            cells.run("lc.infile", query, view_for(query), Model())


WHOLE: dict[str, Any] = {
    "prompt": {
        "blocks": [
            ["similar", "# x\n", [["shop/cart.py", 0, 3], ["a", 1, 1]], 0.5, False],
            ["infile", "y", [], None, True],
        ],
        "dropped": [["api", [["shop/store.py", 1, 2]], 3, "budget", 7]],
        "flags": ["no_candidates"],
    }
}
PLAIN: dict[str, Any] = {"choices": [], "least": None, "most": None}
PLAIN |= dict.fromkeys(("optional", "wraps", "unmasks", "asks_engine", "names_encoder"), False)
REGISTERED: dict[str, Any] = {
    "name": "it",
    "kinds": ["line"],
    "drafts": False,
    "executes": True,
    "languages": ["python"],
    "text": "Do it.",
    "source": "it.py",
    "version": "0123456789ab",
    "parameters": [
        {**PLAIN, "name": "top", "kind": "int", "default": 3, "least": 1.0, "most": 9.0, "optional": True},
        {**PLAIN, "name": "mode", "kind": "str", "default": "a", "choices": ["a", "b"]},
    ],
}
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.sampled_from(["", "\x00", "\ud800", "\x1b[2J", 10**400, -1, 1e308, math.nan, math.inf, [], {}, [[]], {"a": {}}]),
    st.recursive(st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=9),
)


def places_in(data: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every part of JSON data."""
    keys = range(len(data)) if isinstance(data, list) else data if isinstance(data, dict) else ()
    return [at, *(way for key in keys for way in places_in(data[key], (*at, key)))]


def mutated(data: Any, draw: st.DataObject) -> Any:
    """Return data with some parts replaced, deleted or doubled."""
    data = json.loads(json.dumps(data))
    for _ in range(draw.draw(st.integers(1, 4))):
        *way, last = draw.draw(st.sampled_from([way for way in places_in(data) if way] or [("prompt",)]))
        part = data
        for key in way:
            part = part[key]
        how = draw.draw(st.sampled_from(["replace", "delete", "double"]))
        if how == "replace" or last not in (range(len(part)) if isinstance(part, list) else part):
            part[last] = copy.deepcopy(draw.draw(ODD))  # a copy, because later steps change lists that are drawn again
        elif how == "delete":
            del part[last]
        elif isinstance(part, list):
            part.append(part[last])
        else:
            part[draw.draw(st.text())] = part[last]
    return data


class Channel:
    """A socket that sends bytes and then closes."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    def recv(self, size: int) -> bytes:
        part, self._raw = self._raw[:size], self._raw[size:]
        return part


@pytest.mark.slow
@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_mutated_message_is_refused_or_valid(draw: st.DataObject) -> None:
    raw = json.dumps(mutated(WHOLE, draw)).encode()
    raw = struct.pack(">I", len(raw)) + raw
    for _ in range(draw.draw(st.integers(0, 2))):
        at = draw.draw(st.integers(0, len(raw) - 1))
        raw = raw[:at] + draw.draw(st.binary(max_size=4)) + raw[at + draw.draw(st.integers(0, 3)) :]
    try:
        message, _ = protocol.receive(Channel(raw), most=1 << 20)  # type: ignore[arg-type]
        prompt = wire.load_prompt(message.get("prompt"))
    except (protocol.ProtocolError, EOFError):
        return
    # A valid prompt can be counted, digested, written and read back.
    assert prompt.digest and all(block.score is None or abs(block.score) <= 1e12 for block in prompt.blocks)
    assert wire.load_prompt(json.loads(json.dumps(wire.dump_prompt(prompt)))) == prompt
    assert all(one.tokens >= 0 for one in _blocks(prompt))


ASKED: dict[str, Any] = {
    "messages": [
        ["user", "Begin.", []],
        ["assistant", "I look.", [["read", '{"path": "a"}'], ["list", "{}"]]],
        ["tool", "x = 1", []],
        ["tool", "a", []],
    ],
    "tools": [["read", "Read a file.", [["path", "Its path.", "string", False], ["n", "", "integer", True]]]],
}


@pytest.mark.slow
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_mutated_chat_is_refused_or_valid(draw: st.DataObject) -> None:
    assert isinstance(wire.load_asked(ASKED), Chat)
    try:
        chat = wire.load_asked(mutated(ASKED, draw))
    except protocol.ProtocolError:
        return
    if isinstance(chat, Chat):
        # A valid chat can be stored, sent as text, and sent as a chat.
        assert chat.digest and chat.text and json.dumps(chat_fields(chat))
        assert wire.load_asked(json.loads(json.dumps(wire.dump_chat(chat)))) == chat


@pytest.mark.slow
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_mutated_registration_is_refused_or_valid(draw: st.DataObject) -> None:
    assert wire.load_registration(REGISTERED, "it").parameters[1].choices == ("a", "b")
    try:
        found = wire.load_registration(mutated(REGISTERED, draw), "it")
    except protocol.ProtocolError:
        return
    assert found.kinds and found.summary is not None
    assert wire.load_registration(wire.dump_registration(found), "it") == found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["forged-fault", "forged-error", "says-nothing"])
def test_a_check_reports_the_same_fault_as_a_run(file: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    from ctxbench.harness.cells import pool

    monkeypatch.setattr(pool, "CHECK_WAIT", 2.0)
    result = run_cli("strategy", "check", f"{file}@{name}")
    assert result.code == 1 and "FAIL  line: runs " in result.out and "Traceback" not in result.out + result.err
    words = misbehaving.HOSTILE[name][1]
    assert words is not None and words in result.out


@pytest.mark.slow
def test_a_draft_over_the_models_window_is_the_strategys_fault(cells: ForkedCells, file: Path) -> None:
    def answer(prompt: Prompt, role: str, max_tokens: int) -> str:
        raise TooLong("9 tokens are over the window of 8")

    query = query_for(Kind.LINE)
    with pytest.raises(StrategyFault, match="9 tokens"):
        cells.run("lc.repocoder", query, view_for(query), Model(answer))
