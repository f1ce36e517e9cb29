"""Runs: what is stored, what is repeated, and what faults cause. Cells and coder are fakes."""

import contextlib
import dataclasses
import itertools
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from ctxbench.bench import samples as sets
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.home import Home
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.repository import Repository
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Kind, Query, Use
from ctxbench.harness.cells import Cells, InlineCells, StrategyFault, open_cells
from ctxbench.harness.cli.terminal import progress
from ctxbench.harness.generators.base import Capabilities, Generator, Request, Response, TooLong
from ctxbench.harness.generators.base import resolve as resolve_generator
from ctxbench.harness.generators.scripted import Scripted
from ctxbench.harness.leaderboard import board
from ctxbench.harness.leaderboard.headline import headline
from ctxbench.harness.leaderboard.sections import sections
from ctxbench.harness.results import Load, RunTable, Status
from ctxbench.harness.run.attempt import GIVE_UP_AFTER, RunSummary
from ctxbench.harness.run.batching import GIVE_UP
from ctxbench.harness.run.resources import kept_from_strategies
from ctxbench.harness.run.runner import fault_of, run
from ctxbench.harness.run.spec import RunOptions
from ctxbench.harness.store import Store
from ctxbench.harness.store.facts import prompt_text, prompt_texts
from ctxbench.harness.store.runs import run_tables
from ctxbench.harness.store.work import run_works
from ctxbench.strategies.api import Execute, Generate, Prompt
from tests.helpers.databases import open_for_test
from tests.helpers.interrupts import Interrupting
from tests.helpers.sets import make_set


class Coder(Scripted):
    """Costs one bit per character, or half of that if the prompt contains the text."""

    capabilities = Capabilities(batch_size=16, instructs=True, log_likelihoods=True)

    def __init__(self) -> None:
        super().__init__(lambda _: "", version="c1")
        self.priced = 0
        self.woken: list[Language] = []
        self.lost = False

    def wake(self, language: Language) -> None:
        self.woken.append(language)
        if self.lost:
            raise MachineFault("it was lost", where="coder", cure="try again")

    def bits(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> list[float]:
        self.priced += len(texts)
        return [len(t) / (1 + (t in p.text)) for p, t in zip(prompts, texts, strict=True)]


class Bench:
    """A home with a sample set, and a method that runs it with fake cells and a fake coder."""

    def __init__(self, tmp_path: Path, **changes: Any) -> None:
        self.home = Home(tmp_path / "home")
        self.set: SampleSet = make_set(self.home, **changes)
        self.store: Store = open_for_test(self.home.database)
        self.coder = Coder()
        self.cells_run = 0

    def run(
        self,
        model: Generator,
        *strategies: str,
        generator: str = "scripted",
        cells: Cells | None = None,
        choices: RunOptions | None = None,
        store: Store | None = None,
        shown: Callable[..., Any] = progress,
    ) -> list[RunSummary]:
        bench = self

        class Counting:
            inner = cells or InlineCells()

            def run(
                self, spec: str, query: Query, repo: Repository, generate: Generate, execute: Execute | None = None
            ) -> Prompt:
                bench.cells_run += 1
                return self.inner.run(spec, query, repo, generate, execute)

            card = staticmethod(inner.card)
            describe = staticmethod(inner.describe)

        @contextlib.contextmanager
        def open_counting(hidden: Sequence[Path], workers: int) -> Iterator[Cells]:
            assert bench.home.root in hidden
            yield Counting()

        return run(
            self.home,
            store or self.store,
            self.set,
            strategies=strategies or ("lc.infile",),
            generator=generator,
            choices=choices,
            cells=open_counting,
            resolve=lambda spec: self.coder if spec == "incontext" else model,
            progress=shown,
        )

    def table(self, index: int = 0, **how: Any) -> RunTable:
        return run_tables(self.store, **how)[index]

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with self.store.reading() as connection:
            return [tuple(row) for row in connection.execute(text(query))]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def right(request: Request) -> str:
    """Answer with the reference."""
    number = request.prompt.text.rstrip().removesuffix("=").rstrip().rpartition("_")[2]
    return f"apply_tax(cart_{number}, rate)"


def model(answer: Callable[[Request], str] = right, **changes: Any) -> Scripted:
    return Scripted(answer, version="1", **changes)


def test_every_sample_is_scored(bench: Bench) -> None:
    [summary] = bench.run(model())
    assert (summary.scored, summary.missing, summary.new, summary.faults) == (8, 0, 8, ())
    table = bench.table()
    assert table.metrics["em"] == (1.0,) * 8 and set(table.status) == {Status.SCORED}
    assert {"es", "id_f1", "copyable_bits", "bits"} <= set(table.metrics)
    assert table.sample == tuple(sample.id for sample in bench.set.samples)
    assert fault_of([summary]) is None


def test_without_a_model_rows_are_ranked_by_retrieved_definitions(tmp_path: Path) -> None:
    used = (Use(name="apply_tax", module="shop.tax", kind="function"),)
    bench = Bench(tmp_path, uses=used, repos=6)
    silent, strategies = resolve_generator("none"), ("lc.infile", "lc.random_windows", "oracle-context")
    summaries = bench.run(silent, *strategies, generator="none", choices=RunOptions(n=3))
    assert [(one.scored, one.missing, one.remark) for one in summaries] == [(24, 0, "")] * 3
    assert bench.rows("SELECT count(*) FROM completion") == bench.rows("SELECT count(*) FROM generation") == [(0,)]
    # The target file shows no definitions of other files. All random windows fit into the budget.
    [group] = board(run_tables(bench.store)).groups
    means = {row.run.strategy: row.metrics["definition_recall@1024"].mean for row in group.rows}
    assert means == {"lc.random_windows": 100.0, "lc.infile": 0.0, "oracle-context": 100.0}
    assert group.metric == "definition_recall@1024" and group.family.significant == 1
    assert not {"em", "es", "bits", "copyable_bits"} & set(group.scales)
    [section] = sections(board(run_tables(bench.store)))
    assert section.tables[-1].caption.startswith("Retrieved definitions") and section.warnings == ()
    assert headline(group).startswith("No model was asked. ")
    # The same command again runs no samples.
    assert [one.new for one in bench.run(silent, *strategies, generator="none")] == [0, 0, 0]


def test_a_strategy_that_asks_a_model_is_refused_without_one(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    with pytest.raises(InputFault, match="the strategy asks a model; name a model"):
        bench.run(resolve_generator("none"), "lc.repocoder", generator="none")
    assert bench.rows("SELECT count(*) FROM run") == [(0,)]


class Failing(InlineCells):
    """Cells whose strategy fails on the samples with these numbers."""

    def __init__(self, *failing: int, words: Callable[[int], str] = lambda _: "raised KeyError: 'cart'") -> None:
        self.failing, self.words, self.seen = failing, words, list[int]()

    def run(
        self, spec: str, query: Query, repo: Repository, generate: Generate, execute: Execute | None = None
    ) -> Prompt:
        number = int(query.prefix.rpartition("total_")[2].removesuffix(" = "))
        self.seen.append(number)
        if number in self.failing:
            fault = StrategyFault(f"the strategy {self.words(number)}", where=query.id, cure="mend it")
            fault.traceback = "the whole story"
            raise fault
        return super().run(spec, query, repo, generate, execute)


def test_a_run_stops_after_equal_strategy_failures_in_a_row(tmp_path: Path) -> None:
    bench = Bench(tmp_path, repos=1, per_repo=40)
    cells = Failing(*range(40))
    [summary] = bench.run(model(batch_size=1), cells=cells, choices=RunOptions(workers=1))
    assert summary.gave_up and summary.missing == 40 and GIVE_UP_AFTER <= len(cells.seen) < 20
    fault = fault_of([summary])
    assert isinstance(fault, InputFault) and str(fault).startswith(
        f"40 samples are missing: the run stopped after {GIVE_UP_AFTER} equal failures of the strategy in a row; "
        "the first fault: shop0/shop/pay.py#L4: the strategy raised KeyError: 'cart'; mend it; correct the strategy"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "cells",
    [
        Failing(*range(0, 40, 2)),  # not in a row
        Failing(*range(4), *range(8, 12)),
        Failing(*range(40), words=lambda number: f"raised KeyError: {number}"),  # not equal
    ],
)
def test_a_run_continues_after_other_failures(tmp_path: Path, cells: Failing) -> None:
    bench = Bench(tmp_path, repos=1, per_repo=40)
    [summary] = bench.run(model(batch_size=1), cells=cells, choices=RunOptions(workers=1))
    assert not summary.gave_up and sorted(cells.seen) == list(range(40))
    assert summary.missing == len(summary.faults) == len(cells.failing)


def test_the_next_attempt_begins_with_samples_that_have_not_failed(tmp_path: Path) -> None:
    bench = Bench(tmp_path, repos=1, per_repo=40)
    bench.run(model(batch_size=1), cells=Failing(*range(20)), choices=RunOptions(workers=1))
    again = Failing(*range(20))
    bench.run(model(batch_size=1), cells=again, choices=RunOptions(workers=1))
    failed = {
        int(row[0].rpartition("L")[2]) - 4 for row in bench.rows("SELECT sample_id FROM fault WHERE attempt_id = 1")
    }
    assert failed and not failed & set(again.seen[: 20 - len(failed)])


def test_a_finished_run_starts_nothing(bench: Bench) -> None:
    first = bench.run(model())
    again = model()
    [summary] = bench.run(again)
    assert again.batches == [] and again.closed and bench.cells_run == 8
    assert summary == dataclasses.replace(first[0], new=0)
    assert len(bench.rows("SELECT * FROM attempt")) == 1


@pytest.mark.slow
def test_copyable_bits_are_measured_against_the_infile_prompt(bench: Bench) -> None:
    bench.run(model(), "lc.infile", "lc.repocoder(iterations=1)")
    infile, repocoder = (bench.table(index) for index in (0, 1))
    assert set(infile.metrics["copyable_bits"]) == {0.0}
    # shop/use.py shows every answer, and the strategy finds it.
    targets = [len(bench.set.references[sample].target) for sample in repocoder.sample]
    assert repocoder.metrics["copyable_bits"] == tuple(length / 2 for length in targets)
    assert bench.coder.priced == 16, "the baseline is priced once"


@pytest.mark.parametrize("lost", [False, True])
def test_a_failure_to_wake_the_coder_does_not_end_the_attempt(bench: Bench, lost: bool) -> None:
    bench.coder.lost = lost
    for _ in range(2):
        bench.run(model(), "lc.infile")
    assert bench.coder.woken == [PYTHON], "a finished run needs none"
    assert set(bench.table().metrics["copyable_bits"]) == {0.0}


def test_contexts_are_measured_while_the_model_writes(bench: Bench) -> None:
    measured = threading.Event()

    class Watched(Coder):
        def bits(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> list[float]:
            measured.set()
            return super().bits(prompts, texts, language)

    def answer(request: Request) -> str:
        assert measured.wait(20), "the coder waits for the model"
        return right(request)

    bench.coder = Watched()
    [summary] = bench.run(model(answer))
    assert summary.scored == 8 and bench.coder.priced == 8


@pytest.mark.slow
def test_calls_prompt_and_blocks_of_a_sample_are_stored(bench: Bench) -> None:
    bench.run(model(), "lc.repocoder")
    sample = bench.set.samples[0].id
    calls = bench.rows(
        f"SELECT role, text FROM call JOIN generation g ON g.id = generation_id WHERE sample_id='{sample}'"
    )
    assert len(calls) == 2 and calls[-1] == ("final", "apply_tax(cart_0, rate)")
    [(digest, tokens)] = bench.rows(f"SELECT prompt_digest, context_tokens FROM result WHERE sample_id='{sample}'")
    with bench.store.reading() as connection:
        prompt = prompt_text(connection, digest) or ""
    blocks = bench.rows(
        f"SELECT char_start, char_end, kind, tokens FROM block WHERE sample_id='{sample}' AND state<>'dropped'"
    )
    assert blocks[0][0] == 0 and blocks[-1][1] == len(prompt) and blocks[-1][2] == "infile"
    assert all(one[1] == two[0] for one, two in itertools.pairwise(blocks))
    assert tokens == sum(block[3] for block in blocks)


@pytest.mark.slow
@pytest.mark.parametrize(("subkind", "final"), [("single-line", True), ("next-line", True), ("statement", False)])
def test_only_final_answers_to_line_samples_end_after_one_line(tmp_path: Path, subkind: str, final: bool) -> None:
    asked: list[Request] = []

    def answer(request: Request) -> str:
        asked.append(request)
        return right(request)

    Bench(tmp_path, subkind=subkind).run(model(answer), "lc.repocoder")
    assert sum(request.one_line for request in asked) == (8 if final else 0) and len(asked) == 16


class Narrow(Scripted):
    """A model with a window. Its tokens are words."""

    capabilities = Capabilities(batch_size=16, instructs=True, counts=True)

    def __init__(self, window: int, around: int = 0) -> None:
        super().__init__(right, version="1")
        self.window, self.around = window, around
        self.prompts: list[Prompt] = []

    def count(self, request: Request) -> int:
        return self.around + len(request.prompt.text.split())

    def generate(self, requests: Sequence[Request]) -> Sequence[Response]:
        self.prompts += [request.prompt for request in requests]
        return super().generate(requests)


@pytest.mark.slow
def test_prompts_are_cut_to_the_models_window_before_they_are_stored(bench: Bench) -> None:
    narrow = Narrow(24)
    bench.run(narrow, "lc.repocoder")
    assert max(len(prompt.text.split()) for prompt in narrow.prompts) <= 12
    cut = [prompt for prompt in narrow.prompts if "overflow_trimmed" in prompt.flags]
    assert cut and set(bench.table().status) == {Status.SCORED}
    kept = [digest for (digest,) in bench.rows("SELECT prompt_digest FROM result WHERE flags LIKE '%trimmed%'")]
    with bench.store.reading() as connection:
        texts = {text for _, text in prompt_texts(connection, kept)}
    assert texts and texts <= {prompt.text for prompt in cut}
    assert bench.rows("SELECT * FROM block WHERE state = 'dropped' AND reason = 'window'")


def test_a_prompt_that_cannot_be_cut_fails_its_sample(bench: Bench) -> None:
    narrow = Narrow(8, around=9)
    bench.run(narrow)
    assert not narrow.prompts and set(bench.table().status) == {Status.MODEL_FAILED}


def test_equal_prompts_of_two_strategies_are_sent_once(bench: Bench) -> None:
    generator = model()
    bench.run(generator, "lc.infile", "lc.infile(limit=4095)")
    assert sum(generator.batches) == 8 and bench.cells_run == 16
    assert len(bench.rows("SELECT * FROM generation")) == 8


def test_answers_are_not_shared_between_generators_or_versions(bench: Bench) -> None:
    wrong = Scripted(lambda _: "wrong", version="1")
    bench.run(model())
    bench.run(wrong, generator="scripted(mode=echo)")
    bench.run(Scripted(lambda _: "wrong too", version="2"))
    em = sorted((table.run.generator, table.metrics["em"][0]) for table in run_tables(bench.store))
    assert em == [("scripted", 0.0), ("scripted", 1.0), ("scripted(mode=echo)", 0.0)]
    texts = bench.rows(
        "SELECT DISTINCT generator, version, text FROM generation WHERE text LIKE 'wrong%' ORDER BY 1, 2"
    )
    assert texts == [("scripted", "2", "wrong too"), ("scripted(mode=echo)", "1", "wrong")]


def test_an_empty_answer_gets_the_worst_score(bench: Bench) -> None:
    [summary] = bench.run(model(lambda _: "  \n"))
    table = bench.table()
    assert (summary.model_failed, summary.missing) == (8, 0)
    assert set(table.status) == {Status.MODEL_FAILED}
    assert all(set(table.metrics[metric]) == {0.0} for metric in ("em", "es", "id_f1"))


@pytest.mark.slow
def test_scores_are_means_over_several_completions(bench: Bench) -> None:
    [summary] = bench.run(model(lambda r: right(r) if r.index else ""), choices=RunOptions(n=2))
    assert summary.scored == 8
    assert set(bench.table().metrics["em"]) == {0.5}
    assert len(bench.rows("SELECT * FROM completion")) == 16


@pytest.mark.slow
def test_a_limit_takes_samples_from_every_repository(bench: Bench) -> None:
    bench.run(model(), choices=RunOptions(limit=4))
    table = bench.table()
    assert sorted(table.repo) == ["shop0", "shop0", "shop1", "shop1"] and table.run.samples == "demo[:4]"
    bench.run(model(), choices=RunOptions(limit=99))
    assert {one.run.samples for one in run_tables(bench.store)} == {"demo", "demo[:4]"}, (
        "a limit beyond the set is none"
    )
    everything = next(one for one in run_tables(bench.store) if one.run.samples == "demo")
    assert everything.sample == tuple(sample.id for sample in bench.set.samples)


@pytest.mark.slow
def test_a_run_needs_only_the_repositories_of_its_samples(bench: Bench) -> None:
    shutil.rmtree(bench.home.repos / "shop1")
    (summary,) = bench.run(model(), choices=RunOptions(limit=1))
    assert (summary.new, summary.missing) == (1, 0)
    with pytest.raises(InputFault, match="'shop1' has not been fetched"):
        bench.run(model(), choices=RunOptions(limit=2))


def test_seeds_answers_and_limits_change_the_run_id(bench: Bench) -> None:
    every = [RunOptions(), RunOptions(seed=1), RunOptions(n=2), RunOptions(limit=2), RunOptions(workers=1)]
    ids = [bench.run(model(), choices=choices)[0].run for choices in every]
    assert len(set(ids)) == 4 and ids[0] == ids[4]


@pytest.mark.slow
def test_the_next_run_repeats_samples_after_a_machine_fault(bench: Bench) -> None:
    [summary] = bench.run(model(batch_size=3, faults={2}))
    assert summary.missing > 0 and summary.scored + summary.missing == 8
    assert {fault.kind for fault in summary.faults} == {"machine"}
    fault = fault_of([summary])
    assert isinstance(fault, MachineFault) and "run the same command again" in str(fault)
    assert bench.table().status.count(Status.INFRA_FAILED) == summary.missing
    [again] = bench.run(model())
    assert (again.scored, again.new, again.missing) == (8, summary.missing, 0)
    assert set(bench.table().metrics["em"]) == {1.0}


def test_a_lost_generator_is_not_asked_for_every_sample(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench = Bench(tmp_path, repos=2, per_repo=60)
    dead = model(batch_size=2, faults=range(1, 1000))
    [summary] = bench.run(dead)
    assert summary.missing == 120 and len(dead.batches) < 20 and len(dead.batches) >= GIVE_UP
    assert capsys.readouterr().err.endswith("lc.infile: 0 of 120, 120 missing\n"), "those not begun too"


@pytest.mark.slow
def test_a_failing_strategy_is_recorded_and_other_samples_continue(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    [summary] = bench.run(model(), cells=Failing(0, 1))
    assert (summary.scored, summary.missing, len(summary.faults)) == (4, 4, 4)
    assert capsys.readouterr().err.endswith("lc.infile: 4 of 8, 4 missing\n")
    fault = fault_of([summary])
    assert isinstance(fault, InputFault) and "4 because a strategy failed" in str(fault) and "KeyError" in str(fault)
    assert bench.rows("SELECT DISTINCT kind, detail FROM fault") == [("strategy", "the whole story")]
    [again] = bench.run(model())
    assert (again.scored, again.new) == (8, 4)


def test_a_coder_that_fails_leaves_its_samples_missing(bench: Bench) -> None:
    def lost(*_: object) -> list[float]:
        raise MachineFault("a worker process was lost")

    bench.coder.bits = lost  # type: ignore[method-assign]
    [summary] = bench.run(model())
    assert summary.missing == 8
    assert bench.rows("SELECT * FROM score") == []


class OwnCoder(Coder):
    """A model that measures its own contexts but cannot measure those of one sample."""

    def __init__(self, fault: MachineFault | None, bad: str = "cart_7,") -> None:
        Scripted.__init__(self, right, version="own")
        self.priced, self.fault, self.bad = 0, fault, bad

    def bits(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> list[float]:
        if self.fault is not None and any(self.bad in text for text in texts):
            raise self.fault
        return super().bits(prompts, texts, language)


@pytest.mark.slow
@pytest.mark.parametrize("fault", [TooLong("too long", cure="give a window"), MachineFault("garbled")])
def test_a_text_that_cannot_be_measured_fails_only_its_sample(tmp_path: Path, fault: MachineFault) -> None:
    bench = Bench(tmp_path, repos=1, per_repo=20)
    [bad] = [id_ for id_, reference in bench.set.references.items() if "cart_7," in reference.target]
    [summary] = bench.run(OwnCoder(fault))
    assert (summary.scored, summary.missing) == (19, 1)
    assert [(kept.sample_id, kept.message) for kept in summary.faults] == [(bad, str(fault))]
    again = OwnCoder(fault)
    [second] = bench.run(again)
    assert (second.scored, second.missing, len(second.faults)) == (19, 1, 1)
    assert again.priced <= 1, "but for a small text nothing is priced again"
    [last] = bench.run(OwnCoder(None))
    assert (last.scored, last.missing) == (20, 0)


@pytest.mark.slow
def test_a_model_that_stops_measuring_is_not_asked_for_every_sample(tmp_path: Path) -> None:
    bench = Bench(tmp_path, repos=1, per_repo=20)
    lost, asked = OwnCoder(MachineFault("it was lost"), bad=""), 0

    def bits(*_: object) -> list[float]:
        nonlocal asked
        asked += 1
        raise MachineFault("it was lost")

    lost.bits = bits  # type: ignore[method-assign]
    [summary] = bench.run(lost)
    assert (summary.missing, len(summary.faults)) == (20, 20)
    assert asked <= 2 * 5, "once for each part, and once for a small text"


def test_a_bug_in_the_generator_ends_the_run(bench: Bench) -> None:
    def answer(_: Request) -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        bench.run(model(answer))
    assert [row[0] for row in bench.rows("SELECT reason FROM outcome")] == ["failed"]


@pytest.mark.slow
def test_an_interrupt_keeps_finished_samples(bench: Bench) -> None:
    threads, shown, generator = threading.active_count(), Interrupting(3), model(batch_size=1)
    with pytest.raises(KeyboardInterrupt):
        bench.run(generator, "lc.repocoder", shown=shown)
    assert threading.active_count() == threads and generator.closed
    assert bench.rows("SELECT reason, finished FROM outcome") == [("interrupted", shown.done)]
    [summary] = bench.run(model(), "lc.repocoder")
    assert (summary.scored, summary.new) == (8, 8 - shown.done)


def test_a_strategy_for_another_kind_of_samples_is_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path, kind=Kind.FUNCTION)
    source = tmp_path / "mine.py"
    source.write_text(
        "from ctxbench import strategy\n\n@strategy('mine')\ndef mine(query, repo):\n    raise AssertionError\n"
    )
    with pytest.raises(InputFault) as caught:
        bench.run(model(), f"{source}@mine")
    assert "accepts line samples" in str(caught.value) and "strategy list" in str(caught.value)


@pytest.mark.slow
def test_a_strategy_for_other_languages_is_refused(bench: Bench, tmp_path: Path) -> None:
    source = tmp_path / "mine.py"
    source.write_text(
        "from ctxbench import Context, strategy\n\n@strategy('mine', languages=('java',))\n"
        "def mine(query, repo):\n    return Context.ranked([])\n"
    )
    asked = model()
    with pytest.raises(InputFault, match="'demo' has python samples"):
        bench.run(asked, f"{source}@mine")
    source.write_text(source.read_text().replace("'java'", "'java', 'python'"))
    assert bench.run(asked, f"{source}@mine")[0].missing == 0


def test_strategies_never_see_an_answer(bench: Bench) -> None:
    seen: list[object] = []

    class Spying(InlineCells):
        def run(
            self, spec: str, query: Query, repo: Repository, generate: Generate, execute: Execute | None = None
        ) -> Prompt:
            seen.append((query.id, repr(query), repo.read(query.path)))
            return super().run(spec, query, repo, generate, execute)

    bench.run(model(), cells=Spying())
    for id_, query, target_file in seen:  # type: ignore[misc]
        answer = bench.set.references[id_].target  # type: ignore[has-type]
        assert answer not in query and answer not in target_file  # type: ignore[has-type]


def test_two_processes_do_not_run_a_sample_twice(bench: Bench) -> None:
    stores = [open_for_test(bench.home.database) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        works = [pool.submit(bench.run, model(batch_size=2, delay=0.01), store=store) for store in stores]
    refusals = [str(refusal) for work in works if (refusal := work.exception())]
    summaries = [summary for work in works if not work.exception() for summary in work.result()]
    # The second run is refused, unless it begins after the first has finished.
    assert [summary.missing for summary in summaries] == [0] * (2 - len(refusals))
    assert all("is working on this run" in refusal for refusal in refusals) and len(refusals) < 2
    assert sum(summary.new for summary in summaries) == 8
    assert len(bench.rows("SELECT * FROM result")) == 8


@pytest.mark.parametrize("spelling", ["local:{path}", "git+{url}@0123456789"])
def test_home_database_and_sources_are_hidden_from_strategies(tmp_path: Path, spelling: str) -> None:
    source = tmp_path / "a check@out"
    source.mkdir()
    bench = Bench(tmp_path)
    entry = next(iter(bench.set.manifest["repositories"].values()))
    entry["source"] = spelling.format(path=source, url=source.as_uri())
    hidden = kept_from_strategies(bench.home, bench.store.where, bench.set)
    assert {bench.home.root, Path(bench.store.where), source} <= set(hidden)


def test_a_cache_outside_the_home_is_hidden_from_strategies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench, elsewhere = Bench(tmp_path), tmp_path / "elsewhere" / "cache"
    monkeypatch.setenv("CTXBENCH_CACHE", str(elsewhere))
    assert elsewhere in kept_from_strategies(bench.home, bench.store.where, bench.set)
    assert elsewhere.is_dir(), "what is made later would not be hidden"


@pytest.mark.slow
def test_samples_are_stored_while_others_are_still_measured(tmp_path: Path) -> None:
    """A kill loses samples that are not stored, so they are stored before the last contexts are measured."""
    bench = Bench(tmp_path, repos=1, per_repo=100)
    unstored: list[int] = []

    class Slow(Coder):
        def bits(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> list[float]:
            [(stored,)] = bench.rows("SELECT count(*) FROM result")
            self.priced += len(texts)
            unstored.append(self.priced - stored)
            time.sleep(0.03 * len(texts))
            return [1.0] * len(texts)

    bench.coder = Slow()
    # All answers arrive at once, long before they are measured.
    [summary] = bench.run(Scripted(lambda _: "x", batch_size=100), choices=RunOptions(workers=2))
    assert summary.scored == 100 and bench.coder.priced == 100
    assert unstored[-1] < 90, unstored


class Short(Scripted):
    """A model for which every prompt is too long."""

    def generate(self, requests: Sequence[Request]) -> Sequence[Response | MachineFault]:  # type: ignore[override]
        return [TooLong("over the window", cure="shorten it") for _ in requests]


def test_a_prompt_too_long_for_the_model_is_a_strategy_fault(bench: Bench) -> None:
    [summary] = bench.run(Short(right, version="1"))
    assert summary.missing == 8 and {fault.kind for fault in summary.faults} == {"strategy"}
    assert "sent a prompt that the model cannot read: over the window; shorten it" in summary.faults[0].message
    line = str(fault_of([summary]))
    assert line.startswith("8 samples are missing, 8 because the prompt is too long for the model; the first fault: ")
    assert line.endswith(
        "over the window; shorten it; shorten the prompts as described, then run the same command again"
    )


@pytest.mark.slow
def test_a_draft_that_is_too_long_for_the_model_shows_its_cure(tmp_path: Path) -> None:
    bench = Bench(tmp_path, repos=1, per_repo=1)
    with open_cells([bench.home.root], 1) as cells:
        [summary] = bench.run(Short(right, version="1"), "lc.repocoder", cells=cells)
    line = str(fault_of([summary]))
    assert "over the window; shorten it" in line


def test_a_fault_with_its_own_cure_gets_no_second_cure(bench: Bench) -> None:
    def summary(message: str) -> RunSummary:
        [made] = bench.run(model(faults=range(1, 99)))
        return dataclasses.replace(made, faults=(dataclasses.replace(made.faults[0], message=message),))

    assert str(fault_of([summary("no connection; see the server, then run the same command again")])).endswith(
        "the first fault: no connection; see the server, then run the same command again; it does only what is missing"
    )
    assert str(fault_of([summary("refused; mend the spec")])).endswith(
        "refused; mend the spec; then run the same command again; it does only what is missing"
    )


@pytest.mark.slow
def test_an_attempt_is_marked_as_alive_and_records_its_load(bench: Bench) -> None:
    alive: list[bool | None] = []

    def watching(request: Request) -> str:
        alive.append(run_works(bench.store)[0].alive)
        return right(request)

    bench.run(model(watching, batch_size=3), choices=RunOptions(workers=2))
    assert set(alive) == {True} and run_works(bench.store)[0].alive is None
    load = Load(workers=2, requests=3, cores=os.cpu_count() or 1)
    assert bench.table().run.loads == (load,)


@pytest.mark.slow
def test_remarks_of_a_set_are_copied_to_its_runs(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    said = ["Hygiene was off: test copies of the answers were shown.", "Another."]
    manifest = {"repositories": bench.set.manifest["repositories"], "remarks": said}
    bench.set = sets.save(bench.home, "demo", bench.set.samples, bench.set.references.values(), manifest, force=True)
    for _ in range(2):
        bench.run(model(), "lc.infile", "lc.repocoder")
    assert [bench.table(index).run.remarks for index in range(2)] == [tuple(said)] * 2
