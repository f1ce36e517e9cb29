"""Tables of the Benchmark page, from plain values."""

from typing import Any

import pytest

from ctxbench.bench.types import Kind, Sample
from ctxbench.dashboard.views import benchmark
from tests.helpers.samples import make_sample

ENTRY: dict[str, Any] = {
    "language": "python",
    "license": "MIT",
    "version": "1.0",
    "source": "pypi:shop==1.0",
    "checkout": "shop/1.0",
    "snapshot": "ab" * 32,
    "files": 12,
    "lines": 340,
    "left_out": {"generated": 2},
    "skipped_as_targets": {"syntax_error": 1},
    "usable": 9,
    "kept": 3,
    "kept_masked_shared": 1,
    "kept_rest_elsewhere": 2,
    "drops": {"verbatim": 5, "few_tokens": 7},
}
LINES: dict[str, Any] = {"kind": "line", "seed": 1, "per_repo": 3, "repositories": {"shop": ENTRY, "cart": ENTRY}}


def sample(**changes: Any) -> Sample:
    return make_sample(**{"repo": "shop", "subkind": "next-line", **changes})


def row_with(rows: list[dict[str, object]], key: str, value: str) -> dict[str, object]:
    (row,) = (row for row in rows if row[key] == value)
    return row


def test_sets_of_the_home_and_of_stored_runs_are_listed() -> None:
    stored = [("c", "c", "3"), ("b old", "b", "old"), ("b[:2]", "b", "1"), ("b 1", "b", "1")]
    home = {"b": ("1", {}), "a": ("2", {}), "c": ("new", {})}
    sample_sets = benchmark.all_sets(home, stored)
    # Names equal those on the other pages, so a choice made there also applies here.
    assert [
        (sample_set.samples, sample_set.digest, sample_set.manifest is not None, sample_set.limited)
        for sample_set in sample_sets
    ] == [
        ("c", "3", False, False),
        ("b old", "old", False, False),
        ("b[:2]", "1", True, True),
        ("b 1", "1", True, False),
        ("a", "2", True, False),
        ("c new", "new", True, False),
    ]


def test_samples_of_a_repository_are_counted_in_the_set() -> None:
    rows = benchmark.repositories(LINES, [sample(), sample()])
    assert set(rows[0]) <= set(benchmark.REPO_HELP)
    assert (rows[0]["samples"], rows[1]["samples"], rows[0]["of"], rows[0]["licence"]) == (2, 0, 9, "MIT")
    assert benchmark.repositories(LINES)[0]["samples"] == 3


@pytest.mark.parametrize(
    "manifest",
    [
        {},
        {"repositories": []},
        {"repositories": {"shop": None}},
        {"repositories": {"shop": {"files": "x", "drops": ["verbatim"], "left_out": {"a": "b"}, "usable": True}}},
        {"repositories": {"shop": {"mutants": 3}, "bank": {"mutants": {"tried": "x", "killed": None}}}},
        {"repositories": {"shop": {}}, "unusable": 3, "remarks": "no list", "sources": [None], "parsers": 4},
    ],
)
def test_invalid_parts_of_a_manifest_are_ignored(manifest: dict[str, Any]) -> None:
    benchmark.repositories(manifest, [sample()])
    assert benchmark.drop_rows(manifest) == []
    assert benchmark.remarks(manifest) == [] and benchmark.mutants(manifest) == []
    assert all(isinstance(row["value"], str) for row in benchmark.about(manifest))


def test_kill_rates_are_shown_per_repository_and_in_total() -> None:
    counts = {"shop": (8, 5, 5), "bank": (20, 17, 18), "lines": None}
    manifest = {
        repo: {}
        if mutants is None
        else {"mutants": dict(zip(("tried", "killed", "killed_by_all"), mutants, strict=True))}
        for repo, mutants in counts.items()
    }
    rows = benchmark.mutants({"repositories": manifest})
    assert [row["repository"] for row in rows] == ["shop", "bank", "all"]
    assert [(row["kill rate %"], row["all faults %"]) for row in rows] == [(100, 62), (94, 85), (96, 79)]
    assert set(rows[0]) == set(benchmark.MUTANTS_HELP)
    assert len(benchmark.mutants({"repositories": {"shop": manifest["shop"]}})) == 1


def test_kinds_have_shares_and_first_use_rates() -> None:
    rows = benchmark.kinds(
        [sample(masked=("import x",)), sample(), sample(), sample(kind=Kind.FUNCTION, subkind="slib")]
    )
    lines = row_with(rows, "level", "next-line")
    assert (lines["samples"], lines["share %"], lines["first use %"]) == (3, 75.0, 33.0)
    assert row_with(rows, "level", "slib")["first use %"] is None
    assert benchmark.percent(0, 0) is None


def test_dropped_items_are_summed_and_explained() -> None:
    rows = benchmark.drop_rows(LINES)
    assert [row["reason"] for row in rows] == ["generated", "syntax_error", "few_tokens", "verbatim"]
    verbatim = row_with(rows, "reason", "verbatim")
    assert (verbatim["count"], verbatim["repositories"], verbatim["what"]) == (10, 2, "lines or functions")
    assert set(verbatim) == set(benchmark.DROP_HELP)


def test_unusable_samples_of_an_import_are_counted_once() -> None:
    manifest = {
        "unusable": {"file_missing": 4, "empty_target": 1},
        "repositories": {"shop": {"drops": {"file_missing": 4}}},
    }
    rows = benchmark.drop_rows(manifest)
    assert [(row["reason"], row["count"]) for row in rows] == [("file_missing", 4), ("empty_target", 1)]


def test_function_sets_also_count_files_without_targets() -> None:
    rows = benchmark.drop_rows({"repositories": {"shop": {"left_out_test": 3, "left_out_excluded": 0}}})
    assert [(row["what"], row["reason"], row["count"]) for row in rows] == [("files without targets", "test", 3)]


def test_dropped_tests_and_clock_only_samples_are_reported() -> None:
    entry = {"kept_clocks_only": 2, "tests_dropped": {"fails_under_load": 3}, "drops": {"fails_under_load": 1}}
    manifest = {"repositories": {"shop": entry, "cart": {"kept_clocks_only": 0}}, "remarks": ["first"]}
    assert benchmark.remarks(manifest) == [
        "first",
        "shop: 2 of its samples are judged only by tests that read a clock.",
    ]
    rows = benchmark.drop_rows(manifest)
    assert [(row["what"], row["count"]) for row in rows] == [("lines or functions", 1), ("tests", 3)]
