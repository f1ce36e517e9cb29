"""The files of the Context Collection Competition: points and answers, with repositories."""

import json
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.bench.formats.importing import import_set
from ctxbench.bench.home import Home
from ctxbench.bench.samples import SampleSet
from ctxbench.harness.store import open_store
from ctxbench.harness.store.runs import run_tables
from tests.helpers.cli import run_cli

REVISION = "5" * 40
PREFIX = "from shop.tax import rate\n\n\ndef pay(amount):\n    return "


def point(**changes: Any) -> dict[str, Any]:
    """Return a completion point in the starter kit's form. None removes a key."""
    fields = {
        "id": "a1",
        "repo": "owner/shop",
        "revision": REVISION,
        "path": "shop/pay.py",
        "modified": ["shop/pay.py"],
        "prefix": PREFIX,
        "suffix": "\n\n\ndef refund(amount):\n    return -amount\n",
        **changes,
    }
    return {key: value for key, value in fields.items() if value is not None}


def answer(middle: str = "amount * (\n        1 + rate()\n    )", **fields: Any) -> dict[str, Any]:
    return {"middle": middle, **fields}


def written(folder: Path, name: str, *records: dict[str, Any]) -> str:
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return str(path)


def imported(
    folder: Path, points: list[dict[str, Any]], answers: list[dict[str, Any]] | None, **options: Any
) -> SampleSet:
    files = [written(folder, "python-public", *points)]
    files += [written(folder, "answers-python-public", *answers)] if answers is not None else []
    return import_set("context_collection", files, Home(folder / "home"), "theirs", **options)


def test_points_and_answers_are_joined_in_their_order(tmp_path: Path) -> None:
    sample_set = imported(tmp_path, [point(), point(id="a2", path="shop/b.py")], [answer(), answer("amount", id="a2")])
    first, second = sample_set.samples
    assert (first.id, first.repo, first.cursor.line, first.cursor.column) == ("a1", f"owner__shop@{REVISION}", 4, 11)
    assert (first.prefix, first.suffix) == (PREFIX, point()["suffix"])
    assert sample_set.references["a1"].target == answer()["middle"]
    assert sample_set.references[second.id].target == "amount"
    [several, _] = sample_set.manifest["remarks"]
    assert several.startswith("1 of 2 answers span several lines") and "--profile context_collection" in several


@pytest.mark.parametrize(
    ("points", "answers", "what"),
    [
        (
            [point()],
            None,
            r"python-public\.jsonl:1: field middle is missing; give answers-python-public\.jsonl too",
        ),
        (
            [point(), point(id="a2")],
            [answer()],
            r"python-public\.jsonl:2: field middle is missing; give .* with as many records",
        ),
        (
            [point()],
            [answer(), answer()],
            r"answers-python-public\.jsonl:2: the file has more answers than python-public",
        ),
        ([point()], [answer(id="a2")], r"field id is 'a1', but the answer in its place .* belongs to 'a2'"),
        ([point(repo="../x")], [answer()], "field repo: '../x' is not a path inside a repository"),
    ],
)
def test_points_and_answers_that_do_not_match_are_refused(
    points: list[dict[str, Any]], answers: list[dict[str, Any]] | None, what: str, tmp_path: Path
) -> None:
    with pytest.raises(InputFault, match=what):
        imported(tmp_path, points, answers)


def test_answers_without_their_points_file_are_refused(tmp_path: Path) -> None:
    files = [
        written(tmp_path, "kotlin-public", point(middle="x")),
        written(tmp_path, "answers-python-public", answer()),
    ]
    with pytest.raises(InputFault, match=r"the completion points of these answers .*give python-public\.jsonl too"):
        import_set("context_collection", files, Home(tmp_path / "home"), "theirs")


def test_kotlin_and_empty_answers_are_counted(tmp_path: Path) -> None:
    points = [point(), point(id="a2", path="Pay.kt"), point(id="a3")]
    sample_set = imported(tmp_path, points, [answer(), answer(), answer(" \n")])
    assert sample_set.manifest["unusable"] == {"empty_target": 1, "unsupported_language": 1}
    assert [sample.id for sample in sample_set.samples] == ["a1"]


def test_points_without_ids_get_ids_from_their_places(tmp_path: Path) -> None:
    sample_set = imported(tmp_path, [point(id=None), point(id=None)], [answer(), answer()])
    name = f"owner/shop@{REVISION[:12]}/shop/pay.py#L5"
    assert [sample.id for sample in sample_set.samples] == [name, f"{name}:2"]


@pytest.mark.slow
def test_versions_of_one_project_are_one_cluster_in_a_run(tmp_path: Path) -> None:
    later = "6" * 40
    repos = tmp_path / "repositories-python-public"
    for revision in (REVISION, later):
        folder = repos / f"owner__shop-{revision}" / "shop"
        folder.mkdir(parents=True)
        (folder / "tax.py").write_text("def rate():\n    return 0.2\n")
        # The file's version before the commit.
        (folder / "pay.py").write_text("def pay(amount):\n    return amount\n")
    points = [point(), point(id="a2", revision=later), point(id="a3", path="shop/new.py")]
    sample_set = imported(tmp_path, points, [answer(), answer("rate()"), answer("rate()")], repos=repos)
    assert [len(sample_set.samples), sample_set.manifest["prompts"]] == [3, "rebuilt"]
    assert all(sample.prefix == PREFIX for sample in sample_set.samples)
    home = Home(tmp_path / "home")
    words = ("--samples", "theirs", "--strategy", "lc.repocoder", "--generator", "incontext", "--home", str(home.root))
    ran = run_cli("run", *words)
    assert ran.code == 0 and "scored 3  model-failed 0  missing 0" in ran.out, ran
    with open_store(home.database) as store:
        [table] = run_tables(store, profile="context_collection")
    assert table.repo == ("owner__shop",) * 3
    assert len(table.metrics["chrf"]) == 3
