"""Tokenizers for budgets: `ctxcode-1`, the default, and OpenAI's p50k_base.

Published programs for line completion count with p50k_base, but its vocabulary cannot be shipped: `P50kBase` reads the
user's file. `ctxcode-1` is a rule without a vocabulary. A token is the longest match, from left to right, of

- up to 8 lower-case ASCII letters, with at most one capital before them (``count``, ``Cart``);
- up to 4 capitals that no lower-case letter follows (``HTTP`` in ``HTTPServer``);
- a run of 4 to 32 of the same character of ``- = # * _ ~ . /`` (rules and banners);
- up to 3 digits; up to 3 other printable ASCII characters, except letters and blanks (``):``, ``__``);
- up to 2 characters outside ASCII, except blanks;
- a run of newlines, or a run of other blanks. Before other text, the run's last blank is separate.

Tokens of all kinds but the last include one space before them, if there is one, as in GPT-2.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from ctxbench.bench.errors import InputFault

NAME = "ctxcode-1"
"""The tokenizer's name in run records. A changed rule needs a new name."""

P50K_BASE = "p50k_base"

_TOKEN = re.compile(
    r" ?(?:[A-Z]?[a-z]{1,8}|-{4,32}|={4,32}|\#{4,32}|\*{4,32}|_{4,32}|~{4,32}|\.{4,32}|/{4,32}"
    r"|[!-/:-@\[-`{-~]{1,3}|[0-9]{1,3}|[A-Z]{1,4}(?![a-z])|[A-Z]|[^\s\x00-\x7f]{1,2})"
    r"|\n+|[^\S\n]+(?!\S)|[^\S\n]|[\x00-\x7f]"
)


def tokenize(text: str) -> list[str]:
    """Split a text into its `ctxcode-1` tokens."""
    return _TOKEN.findall(text)


def count(text: str) -> int:
    """Return the number of `ctxcode-1` tokens in a text."""
    return len(_TOKEN.findall(text))


def utf8(text: str) -> str:
    """Replace lone surrogates, which tokenizers reject, with ``?``."""
    return text.encode("utf-8", "replace").decode("utf-8")


_FILE = f"{P50K_BASE}.tiktoken"
_DIGEST = "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069"
_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
"""GPT-2's pattern for splitting a text before byte pairs are merged, as in tiktoken."""
_MOST = 1 << 23
"""Maximum number of bytes to read. OpenAI's file has 836,186."""
_CURE = f"give OpenAI's {_FILE}, or encoders/p50k_base.json from the npm package tiktoken (npm pack tiktoken)"


class P50kBase:
    """OpenAI's tokenizer p50k_base, run by tiktoken."""

    def __init__(self, path: Path) -> None:
        """Read the vocabulary: ``p50k_base.tiktoken``, or ``encoders/p50k_base.json`` of npm's tiktoken.

        Raises:
            InputFault: if the file cannot be read or contains another vocabulary, or tiktoken is not installed.
        """
        from ctxbench.bench.retrieval.encoders import weights  # noqa: PLC0415 - most count by the rule above

        weights.need(("tiktoken",), where="--tokenizer", cure="pip install 'ctxbench[p50k]'")
        ranks = _read(path)
        library: Any = importlib.import_module("tiktoken")
        self._encoding: Any = library.Encoding(P50K_BASE, pat_str=_PATTERN, mergeable_ranks=ranks, special_tokens={})

    def ids(self, text: str) -> list[int]:
        """Return a text's token ids. Special tokens are read as plain text."""
        ids: list[int] = self._encoding.encode_ordinary(utf8(text))
        return ids

    def count(self, text: str) -> int:
        """Return the number of tokens in a text."""
        return len(self.ids(text))

    def tokenize(self, text: str) -> list[str]:
        """Split a text into one string per token.

        A character that spans several tokens is in the last of them.
        """
        _, starts = self._encoding.decode_with_offsets(self.ids(text))
        return [text[start:end] for start, end in pairwise([*starts, len(text)])]


def _read(path: Path) -> dict[bytes, int]:
    try:
        with path.open("rb") as file:
            raw = file.read(_MOST)
        ranks = {base64.b64decode(token, validate=True): rank for token, rank in _entries(raw.decode("ascii"))}
    except OSError as error:
        raise InputFault(f"the file cannot be read ({error.strerror})", where=str(path), cure=_CURE) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputFault("the file does not contain tokens and their ranks", where=str(path), cure=_CURE) from None
    in_order = sorted(ranks.items(), key=lambda entry: entry[1])
    lines = (base64.b64encode(token) + f" {rank}\n".encode("ascii") for token, rank in in_order)
    if hashlib.sha256(b"".join(lines)).hexdigest() != _DIGEST:
        raise InputFault("the vocabulary differs from p50k_base", where=str(path), cure=_CURE)
    return ranks


def _entries(text: str) -> Iterator[tuple[str, int]]:
    if text.startswith("{"):
        for line in json.loads(text)["bpe_ranks"].splitlines():
            _, first, *tokens = line.split()
            yield from zip(tokens, range(int(first), int(first) + len(tokens)), strict=True)
        return
    for line in text.splitlines():
        token, rank = line.split()
        yield token, int(rank)
