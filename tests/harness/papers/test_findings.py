"""Which of the papers' findings hold, what the agreement study finds, and the pages of both."""

from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import pytest

from ctxbench.bench.types import Kind
from ctxbench.harness import paper_tables
from ctxbench.harness.imported import reference
from ctxbench.harness.imported.reference import ReferenceResults, ReferenceRun
from ctxbench.harness.leaderboard import stats
from ctxbench.harness.papers.reproduce import specs_of
from ctxbench.harness.results import Origin
from ctxbench.harness.store.write import Imported
from scripts import agreement, findings, model_results
from scripts.agreement import Rows
from scripts.reference_results import PAGE
from tests.helpers.samples import make_sample


def results(**em: float) -> ReferenceResults:
    """Return results of strategies with these EM values over six Python lines, each from its own repository."""
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
def test_a_finding_is_the_mean_difference_over_common_lines(better: float, worse: float, words: str) -> None:
    file = results(**{"lc.infercom(encoder=bm25)": better, "lc.infile": worse})
    text = findings.sentences({Kind.LINE: [file], Kind.FUNCTION: []})
    first, *others = text.splitlines()
    # The mean of twelve differences of the paper's Table 3: three models on two benchmarks, each printed twice.
    assert first.startswith("- **InferCom over the file alone.** The paper: EM +19.5 (Python), +15.5 (Java). Ours: ")
    assert f"Python, 6 lines: {words}" in first and "Java," not in first
    assert len(others) == 9 and all("Ours: not measured yet." in other for other in others)


def test_rows_of_two_files_are_compared_over_common_lines() -> None:
    infile, infercom = results(**{"lc.infile": 0.0}), results(**{"lc.infercom(encoder=bm25)": 1.0})
    (run,) = infercom.runs
    few = replace(infercom, samples=infercom.samples[:2], runs=(replace(run, calls=[(), ()]),))
    assert "Python, 2 lines: EM 100.0" in findings.sentences({Kind.LINE: [infile, few], Kind.FUNCTION: []})


def test_the_results_pages_match_the_result_files() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for begin, end, section in (
        (model_results.BEGIN, model_results.END, model_results.page()),
        (findings.BEGIN, findings.END, model_results.findings_page()),
    ):
        assert text.split(begin)[1].split(end)[0] == section


def test_every_shipped_row_is_planned() -> None:
    for kind in Kind:
        for label, file in reference.models(model_results.Plan.set_of(kind), kind).items():
            plan = model_results.PLANS[label, kind]
            planned = set(map(model_results.canonical, plan.strategies))
            assert {run.strategy for run in file.runs} <= planned and len(file.samples) in plan.limits


def test_all_rows_of_the_line_tables_are_planned() -> None:
    tables = [paper_tables.table(f"infercom-table{number}") for number in (3, 4, 5)]
    wanted = {model_results.canonical(spec) for table in tables for spec in specs_of(table, "bm25").values()}
    labels = ("qwen2.5-coder-0.5b", "qwen2.5-coder-0.5b-papers")
    planned = [strategy for label in labels for strategy in model_results.PLANS[label, Kind.LINE].strategies]
    assert wanted <= set(map(model_results.canonical, planned)) and len(set(planned)) == len(planned)


STRATEGIES = ("lc.infile", "lc.repocoder", "engine(ripgrep)", "oracle-context")
REPOSITORIES, EACH = 10, 4


def rows(gains: Any, *, es: Any = None) -> Rows:
    """Return rows with these gains, in shape (strategies, lines). Other metrics equal the gains unless given."""
    made = Rows.__new__(Rows)
    made.strategies = STRATEGIES
    made.codes = stats.coded([f"r{line // EACH}" for line in range(REPOSITORIES * EACH)])
    gains = np.asarray(gains, dtype=np.float64)
    made.values = {"context_gain": gains, "es": gains if es is None else np.asarray(es, float), "id_f1": gains}
    return made


def drawn(*means: float, noise: float = 1.0, seed: int = 0) -> Any:
    """Return gains that vary around each strategy's mean. The first strategy, the file alone, has no gain."""
    random = np.random.default_rng(seed)
    gains = np.array(means)[:, np.newaxis] + noise * random.standard_normal((len(means), REPOSITORIES * EACH))
    gains[0] = 0.0
    return gains


def test_equal_rows_pass_every_question():
    gains = drawn(0, 10, 5, 20)
    for question in agreement.QUESTIONS[:4]:
        assert question.ask(rows(gains), rows(gains)).passed is True, question.name


def test_reversed_rows_fail_the_questions_about_order():
    gains = drawn(0, 10, 5, 20)
    names = [q.name for q in agreement.QUESTIONS[:4] if q.ask(rows(gains), rows(-gains)).passed is False]
    assert names == ["A1", "A2", "A3", "A4"]


def test_signs_are_compared_only_for_significant_pairs_without_controls():
    assert agreement.signs(rows(drawn(0, 0, 0, 50)), rows(drawn(0, 0, 0, 50))).passed is None
    ruler, judge = rows(drawn(0, 10, 10, 50)), rows(drawn(0, 10, 10, 50), es=drawn(0, -1, 1, 50, noise=0.1))
    # Both differ significantly from the file alone. Edit similarity disagrees about one of them.
    assert agreement.signs(ruler, judge) == agreement.Answer("100 % and 50 % of 2", False)


def test_pooled_ranks_ignore_differences_between_repositories():
    codes = stats.coded([f"r{line // EACH}" for line in range(REPOSITORIES * EACH)])
    random = np.random.default_rng(1)
    offset = np.repeat(np.arange(REPOSITORIES) * 100.0, EACH)
    these, those = (offset + random.standard_normal((30, REPOSITORIES * EACH)) for _ in range(2))
    assert np.corrcoef(these.ravel(), those.ravel())[0, 1] > 0.9
    assert abs(agreement.pooled_ranks(these, those, codes)) < 0.1
    assert agreement.pooled_ranks(these, 3 * these + 7, codes) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("its", "is_fine"),
    [((0, 5, 9, 20), True), ((0, 9, 5, 20), False), ((0, 7, 7.01, 20), True)],
    ids=["same sign", "other sign", "nothing to tell"],
)
def test_a_contrast_fails_if_a_significant_sign_is_reversed(
    its: tuple[float, ...], is_fine: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(agreement, "_CONTRASTS", (("engine(ripgrep)", "lc.repocoder"),) * 2)
    mine = rows(drawn(0, 5, 9, 20)) if its[1] != 7 else rows(drawn(0, 7.01, 7, 20, noise=5))
    assert agreement.contrasts(mine, rows(drawn(*its, noise=1 if its[1] != 7 else 5))).passed is is_fine


def test_the_agreement_page_matches_the_shipped_files():
    both = {language: agreement.rows_of("incontext", agreement.JUDGE, language) for language in ("python", "java")}
    assert all(both.values())
    page = agreement.PAGE.read_text(encoding="utf-8")
    assert agreement.text(both) in page, "run `python -m scripts.agreement`"
    for name, picture in agreement.pictures(both).items():
        assert agreement.PICTURES[name].read_text(encoding="utf-8") == picture
