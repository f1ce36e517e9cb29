"""Escaping of untrusted text in Markdown, checked with an independent parser of GitHub's Markdown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from ctxbench.bench.escaping import markdown, visible

GITHUB = MarkdownIt("gfm-like", {"html": True, "linkify": True})
HOSTILE = (
    "[click](http://evil.com)",
    "![pixel](https://evil.com/x.png)",
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "<!-- hidden",
    "http://evil.com",
    "see www.evil.com now",
    "mail a@evil.com",
    "javascript:alert(1)",
    "[x]: http://evil.com",
    "[x][y]",
    "a | b | c",
    "`code` **bold** _em_ ~~gone~~ __init__",
    "# heading",
    "- item",
    "+ item",
    "1. item",
    "1) item",
    "- [ ] task",
    "[ ] task",
    "> quote",
    "---",
    "===",
    "&lt;b&gt; &#60;",
    "trailing \\",
    "1.",
    "12)",
    "`a`|http://evil.com",
    "http://a/``b```c",
    "line\nline\n\n# heading",
    "\x1b[31mred\u202e",
    "lc.random_windows(budget=2) 34.7 [31.2, 38.1] -0.5 +1",
)
LINES_OF_TEXT = {"paragraph", "text", "inline", "code_inline", "bullet_list", "list_item", "softbreak", "text_special"}
CELLS_OF_TEXT = {
    "paragraph",
    "text",
    "inline",
    "code_inline",
    "text_special",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
}


def tokens(source: str) -> list[Token]:
    parsed = [inner for token in GITHUB.parse(source) for inner in (token, *(token.children or ()))]
    return [token for place, token in enumerate(parsed) if not _is_bare_domain(parsed, place)]


def _is_bare_domain(parsed: list[Token], place: int) -> bool:
    """Check whether a token is part of a link that this parser, unlike GitHub, sees in texts such as ``1.as``."""
    if parsed[place].info != "auto":
        return False
    text = parsed[place + 1 if parsed[place].type == "link_open" else place - 1].content.lower()
    return "://" not in text and "@" not in text and not text.startswith("www.")


def kinds(source: str) -> set[str]:
    return {token.type.removesuffix("_open").removesuffix("_close") for token in tokens(source)}


def shown(source: str) -> str:
    return "".join(t.content for t in tokens(source) if t.type in ("text", "code_inline", "text_special"))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text_in_lists_and_tables(text: str) -> None:
    plain = markdown(text)
    assert kinds(f"- {plain}\n") <= LINES_OF_TEXT, plain
    assert shown(f"- {plain}\n").split() == visible(text).split()
    table = f"| name | score |\n| --- | ---: |\n| {plain} | 1 |\n"
    assert kinds(table) <= CELLS_OF_TEXT, plain
    assert sum(token.type == "td_open" for token in tokens(table)) == 2


@pytest.mark.parametrize("text", HOSTILE[:8])
def test_unescaped_hostile_text_would_be_markup(text: str) -> None:
    assert not kinds(f"- {text}\n") <= LINES_OF_TEXT


@given(st.text(alphabet="[]()<>!`*_~|\\&#:/@.-+=1 wahtps", max_size=40))
def test_any_text_stays_text_in_lists_and_tables(text: str) -> None:
    plain = markdown(text)
    assert kinds(f"- x {plain}\n") <= LINES_OF_TEXT, plain
    assert kinds(f"- {plain}\n") <= LINES_OF_TEXT, plain
    table = f"| name | score |\n| --- | ---: |\n| {plain} | 1 |\n"
    assert kinds(table) <= CELLS_OF_TEXT and sum(token.type == "td_open" for token in tokens(table)) == 2, plain


def test_names_and_numbers_stay_readable() -> None:
    for text in ("lc.random_windows(budget=2)", "34.7 [31.2, 38.1]", "-0.5 [-1.0, 0.0]", "-", "1-11", "tier a"):
        assert markdown(text) == text
