"""What is made of whole repositories is told once, with the time it took, and changes nothing."""

import pytest

from ctxbench.bench import windows
from ctxbench.bench.concurrency import SharedCache
from ctxbench.bench.retrieval.retrieval import Retrieval
from tests.bench.retrieval.test_search import pay_view

Told = list[tuple[str, str, float]]


def telling() -> tuple[Told, Retrieval]:
    told: Told = []
    return told, Retrieval(built=lambda *one: told.append(one))


@pytest.mark.parametrize(
    ("unit", "ranker", "stages"),
    [
        ("function", "bm25", ["units function", "index bm25 of function"]),
        ("usage", "hashed", ["units usage", "index hashed of usage"]),
        ("summary", "jaccard", ["units summary", "summaries of summary", "index jaccard of summary"]),
    ],
)
def test_each_stage_is_told_once_a_repository(unit: str, ranker: str, stages: list[str]) -> None:
    told, retrieval = telling()
    first, second = (pay_view(retrieval=retrieval, id=str(number)) for number in range(2))
    hits = [view.search("load the cart", unit=unit, ranker=ranker) for view in (first, second, first)]
    assert [(repo, stage.partition("(")[0]) for repo, stage, _ in told] == [
        ("demo", stage.partition("(")[0]) for stage in stages
    ]
    assert all(0 <= seconds < 10 for *_, seconds in told)
    plain = pay_view(retrieval=Retrieval()).search("load the cart", unit=unit, ranker=ranker)
    assert hits == [plain] * 3 and plain


def test_other_rankers_need_other_indices_of_the_same_units() -> None:
    told, retrieval = telling()
    for ranker in ("bm25", "jaccard", "bm25"):
        pay_view(retrieval=retrieval).search("cart", unit="chunk(lines=2)", ranker=ranker)
    assert [stage for _, stage, _ in told] == [
        "units chunk(lines=2)",
        "index bm25 of chunk(lines=2)",
        "index jaccard of chunk(lines=2)",
    ]


def test_windows_are_told_where_they_are_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "_INDICES", SharedCache(8))
    told, retrieval = telling()
    for size in (20, 20, 6):
        assert pay_view(retrieval=retrieval).similar_windows("load(user)", size=size, stride=3)
    assert [(repo, stage) for repo, stage, _ in told] == [("demo", "windows 20x3"), ("demo", "windows 6x3")]
    assert pay_view().similar_windows("load(user)", size=20, stride=3), "nobody needs to be told"


def test_other_hidden_files_are_another_construction() -> None:
    told, retrieval = telling()
    for hidden in ((), ("shop/store.py",)):
        pay_view(retrieval=retrieval, hidden=hidden).search("cart", ranker="bm25")
    assert [stage for _, stage, _ in told] == ["units function", "index bm25 of function"] * 2
