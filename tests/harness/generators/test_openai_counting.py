"""How many tokens a text has at least, against the rules by which published tokenizers split before they join."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as texts

from ctxbench.bench import code_tokens
from ctxbench.harness.generators.openai.pricing import least_tokens

_SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
RULES = {
    "gpt-2": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "llama-3": rf"{_SHORT}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_REST}",
    "qwen-2": rf"{_SHORT}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_REST}",
    "gpt-4o": (
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_SHORT}?|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_SHORT}?"
        rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_REST}"
    ),
    "deepseek": (
        r"""\p{N}{1,3}|[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}\p{N}]?[\p{L}\p{M}]+"""
        rf"| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_REST}"
    ),
}
"""Of each tokenizer the pieces that it never joins; a piece is one token or more."""


def pieces(rule: str) -> Callable[[str], int]:
    split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(RULES[rule]), "isolated")
    return lambda text: len(split.pre_tokenize_str(text))


@pytest.mark.parametrize("rule", RULES)
def test_code_never_has_fewer_tokens(rule: str) -> None:
    root = Path(__file__).parents[3]
    files = [
        *sorted(root.glob("harness/*/*.py"))[:30],
        *sorted(root.glob("tests/**/*.java"))[:20],
        *root.glob("docs/f*.md"),
    ]
    count = pieces(rule)
    assert len(files) > 30
    for file in files:
        text = file.read_text()
        assert least_tokens(text) <= count(text), file
        # And it is worth something: a prompt of which half is gone is noticed.
        assert len(text) < 2000 or least_tokens(text) > 0.4 * code_tokens.count(text), file


@pytest.mark.slow
@given(texts.text(texts.sampled_from("aB9 _.'st<|>é漢→²\n\r\t\u0301/\u00a0-"), max_size=40))
def test_no_text_has_fewer_tokens(text: str) -> None:
    for rule in RULES:
        assert least_tokens(text) <= pieces(rule)(text), rule


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("one two three four five six seven eight nine ten", 9),
        ("x" * 10_000, 0),
        # One mark is one token.
        ("<|fim_prefix|>" * 20, 18),
        ("<｜fim▁begin｜>" * 20, 18),
        # Runs of line ends are one; what is not ASCII may be part of any token.
        ("a\n\n   \n" * 10, 17),
        ("漢字漢字" * 100, 0),
    ],
)
def test_what_is_counted(text: str, tokens: int) -> None:
    assert least_tokens(text) == tokens


@pytest.mark.parametrize("text", ["漢" * 50_000, "<" + "a" * 50_000, "<" * 50_000, "_" * 50_000, "\n" * 50_000])
def test_odd_texts_are_counted_at_once(text: str) -> None:
    """None takes time that grows with the square of its length: each would take minutes."""
    assert least_tokens(text) <= 1
