"""What of the papers' findings holds: the differences, the words for them, and the page that says so."""

from dataclasses import replace
from datetime import date

import pytest

from ctxbench.bench.types import Kind
from ctxbench.harness import paper_tables
from ctxbench.harness.imported import reference
from ctxbench.harness.imported.reference import ReferenceResults, ReferenceRun
from ctxbench.harness.papers.reproduce import specs_of
from ctxbench.harness.results import Origin
from ctxbench.harness.store.write import Imported
from scripts import findings, model_results
from scripts.reference_results import PAGE
from tests.helpers.samples import make_sample


def results(**em: float) -> ReferenceResults:
    """Return a file of two strategies over a line of Python in each of six repositories: EM of the first, then both."""
    samples = tuple(make_sample(id=f"s{at}", repo=f"r{at}") for at in range(6))
    runs = tuple(
        ReferenceRun(
            strategy=strategy,
            strategy_version="1",
            generator="hf(model=tiny)",
            generator_version="1",
            coder="1",
            sampling={},
            tokenizer="ctxcode-1",
            code="0.2.0",
            status=["completed"] * 6,
            context_tokens=[1] * 6,
            calls=[()] * 6,
            scores={"ctxbench": {"em": [value] * 6, "es": [0.5] * 6}, "context": {"context_gain": [2.0 * value] * 6}},
        )
        for strategy, value in em.items()
    )
    return ReferenceResults(
        name="ctxbench-2-lite",
        kind=Kind.LINE,
        digest="",
        limit=6,
        source=Imported(format=Origin.REFERENCE, source="", sha256=""),
        samples=samples,
        days={"s0": date(2026, 1, 1)},
        kinds={},
        probed={},
        runs=runs,
    )


@pytest.mark.parametrize(
    ("better", "worse", "words"),
    [
        (1.0, 0.0, "EM 100.0 [100.0, 100.0], ES 0.0 [0.0, 0.0], gain in bits 2.0 [2.0, 2.0]; it holds."),
        (0.0, 1.0, "EM -100.0 [-100.0, -100.0], ES 0.0 [0.0, 0.0], gain in bits -2.0 [-2.0, -2.0]; the opposite"),
        (1.0, 1.0, "EM 0.0 [0.0, 0.0], ES 0.0 [0.0, 0.0], gain in bits 0.0 [0.0, 0.0]; not significant."),
    ],
)
def test_a_finding_is_the_difference_over_the_lines_that_both_have(better: float, worse: float, words: str) -> None:
    file = results(**{"lc.infercom(encoder=bm25)": better, "lc.infile": worse})
    text = findings.sentences({Kind.LINE: [file], Kind.FUNCTION: []})
    first, *others = text.splitlines()
    # The mean of twelve differences of the paper's Table 3: three models on two benchmarks, each printed twice.
    assert first.startswith("- **InferCom over the file alone.** The paper: EM +19.5 (Python), +15.5 (Java). Ours: ")
    assert f"Python, 6 lines: {words}" in first and "Java," not in first
    assert len(others) == 9 and all("Ours: not measured yet." in other for other in others)


def test_rows_of_several_files_are_compared_over_what_both_have() -> None:
    infile, infercom = results(**{"lc.infile": 0.0}), results(**{"lc.infercom(encoder=bm25)": 1.0})
    (run,) = infercom.runs
    few = replace(infercom, samples=infercom.samples[:2], runs=(replace(run, calls=[(), ()]),))
    assert "Python, 2 lines: EM 100.0" in findings.sentences({Kind.LINE: [infile, few], Kind.FUNCTION: []})


def test_the_page_says_what_the_files_hold() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for begin, end, section in (
        (model_results.BEGIN, model_results.END, model_results.page()),
        (findings.BEGIN, findings.END, model_results.findings_page()),
    ):
        assert text.split(begin)[1].split(end)[0] == section


def test_every_row_that_ships_is_planned() -> None:
    for kind in Kind:
        for label, file in reference.models(model_results.Plan.set_of(kind), kind).items():
            plan = model_results.PLANS[label, kind]
            planned = set(map(model_results.canonical, plan.strategies))
            assert {run.strategy for run in file.runs} <= planned and len(file.samples) in plan.limits


def test_the_tables_of_lines_are_planned_whole() -> None:
    tables = [paper_tables.table(f"infercom-table{number}") for number in (3, 4, 5)]
    wanted = {model_results.canonical(spec) for table in tables for spec in specs_of(table, "bm25").values()}
    labels = ("qwen2.5-coder-0.5b", "qwen2.5-coder-0.5b-papers")
    planned = [strategy for label in labels for strategy in model_results.PLANS[label, Kind.LINE].strategies]
    assert wanted <= set(map(model_results.canonical, planned)) and len(set(planned)) == len(planned)
