"""`Asking`: the model as a strategy calls it, with a `Prompt` or a text."""

from __future__ import annotations

from ctxbench.strategies.api import Block, BlockKind, Model, Prompt
from ctxbench.strategies.returned import Misshapen, check_prompt


class Asking:
    """A `Generate` of a model that takes prompts only; a text becomes a prompt of one block."""

    def __init__(self, model: Model) -> None:
        """Ask `model`."""
        self._model = model

    @property
    def instructs(self) -> bool:
        """Whether the model follows instructions."""
        return self._model.instructs

    def __call__(self, prompt: Prompt | str, *, role: str = "draft", max_tokens: int = 128) -> str:
        """Return the model's raw answer.

        Args:
            prompt: what it is shown.
            role: what the call is for; a word for the record.
            max_tokens: of the answer, at most.

        Raises:
            TypeError: if an argument is of another type.
        """
        for name, value, kinds, expected in (
            ("prompt", prompt, (Prompt, str), "a Prompt or a str"),
            ("role", role, (str,), "a str"),
            ("max_tokens", max_tokens, (int,), "an int"),
        ):
            if not isinstance(value, kinds) or isinstance(value, bool):
                raise TypeError(f"generate: {name} is {value!r:.60}, and should be {expected}")
        if isinstance(prompt, str):
            prompt = Prompt(blocks=(Block(kind=BlockKind.TEXT, text=prompt),))
        try:
            check_prompt(prompt)
        except Misshapen as error:
            raise TypeError(f"generate: prompt has {error.part}; {error.cure}") from None
        return self._model(prompt, role=role, max_tokens=max_tokens)
