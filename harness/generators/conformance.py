"""Checks of a generator's declared capabilities with short prompts, for `ctxbench generator check`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from ctxbench.bench.errors import CtxbenchError, InputFault, MachineFault
from ctxbench.bench.languages.python import PYTHON
from ctxbench.harness.generators import fim
from ctxbench.harness.generators.base import CutShort, Generator, Request, Response, Sampling, TooLong, accounted
from ctxbench.strategies.api import Block, BlockKind, Prompt
from ctxbench.strategies.chat import Chat, Message, Role, Tool, ToolParameter

_CODE = "def area(width, height):\n    return width * height\n\n\ndef volume(width, height, depth):\n    return "
_ANSWER = "area(width, height) * depth"
_AFTER = Block(kind=BlockKind.AFTER, text="\n\n\nprint(volume(1, 2, 3))\n")
_INSTRUCTION = "Answer with one word: what is Python, a language or a planet?\n"
_CHAT = Chat(
    messages=(Message(role=Role.USER, text="What does the file shop.py define? Read it."),),
    tools=(Tool(name="read", help="Read a file.", parameters=(ToolParameter(name="path", help="Its path."),)),),
)
_PIECE = "def area(width, height):\n    return width * height\n\n\n"
_FEW, _SOME, _MANY = 2, 40, 560
"""Repetitions of `_PIECE`. `_SOME` gives under 1,000 tokens, which every server reads; `_MANY` gives about 8,000."""
_LEEWAY = 0.02
"""Allowed relative difference of a token count, because tokens may merge between repetitions."""
_AROUND = 8
"""Maximum tokens that a server may add around a text to continue, such as a start token."""
_MOST_THREADS = 64
_NEAR = 0.05
"""Allowed relative difference between two measurements of one text in 16-bit numbers."""
_TOOL_TOKENS = 256


@dataclass(frozen=True, slots=True)
class GeneratorFinding:
    """The outcome of one check of a generator."""

    name: str
    passed: bool
    detail: str


def check(generator: Generator) -> list[GeneratorFinding]:
    """Check a generator's declared capabilities. A fault ends the checks and is reported as a failed check."""
    findings: list[GeneratorFinding] = []
    try:
        for name, passed, detail in _checks(generator):
            findings.append(GeneratorFinding(name, passed, detail))
    except CtxbenchError as fault:
        findings.append(GeneratorFinding("answers without a fault", False, str(fault)))
    return findings


def abilities(generator: Generator) -> Iterator[tuple[str, str]]:
    """Yield the names and descriptions of what a generator can do, without a request to the model.

    Raises:
        InputFault: if the model's files cannot be read.
    """
    able = generator.capabilities
    yield "instructions", "follows instructions" if able.instructs else "continues text; ctxbench asks it for no plans"
    yield "tools", "calls tools itself" if able.tools else "reads and writes tool calls as text"
    copies = "not measured; the built-in copy model measures copyable bits"
    yield "context gain", "measures texts itself" if able.log_likelihoods else copies
    window = generator.window if able.counts else 0
    yield "window", f"{window:,} tokens; prompts are cut to it" if window else "unknown; prompts are sent uncut"
    yield "--fim", _middle(generator)
    yield "at once", f"{able.batch_size} requests{', each answered separately' if able.concurrent else ' in a batch'}"


def _checks(generator: Generator) -> Iterator[tuple[str, bool, str]]:
    able = generator.capabilities
    yield (
        "has a version",
        bool(generator.version),
        generator.version or "empty: answers of another version could be reused",
    )
    yield "has a batch size", able.batch_size >= 1, str(able.batch_size)
    requests = [_request(_CODE), _request("x = 1\ny = ")]
    first = _answers(generator, requests)
    yield "answers every request", len(first) == 2, f"{len(first)} answers to 2 requests"
    yield "answers are complete", all(map(accounted, first)), "finish, tokens and seconds"
    again = _answers(generator, requests)
    equal = [answer.text for answer in first] == [answer.text for answer in again]
    yield "greedy answers are equal", equal, repr(first[0].text[:60]) if first else ""
    [short] = _answers(generator, [_request(_CODE, max_tokens=1)])
    most = 1 + able.thinking
    yield "keeps to the token limit", short.tokens_out <= most, f"{short.tokens_out} tokens of at most {most}"
    if able.service:
        yield from reading_checks(generator)
        yield "names the model", True, ", ".join(generator.served) or "only the spec"
    if able.concurrent:
        yield _side_by_side(generator)
    if able.instructs:
        prompt = Prompt(blocks=(Block(kind=BlockKind.TEXT, text=_INSTRUCTION),))
        answers = _answers(generator, [replace(requests[0], prompt=prompt)])
        yield "accepts an instruction", len(answers) == 1, " ".join(repr(answer.text[:60]) for answer in answers)
    if able.tools:
        chat = replace(requests[0], prompt=_prompt(_CHAT.text), chat=_CHAT, sampling=Sampling(max_tokens=_TOOL_TOKENS))
        answers = _answers(generator, [chat])
        yield "accepts a chat with tools", len(answers) == 1, " ".join(repr(answer.text[:60]) for answer in answers)
    if able.counts:
        yield _counting(generator, requests, first)
    if able.fills:
        yield _filling(generator)
    if able.log_likelihoods:
        yield from _measuring(generator.bits)
        yield _measuring_beside(generator, requests[0], first[0].text)


def _answers(generator: Generator, requests: Sequence[Request]) -> list[Response]:
    answers = generator.generate(requests)
    for answer in answers:
        if isinstance(answer, MachineFault):
            raise answer
    return [answer for answer in answers if isinstance(answer, Response)]


def _side_by_side(generator: Generator) -> tuple[str, bool, str]:
    width = min(generator.capabilities.batch_size, _MOST_THREADS)
    requests = [_request(f"{_CODE}{number} * ") for number in range(width)]
    with ThreadPoolExecutor(width) as threads:
        answers = list(threads.map(lambda request: _answers(generator, [request]), requests))
    return "answers side by side", all(map(len, answers)), f"{width} calls at once"


def _counting(generator: Generator, requests: Sequence[Request], answers: Sequence[Response]) -> tuple[str, bool, str]:
    counts, window = [generator.count(request) for request in requests], generator.window
    sound = window >= 0 and all(count >= answer.tokens_in for count, answer in zip(counts, answers, strict=False))
    read = ", ".join(str(answer.tokens_in) for answer in answers)
    return "counts tokens", sound, f"{', '.join(map(str, counts))} counted, {read} read; window {window:,}"


def _filling(generator: Generator) -> tuple[str, bool, str]:
    words = _middle(generator)
    try:
        generator.infilling()
    except InputFault:
        return "fills in the middle", True, words
    marked = fim.filled(generator, _request(_CODE, fim=True), _AFTER)
    answered = [accounted(answer) for answer in _answers(generator, [marked])]
    return "fills in the middle", answered == [True], words


def _middle(generator: Generator) -> str:
    if not generator.capabilities.fills:
        return "cannot fill in the middle"
    try:
        return f"fills in the middle, with the tokens of {generator.infilling().name}"
    except InputFault as fault:
        return f"no: {fault.what}"


def _measuring(bits: Callable[..., object]) -> Iterator[tuple[str, bool, str]]:
    costs = bits([_prompt(_CODE)] * 2, [_ANSWER, "unlikely ** ~Ångström"], PYTHON)
    values = [float(cost) for cost in costs] if isinstance(costs, list | tuple) else []
    sound = len(values) == 2 and all(math.isfinite(value) and value > 0 for value in values)
    yield "measures texts", sound, ", ".join(f"{value:.1f} bits" for value in values)
    yield "a likely text costs less", sound and values[0] < values[1], "an answer from the prompt, compared with noise"


def _measuring_beside(generator: Generator, request: Request, answer: str) -> tuple[str, bool, str]:
    name = "measures a text beside its answer"
    [response] = _answers(generator, [replace(request, reference=_ANSWER)])
    if response.bits is None:
        return name, response.text == answer, "no; texts are measured afterwards"
    [alone] = generator.bits([request.prompt], [_ANSWER], PYTHON)
    sound = response.text == answer and math.isclose(response.bits, alone, rel_tol=_NEAR)
    return name, sound, f"{response.bits:.1f} bits, {alone:.1f} alone"


def reading_checks(generator: Generator) -> list[tuple[str, bool, str]]:
    """Check that a service reads the whole prompt. Return the name, success and description of each check.

    Some services silently truncate long prompts (Ollama at 4,096 tokens by default), or treat a text to continue as a
    chat message. Both change scores, and both show in the reported number of tokens for a repeated text. The check
    sends three requests, of at most about 8,000 tokens. A refusal of the longest request is not a failure.

    Raises:
        MachineFault: if a request failed for a reason other than its length.
    """
    first, some = _repeated(generator, _FEW), _repeated(generator, _SOME)
    try:
        many, refused = _repeated(generator, _MANY).tokens_in, ""
    except CutShort as fault:
        return [("reads prompts whole", False, fault.what)]
    except TooLong as fault:
        many, refused = 0, fault.what
    if not (first.counted and some.counted):
        return [("reads prompts whole", True, "unknown: the server does not report token counts")]
    per_repetition = (some.tokens_in - first.tokens_in) / (_SOME - _FEW)
    around = max(0, round(first.tokens_in - _FEW * per_repetition))
    expected = round(first.tokens_in + (_MANY - _FEW) * per_repetition)
    whole = not many or many >= expected * (1 - _LEEWAY)
    words = refused or (
        f"{many:,} tokens" if whole else f"the model read {many:,} of {expected:,} tokens, without an error"
    )
    checks = [("reads prompts whole", whole, words)]
    if not generator.capabilities.instructs:
        words = f"tokens around a prompt: {around}" + ("" if around <= _AROUND else ", as around a chat's message")
        echoed = first.text.startswith(_PIECE)
        words = "the model repeats the prompt before its answer" if echoed else words
        checks.append(("continues the text", around <= _AROUND and not echoed, words))
    return checks


def _repeated(generator: Generator, times: int) -> Response:
    # ctxbench adds nothing around a block of plain text.
    prompt = Prompt(blocks=(Block(kind=BlockKind.TEXT, text=_PIECE * times),))
    [response] = _answers(generator, [replace(_request("", max_tokens=16), prompt=prompt)])
    return response


def _prompt(text: str) -> Prompt:
    return Prompt(blocks=(Block(kind=BlockKind.INFILE, text=text),))


def _request(text: str, max_tokens: int = 32, *, fim: bool = False) -> Request:
    return Request(prompt=_prompt(text), language=PYTHON, sampling=Sampling(max_tokens=max_tokens, fim=fim))
