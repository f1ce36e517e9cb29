"""What a text costs after a prompt, from the log-probabilities of an echoed prompt. Pure.

The prompt and the text are sent as one; the server repeats its tokens with their log-probabilities. Those that reach
into the text are added up. A token that begins in the prompt (a blank before the text's first word, say) is counted
whole: prompts of one sample end alike, so that this cancels out in a context gain.
"""

from __future__ import annotations

import math
from typing import Any

from bench.errors import InputFault
from harness.generators.openai.settings import Settings
from harness.generators.openai.wire import Body, Garbled, dig, with_extra


def ends(prompt: str, text: str) -> tuple[str, str]:
    """Return a pair as it is priced: with the text's line end, and after something at least.

    No model gives the first token of all a probability; a prompt that is empty is priced as a line end.
    """
    return prompt or "\n", f"{text}\n"


def body(prompt: str, text: str, settings: Settings) -> Body:
    """Return what asks for the prices; one token is made, which some servers insist on."""
    made = {"model": settings.model, "prompt": prompt + text, "max_tokens": 1, "temperature": 0}
    return {**with_extra(made, settings), "max_tokens": 1, "echo": True, "logprobs": 1}


def bits(reply: Any, prompt: str, text: str, settings: Settings) -> float:
    """Return minus log2 of the probability of the text, as a reply says it.

    Raises:
        Garbled: if the reply's parts do not fit each other.
        InputFault: if the server does not give such prices.
    """
    given = dig(reply, "choices", 0, "logprobs")
    tokens, costs, offsets = (dig(given, key) for key in ("tokens", "token_logprobs", "text_offset"))
    read = dig(reply, "usage", "prompt_tokens")
    if not (isinstance(tokens, list) and isinstance(costs, list) and isinstance(offsets, list)) or not tokens:
        raise _lacking("the reply has no log-probabilities", settings)
    if not len(tokens) == len(costs) == len(offsets) or type(read) is not int or read < 1:
        raise Garbled("the log-probabilities do not fit the tokens")
    read = min(read, len(tokens))
    if not str(dig(reply, "choices", 0, "text")).startswith(prompt[:1]) or len(tokens) < 2:
        raise _lacking("the reply does not repeat the prompt", settings)
    start = _start(offsets, tokens, read, prompt, text)
    found = [cost for cost, end in zip(costs[:read], [*offsets[1:read], math.inf], strict=True) if end > start]
    if not all(isinstance(cost, int | float) and math.isfinite(cost) for cost in found):
        raise Garbled("a token of the text has no log-probability")
    return max(0.0, -math.fsum(found) / math.log(2))


def _start(offsets: list[int], tokens: list[str], read: int, prompt: str, text: str) -> int:
    """Return where the text begins, in the server's own count of characters.

    That count may be ahead of ours in the prompt: by a token that marks the beginning, or where a character is made
    of several tokens. So it is counted from the end, unless both agree.
    """
    end = offsets[read] if read < len(offsets) else offsets[read - 1] + len(tokens[read - 1])
    return len(prompt) if end == len(prompt) + len(text) else end - len(text)


def _lacking(what: str, settings: Settings) -> InputFault:
    cure = "leave bits=true out, or use a server that gives echo with logprobs (vLLM, llama.cpp)"
    return InputFault(what, where=settings.where, cure=cure)
