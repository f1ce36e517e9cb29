"""A blank answer counts as the worst value wherever it stands: alone, or as one of several completions."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.types import Reference
from harness.asking import Completion, Made
from harness.batcher import Answer
from harness.generators.base import Response
from harness.results import Status
from harness.scoring import Scorer
from harness.store import open_store
from strategies.api import Prompt
from tests.helpers.samples import make_sample


@pytest.mark.parametrize("profile", ["ctxbench", "crosscodeeval", "repocoder", "infercom", "rlcoder_repoeval"])
def test_a_blank_completion_is_worst_also_where_the_answer_has_no_identifier_either(
    profile: str, tmp_path: Path
) -> None:
    sample = make_sample()
    reference = Reference(id=sample.id, target="1)")
    answer = Answer("g", Response(text=" \n", finish="stop", tokens_in=1, tokens_out=1, seconds=0.0))
    made = Made(
        sample=sample,
        prompt=Prompt(blocks=()),
        calls=(("final", answer),),
        completions=tuple(Completion(answer=answer, text=text, flags=(), verdict=None) for text in (" \n", "1)")),
        strategy_seconds=0.0,
    )
    with open_store(f"sqlite:///{tmp_path / 'results.db'}") as store:
        [found] = Scorer(store, {sample.id: reference}, None).finish([made])
    blank, right = (
        {metric: value for (of, metric), value in one.scores.items() if of == profile} for one in found.completions
    )
    assert [one.status for one in found.completions] == [Status.MODEL_FAILED, Status.SCORED]
    assert set(blank.values()) == {0.0} and right["em"] == 1.0
