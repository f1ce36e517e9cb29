"""Work of threads, taken back some at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ctxbench.harness.run.portions import UnderWay


def test_all_comes_back_once_in_the_order_in_which_it_was_begun() -> None:
    with ThreadPoolExecutor(4) as threads:
        under_way = UnderWay(threads, lambda n: n * n)
        for number in range(50):
            under_way.begin(number)
        found = []
        while under_way:
            taken = under_way.take()
            assert [what for what, _ in taken] == sorted(what for what, _ in taken)
            found += [(what, future.result()) for what, future in taken]
    assert sorted(found) == [(n, n * n) for n in range(50)]


def test_what_is_ready_does_not_wait_for_what_takes_long() -> None:
    go_on = threading.Event()

    def work(name: str) -> str:
        assert name != "long" or go_on.wait(20)
        return name

    with ThreadPoolExecutor(2) as threads:
        under_way = UnderWay(threads, work)
        under_way.begin("long")
        under_way.begin("short")
        assert [what for what, _ in under_way.take()] == ["short"] and len(under_way) == 1
        go_on.set()
        assert [what for what, _ in under_way.take()] == ["long"] and not under_way


def test_what_is_dropped_is_not_done_and_what_runs_ends() -> None:
    began, go_on, done = threading.Event(), threading.Event(), []

    def work(number: int) -> int:
        began.set()
        assert go_on.wait(20)
        done.append(number)
        return number

    with ThreadPoolExecutor(1) as threads:
        under_way = UnderWay(threads, work)
        for number in range(5):
            under_way.begin(number)
        assert began.wait(20)
        under_way.drop()
        go_on.set()
        assert [what for what, _ in under_way.take()] == [0] and not under_way
    assert done == [0]


def test_a_fault_comes_back_in_its_place() -> None:
    with ThreadPoolExecutor(1) as threads:
        under_way = UnderWay(threads, lambda n: 1 // n)
        under_way.begin(0)
        [(what, future)] = under_way.take()
    assert what == 0
    with pytest.raises(ZeroDivisionError):
        future.result()
