"""Runs of the agent with a served model, through tool calls and as text: its steps and file reads are stored."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from ctxbench.bench.home import Home
from ctxbench.bench.types import Use
from ctxbench.harness.results import ACCESS
from ctxbench.harness.store import open_store
from ctxbench.harness.store.details import Step, steps_of
from ctxbench.harness.store.runs import run_tables
from ctxbench.strategies.chat import ToolCall
from tests.helpers.cli import run_cli
from tests.helpers.openai_server import Body, Server, serving
from tests.helpers.sets import make_set

pytestmark = pytest.mark.slow

USES = (Use(name="apply_tax", module="shop.tax", kind="function"),)


def call(name: str, **arguments: Any) -> str:
    return str(ToolCall(name=name, arguments=json.dumps(arguments)))


def walk(prompt: str, body: Body) -> str:
    """Look at two files, show one of them, and then write the line."""
    said = json.dumps(body["messages"])
    if "Only output the generated code" in prompt:
        return "<output_start>apply_tax(cart_0, rate)<output_end>"
    if "def apply_tax(amount, rate):" in said:
        return call("show", places=["shop/tax.py:1-2"])
    if "cost_0 = apply_tax" in said:
        return "Where is it defined?" + call("grep", text="def apply_tax")
    return call("read", path="shop/use.py")


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(answer=walk) as server:
        yield server


def explored(home: Home, server: Server, how: str = "") -> list[tuple[Any, ...]]:
    """Run the agent; return the stored rows about the files that it read."""
    make_set(home, repos=1, per_repo=2, uses=USES)
    spec = f"openai(model=tiny, url='{server.url}', endpoint=chat{how})"
    result = run_cli(
        *("run", "--samples", "demo", "--strategy", "agent.explore", "--generator", spec, "--home", str(home.root))
    )
    assert result.code == 0, result
    with open_store(home.database) as store, store.reading() as connection:
        return [
            tuple(row)
            for row in connection.execute(text("SELECT opened, searches, explored_files, explored_recall FROM access"))
        ]


@pytest.mark.parametrize("how", ["", ", tools=on"])
def test_every_step_is_stored_with_the_files_that_it_read(tmp_path: Path, server: Server, how: str) -> None:
    home = Home(tmp_path / "home")
    # The agent read an irrelevant file, found the other one and showed only that.
    assert explored(home, server, how) == [(2, 1, 2, 1.0)] * 2
    assert any("tools" in body for body in server.calls) == bool(how)
    with open_store(home.database) as store:
        [table] = run_tables(store)
        steps = steps_of(store, table.run.id, table.sample[0])
    assert table.calls == (4.0, 4.0) and set(table.metrics["definition_recall@256"]) == {1.0}
    assert steps == (
        Step(number=1, text="", tool="read", arguments='{"path": "shop/use.py"}'),
        Step(number=2, text="Where is it defined?", tool="grep", arguments='{"text": "def apply_tax"}'),
        Step(number=3, text="", tool="show", arguments='{"places": ["shop/tax.py:1-2"]}'),
    )


def test_the_board_shows_how_many_files_the_agent_read(tmp_path: Path, server: Server, inline_cells: None) -> None:
    home = Home(tmp_path / "home")
    explored(home, server)
    board = run_cli("leaderboard", "--samples", "demo", "--format", "json", "--home", str(home.root))
    [row] = json.loads(board.out)
    assert [row[name] for name in ACCESS] == [1.0, 2.0]
