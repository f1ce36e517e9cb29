"""The tokens that budgets of strategies are counted in: of `ctxcode-1`, or of p50k_base where a run has its file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxbench.bench import code_tokens

if TYPE_CHECKING:
    from ctxbench.bench.code_tokens import P50kBase

_p50k: P50kBase | None = None
"""Of this process: strategies run in processes of one run, which set it before the first of them."""


def count_in(tokenizer: P50kBase | None) -> None:
    """Have all budgets of this process counted by a tokenizer; None for `ctxcode-1`."""
    global _p50k  # noqa: PLW0603 - strategies count by plain functions
    _p50k = tokenizer


def count(text: str) -> int:
    """Return the number of tokens of a text."""
    return code_tokens.count(text) if _p50k is None else _p50k.count(text)


def pieces(text: str) -> list[str]:
    """Return the tokens of a text, in order; joined, they are the text."""
    return code_tokens.pieces(text) if _p50k is None else _p50k.pieces(text)
