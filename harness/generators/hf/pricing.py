"""Tokens that price a text after a prompt, and the pieces in which a model reads them. Pure.

Prompt and text are read as one. The text's tokens begin with the first that the prompt alone does not have: a token
that begins in the prompt (a blank before the text's first word, say) is counted whole. Prompts of one sample end
alike, so that this cancels out in a context gain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence


def tokens(prompt: str, text: str, read: Callable[[str], list[int]], begin: int) -> tuple[list[int], int]:
    """Return the tokens of prompt, text and a line end, and how many of them, from the last, are the text's.

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


def pieces(ids: Sequence[int], priced: int, window: int) -> Iterator[tuple[list[int], int]]:
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
