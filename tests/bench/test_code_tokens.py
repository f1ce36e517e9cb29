import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.bench.code_tokens import NAME, count, tokenize


@given(st.text(alphabet=st.characters(), max_size=200))
def test_the_tokens_joined_are_the_text(text: str) -> None:
    assert "".join(tokenize(text)) == text
    assert count(text) == len(tokenize(text))


@given(st.text(max_size=60).filter(lambda text: "\n" not in text), st.text(max_size=60))
def test_lines_can_be_counted_one_by_one(first: str, second: str) -> None:
    """A budget counts line by line; a token that spanned two lines would make that another number."""
    lines = [first, *second.split("\n")]
    whole = [piece for piece in tokenize("\n".join(lines)) if piece.strip("\n")]
    assert whole == [piece for line in lines for piece in tokenize(line)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("def apply_tax(self):", ["def", " apply", "_", "tax", "(", "self", "):"]),
        ("HTTPServer", ["HTTP", "Server"]),
        ("getUserName", ["get", "User", "Name"]),
        ("internationalisation", ["internat", "ionalisa", "tion"]),
        ("        return x", ["       ", " return", " x"]),
        ("a\n\n\nb", ["a", "\n\n\n", "b"]),
        ("\tx = 12345", ["\t", "x", " =", " 123", "45"]),
        ("__init__", ["__", "init", "__"]),
        ("# " + "-" * 50, ["#", " " + "-" * 32, "-" * 18]),
        ("a ==== b", ["a", " ====", " b"]),
        ("x...", ["x", "..."]),
        ("naïve", ["na", "ï", "ve"]),
        ("MAX_BYTES", ["MAX", "_", "BYTE", "S"]),
    ],
)
def test_examples(text: str, expected: list[str]) -> None:
    assert tokenize(text) == expected


def test_the_name_is_fixed_and_a_megabyte_takes_less_than_a_second() -> None:
    assert NAME == "ctxcode-1"
    text = "    total = price_rules.apply_tax(cart.total, rate=0.25)  # with tax\n" * 15_000
    began = time.process_time()
    assert count(text) == 15_000 * count(text[:69])
    assert time.process_time() - began < 1
