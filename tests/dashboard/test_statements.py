"""All statements about a board agree: on the terminal, in LaTeX, on the pages and in the report.

The tests draw boards of every kind: few and many repositories, clear leads and none, equal rows, missing samples,
controls.
"""

import json
import random
import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pytest

from ctxbench.dashboard.report import report
from ctxbench.dashboard.views import compare as compare_view
from ctxbench.dashboard.views import leaderboard as view
from ctxbench.harness.leaderboard import Board, Group, board, latex, render
from ctxbench.harness.leaderboard.compare import Compared, compare
from ctxbench.harness.leaderboard.headline import headline
from ctxbench.harness.leaderboard.notes import PAGE, notes
from ctxbench.harness.leaderboard.render import to_json
from ctxbench.harness.results import RunTable, Status
from tests.helpers.runs import make_table

NOTHING_CAN = "No difference can be significant"
NOTHING_IS = re.compile(r"No (?:pair|other strategy) is significantly different")
SOME_ARE = re.compile(r"(?:The|\d+) (?:pairs?|other strateg\w+) (?:is|are) significantly different")
VISIBLE = "would be significant in about four of five"
LEADS = ("significantly better than", "Bold:")


def drawn_runs(seed: int) -> list[RunTable]:
    draw = random.Random(seed)
    metric = draw.choice(("es", "es", "em", "bits"))
    count, noise = draw.choice((1, 2, 3, 5, 6, 7, 8, 10, 18)), draw.choice((0.0, 0.02, 0.1))
    repos = [f"r{index % count}" for index in range(max(count, draw.choice((1, 12, 40))))]
    tables: list[RunTable] = []
    for place in range(draw.randrange(1, 8)):
        mean, missing = draw.choice((0.3, 0.3, 0.35, 0.5, 0.7)), draw.choice((0.0, 0.0, 0.1, 0.6))
        tastes = {repo: draw.gauss(mean, noise) for repo in repos}
        values = [min(1.0, max(0.0, tastes[repo] + draw.gauss(0, noise))) for repo in repos]
        if metric == "em":
            values = [float(draw.random() < value) for value in values]
        elif tables and draw.random() < 0.15:
            values = [value or 0.0 for value in tables[-1].metrics[metric]]
        status = [Status.INFRA_FAILED if draw.random() < missing else Status.SCORED for _ in repos]
        scored = [value if state is Status.SCORED else None for value, state in zip(values, status, strict=True)]
        is_control = place > 0 and draw.random() < 0.1
        name = "lc.infile" if not place else f"s{place}"
        tables.append(
            make_table(
                {metric: scored}, repos, status=status, id=f"id{place}", strategy=name,
                ranked=not is_control, control=is_control,
            )
        )  # fmt: skip
    return tables


def ranked_by_its_metric(tables: list[RunTable], *, all_pairs: bool = False) -> Board:
    (metric,) = tables[0].metrics
    return board(tables, metric=metric, all_pairs=all_pairs)


@dataclass(frozen=True)
class Said:
    """A board with all statements about it."""

    board: Board

    @cached_property
    def group(self) -> Group:
        (group,) = self.board.groups
        return group

    @cached_property
    def records(self) -> dict[str, dict[str, Any]]:
        return {record["run"]: record for record in json.loads(to_json(self.board))}

    @cached_property
    def texts(self) -> dict[str, str]:
        (section,) = report(self.board, {}).sections
        return {
            "terminal": render.table(self.board, width=4000, explain=True),
            "markdown": render.markdown(self.board),
            "paper": latex.latex(self.board),
            "page": "\n".join([headline(self.group), *notes(self.group, PAGE)]),
            "report": "\n".join([section.lead, *section.notes]),
        }

    @cached_property
    def looks(self) -> set[str]:
        """Return the styles of the ranked rows on the page, after checking that the report uses the same styles."""
        of_page = view.ranking(self.group, {}).standings
        (section,) = report(self.board, {}).sections
        assert of_page == section.tables[0].standings
        return {standing.value for standing in of_page} - {"unranked"}


@pytest.mark.parametrize("seed", range(150))
def test_statements_about_a_board_do_not_contradict_each_other(seed: int) -> None:
    # A third of the boards test all pairs. The others compare with the baseline.
    said = Said(ranked_by_its_metric(drawn_runs(seed), all_pairs=seed % 3 == 0))
    ranked = [record for record in said.records.values() if record["rank_low"] is not None]
    is_any_apart = any(record["beats"] for record in ranked)
    for name, text in said.texts.items():
        verdicts = [NOTHING_CAN in text, bool(NOTHING_IS.search(text)), bool(SOME_ARE.search(text))]
        assert sum(verdicts) <= 1 and verdicts[2] is is_any_apart, name
        if not is_any_apart:
            assert not [words for words in LEADS if words in text], name
        if NOTHING_CAN in text:
            assert VISIBLE not in text, name
        assert any(verdicts) is (said.group.family.pairs > 0), name
    assert (said.looks <= {"undecided"}) is not is_any_apart
    check_rows(said, ranked)
    check_headline(said, ranked)


def check_rows(said: Said, ranked: list[dict[str, Any]]) -> None:
    """Check that ranks, letters, intervals, beaten rows and needed repositories agree."""
    beats = {(record["run"], loser) for record in ranked for loser in record["beats"]}
    assert not beats & {(loser, winner) for winner, loser in beats}
    # Better is transitive: a row also beats the rows that its beaten rows beat, tested or not.
    through = beats | {(a, d) for a, b in beats for c, d in beats if b == c}
    lost, won = Counter(loser for _, loser in through), Counter(winner for winner, _ in through)
    for record, row in zip(ranked, said.group.ranked, strict=True):
        run, letters = record["run"], set(record["group"])
        assert (record["rank_low"], record["rank_high"]) == (1 + lost[run], len(ranked) - won[run])
        apart = {other["run"] for other in ranked if not letters & set(other["group"])}
        assert apart == {b for a, b in beats if a == run} | {a for a, b in beats if b == run}
        assert record["repositories_needed"] is None or not apart
        if record["repositories_needed"]:
            assert record["repositories_needed"] > 5
        for difference in row.difference.values():
            if difference.p is None:
                continue
            if difference.low is not None and difference.high is not None:
                assert (difference.low > 0 or difference.high < 0) is difference.significant
            else:
                assert not difference.significant
            assert not (difference.significant and (difference.needed or not difference.decidable))
            assert difference.visible is None or (difference.decidable and difference.visible > 0)
            assert difference.needed is None or difference.needed > difference.units
    base = next((record["run"] for record in ranked if record["baseline"] is None), None)
    significant = {
        row.run.id
        for row in said.group.ranked
        if said.group.metric in row.difference and row.difference[said.group.metric].significant
    }
    if base:
        assert significant == {a for a, b in beats if b == base} | {b for a, b in beats if a == base}


def check_headline(said: Said, ranked: list[dict[str, Any]]) -> None:
    """Check that the first sentence of the page and of the report describes the leading rows."""
    sentence, (section,) = headline(said.group), report(said.board, {}).sections
    assert section.lead == sentence
    if not ranked:
        assert "nothing is ranked" in sentence
        return
    first, *others = ranked
    means = [row.metrics[said.group.metric].mean or 0.0 for row in said.group.ranked]
    best = min(means) if said.group.metric == "bits" else max(means)
    equal = [row.run.strategy for row, mean in zip(said.group.ranked, means, strict=True) if mean == means[0]]
    if len(equal) > 3:
        equal = [*equal[:2], f"{len(equal) - 2} others"]
    names = " and ".join(filter(None, [", ".join(equal[:-1]), equal[-1]]))
    start = (
        f"{names} {'has' if len(equal) == 1 else 'have'} the best" if means[0] == best else f"{first['strategy']} ranks"
    )
    assert sentence.startswith(f"All {len(means)} ranked rows" if len(means) > 1 and len(set(means)) == 1 else start)
    is_alone = len(first["beats"]) == len(others) > 0
    assert ("significantly better than every other strategy" in sentence) is (is_alone and said.group.all_pairs)

    def listed(names: list[str]) -> list[str]:
        return names if len(names) < 4 else [*names[:2], f"{len(names) - 2} others"]

    if match := re.search(r"not significantly better than (.*)\.$", sentence):
        alike = [other["strategy"] for other in others if other["run"] not in first["beats"]]
        assert re.split(", | and ", match.group(1)) == listed(alike)
    if match := re.search(r"Significantly better than \S+: ([^;]*?)[;.]", sentence):
        base = next(record["run"] for record in ranked if record["baseline"] is None)
        better = [record["strategy"] for record in ranked if base in record["beats"]]
        assert re.split(", | and ", match.group(1)) == listed(better)


def scored_runs(seed: int) -> list[RunTable]:
    return [table for table in drawn_runs(seed) if any(v is not None for c in table.metrics.values() for v in c)]


@pytest.mark.parametrize("seed", [seed for seed in range(0, 120, 3) if len(scored_runs(seed)) > 1])
def test_compare_describes_a_pair_according_to_its_p(seed: int) -> None:
    tables = scored_runs(seed)
    for pair in compare(tables):
        check_pair(pair)
    if not any(table.run.control for table in tables[:2]):
        (pair,) = compare(tables[:2])
        found = [row for row in ranked_by_its_metric(tables[:2]).rows if row.difference]
        if any(Status.INFRA_FAILED in table.status for table in tables[:2]):
            assert all(of.p is None for row in found for of in row.difference.values())
            return
        (row,) = found
        of_board, sign = row.difference[pair.metric], 1 if row.run.id == pair.this.id else -1
        # For two runs, the board and Compare do the same test.
        for part in ("p", "visible", "needed", "n_common"):
            assert getattr(of_board, part) == getattr(pair.difference, part)
        assert of_board.mean is None or of_board.mean == sign * (pair.difference.mean or 0.0)


def check_pair(pair: Compared) -> None:
    text = render.comparison([pair])
    names = {pair.this.id: "this", pair.other.id: "other"}
    sentences = "\n".join(compare_view.remarks([pair], names))
    says_not = ["not significant" in text, "can be significant at 5%" in text, "the same value on every sample" in text]
    assert [
        words in sentences for words in ("not significant", "can be significant at 5%", "the same value on every")
    ] == says_not
    difference = pair.difference
    assert sum(says_not) == (difference.p is not None and not difference.significant)
    assert not says_not[1] or "would be significant in about four of five" not in text
