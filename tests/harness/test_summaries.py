"""Summaries by the run's model: each asked for once, post-processed, counted apart; plain ones without a model."""

import pytest

from ctxbench.bench import code_tokens
from ctxbench.bench.apis import MAX_TOKENS, summary_prompt
from ctxbench.bench.errors import MachineFault
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.retrieval.units import Unit
from ctxbench.bench.types import Place
from ctxbench.harness.generators.base import Request
from ctxbench.harness.generators.scripted import Scripted
from ctxbench.harness.run.resources import Summaries
from tests.harness.test_batcher import batching


def unit(name: str, code: str) -> Unit:
    plain = name.replace(".", " ").lower()
    return Unit(place=Place(path="a.py", start=0, end=1), text=name, name=name, code=code, summary=plain)


PAY = unit("Cart.pay", "def pay(self): return 1")
SHIP = unit("ship", "def ship(): return 2")


def answer(request: Request) -> str:
    return "" if "def ship" in request.prompt.text.rpartition("code:")[2] else "Summary: Pays THE bill"


def test_where_the_model_says_nothing_the_plain_summary_stands() -> None:
    with batching(Scripted(answer)) as batcher:
        assert Summaries(batcher)(PYTHON, [SHIP, PAY]) == ["ship", "pays the bill"]


def test_a_generator_that_cannot_follow_instructions_is_not_asked() -> None:
    generator = Scripted(answer, instructs=False)
    with batching(generator) as batcher:
        summaries = Summaries(batcher)
        assert summaries.plain
        assert summaries(PYTHON, [PAY, SHIP]) == ["cart pay", "ship"]
        assert summaries.remark == ""
    assert generator.batches == []


@pytest.mark.parametrize(("count", "tells"), [(200, False), (201, True)])
def test_what_many_summaries_will_take_is_told_before_the_first(
    count: int, tells: bool, caplog: pytest.LogCaptureFixture
) -> None:
    units = [unit(f"f{number}", f"def f{number}(): return {number}") for number in range(count)]
    told: list[int] = []

    def note(_: Request) -> str:
        told.append(len(caplog.records))
        return "Returns a number"

    with caplog.at_level("INFO", logger="ctxbench"), batching(Scripted(note)) as batcher:
        summaries = Summaries(batcher)
        summaries.planned = lambda: [(PYTHON, units[:100]), (PYTHON, units[50:])]
        summaries(PYTHON, units[:3])
        summaries(PYTHON, units)
        tokens = sum(code_tokens.count(summary_prompt(one.code, PYTHON)) for one in units)
        later = Summaries(batcher)
        later.planned = lambda: [(PYTHON, units)]
        later(PYTHON, units)
    assert [record.getMessage() for record in caplog.records] == [
        f"{count} API summaries will be written by s: {count} calls, about {tokens} tokens in and at most "
        f"{count * MAX_TOKENS} out; they are stored for later runs"
    ] * tells
    assert set(told) == {int(tells)}


def test_a_model_that_is_lost_is_a_machine_fault() -> None:
    with batching(Scripted(answer, faults=[1])) as batcher, pytest.raises(MachineFault):
        Summaries(batcher)(PYTHON, [PAY])
