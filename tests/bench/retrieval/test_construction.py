"""Units and indices of whole repositories: each is reported once with its seconds, and reports change no result."""

import pytest

from ctxbench.bench import windows
from ctxbench.bench.concurrency import SharedCache
from ctxbench.bench.retrieval.retrieval import Retrieval
from ctxbench.bench.types import Cursor
from ctxbench.harness.cli.terminal import progress
from tests.bench.retrieval.test_search import pay_view
from tests.helpers.samples import make_query
from tests.helpers.views import make_view

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
def test_each_stage_is_reported_once_per_repository(unit: str, ranker: str, stages: list[str]) -> None:
    told, retrieval = telling()
    first, second = (pay_view(retrieval=retrieval, id=str(number)) for number in range(2))
    hits = [view.search("load the cart", unit=unit, ranker=ranker) for view in (first, second, first)]
    assert [(repo, stage.partition("(")[0]) for repo, stage, _ in told] == [
        ("demo", stage.partition("(")[0]) for stage in stages
    ]
    assert all(0 <= seconds < 10 for *_, seconds in told)
    plain = pay_view(retrieval=Retrieval()).search("load the cart", unit=unit, ranker=ranker)
    assert hits == [plain] * 3 and plain


def test_rankers_build_separate_indices_of_the_same_units() -> None:
    told, retrieval = telling()
    for ranker in ("bm25", "jaccard", "bm25"):
        pay_view(retrieval=retrieval).search("cart", unit="chunk(lines=2)", ranker=ranker)
    assert [stage for _, stage, _ in told] == [
        "units chunk(lines=2)",
        "index bm25 of chunk(lines=2)",
        "index jaccard of chunk(lines=2)",
    ]


def test_building_windows_is_reported_once_per_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "_INDICES", SharedCache(8))
    told, retrieval = telling()
    for size in (20, 20, 6):
        assert pay_view(retrieval=retrieval).similar_windows("load(user)", size=size, stride=3)
    assert [(repo, stage) for repo, stage, _ in told] == [("demo", "windows 20x3"), ("demo", "windows 6x3")]
    assert pay_view().similar_windows("load(user)", size=20, stride=3), "nobody needs to be told"


def test_other_hidden_files_need_new_units_and_indices() -> None:
    told, retrieval = telling()
    for hidden in ((), ("shop/store.py",)):
        pay_view(retrieval=retrieval, hidden=hidden).search("cart", ranker="bm25")
    assert [stage for _, stage, _ in told] == ["units function", "index bm25 of function"] * 2


def search(count: int) -> None:
    texts = {"all.py": "".join(f"def function_{n}():\n    return {n}\n\n\n" for n in range(count))}
    query = make_query(path="other.py", cursor=Cursor(line=0, column=0), prefix="")
    view = make_view(query, texts, retrieval=Retrieval(None))
    assert view.search("function_7", ranker="hashed", top=1)


def test_encoding_many_texts_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("lc.x", 1):
        search(1100)
    assert "hashed: 1100 of 1100 texts encoded; the vectors are kept for later runs" in capsys.readouterr().err


def test_encoding_is_silent_for_few_texts_or_without_a_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("lc.x", 1):
        search(20)
    search(1100)
    assert "encoded" not in capsys.readouterr().err
