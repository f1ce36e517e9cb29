"""`Tokens`: a model's tokenizer, from prompts to tokens and from tokens to text; and the tokens that price a text."""

from __future__ import annotations

import functools
import importlib
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxbench.bench.code_tokens import utf8
from ctxbench.bench.errors import InputFault
from ctxbench.bench.retrieval.encoders.recipes import CURE
from ctxbench.harness.generators import fim, lines
from ctxbench.harness.generators.base import Request
from ctxbench.harness.generators.fim import Template
from ctxbench.strategies.api import BlockKind, Prompt

if TYPE_CHECKING:
    from ctxbench.harness.generators.local import LocalModel

_TAIL = 16
"""Tokens of the prompt that are decoded with an answer, because some tokenizers drop a text's first blank."""
_DATE = "26 Jul 2024"
"""The date for templates that show one; a prompt that changes every day could not be compared."""


def transformers_module() -> Any:
    """Import transformers, without its progress bars and advice."""
    # It carries no types, and is absent where no model is run.
    try:
        module: Any = importlib.import_module("transformers")
    except ImportError as error:
        raise InputFault(f"transformers cannot be imported ({error})", where="hf", cure=CURE) from error
    module.utils.logging.disable_progress_bar()
    module.utils.logging.set_verbosity_error()
    return module


class Tokens:
    """The tokenizer of one model."""

    def __init__(self, folder: Path, settings: LocalModel) -> None:
        """Read it; nothing is fetched.

        Raises:
            InputFault: if there is none that transformers can read, or no template for a chat.
        """
        self._settings = settings
        # Prompts are counted while answers are decoded, and the library's tokenizers are not safe for two threads.
        self._lock = threading.Lock()
        module = transformers_module()
        try:
            self._tokenizer: Any = module.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        except Exception as error:
            # The library raises all kinds of exceptions for wrong files.
            raise unreadable(settings, error) from error
        if settings.chat and not self._tokenizer.chat_template:
            raise InputFault("has no chat template", where=settings.where, cure="give chat=off, or another model")

    def prompt(self, request: Request) -> list[int]:
        """Return the tokens that a request's answer goes on after; at least one.

        Raises:
            InputFault: if the chat template does not take a message of the user alone.
        """
        if request.sampling.fim:
            return self._marked(request.prompt)
        if not self._settings.chat:
            return self.plain(request.prompt.text)
        message = {"role": "user", "content": utf8(lines.message(request))}
        try:
            text = self._tokenizer.apply_chat_template(
                [message], tokenize=False, add_generation_prompt=True, date_string=_DATE
            )
        except Exception as error:
            # A template is a program, which may fail in any way.
            raise unreadable(self._settings, error) from error
        return self._ids(text, special=False)

    def plain(self, text: str) -> list[int]:
        """Return the tokens of a text as the model was trained to read it, its mark of a beginning first."""
        return self._ids(utf8(text), special=True) or [self.begin]

    def text(self, before: Sequence[int], generated: Sequence[int]) -> str:
        """Return the text of tokens that were generated after others."""
        tail = list(before[-_TAIL:])
        return self._decoded([*tail, *generated])[len(self._decoded(tail)) :]

    def answer(self, request: Request, before: Sequence[int], generated: Sequence[int]) -> str:
        """Return the text of tokens generated for a request, without a token that ended its middle."""
        last = len(generated) - (bool(generated) and generated[-1] in self.middle_ends(request))
        return self.text(before, generated[:last])

    def middle_ends(self, request: Request) -> frozenset[int]:
        """Return the tokens that end an answer beside the usual ones: none but where it fills in the middle."""
        return self._middle_ends if request.sampling.fim else frozenset()

    @functools.cached_property
    def template(self) -> Template:
        """The template by which the model sees the text after the cursor.

        Raises:
            InputFault: if its vocabulary has no marks for that, or it is asked as a chat model.
        """
        return fim.of_vocabulary(self._vocabulary, chat=self._settings.chat, where=self._settings.where)

    @property
    def begin(self) -> int:
        """The token that stands for the beginning of a text; models without one were trained on ends of texts."""
        begin, end = self._tokenizer.bos_token_id, self._tokenizer.eos_token_id
        return next((token for token in (begin, end) if token is not None), 0)

    @property
    def ends(self) -> frozenset[int]:
        """The tokens that the tokenizer ends texts with."""
        end = self._tokenizer.eos_token_id
        return frozenset() if end is None else frozenset([end])

    @functools.cached_property
    def _vocabulary(self) -> dict[str, int]:
        with self._lock:
            vocabulary: dict[str, int] = self._tokenizer.get_vocab()
        return vocabulary

    @functools.cached_property
    def _middle_ends(self) -> frozenset[int]:
        return frozenset(self._vocabulary[token] for token in fim.ends(self._vocabulary, self.template))

    def _marked(self, prompt: Prompt) -> list[int]:
        """Return the tokens of a prompt with marks: those by their number, the texts between them each as one."""
        ids = self._ids("", special=True)
        for is_mark, blocks in itertools.groupby(prompt.blocks, lambda block: block.kind is BlockKind.MARK):
            if is_mark:
                ids = ids + [self._vocabulary[self.template.token(block.text)] for block in blocks]
            else:
                ids = ids + self._ids(utf8("".join(block.text for block in blocks)), special=False)
        return ids

    def _ids(self, text: str, *, special: bool) -> list[int]:
        with self._lock:
            ids: list[int] = self._tokenizer(text, add_special_tokens=special, verbose=False)["input_ids"]
        return ids

    def _decoded(self, ids: list[int]) -> str:
        with self._lock:
            text: str = self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text


def unreadable(settings: LocalModel, error: Exception) -> InputFault:
    """Return the fault of a model that a library cannot read."""
    reason = str(error).strip().partition("\n")[0]
    return InputFault(
        f"cannot be read ({type(error).__name__}: {reason})",
        where=settings.where,
        cure="give the folder of a model for text generation, with its weights and its tokenizer",
    )


def priced_tokens(prompt: str, text: str, read: Callable[[str], list[int]], begin: int) -> tuple[list[int], int]:
    """Return the tokens of prompt, text and a line end, and how many of them, from the last, are the text's.

    Prompt and text are read as one. The text's tokens begin with the first that the prompt alone does not have: a token
    that begins in the prompt (a blank before the text's first word, say) is counted whole. Prompts of one sample end
    alike, so that this cancels out in a context gain.

    Args:
        prompt: the prompt.
        text: the text to price; its line end is added.
        read: text -> tokens.
        begin: the token that stands for a beginning; put first if the prompt has no tokens of its own.
    """
    whole, before = read(f"{prompt}{text}\n"), read(prompt)
    shared = next(
        (at for at, (ours, theirs) in enumerate(zip(whole, before, strict=False)) if ours != theirs), len(before)
    )
    shared = min(shared, len(whole) - 1)
    return (whole, len(whole) - shared) if shared else ([begin, *whole], len(whole))


def priced_pieces(ids: Sequence[int], priced: int, window: int) -> Iterator[tuple[list[int], int]]:
    """Yield the pieces that a model reads to price a text: tokens, and how many of the last are priced.

    Within the window there is one piece. Else the prompt loses its beginning; a text of more than half the window is
    priced half a window at a time, each after the half before it.

    Args:
        ids: tokens of prompt and text.
        priced: how many of the last are the text's; fewer than all.
        window: tokens that the model reads; 0 for any number.
    """
    most = priced if not window or len(ids) <= window else max(1, window // 2)
    for start in range(len(ids) - priced, len(ids), most):
        end = min(start + most, len(ids))
        yield list(ids[max(0, end - window) if window else 0 : end]), end - start
