"""The conformance checks of generators: each fault fails its own check and no other."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.languages.base import Language
from ctxbench.harness.generators.base import Capabilities, Request, Response, generator, resolve
from ctxbench.harness.generators.conformance import check
from ctxbench.harness.generators.fim import FAMILIES, Template
from ctxbench.harness.generators.scripted import Scripted
from ctxbench.strategies.api import Prompt


def scripted(**changes: Any) -> Scripted:
    return Scripted(lambda request: request.prompt.text[-20:], **{"version": "1", **changes})


class Odd(Scripted):
    """A generator whose valid answers pass through a function of requests and answers."""

    def __init__(self, given: Callable[[Sequence[Request], list[Response]], list[Response]], **changes: Any) -> None:
        super().__init__(lambda request: request.prompt.text[-20:], **{"version": "1", **changes})
        self._given = given

    def generate(self, requests: Sequence[Request]) -> list[Response]:
        return self._given(requests, super().generate(requests))


def changed(**fields: Any) -> Odd:
    return Odd(lambda _, answers: [replace(one, **fields) for one in answers])


def fickle() -> Scripted:
    """Return a generator that answers differently every time."""
    count = itertools.count()
    return Scripted(lambda _: f"x{next(count)}", version="1")


class Alone(Scripted):
    """A generator that claims to accept concurrent calls, but answers only the first of them."""

    capabilities = Capabilities(batch_size=4, concurrent=True)

    def generate(self, requests: Sequence[Request]) -> list[Response]:
        return super().generate(requests) if len(self.batches) < 4 else []


class Talkative(Scripted):
    """A generator that ignores the token limit."""

    def _respond(self, request: Request) -> Response:
        return replace(super()._respond(request), tokens_out=3, finish="length")


class Coder(Scripted):
    """A generator that measures the same bits for every text."""

    capabilities = Capabilities(batch_size=16, instructs=True, log_likelihoods=True)

    def __init__(self, price: float) -> None:
        super().__init__(lambda _: "x", version="1")
        self._price = price

    def bits(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> list[float]:
        return [self._price] * len(texts)


class Beside(Coder):
    """A generator that measures other bits beside an answer than for the text alone."""

    def _respond(self, request: Request) -> Response:
        return replace(super()._respond(request), bits=None if request.reference is None else 9.0)


class Counter(Scripted):
    """A generator that counts fewer tokens than it reads."""

    capabilities = Capabilities(counts=True)

    def count(self, request: Request) -> int:
        return 1


class Middle(Scripted):
    """A generator that has fill-in-the-middle tokens, but does not answer prompts with them."""

    capabilities = Capabilities(fills=True, batch_size=2)

    def infilling(self) -> Template:
        return FAMILIES[0]

    def generate(self, requests: Sequence[Request]) -> list[Response]:
        return [] if requests[0].sampling.fim else super().generate(requests)


def failed(made: Any) -> list[str]:
    return [finding.name for finding in check(made) if not finding.passed]


def test_bits_beside_an_answer_must_equal_those_of_the_text_alone() -> None:
    name = "measures a text beside its answer"
    assert name in failed(Beside(5.0)) and name not in failed(Beside(9.0)) and name not in failed(Coder(9.0))


def test_a_valid_generator_passes_every_check() -> None:
    findings = check(scripted())
    assert len(findings) == 7 and failed(scripted()) == []
    assert failed(Talkative(lambda _: "x", version="1", thinking=2)) == []


@pytest.mark.parametrize(
    ("capability", "method"), [("log_likelihoods", "bits"), ("fills", "infilling"), ("counts", "count")]
)
def test_a_declared_capability_without_its_method_is_named(capability: str, method: str) -> None:
    last = check(scripted(**{capability: True}))[-1]
    assert not last.passed and f"the generator declares {capability}, but has no method {method}" in last.detail


def test_a_misspelt_capability_raises_a_type_error() -> None:
    with pytest.raises(TypeError, match="concurent"):
        scripted(concurent=True)


def test_an_object_that_is_not_a_generator_is_refused() -> None:
    @generator("tests-odd")
    def odd() -> Any:
        return object()

    with pytest.raises(InputFault, match="returned object, not a Generator"):
        resolve("tests-odd")


@pytest.mark.parametrize(
    ("made", "names"),
    [
        (scripted(version=""), ["has a version"]),
        (scripted(batch_size=0), ["has a batch size"]),
        (Odd(lambda _, answers: answers[:1]), ["answers every request"]),
        (changed(finish="done"), ["answers are complete"]),
        (changed(seconds=-1.0), ["answers are complete"]),
        (changed(cached=10**6), ["answers are complete"]),
        (fickle(), ["greedy answers are equal"]),
        (Talkative(lambda _: "x", version="1"), ["keeps to the token limit"]),
        (Coder(float("nan")), ["measures texts", "a likely text costs less"]),
        (Coder(1.0), ["a likely text costs less"]),
        (scripted(faults=[1]), ["answers without a fault"]),
        (Counter(lambda _: "x", version="1"), ["counts tokens"]),
        (Middle(lambda _: "x", version="1"), ["fills in the middle"]),
        (Odd(lambda asked, answers: [] if "?" in asked[0].prompt.text else answers), ["accepts an instruction"]),
        (Alone(lambda _: "x", version="1"), ["answers side by side"]),
        (Talkative(lambda _: "x", version="1", thinking=1), ["keeps to the token limit"]),
    ],
)
def test_each_fault_fails_its_own_check(made: Any, names: list[str]) -> None:
    assert failed(made) == names


def test_a_fault_returned_instead_of_an_answer_is_shown() -> None:
    class Refusing(Scripted):
        def generate(self, requests: Sequence[Request]) -> Any:
            return [MachineFault("no room", where="here", cure="make some")] * len(requests)

    last = check(Refusing(lambda _: "x", version="1"))[-1]
    assert not last.passed and "no room" in last.detail
