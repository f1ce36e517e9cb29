"""Runs of strategies that run programs: the sandbox serves their cells, and a missing sandbox is reported early."""

import contextlib
import functools
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text as sql

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.home import Home
from ctxbench.bench.languages.base import Language
from ctxbench.harness.cells import open_cells
from ctxbench.harness.generators.base import Capabilities, Request
from ctxbench.harness.generators.scripted import Scripted
from ctxbench.harness.run.attempt import RunSummary
from ctxbench.harness.run.execution import open_tools
from ctxbench.harness.run.runner import run
from ctxbench.harness.run.spec import NO_SANDBOX, RunOptions
from ctxbench.harness.store import open_store
from ctxbench.strategies.api import Execute, Execution, Prompt
from tests.helpers import sandboxes
from tests.helpers.cells import open_inline
from tests.helpers.functions import FakeJudge, make_function_set
from tests.helpers.sandboxes import BACK_ENDS
from tests.helpers.sets import make_set

pytestmark = pytest.mark.slow

STRATEGY = """\
from ctxbench.strategies import Prompt, strategy
from ctxbench.strategies.layout import infile_block


@strategy("runs")
def runs(query, repo, generate, execute):
    done = execute("print(1)", seconds=3)
    return Prompt(blocks=(infile_block(query, 50),), flags=(f"{done.finished} {done.output}",))
"""


class Coder(Scripted):
    """Costs one bit per character."""

    capabilities = Capabilities(batch_size=16, instructs=True, log_likelihoods=True)

    def bits(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> list[float]:
        return [float(len(text)) for text in texts]


class Tools:
    """Opens the tool that runs programs; counts openings and records programs."""

    def __init__(self, execute: Callable[[str, float], Execution]) -> None:
        self.execute, self.opened, self.programs = execute, 0, list[str]()

    @contextlib.contextmanager
    def __call__(self, width: int) -> Iterator[Execute]:
        self.opened += 1

        def execute(program: str, *, seconds: float = 10.0) -> Execution:
            self.programs.append(program)
            return self.execute(program, seconds)

        yield execute


def attempt(
    folder: Path, tools: Tools | None, strategy: str = "runs", *, cells: Any = open_inline, **how: Any
) -> RunSummary:
    home = Home(folder / "home")
    sample_set = make_set(home, repos=1, per_repo=3)
    (folder / "mine.py").write_text(STRATEGY)
    spec = strategy if strategy.startswith("lc.") else f"{folder / 'mine.py'}@{strategy}"
    machines: dict[str, Any] = {} if tools is None else {"tools": tools}
    with open_store(home.database) as store:
        [summary] = run(
            home,
            store,
            sample_set,
            strategies=(spec,),
            generator="scripted",
            choices=RunOptions(workers=2, **how),
            resolve=lambda _: Coder(lambda _: "x", version="1"),
            cells=cells,
            **machines,
        )
        return summary


def flags(folder: Path) -> set[str]:
    with open_store(Home(folder / "home").database) as store, store.reading() as connection:
        return {str(row[0]) for row in connection.execute(sql("SELECT flags FROM result"))}


@pytest.mark.parametrize("cells", [open_inline, open_cells])
def test_a_strategy_gets_the_outcome_of_its_program(tmp_path: Path, cells: Any) -> None:
    tools = Tools(lambda program, seconds: Execution(finished=True, output=f"{program} in {seconds:g}"))
    assert attempt(tmp_path, tools, cells=cells).scored == 3
    assert tools.opened == 1 and tools.programs == ["print(1)"] * 3
    assert all("True print(1) in 3" in each for each in flags(tmp_path))


def test_a_sandbox_is_opened_only_for_strategies_that_run_programs(tmp_path: Path) -> None:
    tools = Tools(lambda *_: Execution(finished=True, output=""))
    assert attempt(tmp_path, tools, "lc.infile").scored == 3 and tools.opened == 0


def test_a_strategy_that_needs_a_sandbox_does_not_start_without_one(tmp_path: Path) -> None:
    with pytest.raises(InputFault, match="needs a sandbox.*") as fault:
        attempt(tmp_path, None, sandbox=NO_SANDBOX)
    assert "--sandbox none" in str(fault.value) and flags(tmp_path) == set()
    assert attempt(tmp_path, None, "lc.infile", sandbox=NO_SANDBOX).scored == 3


def test_a_lost_sandbox_leaves_samples_missing_for_the_next_run(tmp_path: Path) -> None:
    def lost(*_: object) -> Execution:
        raise MachineFault("the box is gone", cure="run it again")

    summary = attempt(tmp_path, Tools(lost))
    assert (summary.scored, summary.missing) == (0, 3)
    assert {fault.kind for fault in summary.faults} == {"machine"}
    assert attempt(tmp_path, Tools(lambda *_: Execution(finished=True, output=""))).missing == 0


def test_time_spent_waiting_for_a_program_is_not_strategy_time(tmp_path: Path) -> None:
    def slow(*_: object) -> Execution:
        time.sleep(1)
        return Execution(finished=True, output="")

    assert attempt(tmp_path, Tools(slow)).scored == 3
    with open_store(Home(tmp_path / "home").database) as store, store.reading() as connection:
        [seconds] = connection.execute(sql("SELECT max(strategy_seconds) FROM result")).one()
    assert seconds < 1


@pytest.mark.parametrize("name", BACK_ENDS)
def test_three_roles_work_together_in_a_real_sandbox(tmp_path: Path, name: str) -> None:
    """The developer's first code raises an exception. After the report it writes correct code."""
    back_end = sandboxes.real(name)
    home = Home(tmp_path / "home")
    sample_set = make_function_set(home, repos=1, per_repo=2)

    def answer(request: Request) -> str:
        text = request.prompt.text
        if "act as a requirement analyst" in text:
            return '{"plan": "multiply"}'
        if "act as a tester" in text:
            return "```python\ndef check(candidate):\n    print(candidate(3))\n```"
        function = re.findall(r"def (times_(\d))", text)[-1]
        right = "NameError: name 'amuont' is not defined" in text
        return (
            f"```python\ndef {function[0]}(amount):\n    return {'amount' if right else 'amuont'} * {function[1]}\n```"
        )

    with open_store(home.database) as store:
        [summary] = run(
            home,
            store,
            sample_set,
            strategies=("base.selfcollab",),
            generator="scripted",
            choices=RunOptions(workers=2),
            judges=FakeJudge(sample_set).open,
            resolve=lambda _: Coder(answer, version="1"),
            tools=functools.partial(open_tools, home=home, sandbox=name, opens=lambda *_: back_end),
        )
    assert (summary.scored, summary.missing, summary.passes) == (2, 0, (1, 1))
    assert flags(tmp_path) == {'["tests_failed"]'}
