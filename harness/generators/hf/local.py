"""`Local`: the base of generators that read a model's own files, with its window and its count of a prompt."""

from __future__ import annotations

import functools
import threading
from pathlib import Path

from ctxbench.harness.generators.base import Request, TooLong
from ctxbench.harness.generators.fim import Template
from ctxbench.harness.generators.hf import files
from ctxbench.harness.generators.hf.settings import LocalModel
from ctxbench.harness.generators.hf.tokens import Tokens


class Local:
    """A model whose tokenizer is read here, wherever its answers are computed."""

    def __init__(self, model: LocalModel) -> None:
        """Prepare; files are found when they are first needed."""
        self._model = model
        self._opening = threading.Lock()
        self._words: Tokens | None = None

    @functools.cached_property
    def window(self) -> int:
        """Tokens of prompt and answer that the model takes; 0 if unknown."""
        return self._model.window or files.window(self._folder)

    def count(self, request: Request) -> int:
        """Return how many tokens a request's prompt has for this model, template and marks included.

        Any thread may ask while others have answers made.
        """
        return len(self._tokens.prompt(request))

    def infilling(self) -> Template:
        """Return the template by which the model sees the text after the cursor.

        Raises:
            InputFault: if its vocabulary has no marks for that, or it is asked as a chat model.
        """
        return self._tokens.template

    @functools.cached_property
    def _folder(self) -> Path:
        return files.find(self._model)

    @property
    def _tokens(self) -> Tokens:
        with self._opening:
            if self._words is None:
                self._words = Tokens(self._folder, self._model)
            return self._words

    def _too_long(self, tokens: int) -> TooLong:
        return TooLong(
            f"the prompt has {tokens} tokens, the model's window {self.window}",
            where=self._model.where,
            cure="give the strategy a smaller window or limit, or take a model with a longer one",
        )
