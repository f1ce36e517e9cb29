"""Checks that every generator must pass, on a tiny prompt; for our own tests and for outside authors."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ctxbench.bench.errors import CtxbenchError, InputFault, MachineFault
from ctxbench.bench.types import Language
from ctxbench.harness.generators.base import Coder, CutShort, Generator, Request, Response, Sampling, TooLong, accounted
from ctxbench.harness.generators.fim import Infilling
from ctxbench.harness.generators.fitting import Windowed
from ctxbench.harness.generators.openai.generator import spread
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
        yield from _reading(generator)
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
    costs = bits([_prompt(_CODE)] * 2, [_ANSWER, "unlikely ** ~Ångström"], Language.PYTHON)
    values = [float(cost) for cost in costs] if isinstance(costs, list | tuple) else []
    sound = len(values) == 2 and all(math.isfinite(value) and value > 0 for value in values)
    yield "prices texts", sound, ", ".join(f"{value:.1f} bits" for value in values)
    yield "a likely text costs less", sound and values[0] < values[1], "an answer from the prompt, and noise"


def _prompt(text: str) -> Prompt:
    return Prompt(blocks=(Block(kind=BlockKind.INFILE, text=text),))


def _request(text: str, max_tokens: int = 32) -> Request:
    return Request(prompt=_prompt(text), language=Language.PYTHON, sampling=Sampling(max_tokens=max_tokens))


_PIECE = "def area(width, height):\n    return width * height\n\n\n"
_FEW, _SOME, _MANY = 2, 40, 560
"""Repetitions: some are under 1,000 tokens, which every server reads; many are some 8,000."""
_LEEWAY = 0.02
"""Share of a prompt whose tokens may differ where repetitions join."""
_AROUND = 8
"""Tokens that may surround a text to continue: a mark of its beginning, and those that its ends join with."""


def _reading(generator: Generator) -> list[tuple[str, bool, str]]:
    """Return checks of a service as (name, passed, words); three requests, the longest of some 8,000 tokens.

    A service that refuses the longest one does read whole prompts.

    Raises:
        MachineFault: if a request failed for another reason than its length.
    """
    first = _read(generator, _FEW)
    few, some = first.tokens_in, _read(generator, _SOME).tokens_in
    try:
        many, refused = _read(generator, _MANY).tokens_in, ""
    except CutShort as fault:
        return [("reads prompts whole", False, fault.what)]
    except TooLong as fault:
        many, refused = 0, fault.what
    if not getattr(generator, "counts", True):
        return [("reads prompts whole", True, "not known: the server counts no tokens")]
    per_repetition = (some - few) / (_SOME - _FEW)
    around = max(0, round(few - _FEW * per_repetition))
    expected = round(few + (_MANY - _FEW) * per_repetition)
    whole = not many or many >= expected * (1 - _LEEWAY)
    words = refused or (f"{many:,} tokens" if whole else f"of {expected:,} tokens it read {many:,}, without a word")
    checks = [("reads prompts whole", whole, words)]
    if not generator.instructs:
        words = f"tokens around a prompt: {around}" + ("" if around <= _AROUND else ", as around a chat's message")
        echoed = first.text.startswith(_PIECE)
        words = "it repeats the prompt before its answer" if echoed else words
        checks.append(("goes on with the text", around <= _AROUND and not echoed, words))
    return checks


def _read(generator: Generator, times: int) -> Response:
    """Return the answer to so many repetitions, with the number of tokens that the service reports."""
    # A block of plain text: this side puts nothing around it.
    prompt = Prompt(blocks=(Block(kind=BlockKind.TEXT, text=_PIECE * times),))
    request = Request(prompt=prompt, language=Language.PYTHON, sampling=Sampling(max_tokens=16))
    [response] = generator.generate([request])
    if isinstance(response, MachineFault):
        raise response
    return response


_MOST = 16
"""Requests of the timed batch, if as many go out at once."""
_TOKENS = 64
"""Tokens of an answer of the timed batch at most."""
_PROMPT = "def area_{number}(width, height):\n    return width * height\n\n\n" * 16 + "def volume_{number}("


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorSpeed:
    """Tokens and seconds of one short batch."""

    requests: int
    tokens_in: int
    tokens_out: int
    seconds: float
    """Wall time of all of them."""

    def __str__(self) -> str:
        """Return tokens a second."""
        into, out = (_rounded(tokens / self.seconds) for tokens in (self.tokens_in, self.tokens_out))
        return f"{into:,} tokens in and {out:,} out a second ({self.requests} requests in {self.seconds:.2g} s)"


def abilities(generator: Generator) -> Iterator[tuple[str, str]]:
    """Yield a generator's abilities as (name, words); the model is not asked.

    Raises:
        InputFault: if its files cannot be read.
    """
    yield "instructions", "follows them" if generator.instructs else "goes on with text; is asked for no plans"
    coder = isinstance(generator, Coder)
    yield "context gain", "prices texts itself" if coder else "measured by the built-in copy model"
    window = generator.window if isinstance(generator, Windowed) else 0
    yield "window", f"{window:,} tokens; prompts are cut to it" if window else "not known; prompts are sent as they are"
    yield "--fim", _middle(generator)
    width = generator.batch_size
    beside = getattr(generator, "concurrent", False)
    yield "at once", f"{width} requests, each answered by itself" if beside else f"{width} requests in a batch"


def served(generator: Generator) -> str:
    """Return the services that answered so far, by their own names; empty if they name no more than the spec."""
    return ", ".join(getattr(generator, "served", ()))


def speed(generator: Generator) -> GeneratorSpeed:
    """Time one batch of short answers; the generator has answered before, and is warm.

    Raises:
        MachineFault: if one of them failed.
    """
    requests = [_timed(number) for number in range(min(generator.batch_size, _MOST))]
    begin = time.perf_counter()
    if getattr(generator, "concurrent", False):
        batches = spread(lambda request: generator.generate([request]), requests, len(requests))
        answers = [answer for batch in batches for answer in batch]
    else:
        answers = list(generator.generate(requests))
    seconds = max(time.perf_counter() - begin, 1e-9)
    for answer in answers:
        if isinstance(answer, MachineFault):
            raise answer
    responses = [answer for answer in answers if isinstance(answer, Response)]
    return GeneratorSpeed(
        requests=len(responses),
        tokens_in=sum(answer.tokens_in for answer in responses),
        tokens_out=sum(answer.tokens_out for answer in responses),
        seconds=seconds,
    )


def _rounded(rate: float) -> int:
    """Return a number to two digits: one batch measures no more."""
    return int(float(f"{rate:.2g}"))


def _middle(generator: Generator) -> str:
    if not isinstance(generator, Infilling):
        return "cannot fill in the middle"
    try:
        return f"fills in the middle, marks of {generator.infilling().name}"
    except InputFault as fault:
        return f"no: {fault.what}"


def _timed(number: int) -> Request:
    prompt = Prompt(blocks=(Block(kind=BlockKind.INFILE, text=_PROMPT.format(number=number)),))
    return Request(prompt=prompt, language=Language.PYTHON, sampling=Sampling(max_tokens=_TOKENS))
