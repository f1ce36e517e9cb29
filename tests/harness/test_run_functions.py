"""Runs over functions: bodies become functions, functions get verdicts, and verdicts become pass@k."""

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text as sql

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.home import Home
from ctxbench.bench.judging.types import Judgement, Verdict
from ctxbench.bench.languages.base import Language
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Sample
from ctxbench.harness.generators.base import Capabilities, Generator, Request
from ctxbench.harness.generators.scripted import Scripted
from ctxbench.harness.leaderboard import board, render
from ctxbench.harness.leaderboard.compare import compare
from ctxbench.harness.results import Load, RunTable, Status
from ctxbench.harness.run.attempt import Answers, RunSummary, UnitOutcome
from ctxbench.harness.run.merging import Merger, shard_files
from ctxbench.harness.run.runner import fault_of, run
from ctxbench.harness.run.scheduling import Share
from ctxbench.harness.run.spec import NO_SANDBOX, SEVERAL, RunOptions, RunSpec
from ctxbench.harness.store import Store, shard_store, verdicts
from ctxbench.harness.store.runs import run_tables
from ctxbench.harness.store.scores import verdict_counts
from ctxbench.harness.store.shard import read
from ctxbench.harness.store.shard_store import open_share
from ctxbench.harness.store.work import run_works
from ctxbench.sandbox.errors import SandboxUnavailable
from ctxbench.strategies.api import Prompt
from tests.helpers.cells import open_inline
from tests.helpers.databases import open_for_test
from tests.helpers.functions import RIGHT, WRONG, FakeJudge, make_function_set
from tests.helpers.interrupts import Interrupting
from tests.helpers.sets import make_set


class Coder(Scripted):
    """Costs one bit per character."""

    capabilities = Capabilities(batch_size=16, instructs=True, log_likelihoods=True)

    def bits(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> list[float]:
        self.priced = [*getattr(self, "priced", []), *texts]
        return [float(len(text)) for text in texts]


class Bench:
    def __init__(self, tmp_path: Path, **changes: Any) -> None:
        self.home = Home(tmp_path / "home")
        self.set = make_function_set(self.home, **changes)
        self.store = open_for_test(self.home.database)
        self.judge = FakeJudge(self.set)
        self.coder = Coder(lambda _: "", version="c1")

    def run(self, model: Generator, choices: RunOptions | None = None, **how: Any) -> RunSummary:
        [summary] = self.runs(model, choices, **how)
        return summary

    def runs(self, model: Generator, choices: RunOptions | None = None, **how: Any) -> list[RunSummary]:
        return run(
            self.home,
            self.store,
            how.pop("samples", self.set),
            strategies=how.pop("strategies", ("lc.infile",)),
            generator="scripted",
            choices=choices,
            judges=how.pop("judge", self.judge).open,
            cells=open_inline,
            resolve=lambda spec: self.coder if spec == "incontext" else model,
            **how,
        )

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with self.store.reading() as connection:
            return [tuple(row) for row in connection.execute(sql(query))]

    def table(self, **how: Any) -> RunTable:
        [table] = run_tables(self.store, **how)
        return table


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def _number(request: Request) -> str:
    return request.prompt.text.rpartition("def times_")[2].partition("(")[0]


def right(request: Request) -> str:
    """Answer with the right body, followed by code that was not requested."""
    return RIGHT.format(number=_number(request)) + "\n\ndef more():\n    pass\n"


def mixed(request: Request) -> str:
    """Answer function 4 with blanks, and the others rightly at odd indexes and wrongly at even ones."""
    if _number(request) == "4":
        return " \n"
    return right(request) if request.index % 2 else WRONG


def model(answer: Any = right, **changes: Any) -> Scripted:
    return Scripted(answer, version="1", **changes)


@pytest.mark.slow
def test_right_bodies_pass(bench: Bench) -> None:
    summary = bench.run(model())
    assert (summary.scored, summary.missing, summary.unjudged, summary.passes) == (6, 0, 0, (1,) * 6)
    assert fault_of([summary]) is None
    table = bench.table()
    assert table.metrics["pass@1"] == (1.0,) * 6 and "pass" not in table.metrics
    assert table.metrics["em"] == table.metrics["es"] == table.metrics["id_f1"] == (1.0,) * 6
    assert set(table.status) == {Status.SCORED} and set(table.level) == {"self_contained", "project_runnable"}
    references = {reference.target for reference in bench.set.references.values()}
    assert {text for _, text in bench.judge.asked} == references
    assert {text for (text,) in bench.rows("SELECT text FROM completion")} == references
    assert bench.rows("SELECT isolation FROM attempt") == [("none, tests in docker",)]
    assert len(bench.rows("SELECT 1 FROM judged JOIN verdict v ON verdict_key = v.key WHERE v.verdict = 'PASSED'")) == 6


@pytest.mark.slow
def test_a_finished_run_opens_no_sandbox(bench: Bench) -> None:
    first = bench.run(model())
    again = bench.run(model())
    assert (again.run, again.passes, again.new) == (first.run, first.passes, 0)
    assert bench.judge.closed == 1 and len(bench.judge.asked) == 6


def test_lines_open_no_sandbox_and_are_decoded_greedily(bench: Bench) -> None:
    lines = make_set(bench.home)
    assert bench.run(model(lambda _: "x"), RunOptions(n=2), samples=lines).scored == 8
    assert bench.judge.closed == 0 and not bench.judge.asked
    [(sampling,)] = bench.rows("SELECT sampling FROM run")
    assert '"temperature": 0.0' in sampling and '"top_p": 1.0' in sampling


@pytest.mark.slow
def test_wrong_bodies_fail_and_empty_bodies_need_no_box(bench: Bench) -> None:
    summary = bench.run(model(lambda r: " \n" if _number(r) == "3" else WRONG))
    assert (summary.scored, summary.model_failed, summary.passes) == (4, 2, (0,) * 6)
    table = bench.table()
    assert table.metrics["pass@1"] == (0.0,) * 6 and table.status.count(Status.MODEL_FAILED) == 2
    assert len(bench.judge.asked) == 4
    assert bench.rows("SELECT count(*) FROM score WHERE profile <> 'ctxbench' AND profile <> 'context'") == [(0,)]
    assert 0 < min(es for es, status in zip(table.metrics["es"], table.status, strict=True) if status == "scored") < 1


@pytest.mark.slow
def test_pass_at_k_is_computed_from_several_answers(bench: Bench) -> None:
    summary = bench.run(model(mixed), RunOptions(n=4))
    assert summary.passes == (2, 2, 0, 2, 2, 0)
    table = bench.table(ks=(2, 9))
    assert set(table.metrics) >= {"pass@1", "pass@2", "pass@3"} and "pass@9" not in table.metrics
    assert sorted(set(table.metrics["pass@1"])) == [0.0, 0.5]
    assert sorted(set(table.metrics["pass@2"])) == [0.0, pytest.approx(1 - 1 / 6)]
    assert len(bench.judge.asked) == 8, "equal completions run once"
    [(sampling,)] = bench.rows("SELECT sampling FROM run")
    assert f'"temperature": {SEVERAL[0]}' in sampling and f'"top_p": {SEVERAL[1]}' in sampling


@pytest.mark.slow
@pytest.mark.parametrize(
    ("choices", "decoding"),
    [
        (RunOptions(), (0.0, 1.0)),
        (RunOptions(n=2), SEVERAL),
        (RunOptions(n=2, temperature=0.2), (0.2, SEVERAL[1])),
        (RunOptions(n=2, temperature=0.0, top_p=1.0), (0.0, 1.0)),
        (RunOptions(temperature=0.3, top_p=0.5), (0.3, 0.5)),
    ],
)
def test_default_decoding_depends_on_the_number_of_answers(
    bench: Bench, choices: RunOptions, decoding: tuple[float, float]
) -> None:
    seen = set()

    def answer(request: Request) -> str:
        seen.add((request.sampling.temperature, request.sampling.top_p))
        return right(request)

    bench.run(model(answer), choices)
    assert seen == {decoding}


@pytest.mark.slow
def test_the_sandbox_does_not_change_the_id_of_a_run(bench: Bench) -> None:
    first = bench.run(model(), RunOptions(sandbox="docker"))
    assert bench.run(model(), RunOptions(sandbox="bubblewrap")).run == first.run
    assert bench.run(model(), RunOptions(sandbox=NO_SANDBOX)).run == first.run


@pytest.mark.slow
def test_answers_stored_without_a_sandbox_are_judged_by_the_next_run(bench: Bench) -> None:
    summary = bench.run(model(mixed), RunOptions(n=2, sandbox=NO_SANDBOX))
    assert (summary.scored, summary.model_failed, summary.missing, summary.unjudged) == (4, 2, 0, 8)
    assert fault_of([summary]) is None and bench.judge.closed == 0
    table = bench.table()
    assert table.status.count(Status.INFRA_FAILED) == 4, "no verdict is no 0"
    assert table.metrics["pass@1"].count(None) == 4
    again = bench.run(model(mixed), RunOptions(n=2))
    assert (again.new, again.unjudged, again.passes) == (0, 0, (1, 1, 0, 1, 1, 0))
    assert bench.table().metrics["pass@1"].count(0.5) == 4
    assert set(bench.table().status) == {Status.SCORED, Status.MODEL_FAILED}
    assert len(bench.rows("SELECT * FROM judged")) == 8


def check_merged(main: Store, sample_set: SampleSet, parts: Path) -> None:
    """Merge the parts; check that all their verdicts are merged."""
    merger = Merger(main, sample_set)
    for file in shard_files([parts]):
        merger.merge_file(file)
    [run] = run_works(main)
    with main.reading() as connection:
        counts = verdict_counts(connection, [run.id])[run.id]
    assert verdicts.unjudged(main, run.id) == []
    assert [counts[sample] for sample in sorted(counts)] == [(2, passed) for passed in (1, 1, 0, 1, 1, 0)]


@pytest.mark.slow
@pytest.mark.parametrize("full", [False, True])
def test_a_part_adds_verdicts_to_completions_stored_without_them(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    def no_room(*_: object) -> None:
        raise MachineFault("the disk is full")

    def part(**choices: Any) -> RunSummary:
        with open_share(Share(0, 1), tmp_path / "parts", bench.set) as bench.store:
            return bench.run(model(mixed), RunOptions(n=2, **choices), share=Share(0, 1))

    main = bench.store
    assert part(sandbox=NO_SANDBOX).unjudged == 8
    if full:
        # The verdicts are stored, but no shard records that they belong to the completions.
        with monkeypatch.context() as patch:
            patch.setattr(shard_store, "write", no_room)
            assert part().unjudged == 8
    assert part().unjudged == 0 and len(bench.judge.asked) == 8
    check_merged(main, bench.set, tmp_path / "parts")


@pytest.mark.slow
@pytest.mark.parametrize("lost", ["database", "verdicts"])
def test_a_part_continues_after_the_loss_of_shards_or_database(bench: Bench, tmp_path: Path, lost: str) -> None:
    parts, main = tmp_path / "parts", bench.store

    def part(database: str, sandbox: str | None) -> RunSummary:
        url = f"sqlite:///{tmp_path / database}.db"
        with open_share(Share(0, 1), parts, bench.set, url=url) as bench.store:
            return bench.run(model(mixed), RunOptions(n=2, sandbox=sandbox), share=Share(0, 1))

    assert part("first", NO_SANDBOX).unjudged == 8
    second = "second" if lost == "database" else "first"
    summary = part(second, None)
    assert (summary.scored, summary.missing, summary.unjudged, summary.new) == (4, 0, 0, 0)
    if lost == "verdicts":
        [file] = [file for file in parts.glob("*.gz") if (held := read(file)).verdicts and not held.finished]
        file.write_bytes(file.read_bytes()[:-20])
        assert part(second, None).unjudged == 0
    assert part("third", None).unjudged == 0
    assert len(bench.judge.asked) == 8, "what a shard has a verdict on is not judged again"
    check_merged(main, bench.set, parts)


@pytest.mark.slow
@pytest.mark.parametrize("late", [True, False])
def test_a_merged_verdict_counts_only_for_its_own_run_in_any_order(bench: Bench, tmp_path: Path, late: bool) -> None:
    """Both runs have the same completions. A poisoned verdict in a shard of one run must not reach the other."""
    parts, main = tmp_path / "parts", bench.store

    def part(strategy: str, sandbox: str | None) -> None:
        with open_share(Share(0, 1), parts, bench.set) as bench.store:
            bench.run(model(), RunOptions(sandbox=sandbox), strategies=(strategy,), share=Share(0, 1))

    if late:
        part("lc.infile", NO_SANDBOX)
    part("lc.infile", None)
    part("lc.repocoder(iterations=1)", NO_SANDBOX)
    files = shard_files([parts])
    boards = []
    for number, order in enumerate((files, files[::-1])):
        bench.store = main if not number else open_for_test(f"sqlite:///{tmp_path / 'other.db'}")
        for file in order:
            Merger(bench.store, bench.set).merge_file(file)
        tables = {table.run.strategy: table for table in run_tables(bench.store)}
        boards.append({strategy: (table.status, table.metrics) for strategy, table in tables.items()})
        assert tables["lc.infile"].metrics["pass@1"] == (1.0,) * 6
        assert "pass@1" not in tables["lc.repocoder(iterations=1)"].metrics
    assert boards[0] == boards[1] and len(bench.judge.asked) == 6
    # A local run judges the completions of the other run again.
    bench.run(model(), RunOptions(), strategies=("lc.repocoder(iterations=1)",))
    assert len(bench.judge.asked) == 12


class Nodes:
    """A cluster whose nodes fail every request."""

    isolation, load = "cells on 2 Ray nodes", Load(workers=2, requests=2, cores=2)

    def do(self, spec: RunSpec, missing: Sequence[Sample], answers: Answers) -> Iterator[UnitOutcome]:
        yield UnitOutcome(samples=missing, fault=MachineFault("no node answers"))


@pytest.mark.parametrize("missing", [0, 2])
def test_stored_answers_without_verdicts_are_judged_locally_beside_nodes(bench: Bench, missing: int) -> None:
    def partly(request: Request) -> str:
        if missing and _number(request) == "2":
            raise MachineFault("the server is down")
        return right(request)

    first = bench.run(model(partly, batch_size=1), RunOptions(sandbox=NO_SANDBOX))
    assert first.unjudged == 6 - missing
    summary = bench.run(model(), cluster=Nodes())
    assert (summary.missing, summary.unjudged, len(summary.passes)) == (missing, 0, 6 - missing)
    assert len(bench.judge.asked) == 6 - missing
    assert bench.rows("SELECT missing FROM outcome ORDER BY attempt_id") == [(missing,), (missing,)]


@pytest.mark.slow
def test_a_machine_without_a_sandbox_reports_it_and_nodes_run_the_rest(bench: Bench) -> None:
    bench.run(model(), RunOptions(sandbox=NO_SANDBOX))
    bench.judge.open = _no_sandbox  # type: ignore[method-assign]
    [first, second] = bench.runs(model(), strategies=("lc.infile", "lc.repocoder"), cluster=Nodes())
    assert (first.unjudged, second.missing) == (6, 6)
    assert "install bubblewrap, or run `ctxbench exec --samples functions --run " in str(fault_of([first]))


@contextlib.contextmanager
def _no_sandbox(*_: object) -> Iterator[Any]:
    raise SandboxUnavailable("no sandbox here", cure="install bubblewrap")
    yield


def _broken_for(*numbers: int) -> Any:
    def answer(sample: Sample, text: str) -> Judgement:
        broken = any(sample.id.endswith(f"_{number}") for number in numbers)
        return Judgement(verdict=Verdict.BROKEN if broken else Verdict.PASSED, reason="its box was lost")

    return answer


@pytest.mark.slow
def test_a_broken_verdict_leaves_its_sample_to_the_next_run(bench: Bench) -> None:
    broken = FakeJudge(bench.set, answer=_broken_for(2))
    summary = bench.run(model(), judge=broken)
    assert (summary.scored, summary.missing) == (4, 2)
    assert {fault.kind for fault in summary.faults} == {"machine"}
    fault = fault_of([summary])
    assert isinstance(fault, MachineFault) and "2 samples are missing" in str(fault) and "box was lost" in str(fault)
    table = bench.table()
    assert table.status.count(Status.INFRA_FAILED) == 2 and table.metrics["pass@1"].count(None) == 2
    asked = model()
    again = bench.run(asked)
    assert (again.scored, again.missing, again.new, again.passes) == (6, 0, 2, (1,) * 6)
    assert asked.batches == [], "what the model said is kept"
    assert len(bench.judge.asked) == 2


@pytest.mark.slow
def test_unjudged_samples_that_break_again_are_a_fault(bench: Bench) -> None:
    bench.run(model(), RunOptions(sandbox=NO_SANDBOX))
    summary = bench.run(model(), judge=FakeJudge(bench.set, answer=_broken_for(2)))
    assert (summary.missing, summary.unjudged) == (0, 2)
    fault = fault_of([summary])
    assert isinstance(fault, MachineFault) and "2 verdicts are missing" in str(fault)
    assert bench.rows("SELECT reason FROM outcome ORDER BY attempt_id") == [("done",), ("faults",)]
    assert bench.run(model()).unjudged == 0


def test_a_missing_back_end_ends_the_run_with_one_fault(bench: Bench) -> None:
    bench.judge.open = _no_sandbox  # type: ignore[method-assign]
    asked = model()
    with pytest.raises(SandboxUnavailable, match="install bubblewrap"):
        bench.run(asked)
    assert asked.batches == [] and bench.rows("SELECT * FROM result") == []


@pytest.mark.slow
def test_a_set_without_tests_ends_the_run(bench: Bench) -> None:
    def image(_: Sample) -> str:
        raise InputFault("the set says nothing of tests", cure="build it again")

    with pytest.raises(InputFault, match="nothing of tests"):
        bench.run(model(), judge=FakeJudge(bench.set, image=image))
    assert bench.rows("SELECT reason FROM outcome") == [], "a run of which nothing was ever stored is none"


@pytest.mark.slow
def test_an_interrupt_ends_running_tests_and_keeps_finished_samples(bench: Bench) -> None:
    class Slowing(FakeJudge):
        """Needs a minute for every function except the first."""

        def judge(self, sample: Sample, text: str, *, alone: bool = False) -> Judgement:
            judgement = super().judge(sample, text, alone=alone)
            self._delay = 60
            return judgement

    judge = Slowing(bench.set)

    with pytest.raises(KeyboardInterrupt):
        bench.run(model(), RunOptions(workers=1), judge=judge, progress=Interrupting())
    done = len(bench.rows("SELECT * FROM result"))
    assert 0 < done < 6 and bench.rows("SELECT reason FROM outcome") == [("interrupted",)]
    summary = bench.run(model())
    assert (summary.scored, summary.new) == (6, 6 - done)
    assert len(bench.rows("SELECT * FROM verdict")) == 6


@pytest.mark.slow
def test_copyable_bits_measure_the_function_body(bench: Bench) -> None:
    bench.run(model())
    assert sorted(set(bench.coder.priced)) == [RIGHT.format(number=n).rstrip() for n in (2, 3, 4)]
    assert set(bench.table().metrics["copyable_bits"]) == {0.0}


@pytest.mark.slow
def test_runs_without_verdicts_say_how_to_get_them(bench: Bench) -> None:
    bench.run(model(), RunOptions(sandbox=NO_SANDBOX))
    text = render.table(board(run_tables(bench.store)))
    assert "Not ranked, because samples are missing" in " ".join(
        text.split()
    ) and "not with --sandbox none" in " ".join(text.split())


@pytest.mark.slow
def test_rows_with_different_decoding_say_so(bench: Bench) -> None:
    bench.run(model())
    other = Bench(bench.home.root / "other")
    other.run(model(mixed), RunOptions(n=2))
    tables = [*run_tables(bench.store), *run_tables(other.store)]
    renamed = dataclasses.replace(tables[1], run=dataclasses.replace(tables[1].run, strategy="other"))
    text = " ".join(render.table(board([tables[0], renamed])).split())
    assert "decoded in different ways" in text and "other 2 per sample at temperature 0.8" in text
    assert "decoded in different ways" not in render.table(board(tables[:1]))


@pytest.mark.slow
def test_function_runs_are_compared_by_pass_at_1_first(bench: Bench) -> None:
    bench.run(model(mixed), RunOptions(n=3))
    bench.run(model(), RunOptions(n=3, seed=1))
    made = compare(run_tables(bench.store))
    assert [one.metric for one in made][:2] == ["pass@1", "bits"]
    assert {"pass@1", "pass@3", "em", "es", "copyable_bits"} <= {one.metric for one in made}
    first = next(one for one in made if one.metric == "pass@3")
    assert abs(first.difference.mean or 0) == pytest.approx(100 / 3) and first.difference.n_common == 6
    assert {first.difference.wins, first.difference.losses} == {0, 2} and first.difference.ties == 4
