"""Requests of many threads are batched, answered once and never left waiting."""

import dataclasses
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.harness.generators.base import Capabilities, Request, Response, TooLong
from ctxbench.harness.generators.scripted import Scripted
from ctxbench.harness.run.batching import FIRST, GIVE_UP, Answer, Batcher, Stopped
from ctxbench.harness.store.write import StoredGeneration
from tests.helpers.requests import make_request as ask


class Memory:
    """A store of answers."""

    def __init__(self) -> None:
        self.kept: dict[str, Response] = {}

    def generations(self, ids: Sequence[str]) -> dict[str, Response]:
        return {id_: self.kept[id_] for id_ in ids if id_ in self.kept}

    def add_generations(self, generations: Sequence[StoredGeneration]) -> None:
        for one in generations:
            assert one.id not in self.kept
            self.kept[one.id] = Response(
                text=one.text, finish="stop", tokens_in=one.tokens_in, tokens_out=one.tokens_out, seconds=0
            )


def upper(request: Request) -> str:
    return request.prompt.text.upper()


class SideBySide(Scripted):
    """A generator that is called by as many threads at once as a batch has requests."""

    capabilities = Capabilities(batch_size=16, instructs=True, concurrent=True)


@contextmanager
def batching(generator: Scripted, memory: Memory | None = None, spec: str = "s") -> Iterator[Batcher]:
    batcher = Batcher(generator, spec, memory or Memory())
    try:
        yield batcher
    finally:
        batcher.close()


def asking(batcher: Batcher, texts: Sequence[str]) -> list[Callable[[], str]]:
    """Return functions that each ask for one text and return the answer."""
    return [lambda text=text: batcher.ask([ask(text)])[0].response.text for text in texts]


def in_threads(batcher: Batcher, works: Sequence[Callable[[], object]]) -> list[Future[object]]:
    """Run all functions as members at once, and fail if one hangs."""
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
        futures = in_threads(batcher, asking(batcher, [f"t{n}" for n in range(FIRST)]))
        assert [future.result() for future in futures] == [f"T{n}" for n in range(FIRST)]
    assert generator.batches == [FIRST]


def test_bits_are_returned_only_for_the_requested_text() -> None:
    class Priced(Scripted):
        """A generator that prices a text at one bit per character."""

        def _respond(self, request: Request) -> Response:
            return dataclasses.replace(super()._respond(request), bits=float(len(request.reference or "")))

    def bits(text: str) -> float | None:
        return batcher.ask([dataclasses.replace(ask("t"), reference=text)])[0].response.bits

    with batching(Priced(upper)) as batcher:
        assert bits("abc") == 3.0 and bits("abc") is None, "a stored answer has no price"
    generator = Priced(upper, batch_size=9)
    with batching(generator) as batcher:
        texts = ["abc", "a", "ab"]
        found = [one.result() for one in in_threads(batcher, [lambda text=text: bits(text) for text in texts])]
    [(text, cost)] = [(text, cost) for text, cost in zip(texts, found, strict=True) if cost is not None]
    assert generator.batches == [1] and cost == len(text)


def test_the_first_batches_are_small() -> None:
    """Answers from a run's first seconds are stored soon."""
    generator = Scripted(upper, batch_size=50)
    with batching(generator) as batcher:
        answers = batcher.ask([ask(f"t{n}") for n in range(200)])
        assert [answer.response.text for answer in answers] == [f"T{n}" for n in range(200)]
    assert generator.batches == [8, 16, 32, 50, 50, 44]


@pytest.mark.parametrize("kind", [Scripted, SideBySide])
def test_equal_requests_are_answered_once(kind: type[Scripted]) -> None:
    generator, memory = kind(upper, batch_size=8), Memory()
    with batching(generator, memory) as batcher:
        futures = in_threads(batcher, [lambda: batcher.ask([ask("same"), ask("same")]) for _ in range(8)])
        assert {answer.response.text for future in futures for answer in future.result()} == {"SAME"}  # type: ignore[attr-defined]
        batcher.ask([ask("same")])
    assert generator.batches == [1] and len(memory.kept) == 1


def test_index_and_sampling_make_requests_different() -> None:
    generator = Scripted(upper)
    with batching(generator) as batcher:
        batcher.ask([ask("x"), ask("x", index=1), ask("x", temperature=0.5), ask("x", seed=1)])
    assert sum(generator.batches) == 4


def test_a_fault_reaches_exactly_the_waiting_requests() -> None:
    generator = Scripted(upper, batch_size=100, faults={1})
    with batching(generator) as batcher:
        futures = in_threads(batcher, asking(batcher, "abcde"))
        assert all(isinstance(future.exception(), MachineFault) for future in futures)
        assert batcher.ask([ask("t0")])[0].response.text == "T0"
        assert not batcher.lost


def test_a_member_that_dies_does_not_block_the_others() -> None:
    generator = Scripted(upper, batch_size=100)

    def die() -> None:
        time.sleep(0.05)
        raise RuntimeError("gone")

    with batching(generator) as batcher:
        futures = in_threads(batcher, [die, *asking(batcher, "abcd")])
    assert isinstance(futures[0].exception(), RuntimeError)
    assert all(future.exception() is None for future in futures[1:])


@pytest.mark.slow
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


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (Scripted, ValueError("a bug")),
        (Scripted, KeyboardInterrupt()),
        (SideBySide, ValueError("a bug")),
        (SideBySide, InputFault("no such model")),
    ],
)
def test_an_error_of_the_generator_reaches_every_request(kind: type[Scripted], error: BaseException) -> None:
    def answer(_: Request) -> str:
        raise error

    with batching(kind(answer, batch_size=4)) as batcher:
        futures = in_threads(batcher, asking(batcher, "abcdefgh"))
        assert all(future.exception() is error for future in futures)
        with pytest.raises(type(error)):
            batcher.ask([ask("later")])


def test_a_wrong_number_of_answers_is_an_error() -> None:
    class Short(Scripted):
        def generate(self, requests: Sequence[Request]) -> list[Response]:
            return super().generate(requests)[:-1]

    with batching(Short(upper)) as batcher, pytest.raises(ValueError, match="shorter"):
        batcher.ask([ask("x"), ask("y")])


class FieldError(Scripted):
    """A generator whose answers have invalid fields."""

    def __init__(self, account: Mapping[str, Any]) -> None:
        super().__init__(upper)
        self.account = account

    def generate(self, requests: Sequence[Request]) -> list[Response]:
        return [dataclasses.replace(answer, **self.account) for answer in super().generate(requests)]


@pytest.mark.parametrize("name", ["tokens_in", "tokens_out", "cached", "seconds", "finish"])
@pytest.mark.parametrize("value", [10**30, 10**9, -1, float("nan"), float("inf"), None])
def test_an_answer_with_an_invalid_field_is_a_fault(name: str, value: object) -> None:
    memory = Memory()
    with batching(FieldError({name: value}), memory) as batcher, pytest.raises(MachineFault, match="an invalid finish"):
        batcher.ask([ask("a")])
    assert not memory.kept


class Partly(Scripted):
    """A generator that fails single requests of a batch."""

    def __init__(self, failing: Callable[[str], MachineFault | None], **changes: object) -> None:
        super().__init__(upper, **changes)  # type: ignore[arg-type]
        self._failing = failing

    def generate(self, requests: Sequence[Request]) -> list[Response | MachineFault]:  # type: ignore[override]
        answers = super().generate(requests)
        return [self._failing(request.prompt.text) or answer for request, answer in zip(requests, answers, strict=True)]


def test_one_bad_request_does_not_affect_its_batch() -> None:
    generator, memory = Partly(lambda text: MachineFault("no bad") if text == "bad" else None, batch_size=64), Memory()
    with batching(generator, memory) as batcher:
        texts = [f"t{n}" for n in range(63)] + ["bad"]
        futures = in_threads(batcher, asking(batcher, texts))
    assert [future.result() for future in futures[:63]] == [f"T{n}" for n in range(63)]
    assert str(futures[63].exception()) == "no bad"
    assert len(memory.kept) == 63 and generator.batches == [8, 16, 32, 8]


@pytest.mark.parametrize(
    ("fault", "texts"),
    [
        pytest.param(MachineFault("bad"), ["bad", "good"], id="an answer now and then"),
        pytest.param(TooLong("too long"), ["bad"], id="requests that are too long"),
    ],
)
def test_single_faults_and_long_requests_do_not_stop_a_generator(fault: MachineFault, texts: Sequence[str]) -> None:
    with batching(Partly(lambda text: fault if "bad" in text else None)) as batcher:
        for number in range(2 * GIVE_UP):
            with pytest.raises(type(fault)):
                batcher.ask([ask(f"{text} {number}") for text in texts])
        assert not batcher.lost


def test_requests_that_wait_for_a_lost_generator_fail() -> None:
    generator = Scripted(upper, batch_size=1, faults=range(1, 99))
    with batching(generator) as batcher:
        futures = in_threads(batcher, asking(batcher, "abcdefghijklmnopqrst"))
        assert all(isinstance(future.exception(), MachineFault) for future in futures)
        with pytest.raises(MachineFault, match=f"call {GIVE_UP} failed"):
            batcher.ask([ask("later")])
    assert len(generator.batches) == GIVE_UP


@pytest.mark.slow
def test_concurrent_requests_do_not_wait_for_the_slowest() -> None:
    go_on = threading.Event()

    def answer(request: Request) -> str:
        assert request.prompt.text != "slow" or go_on.wait(20)
        return upper(request)

    def last(batcher: Batcher) -> None:
        for number in range(20):
            batcher.ask([ask(f"t{number}")])
        go_on.set()

    with batching(SideBySide(answer, batch_size=2)) as batcher:
        futures = in_threads(batcher, [lambda: batcher.ask([ask("slow")]), lambda: last(batcher)])
        assert all(future.exception() is None for future in futures)


def test_as_many_requests_run_at_once_as_the_batch_size() -> None:
    together = threading.Barrier(4)
    lock, now, most = threading.Lock(), [0], [0]

    def answer(request: Request) -> str:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        # Forty requests pass the barrier in ten groups of four. A lane that idles while requests wait breaks it.
        together.wait(10)
        with lock:
            now[0] -= 1
        return upper(request)

    generator = SideBySide(answer, batch_size=4)
    with batching(generator) as batcher:
        futures = in_threads(batcher, [lambda n=n: batcher.ask([ask(f"{n} {m}") for m in range(5)]) for n in range(8)])
        assert all(future.exception() is None for future in futures)
    assert most == [4] and generator.batches == [1] * 40


def test_a_concurrent_generator_is_lost_after_several_batches_of_failures() -> None:
    generator = SideBySide(upper, batch_size=4, faults=range(1, 99))
    with batching(generator) as batcher:
        for number in range(4 * GIVE_UP):
            assert not batcher.lost
            with pytest.raises(MachineFault):
                batcher.ask([ask(f"t{number}")])
        assert batcher.lost


def test_closing_stops_waiting_requests_and_stores_late_answers() -> None:
    began, go_on = threading.Semaphore(0), threading.Event()

    def answer(request: Request) -> str:
        began.release()
        go_on.wait(20)
        return upper(request)

    memory = Memory()
    batcher = Batcher(SideBySide(answer, batch_size=3), "s", memory)

    def stop() -> None:
        for _ in range(3):
            assert began.acquire(timeout=10)
        threading.Timer(0.2, go_on.set).start()
        batcher.close()

    futures = in_threads(batcher, [stop, *asking(batcher, "abcdefghi")])
    assert futures[0].exception() is None
    assert all(isinstance(future.exception(), Stopped) for future in futures[1:])
    assert len(memory.kept) == 3
    with pytest.raises(Stopped):
        batcher.ask([ask("later")])


def test_no_thread_starts_before_the_first_request() -> None:
    before = set(threading.enumerate())
    with batching(SideBySide(upper, batch_size=64)) as batcher:
        assert not set(threading.enumerate()) - before
        batcher.ask([ask("a"), ask("b")])
        assert len(set(threading.enumerate()) - before) <= 3, "a lane for each, and who keeps the books"


class Slow(Memory):
    """A store that waits before it writes answers, and counts lookups and writes."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()
        self.looked_up: list[int] = []
        self.written: list[int] = []

    def generations(self, ids: Sequence[str]) -> dict[str, Response]:
        self.looked_up.append(len(ids))
        return super().generations(ids)

    def add_generations(self, generations: Sequence[StoredGeneration]) -> None:
        assert self.go_on.wait(20)
        self.written.append(len(generations))
        super().add_generations(generations)


def test_models_do_not_wait_for_the_disk_and_answers_are_written_together() -> None:
    memory, asked = Slow(), threading.Semaphore(0)

    def answer(request: Request) -> str:
        asked.release()
        return upper(request)

    def watch() -> None:
        for _ in range(20):
            assert asked.acquire(timeout=10), "a lane waits for the store"
        memory.go_on.set()

    with batching(SideBySide(answer, batch_size=2), memory) as batcher:
        works = [watch, *(lambda n=n: batcher.ask([ask(f"t{n}")])[0].response.text for n in range(20))]
        futures = in_threads(batcher, works)
        assert [future.result() for future in futures[1:]] == [f"T{n}" for n in range(20)]
    assert sum(memory.written) == 20 and len(memory.written) < 10
    # Each answer is looked up before its request and again when it is stored.
    assert sum(memory.looked_up) == 40 and len(memory.looked_up) < 20


def test_answers_that_cannot_be_stored_are_not_returned() -> None:
    class Full(Memory):
        def add_generations(self, generations: Sequence[StoredGeneration]) -> None:
            raise MachineFault("no space left")

    with batching(SideBySide(upper, batch_size=4), Full()) as batcher:
        futures = in_threads(batcher, asking(batcher, "abcdefgh"))
        assert all("no space left" in str(future.exception()) for future in futures)
        assert batcher.lost


def test_stored_answers_are_returned_after_the_generator_is_lost() -> None:
    memory = Memory()
    with batching(Scripted(upper), memory) as batcher:
        batcher.ask([ask("known")])
    dead = SideBySide(upper, batch_size=1, faults=range(1, 99))
    with batching(dead, memory) as batcher:
        futures = in_threads(batcher, [lambda: batcher.ask([ask("known")]), lambda: batcher.ask([ask("new")])])
        assert futures[0].exception() is None and isinstance(futures[1].exception(), MachineFault)
