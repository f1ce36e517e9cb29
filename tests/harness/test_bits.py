"""Bits of references after prompts: each is measured once, and in advance if a separate model measures them."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from ctxbench.bench.errors import MachineFault
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.types import Reference
from ctxbench.harness.generators.base import Response, TooLong
from ctxbench.harness.generators.scripted import Scripted
from ctxbench.harness.run.batching import Answer
from ctxbench.harness.run.sample import AnsweredSample
from ctxbench.harness.run.scoring import Bits, LikelihoodModel
from ctxbench.harness.store import Store
from ctxbench.strategies.api import Block, BlockKind, Prompt
from tests.helpers.samples import make_sample

SAMPLE = make_sample()
PROMPT = Prompt(blocks=(Block(kind=BlockKind.INFILE, text="x = "),))
MADE = AnsweredSample(sample=SAMPLE, prompt=PROMPT, calls=(), completions=(), strategy_seconds=0.0)


class Coder(Scripted):
    """Costs one bit per character. The first `faults` calls fail."""

    def __init__(self, faults: int = 0) -> None:
        super().__init__(lambda _: "", log_likelihoods=True)
        self.calls: list[list[str]] = []
        self.faults = faults

    def bits(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> list[float]:
        self.calls.append([prompt.text for prompt in prompts])
        if len(self.calls) <= self.faults:
            raise MachineFault("the coder was lost")
        return [float(len(text)) for text in texts]


def bits(store: Store, coder: Coder, aside: ThreadPoolExecutor | None) -> Bits:
    references = {SAMPLE.id: Reference(id=SAMPLE.id, target="total(1)")}
    return Bits(store, references, LikelihoodModel(name="c", coder=coder, aside=aside))


class Choosy(Coder):
    """A coder that fails on one text and knows only one language."""

    def bits(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> list[float]:
        costs = super().bits(prompts, texts, language)
        if "total(1)" in texts:
            raise self.fault
        return costs

    def knows(self, language: Language) -> bool:
        return language == PYTHON

    fault = MachineFault("it answers oddly")


def test_a_coder_can_measure_if_it_measures_a_small_text() -> None:
    can_measure = LikelihoodModel(name="c", coder=Choosy()).can_measure
    for languages, expected in (([JAVA, PYTHON], True), ([JAVA], False), ([], False)):
        assert can_measure(languages, Choosy.fault) is expected
    lost = Coder(faults=9)
    can_measure = LikelihoodModel(name="c", coder=lost).can_measure
    assert not can_measure([PYTHON], MachineFault("lost")) and len(lost.calls) == 1
    assert can_measure([PYTHON], TooLong("too long")), "which says nothing of others"
    assert len(lost.calls) == 1


def test_bits_measured_beside_a_fault_are_not_measured_again(store: Store) -> None:
    other = make_sample(id="other", prefix="y = ")
    references = {SAMPLE.id: Reference(id=SAMPLE.id, target="total(1)"), "other": Reference(id="other", target="2")}
    coder, aside = Choosy(), ThreadPoolExecutor(1)
    costs = Bits(store, references, LikelihoodModel(name="c", coder=coder, aside=aside))
    prompt = Prompt(blocks=(Block(kind=BlockKind.INFILE, text="y = "),))
    costs.ahead(other, prompt)
    aside.shutdown(wait=True)
    answered = AnsweredSample(sample=other, prompt=prompt, calls=(), completions=(), strategy_seconds=0.0)
    with pytest.raises(MachineFault, match="oddly"):
        costs.of([MADE, answered])
    asked = len(coder.calls)
    assert [cost.bits for cost in costs.of([answered])[0]] == [1.0] and len(coder.calls) == asked


def test_a_model_that_measures_its_own_contexts_receives_the_reference_once(store: Store) -> None:
    coder = Coder()
    costs = bits(store, coder, None)
    assert costs.ahead(SAMPLE, PROMPT) == "total(1)" and coder.calls == []
    response = Response(text="y", finish="stop", tokens_in=1, tokens_out=1, seconds=0.0, bits=2.5)
    answered = replace(
        MADE, calls=(("draft", Answer("d", replace(response, bits=None))), ("final", Answer("f", response)))
    )
    [[infile, final]] = costs.of([answered])
    assert (infile.bits, final.bits) == (8.0, 2.5) and coder.calls == [[infile.prompt]]
    assert final.prompt == "x = "
