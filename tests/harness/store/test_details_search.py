"""Samples of a run are searched by properties and outcomes, and counted as on the leaderboard."""

import dataclasses
import math
from typing import Any

from sqlalchemy import select

from ctxbench.harness.generators.base import Sampling
from ctxbench.harness.results import Status
from ctxbench.harness.store import Store, notes
from ctxbench.harness.store import schema as t
from ctxbench.harness.store.details import detail
from ctxbench.harness.store.runs import run_tables, runs_over
from ctxbench.harness.store.samples import stored_sets
from ctxbench.harness.store.search import Measure, SampleFilter, facets, is_planned, search
from ctxbench.harness.store.write import Mark, StoredCompletion
from tests.harness.store.making import make_finished, make_generation, make_samples, make_spec
from tests.harness.store.test_details import add_functions, add_lines

EM = Measure(profile="ctxbench", metric="em", worst=0.0)
PASSES = Measure(profile="ctxbench", metric="pass", worst=0.0)


def add_scored(store: Store, strategy: str, *values: float | None, **changes: Any) -> str:
    """Store a run whose samples have these em values. None means that the model failed."""
    run = store.add_run(make_spec(strategy=strategy, **changes), (*make_samples(3), *make_samples(2, "Ünï/c_de%")))
    store.add_generations([make_generation()])
    for sample, value in zip((*make_samples(3), *make_samples(2, "Ünï/c_de%")), values, strict=False):
        status = Status.MODEL_FAILED if value is None else Status.SCORED
        made = StoredCompletion(
            generation_id="g", status=status, text="", flags=("cut",), scores={("ctxbench", "em"): value}
        )
        store.add_finished(run, "", make_finished(sample.id, completions=(made,), status=status))
    return run


def ids(store: Store, run: str, measure: Measure = EM, *, order: Any = "plan", **wanted: Any) -> list[str]:
    return [one.id for one in search(store, SampleFilter(run=run, measure=measure, **wanted), order=order)]


def test_samples_are_counted_as_on_the_leaderboard(store: Store) -> None:
    runs = {add_lines(store): EM, add_functions(store): PASSES, add_scored(store, "s", 0.5, None, 1.0, 0.25): EM}
    notes.add_marks(store, "d" * 64, [Mark(sample_id="demo/1", mark=mark) for mark in ("broken", "vacuous")])
    tables = {table.run.id: table for table in run_tables(store)}
    for run, measure in runs.items():
        table = tables[run]
        found = search(store, SampleFilter(run=run, measure=measure))
        assert [one.id for one in found] == list(table.sample), "in the order of the plan"
        assert [one.status for one in found] == list(table.status)
        column = table.metrics["pass@1" if measure is PASSES else "em"]
        counts = (Status.SCORED, Status.MODEL_FAILED)
        expected = [value if status in counts else None for value, status in zip(column, table.status, strict=True)]
        assert [one.value for one in found] == [
            0.0 if one.status is Status.MODEL_FAILED else value for one, value in zip(found, expected, strict=True)
        ]


def test_an_infinite_score_is_stored_as_undefined(store: Store) -> None:
    run = add_scored(store, "new", 0.5, math.inf, -math.inf)
    with store.reading() as connection:
        query = select(t.SCORE.c.value).where(t.SCORE.c.run_id == run).order_by(t.SCORE.c.key)
        assert list(connection.scalars(query)) == [0.5, None, None]
    for table in run_tables(store):
        assert table.metrics["em"][:3] == (0.5, None, None)
        found = search(store, SampleFilter(run=table.run.id, measure=EM))
        assert [one.value for one in found[:3]] == [0.5, None, None]
    [completion] = detail(store, run, "demo/1").completions
    assert completion.scores["ctxbench", "em"] is None


def test_search_words_are_matched_literally(store: Store) -> None:
    run = add_scored(store, "s", 0.5)
    assert ids(store, run, words="C_DE%") == ["Ünï/c_de%/0", "Ünï/c_de%/1"]
    assert ids(store, run, words="_") == ["Ünï/c_de%/0", "Ünï/c_de%/1"], "no wildcard"
    assert ids(store, run, words="CheckOut") == [f"demo/{n}" for n in range(3)] + [f"Ünï/c_de%/{n}" for n in range(2)]
    assert ids(store, run, words="demo/1") == ["demo/1"]
    assert ids(store, run, words="' OR 1=1 --") == []


def test_samples_are_found_by_outcome_level_and_flag(store: Store) -> None:
    run = add_scored(store, "s", 0.5, None, 1.0)
    assert ids(store, run, status=Status.MODEL_FAILED) == ["demo/1"]
    assert ids(store, run, status=Status.INFRA_FAILED) == ["Ünï/c_de%/0", "Ünï/c_de%/1"]
    assert ids(store, run, repo="demo", level="single-line", language="python") == [f"demo/{n}" for n in range(3)]
    assert ids(store, run, language="java") == [] == ids(store, run, level="next-line")
    assert ids(store, run, flag="cut") == [f"demo/{n}" for n in range(3)] and ids(store, run, flag="cu") == []
    lines, functions = add_lines(store), add_functions(store)
    assert ids(store, lines, flag="overflow") == ["demo/0"], "a prompt's flag"
    assert ids(store, functions, PASSES, verdict="FAILED") == ["demo/0"]
    assert ids(store, functions, PASSES, verdict="PASSED") == ["demo/0", "demo/1"]


def test_samples_are_sorted_by_score(store: Store) -> None:
    run = add_scored(store, "s", 0.5, None, 1.0)
    assert ids(store, run, order="lowest")[:3] == ["demo/1", "demo/0", "demo/2"]
    assert ids(store, run, order="highest")[:3] == ["demo/2", "demo/0", "demo/1"]
    assert ids(store, run, order="highest")[3:] == ["Ünï/c_de%/0", "Ünï/c_de%/1"], "those without a value are last"


def test_disagreements_include_only_samples_that_count_in_both(store: Store) -> None:
    first, second = add_scored(store, "a", 0.5, None, 1.0, 1.0), add_scored(store, "b", 0.5, 1.0, 0.0)
    assert ids(store, first, other=second, differs="any") == ["demo/1", "demo/2"]
    assert ids(store, first, other=second, differs="first") == ["demo/2"]
    assert ids(store, first, other=second, differs="second") == ["demo/1"]
    assert len(ids(store, first, other="none")) == 5, "all are listed, whatever the other run has"
    low = dataclasses.replace(EM, lower_is_better=True)
    assert ids(store, first, low, other=second, differs="first") == ["demo/1"]
    assert ids(store, first, other=first, differs="any") == [] == ids(store, first, other="none", differs="any")
    found = search(store, SampleFilter(run=first, measure=EM, other=second))
    assert [(one.value, one.other) for one in found] == [(0.5, 0.5), (0.0, 1.0), (1.0, 0.0), (1.0, None), (None, None)]
    notes.add_marks(store, "d" * 64, [Mark(sample_id="demo/1", mark="broken")])
    assert ids(store, first, other=second, differs="any") == ["demo/2"]


def test_samples_with_the_largest_difference_come_first(store: Store) -> None:
    first, second = add_scored(store, "a", 0.5, 0.0, 1.0, None), add_scored(store, "b", 0.6, 1.0, 0.5, 0.0)
    order = ids(store, first, other=second, order="difference")
    assert order[:3] == ["demo/1", "demo/2", "demo/0"]
    assert is_planned(store, first, "demo/2") and not is_planned(store, first, "x")


def test_facets_list_the_values_of_a_run(store: Store) -> None:
    run, functions = add_scored(store, "s", 0.5), add_functions(store)
    one = facets(store, run)
    assert (one.repos, one.levels) == (("demo", "Ünï/c_de%"), ("single-line",))
    assert (one.verdicts, one.flags, one.measures) == ((), ("cut",), (("ctxbench", "em"),))
    other = facets(store, functions)
    assert (other.verdicts, other.flags) == (("FAILED", "PASSED"), ("empty",))
    empty = store.add_run(make_spec(strategy="none"), make_samples(1))
    assert facets(store, empty).measures == () == facets(store, empty).flags


def test_runs_of_a_set_and_of_its_first_samples_are_separate(store: Store) -> None:
    whole = [add_scored(store, strategy, 0.5) for strategy in ("b", "a")]
    limited = add_scored(store, "a", 0.5, limit=10)
    digest = "d" * 64
    assert [one.id for one in runs_over(store, digest, "demo")] == whole[::-1]
    [found] = runs_over(store, digest, "demo[:10]")
    assert (found.id, found.strategy, found.label, found.n) == (limited, "a", "scripted", 1)
    assert runs_over(store, digest, "other") == [] == runs_over(store, "e" * 64, "demo")


def test_a_runs_generator_has_the_same_label_everywhere(store: Store) -> None:
    samplings = (Sampling(), Sampling(fim=True))
    for generator, sampling in zip(("scripted", "openai(extra=api_key:sk-abcdefghijklmnop)"), samplings, strict=True):
        add_scored(store, "a", 0.5, generator=generator, sampling=sampling, summariser=generator)
    chosen = {one.id: one.label for one in runs_over(store, "d" * 64, "demo")}
    assert chosen == {table.run.id: table.run.generator for table in run_tables(store)}
    assert set(chosen.values()) == set(stored_sets(store)[0].generators), "a page chooses by these"
    assert any("[fim]" in label for label in chosen.values()) and "abcdefghijklmnop" not in str(chosen)
