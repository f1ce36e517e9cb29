"""Origins of imported runs, remarks and marks are appended once and read with the run's columns."""

from ctxbench.bench.types import Kind
from ctxbench.harness.results import Origin, Status
from ctxbench.harness.store import Store, notes
from ctxbench.harness.store.runs import run_tables
from ctxbench.harness.store.write import Imported, Mark, StoredCompletion
from tests.harness.store.making import make_finished, make_generation, make_samples, make_spec
from tests.helpers.samples import make_sample

FILE = Imported(format="codereval", source="recorded/CodeGen.jsonl.gz", sha256="f" * 64)
SET = "d" * 64


def add_run(store: Store) -> str:
    store.add_generations([make_generation()])
    run = store.add_run(make_spec(), make_samples(3))
    for sample in ("demo/0", "demo/1"):
        store.add_finished(run, "", make_finished(sample))
    return run


def test_an_imported_run_has_its_origin_and_no_costs(store: Store) -> None:
    run = add_run(store)
    assert notes.add_imported(store, run, FILE)
    assert not notes.add_imported(store, run, Imported(format="ctxbench", source="x", sha256="0" * 64)), "the first"
    [table] = run_tables(store)
    assert table.run.origin is Origin.IMPORTED and table.run.sampling == ""
    assert table.context_tokens == table.calls == table.seconds == (None,) * 3
    assert table.status == (Status.SCORED, Status.SCORED, Status.INFRA_FAILED)
    with store.reading() as connection:
        assert notes.imports(connection, [run, "other"]) == {run: FILE}


def test_remarks_are_stored_once_in_their_order(store: Store) -> None:
    run = add_run(store)
    other = store.add_run(make_spec(strategy="other"), make_samples(1))
    assert notes.add_remarks(store, run, ["second \0", "first"]) == 2
    assert notes.add_remarks(store, run, ["first", "third", "third"]) == 1
    assert notes.add_remarks(store, other, []) == 0
    shown = {table.run.id: table.run.remarks for table in run_tables(store)}
    assert shown == {run: ("second \ufffd", "first", "third"), other: ()}


def test_invalid_samples_are_excluded_unless_requested(store: Store) -> None:
    add_run(store)
    marks = [
        Mark(sample_id="demo/0", mark="vacuous", reason="an empty body passes", image="sha256:1"),
        Mark(sample_id="demo/2", mark="broken"),
    ]
    assert notes.add_marks(store, SET, marks) == 2
    again = Mark(sample_id="demo/0", mark="vacuous", reason="another reason")
    assert notes.add_marks(store, SET, [again, Mark(sample_id="demo/0", mark="broken")]) == 1
    notes.add_marks(store, "e" * 64, [Mark(sample_id="demo/1", mark="broken")])
    assert notes.marks_of(store, SET) == [Mark(sample_id="demo/0", mark="broken"), *marks]
    [table] = run_tables(store)
    assert table.status == (Status.EXCLUDED, Status.SCORED, Status.EXCLUDED)
    assert table.mark == ("broken", "", "broken") and table.metrics["em"] == (1.0, 1.0, None), "values stay"
    [table] = run_tables(store, invalid="include")
    assert table.status == (Status.SCORED, Status.SCORED, Status.INFRA_FAILED)
    assert table.mark == ("broken", "", "broken")


def test_an_excluded_function_needs_no_verdict(store: Store) -> None:
    store.add_generations([make_generation()])
    run = store.add_run(make_spec(), tuple(make_sample(id=f"demo/{n}", kind=Kind.FUNCTION) for n in range(2)))
    one = StoredCompletion(generation_id="g", status=Status.SCORED, text="1", flags=(), scores={})
    for sample in ("demo/0", "demo/1"):
        store.add_finished(run, "", make_finished(sample, completions=(one,)))
    notes.add_marks(store, SET, [Mark(sample_id="demo/1", mark="broken")])
    assert run_tables(store)[0].status == (Status.INFRA_FAILED, Status.EXCLUDED)
