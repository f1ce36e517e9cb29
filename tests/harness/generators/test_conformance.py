"""The conformance list finds what is wrong with a generator: each check fails for its own fault, and no other does."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from ctxbench.bench.errors import MachineFault
from ctxbench.bench.languages.base import Language
from ctxbench.harness.generators.base import Request, Response
from ctxbench.harness.generators.conformance import check
from ctxbench.harness.generators.scripted import Scripted
from ctxbench.strategies.api import Prompt


def scripted(**changes: Any) -> Scripted:
    return Scripted(lambda request: request.prompt.text[-20:], **{"version": "1", **changes})


class Changed(Scripted):
    """Answers soundly, then has its answers changed."""

    def __init__(self, change: Any) -> None:
        super().__init__(lambda request: request.prompt.text[-20:], version="1")
        self._change = change

    def generate(self, requests: Sequence[Request]) -> list[Response]:
        return [self._change(one) for one in super().generate(requests)]


class Forgetful(Scripted):
    """Answers one request of a batch."""

    def generate(self, requests: Sequence[Request]) -> list[Response]:
        return super().generate(requests)[:1]


class Fickle(Scripted):
    """Answers otherwise every time."""

    def __init__(self) -> None:
        count = itertools.count()
        super().__init__(lambda _: f"x{next(count)}", version="1")


class Talkative(Scripted):
    """Heeds no limit."""

    def _respond(self, request: Request) -> Response:
        return replace(super()._respond(request), tokens_out=3, finish="length")


class Coder(Scripted):
    """Prices everything alike."""

    def __init__(self, price: float) -> None:
        super().__init__(lambda _: "x", version="1")
        self._price = price

    def bits(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> list[float]:
        return [self._price] * len(texts)


def failed(made: Any) -> list[str]:
    return [finding.name for finding in check(made) if not finding.passed]


def test_a_sound_one_passes() -> None:
    findings = check(scripted())
    assert len(findings) == 6 and failed(scripted()) == []


@pytest.mark.parametrize(
    ("made", "names"),
    [
        (scripted(version=""), ["has a version"]),
        (scripted(batch_size=0), ["has a batch size"]),
        (Forgetful(lambda _: "x", version="1"), ["answers every request"]),
        (Changed(lambda one: replace(one, finish="done")), ["accounts for its answers"]),
        (Changed(lambda one: replace(one, seconds=-1.0)), ["accounts for its answers"]),
        (Changed(lambda one: replace(one, cached=one.tokens_in + 1)), ["accounts for its answers"]),
        (Fickle(), ["greedy answers are equal"]),
        (Talkative(lambda _: "x", version="1"), ["keeps to the token limit"]),
        (Coder(float("nan")), ["prices texts", "a likely text costs less"]),
        (Coder(1.0), ["a likely text costs less"]),
        (scripted(faults=[1]), ["answers without a fault"]),
    ],
)
def test_each_fault_is_found(made: Any, names: list[str]) -> None:
    assert failed(made) == names


def test_a_fault_in_an_answers_place_is_shown() -> None:
    class Refusing(Scripted):
        def generate(self, requests: Sequence[Request]) -> Any:
            return [MachineFault("no room", where="here", cure="make some")] * len(requests)

    last = check(Refusing(lambda _: "x", version="1"))[-1]
    assert not last.passed and "no room" in last.detail
