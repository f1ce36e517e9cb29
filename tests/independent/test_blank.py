"""A blank completion gets the worst value, alone or as one of several completions."""

import pytest

from ctxbench.bench.types import Reference
from ctxbench.harness.generators.base import Response
from ctxbench.harness.results import Status
from ctxbench.harness.run.batching import Answer
from ctxbench.harness.run.sample import AnsweredSample, Completion
from ctxbench.harness.run.scoring import SampleScorer
from ctxbench.strategies.api import Prompt
from tests.helpers.samples import make_sample


@pytest.mark.parametrize("profile", ["ctxbench", "crosscodeeval", "repocoder", "infercom", "rlcoder_repoeval"])
def test_a_blank_completion_is_worst_even_if_the_reference_has_no_identifier(profile: str) -> None:
    sample = make_sample()
    reference = Reference(id=sample.id, target="1)")
    answer = Answer("g", Response(text=" \n", finish="stop", tokens_in=1, tokens_out=1, seconds=0.0))
    made = AnsweredSample(
        sample=sample,
        prompt=Prompt(blocks=()),
        calls=(("final", answer),),
        completions=tuple(Completion(answer=answer, text=text, flags=(), verdict=None) for text in (" \n", "1)")),
        strategy_seconds=0.0,
    )
    [found] = SampleScorer({sample.id: reference}).finish([made])
    blank, right = (
        {metric: value for (of, metric), value in one.scores.items() if of == profile} for one in found.completions
    )
    assert [one.status for one in found.completions] == [Status.MODEL_FAILED, Status.SCORED]
    assert set(blank.values()) == {0.0} and right["em"] == 1.0
