"""A strategy's work, waiting and memory are measured from outside, so that a busy machine causes no fault."""

import contextlib
import itertools
import logging
import os
import signal
import socket
from pathlib import Path

import pytest

from ctxbench.bench.errors import MachineFault
from ctxbench.bench.types import Kind
from ctxbench.harness.cells import StrategyBounds, StrategyFault, conversation, kernel, open_cells, pool
from ctxbench.harness.cells.conversation import Clock
from ctxbench.harness.cells.kernel import Counts, Usage, Work
from ctxbench.harness.cells.process import ForkServer
from ctxbench.harness.cells.protocol import Excess
from ctxbench.strategies.tiny import query_for, view_for
from tests.helpers.extras import missing
from tests.helpers.models import Model

QUERY = query_for(Kind.LINE)
FILE = """
import os, signal, time
from ctxbench.strategies import *
from ctxbench.strategies.layout import infile_prompt


@strategy("works")
def works(query: Query, repo: Repository) -> Prompt:
    while True: pass


@strategy("has-workers")
def has_workers(query: Query, repo: Repository) -> Prompt:
    for _ in range(2):
        if not os.fork():
            while True: pass
    os.wait()


@strategy("has-holders")
def has_holders(query: Query, repo: Repository) -> Prompt:
    for _ in range(4):
        if not os.fork():
            held = b"x" * (80 << 20)
            time.sleep(999)
    os.wait()


@strategy("holds")
def holds(query: Query, repo: Repository) -> Prompt:
    held = []
    while True: held.append("x" * 100 + str(len(held)))


@strategy("frees")
def frees(query: Query, repo: Repository) -> Prompt:
    try:
        bytes(1 << 40)
    except MemoryError:
        return infile_prompt(query, 100)


@strategy("leaves")
def leaves(query: Query, repo: Repository) -> Prompt:
    os._exit(0)


def spin(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until: pass


@strategy("asks-in-time")
def asks_in_time(query: Query, repo: Repository) -> Prompt:
    for _ in range(500):
        spin(0.03)
        repo.files()


@strategy("waits-for-nobody")
def waits_for_nobody(query: Query, repo: Repository) -> Prompt:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for _ in range(4000):
        if not os.fork():
            spin(0.004)
            os._exit(0)
        try: os.wait()
        except ChildProcessError: pass
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("strategies") / "heavy.py"
    path.write_text(FILE)
    return path


@pytest.fixture
def _proc() -> None:
    if not Path("/proc/self/task").is_dir():
        missing("no /proc on this machine")


@pytest.mark.slow
@pytest.mark.usefixtures("_proc")
@pytest.mark.parametrize("name", ["works", "has-workers", "asks-in-time", "waits-for-nobody"])
def test_a_strategy_that_works_too_long_is_stopped_with_a_cure(
    file: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "EVERY", 0.05)
    with open_cells([], 1, limits=StrategyBounds(work=0.2)) as cells, pytest.raises(StrategyFault) as caught:
        cells.run(f"{file}@{name}", QUERY, view_for(QUERY), Model())
    assert "more than 0.2 seconds of processor time" in str(caught.value)
    assert caught.value.cure == "speed the strategy up, or raise --strategy-seconds"


@pytest.mark.slow
@pytest.mark.usefixtures("_proc")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("holds", r"raised MemoryError: a strategy may use 0.195 GiB \(heavy.py:32\)"),
        ("has-holders", r"more than 0.195 GiB of memory"),
    ],
)
def test_a_strategy_that_uses_too_much_memory_is_stopped(file: Path, name: str, words: str) -> None:
    with open_cells([], 1, limits=StrategyBounds(memory=200 << 20)) as cells:
        with pytest.raises(StrategyFault, match=words):
            cells.run(f"{file}@{name}", QUERY, view_for(QUERY), Model())
        assert cells.run("lc.infile", QUERY, view_for(QUERY), Model()).blocks


@pytest.mark.slow
def test_a_strategy_that_survives_a_failed_allocation_continues(file: Path) -> None:
    with open_cells([], 1) as cells:
        assert cells.run(f"{file}@frees", QUERY, view_for(QUERY), Model()).blocks


@pytest.mark.slow
@pytest.mark.usefixtures("_proc")
def test_a_slow_sample_is_logged(file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(conversation, "EVERY", 0.05)
    monkeypatch.setattr(conversation, "_FIRST_REMARK", 0.05)
    monkeypatch.setattr(pool, "_REMARKS_EVERY", 0.0)
    with (
        caplog.at_level(logging.INFO, "ctxbench.harness.cells"),
        open_cells([], 1, limits=StrategyBounds(work=0.3)) as cells,
        pytest.raises(StrategyFault),
    ):
        cells.run(f"{file}@works", QUERY, view_for(QUERY), Model())
    assert caplog.messages and all("heavy.py@works on tiny/" in message for message in caplog.messages)
    assert " of 0.3 processor seconds used, " in caplog.messages[0]


def test_slow_samples_are_logged_at_intervals_only(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "ctxbench.harness.cells"), open_cells([], 1) as cells:
        for _ in range(3):
            cells._remark("a", "b")
    assert caplog.messages == ["a is slow: b"]


def ticking(monkeypatch: pytest.MonkeyPatch, step: float, used: Usage) -> None:
    """Make each look at a cell find this usage, `step` seconds after the last."""
    moments = itertools.count(0.0, step)
    monkeypatch.setattr(conversation.time, "monotonic", lambda: next(moments))
    monkeypatch.setattr(conversation, "usage", lambda *_: used)


def usage_of(seconds: float = 0.0, *, runnable: bool = False) -> Usage:
    """Return the usage of one process that worked for so many seconds."""
    counts = Counts(ticks=round(seconds * kernel._TICKS))
    return Usage(processes={(1, 0): counts}, memory=0, runnable=runnable)


def start_clock(limits: StrategyBounds) -> Clock:
    watch = Clock(limits)
    watch.start(1)
    return watch


@pytest.mark.parametrize(
    ("step", "used", "looks", "waits"),
    [
        pytest.param(1.0, usage_of(0.5), 5, True, id="a cell that waits"),
        pytest.param(1.0, usage_of(0.5, runnable=True), 1000, False, id="a cell that gets no processor"),
        pytest.param(1000.0, usage_of(), 4, False, id="this side stood still"),
    ],
)
def test_only_a_waiting_cell_is_stopped(
    monkeypatch: pytest.MonkeyPatch, step: float, used: Usage, looks: int, waits: bool
) -> None:
    ticking(monkeypatch, step, used)
    watch = start_clock(StrategyBounds(work=1.0, wait=5.0))
    for _ in range(looks):
        watch.look()
    with pytest.raises(TimeoutError) if waits else contextlib.nullcontext():
        watch.look()


def test_work_on_a_question_is_not_the_cells_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(conversation.time, "monotonic", lambda: now)
    monkeypatch.setattr(conversation, "usage", lambda *_: usage_of())
    watch = start_clock(StrategyBounds(work=1.0, wait=0.01))
    for _ in range(50):
        with watch.paused():
            now += 1.0
        watch.look()
    now += conversation.EVERY
    with pytest.raises(TimeoutError):
        watch.look()


def test_questions_do_not_change_how_often_a_cell_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(conversation.time, "monotonic", lambda: now)
    monkeypatch.setattr(conversation, "usage", lambda *_: usage_of())
    watch = start_clock(StrategyBounds(work=1.0, wait=5.0))
    for part in range(1, 5):
        now = 0.1 * part
        watch.look(asked=True)
        assert watch.until_look() == pytest.approx(conversation.EVERY - now)
    # The cell seems idle at its question, but on a busy machine it may have been ready to work all the time.
    now = 1000.0
    watch.look(asked=True)
    assert watch.until_look() == conversation.EVERY
    monkeypatch.setattr(conversation, "usage", lambda *_: usage_of(2.0))
    now += conversation.EVERY
    with pytest.raises(Excess, match="more than 1 seconds"):
        watch.look(asked=True)


def test_work_counts_although_the_cell_is_idle_at_each_look(monkeypatch: pytest.MonkeyPatch) -> None:
    ticking(monkeypatch, 1.0, usage_of(2.0))
    with pytest.raises(Excess, match="more than 1 seconds"):
        start_clock(StrategyBounds(work=1.0)).look()


@pytest.mark.usefixtures("_proc")
def test_the_usage_includes_the_process_and_its_children() -> None:
    inside, outside = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(outside)
        os.read(inside, 1)
        os._exit(0)
    try:
        used = kernel.usage(os.getpid())
        assert {os.getpid(), child} <= {pid for pid, _ in used.processes}
        assert sum(counts.faults for counts in used.processes.values()) > 0
        assert sum(counts.ticks for counts in used.processes.values()) > 0
        assert used.runnable and used.memory > 1 << 20
        assert 0 < kernel.own_memory(os.getpid()) <= used.memory
    finally:
        os.close(inside)
        os.close(outside)
        os.waitpid(child, 0)
    assert kernel.usage(child) == Usage(processes={}, memory=0, runnable=False)


@pytest.mark.usefixtures("_proc")
def test_a_process_still_counts_after_its_parent_ended() -> None:
    inside, outside = os.pipe()
    child = os.fork()
    if child == 0:
        grandchild = os.fork()
        if grandchild == 0:
            os.close(outside)
            os.read(inside, 1)
            os._exit(0)
        os.read(inside, 1)
        os._exit(0)
    while len((before := kernel.usage(child)).processes) < 2:
        pass
    [[grandchild, began]] = [process for process in before.processes if process[0] != child]
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    after = kernel.usage(child, before.processes)
    assert list(after.processes) == [(grandchild, began)] and after.memory
    # A later process with the same number does not count.
    assert not kernel.usage(child, [(grandchild, began + 1)]).processes
    os.close(inside)
    os.close(outside)


def seconds(*looks: dict[int, Counts]) -> tuple[list[float], bool]:
    """Return the ticks that each look adds, and whether work escapes after the last look."""
    work = Work()
    ticks = [work.add({(pid, 0): counts for pid, counts in look.items()}) * kernel._TICKS for look in looks]
    return ticks, work.escapes


def test_the_work_of_a_child_is_counted_once() -> None:
    alone, begun = Counts(10, 5), {1: Counts(20, 5), 2: Counts(30, 7)}
    waited_for = {1: Counts(20, 5, 50, 9)}
    assert seconds({1: alone}, begun, waited_for) == ([10, 40, 20], False)
    # The child ended between the look at its parent and the look at it.
    assert seconds({1: alone}, begun, {1: Counts(20, 5)}, waited_for) == ([10, 40, 0, 20], False)


def test_the_work_of_a_child_that_is_never_waited_for_counts() -> None:
    begun = {1: Counts(10, 5), 2: Counts(30, 7)}
    assert seconds(begun, {1: Counts(15, 5)}) == ([40, 5], True)
    assert seconds({1: Counts(), 2: Counts(0, 7)}, {1: Counts(0, 3)}) == ([0, 0], True)
    # The ticks of a later child may include the first child's share, but not all later work of the cell.
    assert seconds(begun, {1: Counts(15, 5)}, {1: Counts(19, 5, 90, 5)}) == ([40, 5, 64], True)


def test_a_cell_whose_work_escapes_is_charged_for_runnable_time(monkeypatch: pytest.MonkeyPatch) -> None:
    ticking(monkeypatch, 0.5, usage_of(runnable=True))
    watch = start_clock(StrategyBounds(work=2.0))
    for pid in range(4):
        lone = Usage(processes={(pid, 0): Counts(0, 9)}, memory=0, runnable=True)
        monkeypatch.setattr(conversation, "usage", lambda *_, lone=lone: lone)
        watch.look()
    with pytest.raises(Excess, match="more than 2 seconds"):
        for _ in range(2):
            watch.look()


@pytest.mark.slow
def test_a_cell_that_ends_when_memory_runs_out_is_the_machines_fault(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The count when the file is loaded, then before and after each of two cells. Between the cells, the kernel kills a
    # process of another program.
    ended = iter([3, 3, 4, 5, 5])
    monkeypatch.setattr(pool, "ended_for_memory", lambda: next(ended))
    with open_cells([], 1) as cells:
        with pytest.raises(MachineFault, match="ran out of memory .* fewer --workers"):
            cells.run(f"{file}@leaves", QUERY, view_for(QUERY), Model())
        with pytest.raises(StrategyFault, match="ended without an answer"):
            cells.run(f"{file}@leaves", QUERY, view_for(QUERY), Model())


def test_the_kernels_count_of_memory_kills_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_PROC", tmp_path)
    assert kernel.ended_for_memory() == 0
    (tmp_path / "vmstat").write_text("nr_free_pages 1\noom_kill 17\ndrop_pagecache 3\n")
    assert kernel.ended_for_memory() == 17


@pytest.mark.slow
def test_a_cell_that_never_starts_is_the_machines_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: ForkServer, __: int, channel: socket.socket, ___: int) -> None:
        channel.shutdown(socket.SHUT_RDWR)

    with open_cells([], 1) as cells:
        monkeypatch.setattr(ForkServer, "start", start)
        with pytest.raises(MachineFault, match="the process for a strategy could not be started"):
            cells.run("lc.infile", QUERY, view_for(QUERY), Model())
