"""Verdicts are stored once, linked to completions, never changed, and read as pass@k."""

import pytest
from sqlalchemy import text

from ctxbench.bench.types import Kind
from ctxbench.harness.results import Status
from ctxbench.harness.store import Store, verdicts
from ctxbench.harness.store.details import detail
from ctxbench.harness.store.runs import RunFilter, run_tables
from ctxbench.harness.store.search import Measure, SampleFilter, facets, search
from ctxbench.harness.store.write import StoredCompletion
from tests.harness.store.making import make_finished, make_generation, make_spec, make_verdict
from tests.harness.store.test_store import count
from tests.helpers.samples import make_sample


def completion(words: str = "1", verdict: str | None = None, **scores: float) -> StoredCompletion:
    found = {("ctxbench", metric): value for metric, value in scores.items()}
    status = Status.SCORED if words.strip() else Status.MODEL_FAILED
    return StoredCompletion(generation_id="g", status=status, text=words, flags=(), scores=found, verdict=verdict)


def add_run(store: Store, *, n: int = 1, samples: int = 3, kind: Kind = Kind.FUNCTION) -> str:
    store.add_generations([make_generation()])
    return store.add_run(make_spec(n=n), tuple(make_sample(id=f"demo/{one}", kind=kind) for one in range(samples)))


def finish(store: Store, run: str, sample: str, *completions: StoredCompletion) -> None:
    assert store.add_finished(run, "c", make_finished(sample, completions=completions))


def test_only_the_first_verdict_of_a_key_is_stored(store: Store) -> None:
    first = make_verdict(reason="odd \ud800\0", output="line\n")
    kept = verdicts.add(store, first)
    assert kept.reason == "odd ?\ufffd" and verdicts.add(store, make_verdict(verdict="FAILED")) == kept
    assert verdicts.find(store, [first.key, "nothing", *(str(one) for one in range(2000))]) == {first.key: kept}
    assert count(store, "verdict") == 1


def test_a_completion_is_linked_when_it_is_stored(store: Store) -> None:
    run = add_run(store)
    one = verdicts.add(store, make_verdict())
    with pytest.raises(Exception, match="(?i)foreign key"):
        store.add_finished(run, "c", make_finished("demo/1", completions=(completion(verdict="unknown"),)))
    finish(store, run, "demo/0", completion(verdict=one.key, **{"pass": 1.0}))
    assert (count(store, "judged"), count(store, "result"), verdicts.unjudged(store, run)) == (1, 1, [])


def test_missing_verdicts_are_added_later_and_once(store: Store) -> None:
    run = add_run(store, n=2)
    finish(store, run, "demo/1", completion("a"), completion(" ", **{"pass": 0.0}))
    finish(store, run, "demo/0", completion("b"), completion("c"))
    lacking = verdicts.unjudged(store, run)
    assert [(one.sample_id, one.idx, one.text) for one in lacking] == [
        ("demo/0", 0, "b"),
        ("demo/0", 1, "c"),
        ("demo/1", 0, "a"),
    ]
    passed, failed = (
        verdicts.add(store, make_verdict(key=verdict, verdict=verdict)) for verdict in ("PASSED", "TIMED_OUT")
    )
    assert store.link_verdicts(run, "demo/0", {0: passed, 1: failed}) == 2
    assert store.link_verdicts(run, "demo/0", {0: failed, 1: failed}) == 0
    [table] = run_tables(store)
    assert table.status == (Status.SCORED, Status.INFRA_FAILED, Status.INFRA_FAILED)
    assert table.metrics["pass@1"] == (0.5, None, None)
    assert [one.sample_id for one in verdicts.unjudged(store, run)] == ["demo/1"]


def test_verdicts_are_found_by_sample_and_text(store: Store) -> None:
    first = verdicts.add(store, make_verdict())
    content = first.sample_digest, first.text_digest
    assert verdicts.find_by_text(store, [content, ("another", first.text_digest)], "a run") == {content: first}


def test_lines_need_no_verdicts(store: Store) -> None:
    run = add_run(store, kind=Kind.LINE)
    finish(store, run, "demo/0", completion("a", em=1.0))
    assert verdicts.unjudged(store, run) == []
    [table] = run_tables(store)
    assert table.status[0] is Status.SCORED and set(table.metrics) == {"em"} and not table.run.functions


def test_pass_at_k_is_a_column_in_every_profile(store: Store) -> None:
    run = add_run(store, n=3)
    for number, values in enumerate(([1.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.0] * 3)):
        finish(store, run, f"demo/{number}", *(completion("a", **{"pass": value}) for value in values))
    for profile in ("ctxbench", "crosscodeeval"):
        [table] = run_tables(store, profile=profile, ks=(2, 4))
        assert table.metrics["pass@1"] == (pytest.approx(1 / 3), 1.0, 0.0)
        assert table.metrics["pass@2"] == (pytest.approx(2 / 3), 1.0, 0.0)
        assert table.metrics["pass@3"] == (1.0, 1.0, 0.0)
        assert set(table.metrics) == {"pass@1", "pass@2", "pass@3"}
        assert (table.run.functions, table.run.completions) == (True, 3)


def test_equal_completions_are_detected(store: Store) -> None:
    run = add_run(store, n=2)
    assert not verdicts.all_equal(store, run)
    finish(store, run, "demo/0", completion("a"), completion("a"))
    assert verdicts.all_equal(store, run)
    finish(store, run, "demo/1", completion("a"), completion("b"))
    assert not verdicts.all_equal(store, run)


@pytest.mark.parametrize("change", ["UPDATE verdict SET verdict = 'PASSED'", "DELETE FROM judged_fact"])
def test_verdicts_are_never_changed(store: Store, change: str) -> None:
    run = add_run(store)
    one = verdicts.add(store, make_verdict(verdict="FAILED"))
    finish(store, run, "demo/0", completion(verdict=one.key))
    with pytest.raises(Exception, match="appended, never changed"), store._engine.begin() as connection:
        connection.execute(text(change))


def test_verdict_flags_are_stored_and_flagged_passes_are_counted(store: Store) -> None:
    run = add_run(store)
    marked = verdicts.add(store, make_verdict(flags=("frames", "gc")))
    assert marked.flags == ("frames", "gc") and verdicts.find(store, [marked.key])[marked.key] == marked
    failed = verdicts.add(store, make_verdict(key="f" * 64, verdict="FAILED", flags=("ctypes",)))
    plain = verdicts.add(store, make_verdict(key="p" * 64))
    for number, one in enumerate((marked, failed, plain)):
        finish(store, run, f"demo/{number}", completion("a"))
        store.link_verdicts(run, f"demo/{number}", {0: one})
    [table] = run_tables(store)
    assert table.run.remarks == ("1 of 2 passes are not plain (docs/verdicts.md).",)
    assert table.metrics["pass@1"] == (1.0, 0.0, 1.0), "flags change no score"
    [strict] = run_tables(store, selection=RunFilter(strict=True))
    assert strict.run.remarks == ("1 of 2 passes are not plain, counted as failed (docs/verdicts.md).",)
    assert strict.metrics["pass@1"] == (0.0, 0.0, 1.0)
    assert facets(store, run).flags == ("not plain",)
    measure = Measure(profile="ctxbench", metric="pass", worst=0.0)
    found = search(store, SampleFilter(run=run, measure=measure, flag="not plain"), order="plan")
    assert [one.id for one in found] == ["demo/0", "demo/1"]
    judged = detail(store, run, "demo/0").completions[0].judged
    assert judged is not None and judged.flags == ("frames", "gc")


def test_a_shard_is_stored_with_answers_and_verdicts_or_not_at_all(store: Store) -> None:
    run = store.add_run(make_spec(seed=2), tuple(make_sample(id=f"demo/{number}") for number in range(3)))
    judgement, answers = make_verdict(key="s" * 64), [make_generation(id=f"shard{number}") for number in range(3)]
    samples = [
        make_finished(f"demo/{number}", calls=(("final", answer.id),), completions=(completion(verdict=judgement.key),))
        for number, answer in enumerate(answers)
    ]
    for new in (3, 0):
        assert (
            store.add_all_finished(
                run, "c", iter(samples), generations=[make_generation(), *answers], verdicts=[judgement]
            )
            == new
        )
    assert set(store.generations(["shard0", "shard1", "shard2"])) == {"shard0", "shard1", "shard2"}
    with pytest.raises(Exception, match="(?i)foreign key"):
        broken = make_finished("demo/1", completions=(completion(verdict="unknown"),))
        store.add_all_finished(add_run(store), "c", [broken], generations=[make_generation(id="alone")])
    assert store.generations(["alone"]) == {}, "all of it or nothing"
