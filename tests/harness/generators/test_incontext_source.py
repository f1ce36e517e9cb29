from hypothesis import given, settings
from hypothesis import strategies as st

from ctxbench.bench import languages
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA as JAVA_LANGUAGE
from ctxbench.bench.languages.python import PYTHON as PYTHON_LANGUAGE
from ctxbench.harness.generators.incontext.lexer import join
from ctxbench.harness.generators.incontext.source import PromptRegion, read
from ctxbench.strategies.api import Block, BlockKind, Context, Prompt, Snippet
from ctxbench.strategies.layout import render
from tests.helpers.incontext import prompt, similar
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


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(BlockKind), st.text(max_size=200)), max_size=4),
    st.sampled_from(languages.every()),
)
def test_any_prompt_is_read(blocks: list[tuple[BlockKind, str]], language: Language) -> None:
    read(Prompt(blocks=tuple(Block(kind=kind, text=text) for kind, text in blocks)), language)
