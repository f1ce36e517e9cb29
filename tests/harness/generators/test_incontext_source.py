import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxbench.bench import languages
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA as JAVA_LANGUAGE
from ctxbench.bench.languages.python import PYTHON as PYTHON_LANGUAGE
from ctxbench.harness.generators.incontext.lexer import join, lex
from ctxbench.harness.generators.incontext.source import PromptRegion, call_forms, clean, read
from ctxbench.strategies.api import Block, BlockKind, Context, Prompt, Snippet
from ctxbench.strategies.layout import render
from tests.helpers.incontext import api, prompt, similar
from tests.helpers.samples import make_query

PYTHON, JAVA = PYTHON_LANGUAGE, JAVA_LANGUAGE


def texts(shown: Prompt, region: PromptRegion, language: Language = PYTHON) -> list[str]:
    return [join(stretch.tokens) for stretch in read(shown, language).stretches if stretch.region is region]


def test_retrieved_windows_lose_marks_headers_rules_and_paths() -> None:
    shown = prompt("x = ", similar(("shop/a.py", "def f():\n    return 1"), ("shop/b.py", "y = f()")))
    assert texts(shown, PromptRegion.SIMILAR) == ["def f():\n    return 1\n", "y = f()\n"]
    assert texts(shown, PromptRegion.INFILE) == ["x ="]
    assert read(shown, PYTHON).space == " "


def test_the_layout_of_the_line_strategies_is_read() -> None:
    snippets = (Snippet(path="a/b.py", text="def f(x):\n\n    return x", score=1.0), Snippet(path="c.py", text="y = 2"))
    shown = render(make_query(prefix="import os\n\nz = "), Context(snippets))
    assert texts(shown, PromptRegion.SIMILAR) == ["y = 2\n", "def f(x):\n    return x\n"]
    assert texts(shown, PromptRegion.INFILE) == ["import os\nz ="]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('def f():\n    """Doc\n    string."""\n    a = 1\n', 'def f():\n    """\n    a = 1\n'),
        ("a = 1  # why\n\n\n# alone\nb = 2\n", "a = 1\nb = 2\n"),
        ('end of a text.\n    """\n    a = 1\n', "    a = 1\n"),
    ],
)
def test_documentation_and_blank_lines_are_left_out(text: str, left: str) -> None:
    assert join(clean(text, PYTHON, whole=True)) == left


@pytest.mark.parametrize(
    ("language", "text", "forms"),
    [
        (PYTHON, "def apply_tax(amount: float, rate=0.2) -> float", ["apply_tax(amount, rate)\n"]),
        (PYTHON, "class HTTPCart(Base):\n    def __init__(self, host, *, port: int = 1)", ["HTTPCart(host, port)\n"]),
        (PYTHON, "class Cart:\n    \n    def load(self, user_id)", ["cart.load(user_id)\n"]),
        (PYTHON, "def f()", ["f()\n"]),
        (PYTHON, "def broken(a, (b", []),
        (
            JAVA,
            "public class Cart {\n    public Invoice checkout(PaymentCard card, boolean b);\n}",
            ["cart.checkout(card, b);\n"],
        ),
        (JAVA, "class Cart {\n    public Cart(Map<String, Item> items) {", ["new Cart(items);\n"]),
        (JAVA, "return f(a, b);", []),
    ],
)
def test_signatures_offer_calls(language: Language, text: str, forms: list[str]) -> None:
    found = call_forms(lex(text + "\n", language, line_start=True)[0], language)
    assert found[: len(forms)] == forms
    assert bool(found) == bool(forms)


def test_a_long_signature_offers_one_argument_a_line() -> None:
    names = ", ".join(f"argument_number_{n}" for n in range(5))
    shown = prompt("", api("a.py", f"def f({names})"))
    assert texts(shown, PromptRegion.CALL)[1].startswith(
        "f(\n    argument_number_0=argument_number_0,\n    argument_number_1"
    )


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(BlockKind), st.text(max_size=200)), max_size=4),
    st.sampled_from(languages.every()),
)
def test_any_prompt_is_read(blocks: list[tuple[BlockKind, str]], language: Language) -> None:
    read(Prompt(blocks=tuple(Block(kind=kind, text=text) for kind, text in blocks)), language)
