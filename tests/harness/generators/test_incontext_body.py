from __future__ import annotations

import ast
import textwrap

import pytest

from bench.types import Kind, Language
from harness.generators.base import Request, Response, Sampling
from harness.generators.incontext.generator import InContext
from strategies.api import Block, BlockKind, Prompt

FILE = '''\
class Cart:
    def add(self, item):
        """Put an item in."""
        self.items.append(item)
        self.total += item.price
        return self.items

    def put(self, item):
        """Put an item in at the front."""
'''
JAVA = """\
class Cart {
    int add(Item item) {
        if (item == null) {
            return 0;
        }
        items.add(item);
        return items.size();
    }

    int put(Item item) {
"""


def ask(text: str, language: Language = Language.PYTHON, **sampling: int) -> Response:
    prompt = Prompt(blocks=(Block(kind=BlockKind.INFILE, text=text),))
    how = Sampling(**{"max_tokens": 1024, **sampling})
    request = Request(prompt=prompt, language=language, kind=Kind.FUNCTION, sampling=how)
    return InContext(workers=1).generate([request])[0]


@pytest.mark.parametrize("start", ["", "        "])
def test_a_python_body_is_indented_parses_and_ends_with_the_function(start: str) -> None:
    response = ask(FILE + start)
    body = start + response.text
    assert response.finish == "stop" and body.strip()
    assert all(not line.strip() or line.startswith(" " * 8) for line in body.split("\n"))
    ast.parse(textwrap.dedent(FILE) + body)
    assert ask(FILE + start).text == response.text


def test_a_java_body_ends_with_the_brace_that_closes_it() -> None:
    response = ask(JAVA, Language.JAVA)
    assert response.finish == "stop"
    assert response.text.rstrip().endswith("}") and response.text.count("}") == response.text.count("{") + 1


def test_a_body_that_does_not_end_is_cut_at_a_whole_line() -> None:
    response = ask(FILE, max_tokens=4)
    assert response.finish == "length"
    assert response.text == "" or response.text.endswith("\n")


@pytest.mark.parametrize("text", ["", "\n", "def", 'def f():\n    """Open', "def f(:\n", "\tdef f():\n\t\t"])
def test_any_prompt_gives_an_answer(text: str) -> None:
    for language in Language:
        assert isinstance(ask(text, language, max_tokens=20).text, str)
