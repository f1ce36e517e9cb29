"""Check that a service reads prompts as they are sent: whole, and with nothing added but its endpoint's own marks.

Some services cut a long prompt silently (Ollama does, at 4,096 tokens by default), some take a text to continue for a
message of a chat. Neither fails, and both change every score. The number of tokens that a service reports shows both:
it grows by the same amount with every repetition of a piece of code, and the remainder is what the service added.
"""

from __future__ import annotations

from ctxbench.bench.errors import MachineFault
from ctxbench.bench.languages.python import PYTHON
from ctxbench.harness.generators.base import Generator, Request, Response, Sampling, TooLong
from ctxbench.strategies.api import Block, BlockKind, Prompt

_PIECE = "def area(width, height):\n    return width * height\n\n\n"
_FEW, _SOME, _MANY = 2, 40, 560
"""Repetitions: some are under 1,000 tokens, which every server reads; many are some 8,000."""
_LEEWAY = 0.02
"""Share of a prompt whose tokens may differ where repetitions join."""
_AROUND = 8
"""Tokens that may surround a text to continue: a mark of its beginning, and those that its ends join with."""


class CutShort(MachineFault):
    """Raised for an answer to a prompt that the service silently cut.

    Counts against its health, as `TooLong` does not: a run in which nothing else comes back is given up.
    """


def findings(generator: Generator) -> list[tuple[str, bool, str]]:
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
    request = Request(prompt=prompt, language=PYTHON, sampling=Sampling(max_tokens=16))
    [response] = generator.generate([request])
    if isinstance(response, MachineFault):
        raise response
    return response
