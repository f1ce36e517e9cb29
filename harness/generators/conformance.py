"""Checks that every generator must pass, on a tiny prompt; for our own tests and for outside authors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ctxbench.bench.errors import CtxbenchError, MachineFault
from ctxbench.bench.languages.python import PYTHON
from ctxbench.harness.generators import reading
from ctxbench.harness.generators.base import Coder, Generator, Request, Response, Sampling, accounted
from ctxbench.strategies.api import Block, BlockKind, Prompt

_CODE = "def area(width, height):\n    return width * height\n\n\ndef volume(width, height, depth):\n    return "
_ANSWER = "area(width, height) * depth"
_MOST_THREADS = 64


@dataclass(frozen=True, slots=True)
class GeneratorFinding:
    """The outcome of one check."""

    name: str
    passed: bool
    detail: str


def check(generator: Generator) -> list[GeneratorFinding]:
    """Try a generator; a fault that it raises fails the check and ends the list."""
    findings: list[GeneratorFinding] = []
    try:
        for name, passed, detail in _checks(generator):
            findings.append(GeneratorFinding(name, passed, detail))
    except CtxbenchError as fault:
        findings.append(GeneratorFinding("answers without a fault", False, str(fault)))
    return findings


def _checks(generator: Generator) -> Iterator[tuple[str, bool, str]]:
    yield "has a version", bool(generator.version), generator.version or "empty: cached answers could be another's"
    yield "has a batch size", generator.batch_size >= 1, str(generator.batch_size)
    first = _answers(generator, [_request(_CODE), _request("x = 1\ny = ")])
    yield "answers every request", len(first) == 2, f"{len(first)} answers to 2 requests"
    yield "accounts for its answers", all(map(accounted, first)), "finish, tokens and seconds"
    again = _answers(generator, [_request(_CODE), _request("x = 1\ny = ")])
    equal = [answer.text for answer in first] == [answer.text for answer in again]
    yield "greedy answers are equal", equal, repr(first[0].text[:60]) if first else ""
    [short] = _answers(generator, [_request(_CODE, max_tokens=1)])
    # A model that thinks is given room beside the answer's.
    most = 1 + int(getattr(generator, "thinking", 0))
    yield "keeps to the token limit", short.tokens_out <= most, f"{short.tokens_out} tokens of at most {most}"
    if hasattr(generator, "served"):
        yield from reading.findings(generator)
        yield "says who answers", True, ", ".join(generator.served) or "no more than the spec"
    if getattr(generator, "concurrent", False):
        yield _side_by_side(generator)
    if isinstance(generator, Coder):
        yield from _coding(generator.bits)


def _answers(generator: Generator, requests: Sequence[Request]) -> list[Response]:
    """Return the answers; raise the first fault that stands in the place of one."""
    answers = generator.generate(requests)
    for answer in answers:
        if isinstance(answer, MachineFault):
            raise answer
    return [answer for answer in answers if isinstance(answer, Response)]


def _side_by_side(generator: Generator) -> tuple[str, bool, str]:
    """Call from as many threads as it wants, each with a prompt of its own."""
    width = min(generator.batch_size, _MOST_THREADS)
    requests = [_request(f"{_CODE}{number} * ") for number in range(width)]
    with ThreadPoolExecutor(width) as threads:
        answers = list(threads.map(lambda request: _answers(generator, [request]), requests))
    return "answers side by side", all(map(len, answers)), f"{width} calls at once"


def _coding(bits: Callable[..., object]) -> Iterator[tuple[str, bool, str]]:
    costs = bits([_prompt(_CODE)] * 2, [_ANSWER, "unlikely ** ~Ångström"], PYTHON)
    values = [float(cost) for cost in costs] if isinstance(costs, list | tuple) else []
    sound = len(values) == 2 and all(math.isfinite(value) and value > 0 for value in values)
    yield "prices texts", sound, ", ".join(f"{value:.1f} bits" for value in values)
    yield "a likely text costs less", sound and values[0] < values[1], "an answer from the prompt, and noise"


def _prompt(text: str) -> Prompt:
    return Prompt(blocks=(Block(kind=BlockKind.INFILE, text=text),))


def _request(text: str, max_tokens: int = 32) -> Request:
    return Request(prompt=_prompt(text), language=PYTHON, sampling=Sampling(max_tokens=max_tokens))
