"""Details of one sample, read by its keys: all its stored rows and no rows of other samples."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, text

from ctxbench.bench.code_tokens import count
from ctxbench.bench.errors import UnknownName
from ctxbench.bench.types import Kind, Place
from ctxbench.harness.results import ACCESS, Status
from ctxbench.harness.run.scoring import _blocks
from ctxbench.harness.store import Store, notes, verdicts
from ctxbench.harness.store.details import call_texts, detail, prompts_of, steps_of
from ctxbench.harness.store.runs import run_tables
from ctxbench.harness.store.scores import add_gains
from ctxbench.harness.store.shard import Shard, read, write
from ctxbench.harness.store.tables import delete_run
from ctxbench.harness.store.write import Mark, StoredAccess, StoredBlock, StoredCompletion, StoredFault
from ctxbench.strategies.api import Block, BlockKind, Dropped, Prompt
from tests.harness.store.making import make_finished, make_generation, make_samples, make_spec, make_verdict
from tests.helpers.samples import make_sample

PROMPT = "# a\nx = "
BLOCKS = (
    StoredBlock(
        kind="similar",
        places='[["shop/tax.py", 0, 2], ["shop/use.py", 4, 5]]',
        score=0.5,
        tokens=2,
        state="cut",
        reason="",
        char_start=0,
        char_end=4,
    ),
    StoredBlock(kind="infile", places="[]", score=None, tokens=3, state="kept", reason="", char_start=4, char_end=8),
    StoredBlock(
        kind="api", places="[]", score=0.1, tokens=0, state="dropped", reason="no room", char_start=None, char_end=None
    ),
)


@contextmanager
def statements(store: Store) -> Iterator[list[tuple[str, Any]]]:
    """Collect the statements sent to the database, except transactions."""
    found: list[tuple[str, Any]] = []

    def note(_: Any, __: Any, statement: str, parameters: Any, ___: Any, ____: bool) -> None:
        if not statement.startswith("BEGIN"):
            found.append((statement, parameters))

    event.listen(store._engine, "before_cursor_execute", note)
    yield found
    event.remove(store._engine, "before_cursor_execute", note)


def add_lines(store: Store, samples: int = 3) -> str:
    """Store a run of lines. The first sample has two calls and blocks, and the last sample is missing."""
    run = store.add_run(make_spec(coder="c 1"), make_samples(samples))
    store.add_generations([make_generation(), make_generation(id="draft", text="raw", cached=1, price=0.25, prompt="q",
                                                              prompt_digest="q")])  # fmt: skip
    rich = make_finished(
        "demo/0",
        prompt=PROMPT,
        prompt_digest="r",
        bits=(),
        blocks=BLOCKS,
        flags=("overflow",),
        calls=(("draft", "draft"), ("final", "g")),
    )
    store.add_finished(run, "c 1", rich)
    for number in range(1, samples - 1):
        store.add_finished(run, "c 1", make_finished(f"demo/{number}"))
    return run


def add_functions(store: Store) -> str:
    """Store a run of functions with two completions each: both judged, one judged, and both blank."""
    samples = tuple(make_sample(id=f"demo/{one}", kind=Kind.FUNCTION, subkind="self_contained") for one in range(3))
    run = store.add_run(make_spec(n=2, strategy="f", samples="fun", samples_digest="f" * 64), samples)
    store.add_generations([make_generation()])
    passed, failed = make_verdict(), make_verdict(key="f", verdict="FAILED", reason="1 of 3", output="E  assert 1 == 2")
    verdicts.add_all(store, [passed, failed])

    def one(text: str, key: str | None = None, **scores: float) -> StoredCompletion:
        return StoredCompletion(
            generation_id="g",
            status=Status.SCORED if text.strip() else Status.MODEL_FAILED,
            text=text,
            flags=() if text.strip() else ("empty",),
            scores={("ctxbench", metric): value for metric, value in scores.items()},
            verdict=key,
        )

    judged = (one("a", passed.key, **{"pass": 1.0}), one("b", "f", **{"pass": 0.0}))
    half = (one("a", passed.key, **{"pass": 1.0}), one("c"))
    blank = (one(" ", **{"pass": 0.0}), one(" ", **{"pass": 0.0}))
    for number, completions in enumerate((judged, half, blank)):
        failed_all = Status.MODEL_FAILED if completions is blank else Status.SCORED
        store.add_finished(run, "", make_finished(f"demo/{number}", completions=completions, status=failed_all))
    return run


def test_all_details_of_a_line_are_read(store: Store) -> None:
    run = add_lines(store)
    add_gains(store, run, "demo/0", "c 0", {0: 9.0})
    add_gains(store, run, "demo/0", "c 1", {0: 3.0})
    add_gains(store, run, "demo/0", "c 2", {0: 7.0})
    one = detail(store, run, "demo/0")
    assert (one.status, one.flags, one.prompt, one.kind) == (Status.SCORED, ("overflow",), PROMPT, "line")
    assert (one.repo, one.path, one.line, one.column) == ("demo", "shop/checkout.py", 3, 12)
    similar, infile, api = one.blocks
    assert similar.places == (Place(path="shop/tax.py", start=0, end=2), Place(path="shop/use.py", start=4, end=5))
    assert one.prompt[similar.start : similar.end] == "# a\n" and one.prompt[infile.start : infile.end] == "x = "
    assert (similar.gain, infile.gain) == (3.0, None), "that of the run's own coder"
    assert (api.state, api.reason, api.start, api.end) == ("dropped", "no room", None, None)
    draft, final = one.calls
    assert (draft.role, draft.cached, draft.price, final.role, final.price) == ("draft", 1, 0.25, "final", None)
    [completion] = one.completions
    assert completion.scores == {("ctxbench", "em"): 1.0, ("crosscodeeval", "em"): 0.0, ("context", "bits"): 3.0}
    assert (completion.text, completion.raw) == ("1", "1")
    assert completion.judged is None and not one.faults and not one.marks and not one.imported


def test_a_prompt_is_read_with_its_dropped_blocks(store: Store) -> None:
    run = store.add_run(make_spec(coder="c 1"), make_samples(1))
    store.add_generations([make_generation()])
    pieces = [Block(kind=BlockKind.SIMILAR, text=text, score=0.5) for text in ("# a\n", "# b = c\n")]
    unknown = Dropped(kind=BlockKind.API, places=(Place(path="a.py", start=0, end=2),), score=None, reason="limit")
    prompt = Prompt(blocks=(pieces[0],), dropped=(Dropped.of(pieces[1], "budget"), unknown))
    made = make_finished("demo/0", prompt=prompt.text, prompt_digest=prompt.digest, blocks=_blocks(prompt))
    store.add_finished(run, "c 1", made)
    assert prompts_of(store, run) == {"demo/0": prompt}
    assert [dropped.tokens for dropped in prompt.dropped] == [count(pieces[1].text), 0]


def test_the_last_coders_gains_replace_missing_ones(store: Store) -> None:
    run = add_lines(store)
    add_gains(store, run, "demo/0", "a", {0: 9.0})
    add_gains(store, run, "demo/0", "b", {0: 4.0})
    assert detail(store, run, "demo/0").blocks[0].gain == 4.0


def test_texts_of_calls_are_read_on_request(store: Store) -> None:
    run = add_lines(store)
    question = call_texts(store, run, "demo/0", 0)
    assert question is not None and (question.prompt, question.answer) == ("q", "raw")
    assert call_texts(store, run, "demo/0", 2) is None


def test_verdicts_include_test_counts_and_output(store: Store) -> None:
    run = add_functions(store)
    first, second = detail(store, run, "demo/0").completions
    assert first.judged is not None and (first.judged.verdict, first.judged.tests_run) == ("PASSED", 3)
    assert first.judged.peak_bytes == 1 << 40
    assert second.judged is not None and (second.judged.verdict, second.judged.reason) == ("FAILED", "1 of 3")
    assert second.judged.output == "E  assert 1 == 2"
    assert [one.judged for one in detail(store, run, "demo/2").completions] == [None, None]


def test_the_status_of_a_sample_equals_the_leaderboards(store: Store) -> None:
    runs = [add_lines(store), add_functions(store)]
    notes.add_marks(store, "d" * 64, [Mark(sample_id="demo/1", mark="broken", reason="fails")])
    seen = set()
    for table in run_tables(store):
        for sample, status in zip(table.sample, table.status, strict=True):
            assert detail(store, table.run.id, sample).status is status
            seen.add(status)
    assert seen == set(Status)
    assert detail(store, runs[1], "demo/1").status is Status.INFRA_FAILED, "one of its completions has no verdict"
    assert detail(store, runs[0], "demo/1").marks == (("broken", "fails"),)


def test_a_missing_sample_lists_its_faults(store: Store) -> None:
    run, other = add_lines(store), store.add_run(make_spec(strategy="b"), make_samples(3))
    for of_run, sample, message in ((run, "demo/2", "lost"), (run, "demo/1", "no"), (run, "demo/2", "lost again")):
        store.add_fault(
            store.start_attempt(of_run, "full"), StoredFault(sample_id=sample, kind="machine", message=message)
        )
    store.add_fault(store.start_attempt(other, "full"), StoredFault(sample_id="demo/2", kind="machine", message="x"))
    missing = detail(store, run, "demo/2")
    assert (missing.status, missing.faults) == (Status.INFRA_FAILED, ("lost", "lost again"))
    assert (missing.prompt, missing.blocks, missing.calls, missing.completions) == (None, (), (), ())
    assert detail(store, run, "demo/1").faults == (), "it was done in the end"


def test_an_unknown_sample_is_refused(store: Store) -> None:
    run = add_lines(store)
    for of_run, sample in ((run, "demo/9"), ("none", "demo/0")):
        with pytest.raises(UnknownName, match="no sample of the run"):
            detail(store, of_run, sample)


def test_no_other_sample_is_read(store: Store) -> None:
    """Each statement uses a key. Runs of three and of fifty samples need the same number of statements."""
    counted = []
    for samples in (3, 50):
        run = add_lines(store, samples) if samples == 3 else _more(store, samples)
        with statements(store) as sent:
            detail(store, run, "demo/0")
            call_texts(store, run, "demo/0", 0)
        counted.append(len(sent))
    assert counted[0] == counted[1] <= 12
    with store.reading() as connection:
        for statement, parameters in sent:
            for *_, step in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters):
                # A scan of the profiles and metrics is allowed, because they are few.
                assert "SCAN" not in step or step == "SCAN measure", f"{step} in {statement}"
                # No search may use the run alone.
                assert not step.endswith("(run=?)"), step
                if step.endswith("(run_id=?)"):
                    assert step.startswith("SEARCH imported"), step


def _more(store: Store, samples: int) -> str:
    run = store.add_run(make_spec(strategy="more", coder="c 1"), make_samples(samples))
    for number in range(samples):
        store.add_finished(run, "c 1", make_finished(f"demo/{number}"))
    return run


LOOKED = StoredAccess(
    opened=1,
    searches=2,
    characters=99,
    explored_files=2,
    explored_recall=0.5,
)


def test_only_samples_with_recorded_access_have_access_costs(store: Store) -> None:
    run = store.add_run(make_spec(), make_samples(2))
    store.add_generations([make_generation()])
    store.add_finished(run, "c", make_finished("demo/0", access=LOOKED))
    store.add_finished(run, "c", make_finished("demo/1"))
    [table] = run_tables(store)
    assert [table.costs[name][:2] for name in ACCESS] == [
        (0.5, None),
        (2, None),
    ]
    assert steps_of(store, run, "demo/0") == ()
    other = store.add_run(make_spec(seed=7), make_samples(2))
    store.add_finished(other, "c", make_finished("demo/0"))
    # A run without recorded access has no such costs.
    [costs] = [table.costs for table in run_tables(store) if table.run.id == other]
    assert not set(ACCESS) & set(costs)
    delete_run(store, run)
    with store.reading() as connection:
        assert connection.scalar(text("SELECT count(*) FROM access")) == 0


def test_a_shard_contains_access_and_scores(tmp_path: Path) -> None:
    alone = {("context", "definition_mrr"): 0.5}
    samples = (make_finished("demo/0", access=LOOKED), make_finished("demo/1", completions=(), scores=alone))
    shard = Shard(spec=make_spec(), generations=(make_generation(),), finished=samples)
    write(tmp_path, shard)
    finished = read(next(tmp_path.iterdir())).finished
    assert [sample.access for sample in finished] == [LOOKED, None]
    assert finished[1].all_scores == (alone,)
