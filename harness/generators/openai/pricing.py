"""Tokens of a served model: prompts counted by a copy of its tokenizer, texts priced by log-probabilities.

To price a text after a prompt the two are sent as one; the server repeats its tokens with their log-probabilities.
Those that reach into the text are added up. A token that begins in the prompt (a blank before the text's first word,
say) is counted whole: prompts of one sample end alike, so that this cancels out in a context gain.
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
from ctxbench.harness.generators.fitting import priced_pieces
from ctxbench.harness.generators.openai import wire
from ctxbench.harness.generators.openai.settings import OpenAISettings
from ctxbench.harness.generators.openai.wire import Body, Garbled, choice, dig, see_whole, with_extra

_LOWEST, _HIGHEST = -1e5, 0.01
"""Range of a log-probability: servers report -9999 for a token left out, and may round a sure one up a little."""
_MARKS = re.compile(rb"[^A-Za-z0-9]")
"""Characters that servers may show differently from the text: blanks, marks, and all outside ASCII."""
_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_ESCAPED = re.compile(rb"\\x([0-9A-Fa-f]{2})")
_SOLID = re.compile(rb"[!-~]")
"""What all servers show alike: ASCII but blanks."""
_BLANK = re.compile(rb"\s")
_BROKEN = "\ufffd".encode()
"""Shown for a part of a character."""
LINE_AHEAD = "#\n"
"""Stands before a prompt if the first token of all reaches into the text; no such token holds more than this line."""


def ends(prompt: str, text: str) -> tuple[str, str]:
    """Return a pair as it is priced: with the text's line end, and after something at least.

    No model gives the first token of all a probability; a prompt that is empty is priced as a line end.
    """
    return prompt or "\n", f"{text}\n"


def body(prompt: str, text: str, settings: OpenAISettings) -> Body:
    """Return what asks for the prices; one token is made, which some servers insist on."""
    fields = {"model": settings.model, "prompt": prompt + text, "max_tokens": 1, "temperature": 0}
    return {**with_extra(fields, settings), "max_tokens": 1, "echo": True, "logprobs": 1}


def bits(reply: Any, text: str, settings: OpenAISettings, *, least: int = 0) -> float | None:
    """Return minus log2 of the probability of the text, as a reply says it; None if it lacks that of the first token.

    That is where the first token of all, which no model gives a probability, reaches into the text.

    Args:
        reply: its JSON data.
        text: the priced text.
        settings: of the server.
        least: the least number of tokens that prompt and text can have.

    Raises:
        Garbled: if the reply's parts do not fit each other.
        CutShort: if the server did not read all of the prompt.
        InputFault: if the server does not give such prices.
    """
    logprobs = dig(choice(reply), "logprobs")
    tokens, costs = dig(logprobs, "tokens"), dig(logprobs, "token_logprobs")
    read = dig(reply, "usage", "prompt_tokens")
    if not (isinstance(tokens, list) and isinstance(costs, list)) or not tokens:
        raise _lacking("the reply has no log-probabilities", settings)
    if len(tokens) != len(costs) or type(read) is not int or not 1 <= read <= MOST_TOKENS:
        raise Garbled("the log-probabilities do not fit the tokens")
    see_whole(reply, read, least, settings)
    if len(tokens) < min(read, 2):
        raise _lacking("the reply does not repeat the prompt", settings)
    shown, end = [_shown(token) for token in tokens], _encoded(text)
    if not b"".join(shown[:read]).endswith(end) and b"".join(shown[: read - 1]).endswith(end):
        # llama-cpp-python counts the token for the beginning, but does not list it.
        read -= 1
    if not settings.whole and not _spell(shown[:read], end):
        # Its count is not to be believed; what it made is one token behind those of the prompt.
        read = len(tokens) - 1
    if not _spell(shown[:read], end):
        raise Garbled("the tokens of the log-probabilities do not spell the text")
    begin = _begin(shown[:read], end)
    if begin == 0 and costs[0] is None:
        return None
    text_costs = costs[begin:read]
    if not all(type(cost) in (int, float) and _LOWEST <= cost <= _HIGHEST for cost in text_costs):
        raise Garbled("a token of the text has no log-probability that can be")
    return max(0.0, -math.fsum(text_costs) / math.log(2))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _shown(token: Any) -> bytes:
    r"""Return the bytes of a token, which SentencePiece shows as ``<0x0A>`` and OpenAI as ``bytes:\xe2\x80``."""
    if not isinstance(token, str):
        return b""
    if byte := _BYTE.fullmatch(token):
        return bytes.fromhex(byte[1])
    data = _encoded(token)
    escaped = data.startswith(b"bytes:") and _ESCAPED.search(data)
    return _ESCAPED.sub(lambda byte: bytes.fromhex(byte[1].decode()), data[len(b"bytes:") :]) if escaped else data


def _spell(tokens: Sequence[bytes], text: bytes) -> bool:
    """Return whether tokens end with a text, as far as all servers show its characters alike."""
    return _MARKS.sub(b"", b"".join(tokens)).endswith(_MARKS.sub(b"", text))


def _begin(tokens: Sequence[bytes], text: bytes) -> int:
    """Return the number of the first token that reaches into the text, which the tokens end with.

    The server's own count of characters (``text_offset``) is no help: it is ahead by a token that marks the beginning
    and by characters that are made of several tokens, and behind where a tokenizer hides blanks.
    """
    joined = b""
    for number in reversed(range(len(tokens))):
        joined = tokens[number] + joined
        if len(joined) >= len(text):
            ahead = len(joined) - len(text)
            return _with_parts(tokens, number, ahead) if joined.endswith(text) else _align(tokens, text)
    return _align(tokens, text)


def _with_parts(tokens: Sequence[bytes], number: int, ahead: int) -> int:
    """Return the first token with a part of a character that vLLM shows with its last part, and before as nothing.

    Args:
        tokens: all of them.
        number: the first that shows something of the text.
        ahead: bytes that it shows before the text.
    """
    if tokens[number][:ahead].isascii() and not tokens[number].isascii():
        while number > 1 and not tokens[number - 1]:
            number -= 1
    return number


def _align(tokens: Sequence[bytes], text: bytes) -> int:
    """Return the same where tokens are shown otherwise than they are: by the characters that always show alike.

    Off by a token at most, of blanks or of characters outside ASCII. If the text begins with the latter, all such that
    the prompt ends with count as well: too many rather than too few.
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
    """Return the first token that may show something of the characters outside ASCII with which the text may begin.

    Args:
        tokens: all of them.
        number: the first with a solid character of the text.
        text: without the blanks at its beginning.
    """
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
    cure = "leave bits=true out, or use a server that gives echo with logprobs (vLLM, SGLang)"
    return InputFault(what, where=settings.where, cure=cure)


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


def least_tokens(text: str) -> int:
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
