"""`ctxbench results` as a user calls it: recorded predictions are imported, and stored completions exported."""

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text as sql

from ctxbench.bench import samples as sets
from ctxbench.bench.home import Home
from ctxbench.bench.judging import judge as judging
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Reference
from ctxbench.harness.exported import completed
from ctxbench.harness.results import Origin, RunTable, Status
from ctxbench.harness.store import open_store
from ctxbench.harness.store.runs import run_tables
from ctxbench.sandbox import registry
from tests.harness.cli.test_exec import Fake
from tests.harness.imported.records import java_task, python_task, write
from tests.harness.store.making import make_finished, make_generation, make_samples, make_spec
from tests.helpers.cli import Result, assert_fault, run_cli
from tests.helpers.functions import make_function_set
from tests.helpers.sets import make_set


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.root.mkdir()
    return home


def results(home: Home, *arguments: str | Path) -> Result:
    return run_cli("results", *map(str, arguments), "--home", str(home.root))


def imported(home: Home, shape: str, *arguments: str | Path) -> list[str]:
    """Import a file; return the runs' ids."""
    result = results(home, "import", "--format", shape, *arguments)
    assert result.code == 0, result
    return [line.split()[0] for line in result.out.splitlines()]


def tables(home: Home, profile: str = "ctxbench") -> list[RunTable]:
    with open_store(home.database) as store:
        return run_tables(store, profile=profile)


def count(home: Home, table: str) -> int:
    with open_store(home.database) as store, store.reading() as connection:
        return int(connection.scalar(sql(f"SELECT count(*) FROM {table}")))


def texts(home: Home, run: str) -> dict[str, list[str]]:
    with open_store(home.database) as store:
        found = completed(store, run)
    return {sample: [one.text for one in made] for sample, made in found.texts.items()}


def predictions(sample_set: SampleSet, *, wrong: int = 1) -> dict[str, str]:
    """Return sample -> text: the reference, or a wrong text for the first samples."""
    ids = [sample.id for sample in sample_set.samples]
    return {id_: "nothing" if at < wrong else sample_set.references[id_].target for at, id_ in enumerate(ids)}


def test_a_file_without_a_set_is_imported_with_verdicts_and_labels(home: Home) -> None:
    short = python_task("b", True, level="file_runnable")
    file = write(home.root / "Model-7B.Python.jsonl_out.jsonl", [short, python_task("a", True, False)])
    [run] = imported(home, "codereval", file)
    [table] = tables(home)
    info = table.run
    assert (info.id, info.samples, info.benchmark) == (run, "codereval-python", "codereval")
    assert (info.strategy, info.generator, info.origin) == ("recorded", "Model-7B", Origin.IMPORTED)
    assert (info.completions, info.functions, info.sampling) == (2, True, "")
    assert info.remarks == ("Model-7B.Python.jsonl_out.jsonl lacks 1 of 4 results; they count as failed.",)
    assert table.sample == ("a", "b") and table.level == ("class_runnable", "file_runnable")
    assert table.repo == ("owner/shop",) * 2 and table.status == (Status.SCORED,) * 2
    assert table.metrics == {"pass@1": (0.5, 0.5)}
    assert table.calls == table.context_tokens == table.seconds == (None, None)
    with open_store(home.database) as store, store.reading() as connection:
        flags = connection.execute(sql("SELECT sample_id, idx, flags FROM completion ORDER BY 1, 2")).all()
    assert flags == [("a", 0, "[]"), ("a", 1, "[]"), ("b", 0, "[]"), ("b", 1, '["no_result", "empty"]')]


def test_java_tasks_and_empty_answers_are_imported(home: Home) -> None:
    task = java_task("a", False, False)
    task["codes"] = ["", "int f() {}"]
    for result, code in zip(task["generate_results"], task["codes"], strict=True):
        result["generate_code"] = code
    all_empty = java_task("b", False, False, codes=["", " "])
    for result, code in zip(all_empty["generate_results"], ["", " "], strict=True):
        result["generate_code"] = code
    imported(home, "codereval", write(home.root / "m.jsonl", [task, all_empty]))
    [table] = tables(home)
    assert table.run.language == "java" and table.status == (Status.SCORED, Status.MODEL_FAILED)
    assert table.metrics["pass@1"] == (0.0, 0.0)


def test_importing_the_same_file_again_changes_nothing(home: Home) -> None:
    file = write(home.root / "m.jsonl", [python_task("a", True)])
    first = imported(home, "codereval", file)
    zipped = home.root / "m.jsonl.gz"
    zipped.write_bytes(gzip.compress(file.read_bytes(), mtime=0))
    before = [count(home, table) for table in ("run", "completion", "verdict", "generation", "remark", "attempt")]
    again = results(home, "import", "--format", "codereval", file)
    assert "already imported, nothing changed" in again.out and again.out.split()[0] == first[0]
    assert before == [
        count(home, table) for table in ("run", "completion", "verdict", "generation", "remark", "attempt")
    ]
    [other] = imported(home, "codereval", file, "--generator", "Other model", "--strategy", "as published")
    assert other != first[0]
    assert {(table.run.strategy, table.run.generator) for table in tables(home)} == {
        ("recorded", "m"),
        ("as published", "Other model"),
    }


def test_an_interrupted_import_is_finished_by_the_same_command(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    from ctxbench.harness.store.store import Store

    file = write(home.root / "m.jsonl", [python_task(name, True) for name in "abc"])

    def interrupted(*_: object, **__: object) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Store, "add_all_finished", interrupted)
        assert results(home, "import", "--format", "codereval", file).code == 130
    [table] = tables(home)
    assert set(table.status) == {Status.INFRA_FAILED}
    assert "3 of 3 samples" in results(home, "import", "--format", "codereval", file).out
    [table] = tables(home)
    assert table.status == (Status.SCORED,) * 3 and table.metrics["pass@1"] == (1.0,) * 3


def test_line_predictions_are_scored_under_every_profile(home: Home) -> None:
    made = make_set(home)
    lines = [{"task_id": id_, "pred": text} for id_, text in predictions(made).items()]
    [run] = imported(home, "crosscodeeval", write(home.root / "m.jsonl", lines), "--samples", "demo")
    for profile in ("ctxbench", "crosscodeeval", "repocoder", "infercom"):
        [table] = tables(home, profile)
        assert table.metrics["em"] == (0.0, *[1.0] * 7), profile
    assert table.run.id == run and table.run.origin is Origin.IMPORTED and "context_gain" not in table.metrics


def test_tasks_not_in_a_file_are_missing(home: Home) -> None:
    made = make_set(home)
    lines = [{"metadata": {"task_id": id_}, "pred_res": text} for id_, text in predictions(made, wrong=0).items()]
    file = write(home.root / "m.jsonl", lines[2:])
    result = results(home, "import", "--format", "infercom", file, "--samples", "demo")
    assert "m.jsonl lacks 2 of 8 samples; they are missing." in result.err and "6 of 8 samples" in result.out
    [table] = tables(home)
    assert table.status == (*[Status.INFRA_FAILED] * 2, *[Status.SCORED] * 6)
    refused = results(home, "export", table.run.id, "--format", "ctxbench", "--out", home.root / "out.jsonl")
    assert_fault(refused, "2 of 8 samples", table.sample[0], "--partial")
    assert not (home.root / "out.jsonl").exists()
    partial = results(home, "export", table.run.id, "--format", "ctxbench", "--out", home.root / "o", "--partial")
    assert partial.code == 0 and table.sample[0] in partial.err and table.sample[1] in partial.err
    assert len((home.root / "o").read_text().splitlines()) == 6


SHAPES = [("ctxbench", "ctxbench"), ("projbench", "infercom"), ("crosscodeeval", "crosscodeeval")]


@pytest.mark.parametrize(("out_shape", "in_shape"), [*SHAPES, ("repocoder", "repocoder")])
def test_exported_completions_are_equal_after_import(home: Home, out_shape: str, in_shape: str) -> None:
    made = make_set(home)
    first = write(
        home.root / "m.jsonl", [{"sample": id_, "text": f"{text}\n# more\n"} for id_, text in predictions(made).items()]
    )
    [run] = imported(home, "ctxbench", first, "--samples", "demo", "--strategy", "lc.infile", "--generator", "m")
    out = home.root / "out.jsonl"
    assert results(home, "export", run[:6], "--format", out_shape, "--out", out).code == 0
    [again] = imported(home, in_shape, out, "--samples", "demo")
    assert again != run and texts(home, again) == texts(home, run)
    one, other = (table for table in tables(home))
    assert one.metrics == other.metrics and one.status == other.status
    labels = (one.run.strategy, other.run.strategy)
    assert (labels == ("lc.infile", "lc.infile")) is (in_shape == "ctxbench"), "our own shape keeps the labels"


@pytest.mark.parametrize("shape", ["ctxbench", "crosscodeeval"])
def test_samples_are_exported_in_the_order_of_the_set(home: Home, shape: str) -> None:
    made = make_set(home, repos=1, per_repo=8)
    wanted = [sample.id for sample in made.samples]
    assert wanted != sorted(wanted)
    lines = [{"sample": id_, "text": str(n), "index": n} for n in (1, 0) for id_ in sorted(wanted)]
    lines = lines if shape == "ctxbench" else lines[len(wanted) :]
    [run] = imported(home, "ctxbench", write(home.root / "m.jsonl", lines), "--samples", "demo")
    assert results(home, "export", run, "--format", shape, "--out", home.root / "out.jsonl").code == 0
    records = [json.loads(line) for line in (home.root / "out.jsonl").read_text().splitlines()]
    if shape == "ctxbench":
        assert [(one["sample"], one["index"]) for one in records] == [(id_, n) for id_ in wanted for n in (0, 1)]
        assert [one["text"] for one in records[:2]] == ["0", "1"]
    else:
        assert [one["task_id"] for one in records] == wanted


def test_exports_have_the_formats_of_official_scorers(home: Home) -> None:
    made = make_set(home)
    lines = [{"sample": id_, "text": f"\n  {text}\n2"} for id_, text in predictions(made).items()]
    [run] = imported(home, "ctxbench", write(home.root / "m.jsonl", lines), "--samples", "demo")
    found: dict[str, list[dict[str, Any]]] = {}
    for shape in ("crosscodeeval", "projbench", "repocoder"):
        out = home.root / f"{shape}.jsonl"
        assert results(home, "export", run, "--format", shape, "--out", out).code == 0
        found[shape] = [json.loads(line) for line in out.read_text().splitlines()]
    first = made.samples[1]
    text = made.references[first.id].target
    assert found["crosscodeeval"][1] == {"task_id": first.id, "pred": f"\n  {text}\n2"}
    task = found["projbench"][1]
    assert (task["prompt"], task["metadata"]["ground_truth"]) == (first.prefix, text)
    assert (task["pred_res"], task["choices"]) == (f"\n  {text}\n2", [{"text": text}])
    assert found["repocoder"][1]["choices"] == [{"text": f"\n  {text}\n2"}]
    assert found["repocoder"][1]["metadata"]["task_id"] == task["metadata"]["task_id"] == "shop0/1"


@pytest.mark.slow
def test_imported_predictions_are_judged_and_exported(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Predictions are imported and judged, then exported for the official harness and for a new import."""
    made = make_function_set(home)
    right = {sample.id: made.references[sample.id].target for sample in made.samples}
    lines = [{"_id": id_, "generate_results": [text, "def f():\n    pass", ""]} for id_, text in right.items()]
    file = write(home.root / "m.jsonl", lines)
    assert_fault(results(home, "import", "--format", "codereval", file), "does not describe its samples", "--samples")
    [run] = imported(home, "codereval", file, "--samples", "functions")
    assert tables(home)[0].status == (Status.INFRA_FAILED,) * 6, "nobody judged them yet"

    fake = Fake()
    monkeypatch.setattr(registry, "open_sandbox", fake.open_sandbox)
    monkeypatch.setattr(judging, "Judge", fake.judge)
    judged = run_cli("exec", "--samples", "functions", "--run", run, "--home", str(home.root))
    assert judged.code == 0 and fake.asked == 12, "an empty one needs no test"
    [table] = tables(home)
    assert table.metrics["pass@1"] == (pytest.approx(1 / 3),) * 6 and table.status == (Status.SCORED,) * 6

    out = home.root / "official.jsonl"
    assert results(home, "export", run, "--format", "codereval", "--out", out, "--repeat", "5").code == 0
    exported = [json.loads(line) for line in out.read_text().splitlines()]
    assert [set(line) for line in exported] == [{"_id", "generate_results"}] * 6
    assert exported[0]["generate_results"] == [*lines[0]["generate_results"], *lines[0]["generate_results"][:2]]
    assert results(home, "export", run, "--format", "ctxbench", "--out", home.root / "own.jsonl").code == 0
    [again] = imported(home, "ctxbench", home.root / "own.jsonl", "--samples", "functions", "--generator", "again")
    assert texts(home, again) == texts(home, run)
    first, second = tables(home)
    assert first.metrics == second.metrics and first.status == second.status, "with the verdicts"
    checked = run_cli(
        "exec", "--samples", "functions", "--completions", str(home.root / "own.jsonl"), "--home", str(home.root)
    )
    assert checked.code == 0 and "FAILED 12  PASSED 6" in checked.err, "which the tests say anew"


@pytest.mark.slow
def test_samples_without_a_reference_have_test_scores_only(home: Home) -> None:
    """A set built from recorded files alone has no references, so similarities to them must not be stored."""
    made = make_function_set(home)
    references = [Reference(id=one.id, target="", fields={"no_reference": True}) for one in made.references.values()]
    sets.save(home, "bare", made.samples, references, {"repositories": {}, "remarks": ["No answers are known."]})
    lines = [{"sample": one.id, "text": "x", "verdict": "PASSED"} for one in made.samples]
    imported(home, "ctxbench", write(home.root / "m.jsonl", lines), "--samples", "bare")
    imported(home, "ctxbench", home.root / "m.jsonl", "--samples", "functions")
    assert [table.run.remarks for table in tables(home)] == [("No answers are known.",), ()]
    bare, whole = (set(table.metrics) for table in tables(home))
    assert bare == {"pass@1"} and whole == {"pass@1", "em", "es", "id_em", "id_f1", "id_precision", "id_recall"}


def test_an_export_to_an_unsuitable_format_is_refused(home: Home) -> None:
    made = make_function_set(home)
    lines = [{"sample": sample.id, "text": text} for sample in made.samples for text in "xy"]
    [functions] = imported(home, "ctxbench", write(home.root / "f.jsonl", lines), "--samples", "functions")
    lines = [{"sample": sample.id, "text": text} for sample in make_set(home).samples for text in "xy"]
    [two] = imported(home, "ctxbench", write(home.root / "l.jsonl", lines), "--samples", "demo")
    out = home.root / "out.jsonl"
    assert_fault(
        results(home, "export", functions, "--format", "projbench", "--out", out), "function sample", "--format"
    )
    assert_fault(results(home, "export", two, "--format", "codereval", "--out", out), "line sample", "ctxbench")
    assert_fault(results(home, "export", two, "--format", "crosscodeeval", "--out", out), "2 completions", "repocoder")
    assert_fault(results(home, "export", "nothing", "--format", "ctxbench", "--out", out), "no stored run", "nothing")
    assert results(home, "export", two, "--format", "repocoder", "--out", out).code == 0
    assert len(json.loads(out.read_text().splitlines()[0])["choices"]) == 2
    assert results(home, "export", two, "--format", "ctxbench", "--out", out, "--repeat", "2").code == 2
    make_set(home, name="demo2", per_repo=3)
    assert_fault(
        results(home, "export", two, "--format", "repocoder", "--out", out, "--samples", "demo2"), "other samples"
    )


def test_a_file_can_contain_several_runs(home: Home) -> None:
    made = make_set(home)
    lines = [
        {"sample": sample.id, "text": "x", "strategy": strategy, "generator": "m"}
        for strategy in ("a", "b")
        for sample in made.samples
    ]
    file = write(home.root / "m.jsonl", lines)
    assert len(imported(home, "ctxbench", file, "--samples", "demo")) == 2
    assert {table.run.strategy for table in tables(home)} == {"a", "b"}
    merged = results(home, "import", "--format", "ctxbench", file, "--samples", "demo", "--strategy", "one")
    assert_fault(merged, "m.jsonl:9", "is repeated here", "m.jsonl:1")


def test_a_language_without_samples_is_refused(home: Home) -> None:
    make_set(home)
    file = write(home.root / "m.jsonl", [{"task_id": sets.load(home, "demo").samples[0].id, "pred": "x"}])
    refused = results(home, "import", "--format", "crosscodeeval", file, "--samples", "demo", "--language", "java")
    assert_fault(refused, "no sample in java", "--language")
    mixed = write(home.root / "c.jsonl", [python_task("a", True)])
    assert_fault(
        results(home, "import", "--format", "codereval", mixed, "--language", "java"), "c.jsonl:1", "not in java"
    )


GOOD: dict[str, Any] = {"sample": "shop0/shop/pay.py#L4", "text": "x"}
BROKEN: dict[str, tuple[str, list[Any], tuple[str, ...]]] = {
    "an empty file": ("ctxbench", [], ("the file contains no prediction", "sample")),
    "half a line": ("ctxbench", [GOOD, '{"sample": "shop0'], (":2", "not valid JSON")),
    "a list": ("ctxbench", [GOOD, ["x"]], (":2", "not a JSON object")),
    "not UTF-8": ("ctxbench", [GOOD, "\udcff"], (":2", "not UTF-8")),
    "a NUL": ("ctxbench", [GOOD, {**GOOD, "text": "\0", "index": 1}], (":2", "field text", "NUL")),
    "half a surrogate pair": ("ctxbench", [{**GOOD, "text": "\ud800"}], (":1", "field text", "surrogate")),
    "a wrong type": ("ctxbench", [GOOD, {**GOOD, "text": 5}], (":2", "field text")),
    "an unknown sample": ("ctxbench", [GOOD, {**GOOD, "sample": "shop0/shop/pay.py#L44"}], (":2", "did you mean")),
    "the same task twice": (
        "crosscodeeval",
        [{"task_id": GOOD["sample"], "pred": "x"}] * 2,
        (":2", "is repeated here", ":1"),
    ),
    "a misspelt verdict": ("ctxbench", [{**GOOD, "verdct": "PASSED"}], (":1", "'verdct'", "did you mean verdict?")),
    "a field that is nobody's": ("ctxbench", [{**GOOD, "passed": True}], (":1", "field passed is not known")),
    "a record twice": ("ctxbench", [GOOD, GOOD], (":2", "field text", ":1", "index")),
    "unequal numbers": (
        "ctxbench",
        [GOOD, {**GOOD, "text": "other"}, {**GOOD, "sample": "shop0/shop/pay.py#L5"}],
        (":3", "1 completions", "2"),
    ),
    "a verdict of a line": ("ctxbench", [{**GOOD, "verdict": "PASSED"}], (":1", "field verdict", "line sample")),
    "functions for lines": ("codereval", [{"_id": GOOD["sample"], "generate_results": ["x"]}], (":1", "line sample")),
    "a label of two lines": ("ctxbench", [GOOD, {**GOOD, "generator": "a\nb"}], (":2", "cannot be printed")),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file_is_refused_and_not_stored(home: Home, kind: str) -> None:
    shape, lines, words = BROKEN[kind]
    make_set(home)
    open_store(home.database).close()
    file = home.root / "p.jsonl"
    rows = [(one if isinstance(one, str) else json.dumps(one)) + "\n" for one in lines]
    file.write_bytes("".join(rows).encode("utf-8", "surrogateescape"))
    result = results(home, "import", "--format", shape, file, "--samples", "demo")
    assert_fault(result, str(file), *words)
    assert [count(home, table) for table in ("run", "sample", "generation", "imported")] == [0] * 4


def test_a_damaged_archive_and_a_missing_file_are_refused(home: Home) -> None:
    whole = gzip.compress((json.dumps(python_task("a", True)) + "\n").encode() * 50)
    (home.root / "m.jsonl.gz").write_bytes(whole[:-20])
    assert_fault(results(home, "import", "--format", "codereval", home.root / "m.jsonl.gz"), "m.jsonl.gz", "gzip")
    assert_fault(
        results(home, "import", "--format", "codereval", home.root / "none.jsonl"), "none.jsonl", "no such file"
    )


def test_scores_as_parquet_need_pyarrow(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store(home.database) as store:
        store.add_generations([make_generation()])
        store.add_finished(store.add_run(make_spec(), make_samples(2)), "c", make_finished("demo/1"))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    export = ("scores", "--home", home.root, "--out", home.root / "scores.parquet")
    assert_fault(run_cli(*map(str, export)), "pyarrow", "pip install 'ctxbench[parquet]'")
