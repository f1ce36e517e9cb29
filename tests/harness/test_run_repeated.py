"""`run --repeat`: separate runs that differ only in the seed, each done once and shown together in one row."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench.home import Home
from ctxbench.harness.generators.base import Request, Response
from ctxbench.harness.generators.scripted import Scripted
from ctxbench.harness.leaderboard import board
from ctxbench.harness.run.spec import RunOptions
from ctxbench.harness.store import open_store
from ctxbench.harness.store.work import run_works
from tests.harness.test_runner import Bench
from tests.helpers.cli import assert_fault, run_cli
from tests.helpers.interrupts import Interrupting
from tests.helpers.sets import make_set

RANDOM = "lc.random_windows(blocks=1, stride=1, window=2)"


class Sampler(Scripted):
    """Answers depend on the seed, as those of a sampling model do. Records the seeds of its requests."""

    def __init__(self, **changes: Any) -> None:
        super().__init__(self._write, version="1", **changes)
        self.seeds: list[int] = []

    def _write(self, request: Request) -> str:
        seed = request.sampling.seed if request.sampling.temperature else 0
        return f"apply_tax(cart_{seed}, rate)"

    def generate(self, requests: Sequence[Request]) -> Sequence[Response]:
        self.seeds += [request.sampling.seed for request in requests]
        return super().generate(requests)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.mark.slow
def test_each_repetition_is_a_run_with_its_seed(bench: Bench) -> None:
    choices = RunOptions(temperature=0.8, seed=7, repeat=3)
    summaries = bench.run(Sampler(), "lc.infile", "lc.repocoder(iterations=1)", choices=choices)
    # Every strategy runs with one seed before the next seed, so an interrupted run still has a complete board.
    assert [(summary.strategy, summary.seed) for summary in summaries] == [
        (spec, seed) for seed in (7, 8, 9) for spec in ("lc.infile", "lc.repocoder(iterations=1)")
    ]
    assert {(work.choices.seed, work.finished) for work in run_works(bench.store)} == {(7, 8), (8, 8), (9, 8)}
    # Repetitions are ordinary runs: the same seed without --repeat yields the same run.
    [alone] = bench.run(Sampler(), choices=RunOptions(temperature=0.8, seed=8))
    assert alone.run == summaries[2].run and alone.new == 0


@pytest.mark.slow
def test_repetitions_run_once_and_more_can_be_added(bench: Bench) -> None:
    first, model = Sampler(), Sampler()
    bench.run(first, choices=RunOptions(temperature=0.8, repeat=2))
    summaries = bench.run(model, choices=RunOptions(temperature=0.8, repeat=4))
    assert sorted(set(first.seeds)) == [0, 1] and sorted(set(model.seeds)) == [2, 3]
    assert [summary.new for summary in summaries] == [0, 0, 8, 8]


@pytest.mark.slow
def test_an_interrupted_repetition_continues(bench: Bench) -> None:
    choices, shown = RunOptions(temperature=0.8, repeat=3), Interrupting(11)
    with pytest.raises(KeyboardInterrupt):
        bench.run(Sampler(batch_size=1), choices=choices, shown=shown)
    done = shown.done
    [row] = board([bench.table(at) for at in range(2)]).rows
    assert (len(row.run.repetitions), row.n, row.missing, row.answers.missing) == (2, 8, 0, 16 - done)
    model = Sampler()
    summaries = bench.run(model, choices=choices)
    assert sum(summary.new for summary in summaries) == 24 - done and 0 not in model.seeds
    [row] = board([bench.table(at) for at in range(3)]).rows
    assert len(row.run.repetitions) == 3 and row.answers.missing == 0
    assert row.variance["es"]["repetition"].deviation > 0


@pytest.mark.slow
def test_a_random_strategy_draws_new_contexts_for_each_seed(bench: Bench) -> None:
    model = Scripted(lambda request: "apply_tax" if "print" in request.prompt.text else "x", version="1")
    summaries = bench.run(model, RANDOM, choices=RunOptions(repeat=4))
    assert len(summaries) == 4 and not any(summary.repeats for summary in summaries)
    prompts = bench.rows("SELECT count(DISTINCT prompt_digest) FROM result GROUP BY sample_id")
    assert max(prompts)[0] > 1


@pytest.mark.slow
@pytest.mark.parametrize(("temperature", "made"), [(0.0, 2), (0.8, 3)])
def test_runs_without_randomness_are_marked_as_equal_repeats(bench: Bench, temperature: float, made: int) -> None:
    model = Scripted(lambda _: "x", version="1")
    choices = RunOptions(temperature=temperature, repeat=3)
    summaries = bench.run(model, "lc.infile", "gold", choices=choices)
    assert [summary.repeats for summary in summaries if summary.strategy == "lc.infile"] == [False, True, False][:made]
    # Controls are never random, whatever the model does.
    assert [summary.strategy for summary in summaries].count("gold") == 1
    again = bench.run(model, "lc.infile", "gold", choices=choices)
    assert [summary.run for summary in again] == [summary.run for summary in summaries]


@pytest.mark.slow
@pytest.mark.usefixtures("inline_cells")
def test_repeated_runs_are_shown_as_one_row(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    make_set(home, repos=6, per_repo=2)
    command = ["run", "--samples", "demo", "--generator", "scripted(mode=echo)", f"--home={home.root}", "--repeat=5"]
    result = run_cli(*command, "--strategy", RANDOM, "--strategy", "lc.infile", "--strategy", "gold")
    assert result.code == 0, result
    lines = result.out.splitlines()
    assert [line.rpartition("  ")[2] for line in lines if RANDOM in line] == [f"seed {seed}" for seed in range(5)]
    assert len(lines) == 5 + 2 + 1
    assert "lc.infile: the seeds 0 and 1 gave equal prompts" in result.err
    with open_store(home.database) as store:
        ids = {work.choices.seed: work.id for work in run_works(store) if work.choices.strategy == RANDOM}
    shown = run_cli("leaderboard", f"--home={home.root}", "--format=markdown", "--metric=copyable_bits")
    assert f"{RANDOM} 5, lc.infile 2" in shown.out.replace("\\", "") and "% repetition" in shown.out
    infile = next(line.split()[0] for line in lines if "lc.infile" in line)
    # Any single run selects all its repetitions. Two repetitions are compared with each other.
    pooled = run_cli("compare", f"--home={home.root}", infile, ids[3])
    assert f"{RANDOM} ({ids[0]}, 5 runs) minus lc.infile ({infile}, 2 runs)" in pooled.out
    single = run_cli("compare", f"--home={home.root}", ids[1], ids[3])
    assert f"{RANDOM} ({ids[3]}) minus {RANDOM} ({ids[1]})" in single.out
    report = run_cli("report", f"--home={home.root}", "--out", str(tmp_path / "report.html"))
    assert report.code == 0, report
    text = (tmp_path / "report.html").read_text()
    assert all(id_ in text for id_ in ids.values()) and "--seed 4" in text


def test_invalid_repeat_options_are_refused(tmp_path: Path) -> None:
    words = ["run", "--samples=demo", "--strategy=lc.infile", "--generator=scripted(text=x)", f"--home={tmp_path}"]
    assert run_cli(*words, "--repeat=0").code == 2
    make_set(Home(tmp_path))
    assert_fault(run_cli(*words, f"--seed={2**63 - 1}", "--repeat=2"), "fewer than 2 seeds", "lower --seed")
