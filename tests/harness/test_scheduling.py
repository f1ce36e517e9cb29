"""Scheduling: units and shares contain every sample once, and a failing part of the work does not stop the others."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.types import Sample
from ctxbench.harness.run.scheduling import NothingWorks, PendingWork, Share, isolate_faults, units
from tests.helpers.samples import make_sample


def samples(repos: list[str]) -> list[Sample]:
    return [make_sample(id=f"{repo}/{number}", repo=repo) for number, repo in enumerate(repos)]


REPOS = st.lists(st.sampled_from(["a", "b", "c"]), max_size=40)


@given(REPOS, st.integers(1, 9))
def test_shares_contain_each_sample_once_and_have_equal_sizes(repos: list[str], count: int) -> None:
    planned = samples(repos)
    shares = [Share(index, count).of(planned) for index in range(count)]
    together = [sample for share in shares for sample in share]
    assert sorted(together, key=planned.index) == planned
    sizes = {len(share) for share in shares}
    assert max(sizes) - min(sizes) <= 1
    # Shares follow the repositories in order, so two shares have at most one repository in common.
    assert together == sorted(planned, key=lambda sample: repos.index(sample.repo))


@given(REPOS, st.integers(1, 9))
def test_units_contain_one_repository_and_are_not_too_large(repos: list[str], most: int) -> None:
    planned = samples(repos)
    cut = units("r", planned, most)
    assert [sample for unit in cut for sample in unit.samples] == sorted(planned, key=lambda s: repos.index(s.repo))
    assert all(0 < len(unit.samples) <= most and {s.repo for s in unit.samples} == {unit.repo} for unit in cut)
    assert all(unit.run == "r" for unit in cut)


@pytest.mark.parametrize("text", ["0/4", " 3/4 ", "0/1"])
def test_shares_are_read_as_they_are_written(text: str) -> None:
    assert str(Share.parse(text)) == text.strip()


@pytest.mark.parametrize("text", ["4/4", "1/0", "-1/4", "a/b", "1", "", "1/4/2", "٣/٤", "1e1/20"])
def test_an_invalid_share_is_refused(text: str) -> None:
    with pytest.raises(InputFault, match=r"--shard: .* is not a share: .*; write --shard 0/4"):
        Share.parse(text)


def test_a_failing_item_does_not_stop_other_items() -> None:
    asked: list[str] = []

    def work(items: Sequence[str]) -> str:
        asked.append("".join(items))
        if bad := {"b", "d"} & set(items):
            raise MachineFault(f"no {min(bad)}")
        return asked[-1].upper()

    outcomes = [(items, str(outcome)) for items, outcome in isolate_faults(work, "abcd", lambda _: True)]
    assert outcomes == [("a", "A"), ("b", "no b"), ("c", "C"), ("d", "no d")] and asked == ["abcd", *"abcd"]


@pytest.mark.parametrize(("until", "tried"), [(0, ["abcd"]), (2, ["abcd", "a", "b"])])
def test_remaining_items_are_not_tried_once_nothing_works(until: int, tried: list[str]) -> None:
    asked: list[str] = []

    def work(items: Sequence[str]) -> str:
        asked.append("".join(items))
        raise MachineFault(f"{len(asked)}", where="coder", cure="try again")

    outcomes = list(isolate_faults(work, "abcd", lambda _: len(asked) <= until))
    assert asked == tried and "".join("".join(items) for items, _ in outcomes) == "abcd"
    assert [type(outcome) for _, outcome in outcomes] == [MachineFault] * (len(outcomes) - 1) + [NothingWorks]
    assert str(outcomes[-1][1]) == f"coder: {len(tried)}; try again"


def test_dropped_work_does_not_start_and_running_work_finishes() -> None:
    began, go_on, done = threading.Event(), threading.Event(), []

    def work(number: int) -> int:
        began.set()
        assert go_on.wait(20)
        done.append(number)
        return number

    with ThreadPoolExecutor(1) as threads:
        under_way = PendingWork(threads, work)
        for number in range(5):
            under_way.begin(number)
        assert began.wait(20)
        under_way.drop()
        go_on.set()
        assert [what for what, _ in under_way.take()] == [0] and not under_way
    assert done == [0]
