"""Counts a served model's tokens with a copy of its tokenizer, and measures texts by the server's log-probabilities.

Prompt and text are sent as one text. The server repeats the tokens with log-probabilities, and those of the text's
tokens are summed. A token that begins in the prompt and ends in the text (such as a blank with the text's first word)
counts as the text's. All prompts of a sample end equally, so this cancels out in a context gain.
"""

from __future__ import annotations

import functools
import importlib
import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ctxbench.bench.code_tokens import utf8
from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import sha256_file
from ctxbench.bench.retrieval.encoders import weights
from ctxbench.harness.generators.base import MOST_TOKENS, Request
from ctxbench.harness.generators.fitting import rolling_windows
from ctxbench.harness.generators.openai import wire
from ctxbench.harness.generators.openai.settings import OpenAISettings
from ctxbench.harness.generators.openai.wire import Body, Garbled, choice, dig, see_whole, with_extra

_LOWEST, _HIGHEST = -1e5, 0.01
"""Range of a log-probability. Servers report -9999 for an omitted token, and may round slightly above 0."""
_MARKS = re.compile(rb"[^A-Za-z0-9]")
"""Characters that servers may display differently from the text: blanks, punctuation, and everything outside ASCII."""
_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_ESCAPED = re.compile(rb"\\x([0-9A-Fa-f]{2})")
_SOLID = re.compile(rb"[!-~]")
"""Characters that all servers display equally: ASCII without blanks."""
_BLANK = re.compile(rb"\s")
_BROKEN = "\ufffd".encode()
LINE_AHEAD = "#\n"
"""Text inserted before a prompt whose first token reaches into the text, so that the prompt has a token of its own."""


def ends(prompt: str, text: str) -> tuple[str, str]:
    """Return prompt and text as they are measured: the text with a final newline, and a newline for an empty prompt.

    The first token has no probability, so the prompt must not be empty.
    """
    return prompt or "\n", f"{text}\n"


def body(prompt: str, text: str, settings: OpenAISettings) -> Body:
    """Return the body of a request that measures a text. It asks for one new token, because some servers require it."""
    fields = {"model": settings.model, "prompt": prompt + text, "max_tokens": 1, "temperature": 0}
    return {**with_extra(fields, settings), "max_tokens": 1, "echo": True, "logprobs": 1}


def bits(reply: Any, text: str, settings: OpenAISettings, *, least: int = 0) -> float | None:
    """Return minus log2 of the probability of a text, from the reply to a request that `body` built.

    Returns:
        The bits, or None if the reply's first token has no probability and reaches into the text.

    Raises:
        Garbled: if the parts of the reply are inconsistent.
        CutShort: if the server read fewer tokens than `least`, the minimum for prompt and text, or cut the prompt.
        InputFault: if the server does not return log-probabilities of the prompt.
    """
    logprobs = dig(choice(reply), "logprobs")
    tokens, costs = dig(logprobs, "tokens"), dig(logprobs, "token_logprobs")
    read = dig(reply, "usage", "prompt_tokens")
    if not (isinstance(tokens, list) and isinstance(costs, list)) or not tokens:
        raise _lacking("the reply has no log-probabilities", settings)
    if len(tokens) != len(costs) or type(read) is not int or not 1 <= read <= MOST_TOKENS:
        raise Garbled("the reply's log-probabilities do not match its tokens")
    see_whole(reply, read, least, settings)
    if len(tokens) < min(read, 2):
        raise _lacking("the reply does not repeat the prompt", settings)
    shown, end = [_shown(token) for token in tokens], _encoded(text)
    if not b"".join(shown[:read]).endswith(end) and b"".join(shown[: read - 1]).endswith(end):
        # llama-cpp-python counts the start token, but does not list it.
        read -= 1
    if not settings.whole and not _spell(shown[:read], end):
        # Ignore the server's count: the generated token is the one after the prompt's.
        read = len(tokens) - 1
    if not _spell(shown[:read], end):
        raise Garbled("the tokens with log-probabilities do not spell the text to measure")
    begin = _begin(shown[:read], end)
    if begin == 0 and costs[0] is None:
        return None
    text_costs = costs[begin:read]
    if not all(type(cost) in (int, float) and _LOWEST <= cost <= _HIGHEST for cost in text_costs):
        raise Garbled("a token of the text has an impossible log-probability")
    return max(0.0, -math.fsum(text_costs) / math.log(2))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _shown(token: Any) -> bytes:
    r"""Return the bytes of a token. SentencePiece may display them as ``<0x0A>``, OpenAI as ``bytes:\xe2\x80``."""
    if not isinstance(token, str):
        return b""
    if byte := _BYTE.fullmatch(token):
        return bytes.fromhex(byte[1])
    data = _encoded(token)
    escaped = data.startswith(b"bytes:") and _ESCAPED.search(data)
    return _ESCAPED.sub(lambda byte: bytes.fromhex(byte[1].decode()), data[len(b"bytes:") :]) if escaped else data


def _spell(tokens: Sequence[bytes], text: bytes) -> bool:
    return _MARKS.sub(b"", b"".join(tokens)).endswith(_MARKS.sub(b"", text))


def _begin(tokens: Sequence[bytes], text: bytes) -> int:
    """Return the index of the first token that reaches into the text at the end of the tokens.

    The server's own offsets (``text_offset``) are unreliable for start tokens, characters of several tokens, and hidden
    blanks.
    """
    joined = b""
    for number in reversed(range(len(tokens))):
        joined = tokens[number] + joined
        if len(joined) >= len(text):
            ahead = len(joined) - len(text)
            return _with_parts(tokens, number, ahead) if joined.endswith(text) else _align(tokens, text)
    return _align(tokens, text)


def _with_parts(tokens: Sequence[bytes], number: int, ahead: int) -> int:
    if tokens[number][:ahead].isascii() and not tokens[number].isascii():
        while number > 1 and not tokens[number - 1]:
            number -= 1
    return number


def _align(tokens: Sequence[bytes], text: bytes) -> int:
    """Return the result of `_begin` for tokens that the server does not display exactly.

    Only characters that all servers display equally are compared. The result is off by at most one token of blanks or
    of characters outside ASCII. If the text begins with characters outside ASCII, those at the prompt's end count too.
    """
    number, remaining = len(tokens), max(1, _solid(text))
    while number > 0 and remaining > 0:
        number -= 1
        remaining -= _solid(tokens[number]) if _solid(text) else 1
    number = _with_unsure(tokens, number, text.lstrip())
    lead = text[: len(text) - len(text.lstrip())]
    remaining = len(lead) - (len(tokens[number]) - len(tokens[number].lstrip()))
    while (
        number > 1
        and remaining > 0
        and tokens[number - 1].isspace()
        and (b"\n" in lead or b"\n" not in tokens[number - 1])
    ):
        number -= 1
        remaining -= len(tokens[number])
    return number


def _with_unsure(tokens: Sequence[bytes], number: int, text: bytes) -> int:
    unsure, own = (_SOLID.split(part, maxsplit=1)[0] for part in (text, tokens[number]))
    if not unsure:
        return number
    blanks = _blanks(unsure) - _blanks(own)
    while number > 1 and not _solid(tokens[number - 1]) and (blanks > 0 or not tokens[number - 1].isspace()):
        number -= 1
        blanks -= _blanks(tokens[number])
    return number - (number > 1 and tokens[number - 1].endswith(_BROKEN))


def _blanks(text: bytes) -> int:
    return len(_BLANK.findall(text))


def _solid(text: bytes) -> int:
    return len(_SOLID.findall(text))


def _lacking(what: str, settings: OpenAISettings) -> InputFault:
    cure = "leave bits=true out, or use a server that returns echo with logprobs (vLLM, SGLang)"
    return InputFault(what, where=settings.where, cure=cure)


FILE = "tokenizer.json"
TEMPLATE = 128
"""Tokens reserved for the text that a chat template adds around a message. Published templates use 10 to 80."""
_SLACK = 16
"""Allowed difference of a count in tokens: a template strips blanks, and a text truncated inside a word has more
tokens."""
_PIECE = re.compile(
    r"<[|\uff5c]?_*[^\W_][\w\u2581 -]*[|\uff5c]?>"
    r"|[A-Za-z](?:[A-Za-z]|[^\x00-\x7f])*(?:'(?:[sdmt]|ll|ve|re))?|[0-9](?:[0-9]|[^\x00-\x7f])*|\n\s*",
    re.I,
)
"""Parts of a text that never share a token with their neighbours: special tokens, words, numbers, newlines. The
published rules of GPT-2, GPT-4, GPT-4o, Llama 3, Qwen and DeepSeek split texts there first."""
_SURE = 0.9
_CURE = f"set tokenizer= to the {FILE} that was published with the model's weights, or to its folder"


def least_tokens(text: str) -> int:
    """Return a lower bound for a text's tokens under common tokenizers. Code usually has nearly twice as many."""
    return int(len(_PIECE.findall(text.strip())) * _SURE)


class Counter:
    """A thread-safe counter of one served model's tokens. The first count loads the tokenizer."""

    def __init__(self, path: str, settings: OpenAISettings) -> None:
        """Check that `path`, a tokenizer file or its folder, exists, and that the settings have a window."""
        if not settings.window:
            what, cure = "tokenizer= needs a window", "set window=TOKENS"
            raise InputFault(what, where="openai", cure=cure)
        weights.need(("tokenizers",), where=settings.where, cure="pip install 'ctxbench[tokenizers]'")
        file = Path(path).expanduser()
        self._file = file / FILE if file.is_dir() else file
        self._settings = settings
        if not self._file.is_file():
            raise InputFault(f"{path} is neither a file nor a folder with {FILE}", where=settings.where, cure=_CURE)

    @functools.cached_property
    def digest(self) -> str:
        """First eight hexadecimal digits of the tokenizer file's SHA-256, a part of the generator's version."""
        return sha256_file(self._file)[:8]

    def count(self, request: Request) -> int:
        """Return a prompt's number of tokens, with special tokens and, for a chat model, 128 for the chat template."""
        encoding = self._tokenizer.encode(utf8(wire.message(request, self._settings)), add_special_tokens=True)
        return len(encoding.ids) + (TEMPLATE if self._settings.chat else 0)

    def least(self, text: str) -> int:
        """Return the minimum tokens that the server counts in a text, even if its chat template strips blanks."""
        return max(0, len(self._tokenizer.encode(utf8(text), add_special_tokens=False).ids) - _SLACK)

    def windows(self, prompt: str, text: str) -> Iterator[tuple[str, str]]:
        """Yield pairs (prompt, part of the text) that fit the window and together measure the text.

        If prompt and text fit together, this is one pair; see `rolling_windows`.
        """
        whole = prompt + text
        encoding = self._tokenizer.encode(utf8(whole), add_special_tokens=False)
        # The server adds its special tokens, and generates one token.
        room = self._settings.window - self._tokenizer.num_special_tokens_to_add(False) - 1
        tokens = len(encoding.ids)
        if tokens <= max(2, room):
            yield prompt, text
            return
        ends = [0, *(end for _, end in encoding.offsets)]
        ends[-1] = len(whole)
        targets = min(max(1, tokens + 1 - bisect_right(ends, len(prompt))), tokens - 1)
        begin = len(prompt)
        for numbers, _ in rolling_windows(range(tokens), targets, max(2, room - _SLACK)):
            end = ends[numbers[-1] + 1]
            yield whole[ends[numbers[0]] : begin], whole[begin:end]
            begin = end

    @functools.cached_property
    def _tokenizer(self) -> Any:
        # Imported by name: the package has no types, and a finished run does not need it.
        module: Any = importlib.import_module("tokenizers")
        try:
            tokenizer = module.Tokenizer.from_file(str(self._file))
        except Exception as error:
            reason = str(error).partition("\n")[0]
            raise InputFault(
                f"{self._file} cannot be read ({reason})", where=self._settings.where, cure=_CURE
            ) from error
        # The file may set truncation and padding for training.
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer
