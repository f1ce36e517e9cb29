"""A model for strategies in tests: a function answers."""

from collections.abc import Callable

from ctxbench.strategies.api import Prompt
from ctxbench.strategies.chat import Chat


class Model:
    def __init__(
        self, answer: Callable[[Prompt, str, int], str] = lambda *_: "draft", *, instructs: bool = False
    ) -> None:
        self._answer, self.instructs, self.summarises = answer, instructs, instructs

    def __call__(self, prompt: Prompt | Chat, *, role: str = "draft", max_tokens: int = 128) -> str:
        assert isinstance(prompt, Prompt)
        return self._answer(prompt, role, max_tokens)
