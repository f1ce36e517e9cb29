"""`Counter`: count prompts as a served model does, with a copy of its tokenizer on this machine."""

from __future__ import annotations

import functools
import importlib
import re
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ctxbench.bench.code_tokens import utf8
from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import sha256_file
from ctxbench.bench.retrieval.encoders import weights
from ctxbench.harness.generators.base import Request
from ctxbench.harness.generators.openai import wire
from ctxbench.harness.generators.openai.settings import OpenAISettings
from ctxbench.harness.generators.tokens import priced_pieces

FILE = "tokenizer.json"
TEMPLATE = 128
"""Tokens kept free for the text that a chat template puts around a message: published ones take 10 to 80."""
_SLACK = 16
"""Tokens that a server may read less than a text has: blanks that its template takes off. As many more may a text have
that was cut within a word."""
_PIECE = re.compile(
    r"<[|\uff5c]?_*[^\W_][\w\u2581 -]*[|\uff5c]?>"
    r"|[A-Za-z](?:[A-Za-z]|[^\x00-\x7f])*(?:'(?:[sdmt]|ll|ve|re))?|[0-9](?:[0-9]|[^\x00-\x7f])*|\n\s*",
    re.I,
)
"""Pieces that never share a token with their neighbours: a mark, a word, a number, the end of a line. The published
rules of GPT-2, GPT-4, GPT-4o, Llama 3, Qwen and DeepSeek split there before anything is joined."""
_SURE = 0.9
"""For tokenizers whose rules are not published."""
_CURE = f"give the folder with the model's {FILE}, as it is published beside the weights"


def least(text: str) -> int:
    """Return the least number of tokens of a text under any tokenizer; code has nearly twice as many."""
    return int(len(_PIECE.findall(text.strip())) * _SURE)


class Counter:
    """The tokenizer of one served model. Safe to use from many threads; it is read with the first count."""

    def __init__(self, path: str, settings: OpenAISettings) -> None:
        """Check that the file is there.

        Args:
            path: the file, or the folder that holds it.
            settings: the model.

        Raises:
            InputFault: if there is none, nothing here can read it, or no window is given to count for.
        """
        if not settings.window:
            what, cure = "tokenizer= counts for a window that is not given", "give window=TOKENS"
            raise InputFault(what, where="openai", cure=cure)
        weights.need(("tokenizers",), where=settings.where, cure="pip install 'ctxbench[tokenizers]'")
        file = Path(path).expanduser()
        self._file = file / FILE if file.is_dir() else file
        self._settings = settings
        if not self._file.is_file():
            raise InputFault(f"{path} holds no tokenizer", where=settings.where, cure=_CURE)

    @functools.cached_property
    def digest(self) -> str:
        """Eight hexadecimal digits of the file's digest, as another tokenizer cuts prompts elsewhere."""
        return sha256_file(self._file)[:8]

    def count(self, request: Request) -> int:
        """Return the tokens of a request's prompt, its mark of a beginning and room for a chat template included."""
        encoding = self._tokenizer.encode(utf8(wire.message(request, self._settings)), add_special_tokens=True)
        return len(encoding.ids) + (TEMPLATE if self._settings.chat else 0)

    def least(self, text: str) -> int:
        """Return how many tokens of a text the model must read; templates take blanks off its ends."""
        return max(0, len(self._tokenizer.encode(utf8(text), add_special_tokens=False).ids) - _SLACK)

    def pieces(self, prompt: str, text: str) -> Iterator[tuple[str, str]]:
        """Yield what the server reads to price a text: beginnings and what is priced after each, see `priced_pieces`.

        Prompt and text stay as they are where they fit the window.
        """
        whole = prompt + text
        encoding = self._tokenizer.encode(utf8(whole), add_special_tokens=False)
        # The server puts its marks before them, and makes one token.
        room = self._settings.window - self._tokenizer.num_special_tokens_to_add(False) - 1
        tokens = len(encoding.ids)
        if tokens <= max(2, room):
            yield prompt, text
            return
        ends = [0, *(end for _, end in encoding.offsets)]
        ends[-1] = len(whole)
        priced = min(max(1, tokens + 1 - bisect_right(ends, len(prompt))), tokens - 1)
        begin = len(prompt)
        for numbers, _ in priced_pieces(range(tokens), priced, max(2, room - _SLACK)):
            end = ends[numbers[-1] + 1]
            yield whole[ends[numbers[0]] : begin], whole[begin:end]
            begin = end

    @functools.cached_property
    def _tokenizer(self) -> Any:
        # It has no types, and a finished run does not need it.
        module: Any = importlib.import_module("tokenizers")
        try:
            tokenizer = module.Tokenizer.from_file(str(self._file))
        except Exception as error:
            # The library raises nothing narrower.
            reason = str(error).partition("\n")[0]
            raise InputFault(
                f"{self._file} cannot be read ({reason})", where=self._settings.where, cure=_CURE
            ) from error
        # The file may say to cut and to fill up, as for training.
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer
