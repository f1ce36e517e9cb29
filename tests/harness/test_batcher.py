"""Requests of many threads: batched, answered once, and never left waiting."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from bench.errors import MachineFault
from bench.types import Language
from harness.batcher import GIVE_UP, Answer, Batcher, Stopped
from harness.generators.base import Request, Response, Sampling
from harness.generators.scripted import Scripted
from harness.store.records import StoredGeneration
from strategies.api import Block, BlockKind, Prompt


class Memory:
    """A store of answers."""

    def __init__(self) -> None:
        self.kept: dict[str, Response] = {}

    def generations(self, ids: Sequence[str]) -> dict[str, Response]:
        return {id_: self.kept[id_] for id_ in ids if id_ in self.kept}

    def add_generations(self, generations: Sequence[StoredGeneration]) -> None:
        for one in generations:
            assert one.id not in self.kept
            self.kept[one.id] = Response(text=one.text, finish="stop", tokens_in=0, tokens_out=0, seconds=0)


def ask(text: str, index: int = 0, **sampling: object) -> Request:
    prompt = Prompt(blocks=(Block(kind=BlockKind.INFILE, text=text),))
    return Request(prompt=prompt, language=Language.PYTHON, index=index, sampling=Sampling(**sampling))  # type: ignore[arg-type]


def upper(request: Request) -> str:
    return request.prompt.text.upper()


@contextmanager
def batching(generator: Scripted, memory: Memory | None = None, spec: str = "s") -> Iterator[Batcher]:
    batcher = Batcher(generator, spec, memory or Memory())
    try:
        yield batcher
    finally:
        batcher.close()


def in_threads(batcher: Batcher, works: Sequence[Callable[[], object]]) -> list[Future[object]]:
    """Run every work as a member, all at once; fail if one hangs."""
    together = threading.Barrier(len(works))

    def member(work: Callable[[], object]) -> object:
        with batcher.member():
            together.wait(10)
            return work()

    with ThreadPoolExecutor(len(works)) as pool:
        futures = [pool.submit(member, work) for work in works]
        for future in futures:
            future.exception(30)
    return futures


def test_a_batch_goes_out_when_every_member_waits() -> None:
    generator = Scripted(upper, batch_size=100)
    with batching(generator) as batcher:
        futures = in_threads(batcher, [lambda n=n: batcher.ask([ask(f"t{n}")])[0].response.text for n in range(10)])
        assert [future.result() for future in futures] == [f"T{n}" for n in range(10)]
    assert generator.batches == [10]


def test_a_batch_is_no_larger_than_the_generator_says() -> None:
    generator = Scripted(upper, batch_size=4)
    with batching(generator) as batcher:
        in_threads(batcher, [lambda n=n: batcher.ask([ask(f"t{n}")]) for n in range(10)])
    assert max(generator.batches) <= 4 and sum(generator.batches) == 10


def test_equal_requests_are_answered_once() -> None:
    generator, memory = Scripted(upper), Memory()
    with batching(generator, memory) as batcher:
        futures = in_threads(batcher, [lambda: batcher.ask([ask("same"), ask("same")]) for _ in range(8)])
        assert {answer.response.text for future in futures for answer in future.result()} == {"SAME"}  # type: ignore[attr-defined]
        batcher.ask([ask("same")])
    assert generator.batches == [1] and len(memory.kept) == 1


def test_index_and_sampling_make_requests_different() -> None:
    generator = Scripted(upper)
    with batching(generator) as batcher:
        batcher.ask([ask("x"), ask("x", 1), ask("x", 0, temperature=0.5), ask("x", 0, seed=1)])
    assert sum(generator.batches) == 4


def test_another_generator_never_gets_these_answers() -> None:
    memory = Memory()
    for spec, version, text in (("a", "1", "A1"), ("b", "1", "B1"), ("a", "2", "A2")):
        with batching(Scripted(lambda _, text=text: text, version=version), memory, spec) as batcher:
            assert batcher.ask([ask("x")])[0].response.text == text
    assert len(memory.kept) == 3


def test_a_fault_reaches_exactly_those_who_waited() -> None:
    generator = Scripted(upper, batch_size=100, faults={1})
    with batching(generator) as batcher:
        futures = in_threads(batcher, [lambda n=n: batcher.ask([ask(f"t{n}")]) for n in range(5)])
        assert all(isinstance(future.exception(), MachineFault) for future in futures)
        assert batcher.ask([ask("t0")])[0].response.text == "T0"
        assert not batcher.lost


def test_a_generator_that_keeps_failing_counts_as_lost() -> None:
    with batching(Scripted(upper, faults=range(1, 99))) as batcher:
        for _ in range(GIVE_UP):
            with pytest.raises(MachineFault):
                batcher.ask([ask("x")])
        assert batcher.lost


def test_a_member_that_dies_keeps_nobody_waiting() -> None:
    generator = Scripted(upper, batch_size=100)

    def die() -> None:
        time.sleep(0.05)
        raise RuntimeError("gone")

    with batching(generator) as batcher:
        futures = in_threads(batcher, [die, *(lambda n=n: batcher.ask([ask(f"t{n}")]) for n in range(4))])
    assert isinstance(futures[0].exception(), RuntimeError)
    assert all(future.exception() is None for future in futures[1:])


def test_a_slow_member_does_not_hold_up_the_others() -> None:
    ready = threading.Event()

    def slow() -> None:
        assert ready.wait(20)

    def quick(batcher: Batcher) -> list[Answer]:
        answers = batcher.ask([ask("x")])
        ready.set()
        return answers

    with batching(Scripted(upper, batch_size=100)) as batcher:
        futures = in_threads(batcher, [slow, lambda: quick(batcher)])
    assert all(future.exception() is None for future in futures)


@pytest.mark.parametrize("error", [ValueError("a bug"), KeyboardInterrupt()])
def test_any_end_of_the_generator_reaches_everyone(error: BaseException) -> None:
    def answer(_: Request) -> str:
        raise error

    with batching(Scripted(answer, batch_size=100)) as batcher:
        futures = in_threads(batcher, [lambda n=n: batcher.ask([ask(f"t{n}")]) for n in range(4)])
        assert all(future.exception() is error for future in futures)
        with pytest.raises(type(error)):
            batcher.ask([ask("later")])


def test_a_wrong_number_of_answers_is_no_hang() -> None:
    class Short(Scripted):
        def generate(self, requests: Sequence[Request]) -> list[Response]:
            return super().generate(requests)[:-1]

    with batching(Short(upper)) as batcher, pytest.raises(ValueError, match="shorter"):
        batcher.ask([ask("x"), ask("y")])


def test_closing_frees_everyone() -> None:
    began, go_on = threading.Event(), threading.Event()

    def answer(request: Request) -> str:
        began.set()
        go_on.wait(20)
        return upper(request)

    batcher = Batcher(Scripted(answer, batch_size=1), "s", Memory())

    def stop() -> None:
        assert began.wait(10)
        threading.Timer(0.2, go_on.set).start()
        batcher.close()

    futures = in_threads(batcher, [stop, *(lambda n=n: batcher.ask([ask(f"t{n}")]) for n in range(3))])
    assert futures[0].exception() is None
    assert all(isinstance(future.exception(), Stopped) for future in futures[1:])
    with pytest.raises(Stopped):
        batcher.ask([ask("later")])


def test_no_requests_no_wait() -> None:
    with batching(Scripted(upper)) as batcher:
        assert batcher.ask([]) == []
