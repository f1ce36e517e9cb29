import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.bench.code_tokens import NAME, count, tokenize


@given(st.text(alphabet=st.characters(), max_size=200))
def test_joined_tokens_equal_the_text(text: str) -> None:
    assert "".join(tokenize(text)) == text
    assert count(text) == len(tokenize(text))


@given(st.text(max_size=60).filter(lambda text: "\n" not in text), st.text(max_size=60))
def test_tokens_can_be_counted_line_by_line(first: str, second: str) -> None:
    """A budget is counted line by line. A token that spans two lines would change the count."""
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
def test_texts_are_split_into_the_expected_tokens(text: str, expected: list[str]) -> None:
    assert tokenize(text) == expected


def test_the_name_is_fixed_and_a_megabyte_is_counted_within_a_second() -> None:
    assert NAME == "ctxcode-1"
    text = "    total = price_rules.apply_tax(cart.total, rate=0.25)  # with tax\n" * 15_000
    began = time.process_time()
    assert count(text) == 15_000 * count(text[:69])
    assert time.process_time() - began < 1
