"""`Summaries`: sentences about APIs by the run's own model, through its batcher, stored like every answer."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from ctxbench.bench import code_tokens
from ctxbench.bench.apis import plain, prompts
from ctxbench.bench.languages.base import Language
from ctxbench.bench.retrieval.types import Unit
from ctxbench.harness.accounting import price
from ctxbench.harness.batcher import Answer, Batcher
from ctxbench.harness.generators.base import Request, Sampling
from ctxbench.strategies.api import Block, BlockKind, Prompt

ROLE = "summary"
_LONGEST = 3000
"""Tokens of a function that a model is shown; a longer one is cut at the end of a line."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Cost of the summaries that were generated or looked up so far; equal ones count once."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    price: float | None = None
    """US dollars at the rate of this run; None if the rate is unknown or no model was asked."""

    @property
    def remark(self) -> str:
        """One line for a run's record; empty if no model was asked."""
        if not self.calls:
            return ""
        price = "" if self.price is None else f", US$ {self.price:.2g}"
        return f"offline: {self.calls} API summaries, {self.tokens_in} tokens in, {self.tokens_out} out{price}"


class Summaries:
    """A `bench.retrieval.types.Summarise` that asks a generator which follows instructions; else the plain one.

    Its requests belong to no sample: `spent` counts them apart (InferCom paper: the API base is made offline).
    May be called by several threads, those of samples among them.
    """

    def __init__(self, batcher: Batcher, *, template: prompts.Template = "release") -> None:
        """Ask through a batcher; nothing is asked before the first call.

        Args:
            batcher: of the run's generator.
            template: see `bench.apis.prompts.summary_prompt`.
        """
        self._batcher, self._template = batcher, template
        self._lock = threading.Lock()
        self._costs: dict[str, tuple[int, int, float | None]] = {}

    @property
    def plain(self) -> bool:
        """Whether the generator follows no instructions, so that summaries are `bench.apis.plain`'s."""
        return not self._batcher.generator.instructs

    @property
    def spent(self) -> Spent:
        """The cost of all requests so far, including answers stored by earlier runs."""
        with self._lock:
            costs = list(self._costs.values())
        prices = [price for *_, price in costs if price is not None]
        return Spent(
            len(costs),
            sum(cost[0] for cost in costs),
            sum(cost[1] for cost in costs),
            math.fsum(prices) if prices else None,
        )

    def __call__(self, language: Language, units: Sequence[Unit]) -> list[str]:
        """Return one sentence a unit; the plain one where the model's is empty.

        Raises:
            MachineFault: if the model was lost.
        """
        if self.plain or not units:
            return plain.summarise(language, units)
        answers = self._batcher.ask([self._request(unit.code, language) for unit in units])
        self._note(answers)
        sentences = [prompts.post_process(answer.response.text) for answer in answers]
        return [text or plain.summarise(language, [unit])[0] for text, unit in zip(sentences, units, strict=True)]

    def _request(self, code: str, language: Language) -> Request:
        text = prompts.summary_prompt(_cut(code), language, template=self._template)
        prompt = Prompt(blocks=(Block(kind=BlockKind.TEXT, text=text),))
        return Request(prompt=prompt, language=language, sampling=Sampling(max_tokens=prompts.MAX_TOKENS))

    def _note(self, answers: Sequence[Answer]) -> None:
        rate = self._batcher.rate
        costs = {
            answer.id: (answer.response.tokens_in, answer.response.tokens_out, price(answer.response, rate))
            for answer in answers
        }
        with self._lock:
            self._costs.update(costs)


def _cut(code: str) -> str:
    tokens = code_tokens.pieces(code)
    return code if len(tokens) <= _LONGEST else "".join(tokens[:_LONGEST]).rpartition("\n")[0]
