"""The agreement study: what each question finds in rows whose answer is known, and the page that the files make."""

from typing import Any

import numpy as np
import pytest

from ctxbench.harness.leaderboard import stats
from scripts import agreement
from scripts.agreement import Rows

STRATEGIES = ("lc.infile", "lc.repocoder", "engine(name=ripgrep)", "oracle-context")
REPOSITORIES, EACH = 10, 4


def rows(gains: Any, *, es: Any = None) -> Rows:
    """Return rows with these gains, shape (strategies, lines); other metrics are the gains unless given."""
    made = Rows.__new__(Rows)
    made.strategies = STRATEGIES
    made.codes = stats.coded([f"r{line // EACH}" for line in range(REPOSITORIES * EACH)])
    gains = np.asarray(gains, dtype=np.float64)
    made.values = {"context_gain": gains, "es": gains if es is None else np.asarray(es, float), "id_f1": gains}
    return made


def drawn(*means: float, noise: float = 1.0, seed: int = 0) -> Any:
    """Return gains about each strategy's mean; the file alone gains nothing."""
    random = np.random.default_rng(seed)
    gains = np.array(means)[:, np.newaxis] + noise * random.standard_normal((len(means), REPOSITORIES * EACH))
    gains[0] = 0.0
    return gains


def test_equal_rows_pass_every_question():
    gains = drawn(0, 10, 5, 20)
    for question in agreement.QUESTIONS[:4]:
        assert question.ask(rows(gains), rows(gains)).passed is True, question.name


def test_rows_the_other_way_round_fail_what_is_about_order():
    gains = drawn(0, 10, 5, 20)
    names = [q.name for q in agreement.QUESTIONS[:4] if q.ask(rows(gains), rows(-gains)).passed is False]
    assert names == ["A1", "A2", "A3", "A4"]


def test_signs_are_asked_of_pairs_that_are_told_apart_only_and_never_of_what_knows_the_answer():
    assert agreement.signs(rows(drawn(0, 0, 0, 50)), rows(drawn(0, 0, 0, 50))).passed is None
    ruler, judge = rows(drawn(0, 10, 10, 50)), rows(drawn(0, 10, 10, 50), es=drawn(0, -1, 1, 50, noise=0.1))
    # Each of the two is told from the file alone; edit similarity disagrees about one of them.
    assert agreement.signs(ruler, judge) == agreement.Answer("100 % and 50 % of 2", False)


def test_ranks_within_repositories_do_not_see_which_repository_a_line_is_of():
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
def test_a_contrast_fails_where_one_model_tells_and_the_other_has_the_other_sign(
    its: tuple[float, ...], is_fine: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(agreement, "_CONTRASTS", (("engine(name=ripgrep)", "lc.repocoder"),) * 2)
    mine = rows(drawn(0, 5, 9, 20)) if its[1] != 7 else rows(drawn(0, 7.01, 7, 20, noise=5))
    assert agreement.contrasts(mine, rows(drawn(*its, noise=1 if its[1] != 7 else 5))).passed is is_fine


def test_the_page_is_what_the_shipped_files_say():
    both = {language: agreement.rows_of("incontext", agreement.JUDGE, language) for language in ("python", "java")}
    assert all(both.values())
    page = agreement.PAGE.read_text(encoding="utf-8")
    assert agreement.text(both) in page, "run `python -m scripts.agreement`"
    for name, picture in agreement.pictures(both).items():
        assert agreement.PICTURES[name].read_text(encoding="utf-8") == picture
