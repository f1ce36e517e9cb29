"""Turn a prompt's blocks into stretches of tokens that can be copied."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from ctxbench.bench.languages.base import Language
from ctxbench.harness.generators.incontext.lexer import Token, TokenClass, lex
from ctxbench.harness.generators.incontext.signatures import call_forms
from ctxbench.strategies.api import Block, BlockKind, Prompt
from ctxbench.strategies.layout import TITLE


class PromptRegion(IntEnum):
    """The origin of a source token."""

    INFILE = 0
    SIMILAR = 1
    API = 2
    CALL = 3
    """A call made up from a signature."""


class Stretch(NamedTuple):
    """Tokens that stood together."""

    region: PromptRegion
    tokens: list[Token]


class PromptSource(NamedTuple):
    """Everything in a prompt that can be copied, the in-file text last."""

    stretches: list[Stretch]
    infile: list[Token]
    """The in-file tokens again: the history at the cursor."""
    line_start: bool
    """Whether the cursor is at column 0."""
    space: str
    """Whitespace between the last token and the cursor."""


_RULE = re.compile(r"-{10,}\s*$")
_FOUND_IN = re.compile(r"the below code fragment can be found in:")
_HEADER = re.compile(r"here (are|is) some |compare this snippet from ", re.IGNORECASE)
_PATH = re.compile(r"[\w./\- ]+\.(py|java)$")
_MARK = re.compile(r"\s*(#|//) ?")
_JAVA_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_STEP = "    "
_HEAD = re.compile(r'(?P<head>(?:async +)?def\b.*?:)[ \t]*(?:"""[ \t]*)?(?:\n[ \t]*"""|\Z)', re.DOTALL)
"""A Python signature before its docstring, as either style of the closing section shows it."""
_METHOD = re.compile(r"\A[^(]*\(\s*(?:self|cls)\b")


def read(prompt: Prompt, language: Language) -> PromptSource:
    """Split a prompt into stretches of tokens; never raises, whatever the text."""
    retrieved: list[Stretch] = []
    forms: list[Stretch] = []
    infile = infile_text(prompt, language)
    for block in prompt.blocks:
        if block.kind is BlockKind.SIMILAR or block.kind is BlockKind.API:
            region = PromptRegion.API if block.kind is BlockKind.API else PromptRegion.SIMILAR
            for code in _fragments(block):
                tokens = clean(code, language, whole=False)
                if not tokens:
                    continue
                retrieved.append(Stretch(region, tokens))
                forms.extend(Stretch(PromptRegion.CALL, form) for form in call_forms(tokens, language))
    line_start = not infile or infile.endswith("\n")
    tokens = clean(infile, language, whole=True)
    tail = "" if line_start else infile[len(infile.rstrip(" \t\f")) :]
    if tokens and tokens[-1].kind is TokenClass.INDENT:
        tail = ""
    return PromptSource([*forms, *retrieved, Stretch(PromptRegion.INFILE, tokens)], tokens, line_start, tail)


def infile_text(prompt: Prompt, language: Language) -> str:
    """Return the text to continue: the in-file blocks, or the head of the requested function.

    A prompt that closes with signature and docstring ends at no cursor. It is read as if the function began there,
    a method inside a class, whose body is wanted; so that what is written is a bare body.
    """
    infile = [at for at, block in enumerate(prompt.blocks) if block.kind is BlockKind.INFILE]
    text = "".join(prompt.blocks[at].text for at in infile)
    if not infile or not infile[0] or not prompt.blocks[infile[0] - 1].text.endswith(TITLE):
        return text
    if not language.indented:
        signature = _JAVA_COMMENT.sub("", text).strip()
        return f"{_STEP}{signature} {{\n"
    declared = _HEAD.match(text)
    head = declared["head"] if declared else text.partition("\n")[0]
    indent = _STEP if _METHOD.search(head) else ""
    return textwrap.indent(f'{head}\n{_STEP}""" """\n', indent)


def _fragments(block: Block) -> Iterator[str]:
    """Yield the code of a retrieved block: comment marks, rules, headers and paths taken off."""
    lines = block.text.split("\n")
    marked = [line for line in lines if line.strip()]
    if sum(1 for line in marked if _MARK.match(line)) * 2 > len(marked):
        lines = [_MARK.sub("", line, count=1) for line in lines]
    code: list[str] = []
    naming = False
    for line in lines:
        if _FOUND_IN.match(line):
            naming = True
        elif _RULE.match(line):
            naming = False
        elif naming:
            continue
        elif _HEADER.match(line) or _PATH.fullmatch(line):
            pass
        else:
            code.append(line)
            continue
        if code:
            yield "\n".join(code) + "\n"
            code = []
    if code:
        yield "\n".join(code) + "\n"


def clean(text: str, language: Language, *, whole: bool) -> list[Token]:
    """Lex code and leave out what is no code: comments, blank lines, documentation.

    Args:
        text: code, perhaps cut at both ends.
        language: its language.
        whole: whether its end is known to be code, as at a cursor; else both ends are uncertain.
    """
    if not language.indented:
        text = _without_java_comments(text)
    tokens, _ = lex(text, language, line_start=True)
    tokens = [token for token in tokens if token.kind is not TokenClass.COMMENT]
    if language.indented:
        tokens = list(_without_documentation(tokens, whole=whole))
    return list(_without_blank_lines(tokens))


def _without_java_comments(text: str) -> str:
    first = text.find("*/")
    if first >= 0 and not 0 <= text.find("/*") < first:
        text = text[first + 2 :]
    return _JAVA_COMMENT.sub("", text)


def _without_documentation(tokens: Sequence[Token], *, whole: bool) -> Iterator[Token]:
    quotes = [at for at, token in enumerate(tokens) if token.text.endswith(('"""', "'''")) and _is_bare(token)]
    inside = len(quotes) % 2 == 1 and (whole or not _opens(tokens, quotes[0]))
    for token in tokens:
        if _is_bare(token):
            inside = not inside
            if inside:
                yield Token(token.space, '"""', TokenClass.STRING)
        elif not inside:
            yield token


def _is_bare(token: Token) -> bool:
    return token.kind is TokenClass.STRING and len(token.text) <= 5 and token.text[-3:] in ('"""', "'''")


def _opens(tokens: Sequence[Token], at: int) -> bool:
    """Whether the triple quote at `at` begins a string, judged by what stands before it."""
    before = [t for t in tokens[max(0, at - 4) : at] if t.kind not in (TokenClass.NEWLINE, TokenClass.INDENT)]
    return not before or before[-1].text in (":", "=", "(", ",", "return", "[", "{", "+")


def _without_blank_lines(tokens: Iterable[Token]) -> Iterator[Token]:
    indent: Token | None = None
    filled = False
    for token in tokens:
        if token.kind is TokenClass.INDENT:
            indent, filled = token, False
        elif token.kind is TokenClass.NEWLINE and not filled:
            indent = None
        else:
            if indent is not None:
                yield indent
                indent = None
            filled = token.kind is not TokenClass.NEWLINE
            yield token
    if indent is not None:
        yield indent
