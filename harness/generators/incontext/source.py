"""Converts a prompt's blocks into code sections to copy from, including calls derived from its signatures."""

from __future__ import annotations

import functools
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from ctxbench.bench.languages.base import Language
from ctxbench.harness.generators.incontext.lexer import (
    IDENTIFIERS,
    CodeLine,
    Token,
    TokenClass,
    code_lines,
    is_bare,
    part_of_line,
)
from ctxbench.strategies.api import Block, BlockKind, Prompt
from ctxbench.strategies.layout import TITLE


class PromptRegion(IntEnum):
    """The part of the prompt that contains a token."""

    INFILE = 0
    SIMILAR = 1
    API = 2
    CALL = 3


class Stretch(NamedTuple):
    """A code section: consecutive lines from one region of the prompt."""

    region: PromptRegion
    lines: Sequence[CodeLine]

    @property
    def tokens(self) -> list[Token]:
        """The tokens of all lines of the section."""
        return [token for line in self.lines for token in line.tokens]


class PromptSource(NamedTuple):
    """Everything in a prompt that can be copied. The file up to the cursor comes last."""

    stretches: list[Stretch]
    line_start: bool
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
_METHOD = re.compile(r"\A[^(]*\(\s*(?:self|cls)\b")
LONG = 60
"""Length of a call, in characters, above which its keyword form has one argument per line."""
_MAX_PARAMETERS = 30
_FRAGMENTS = 1 << 11


def read(prompt: Prompt, language: Language) -> PromptSource:
    """Split a prompt into sections of tokens. Every text is accepted."""
    retrieved: list[Stretch] = []
    forms: list[Stretch] = []
    infile = infile_text(prompt, language)
    for block in prompt.blocks:
        if block.kind is BlockKind.SIMILAR or block.kind is BlockKind.API:
            region = PromptRegion.API if block.kind is BlockKind.API else PromptRegion.SIMILAR
            for code in _fragments(block):
                lines, calls = _read_fragment(code, language)
                if lines:
                    retrieved.append(Stretch(region, lines))
                    forms.extend(Stretch(PromptRegion.CALL, call) for call in calls)
    line_start = not infile or infile.endswith("\n")
    lines = cleaned(infile, language, whole=True)
    tail = "" if line_start else infile[len(infile.rstrip(" \t\f")) :]
    if lines and lines[-1].tokens[-1].kind is TokenClass.INDENT:
        tail = ""
    return PromptSource([*forms, *retrieved, Stretch(PromptRegion.INFILE, lines)], line_start, tail)


@functools.lru_cache(_FRAGMENTS)
def _read_fragment(code: str, language: Language) -> tuple[Sequence[CodeLine], Sequence[Sequence[CodeLine]]]:
    lines = cleaned(code, language, whole=False)
    forms = call_forms([token for line in lines for token in line.tokens], language)
    return lines, [code_lines(form, language) for form in forms]


def infile_text(prompt: Prompt, language: Language) -> str:
    """Return the text to continue: the in-file blocks, or the head of the requested function.

    A prompt that ends with a signature and docstring has no cursor. Then the text is the beginning of the function (or
    of a method in a class), so that the model writes only the body.
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
    """Return the tokens of the lines that `cleaned` returns."""
    return [token for line in cleaned(text, language, whole=whole) for token in line.tokens]


def cleaned(text: str, language: Language, *, whole: bool) -> list[CodeLine]:
    """Split code into lines without comments, blank lines and documentation. `whole`: `text` ends outside a string."""
    if not language.indented:
        text = _without_java_comments(text)
    lines = code_lines(text, language)
    if language.indented and any(line.bare for line in lines):
        lines = list(_without_documentation(lines, whole=whole))
    return list(_without_blank_lines(lines))


def _without_java_comments(text: str) -> str:
    first = text.find("*/")
    if first >= 0 and not 0 <= text.find("/*") < first:
        text = text[first + 2 :]
    return _JAVA_COMMENT.sub("", text)


def _without_documentation(lines: Sequence[CodeLine], *, whole: bool) -> Iterator[CodeLine]:
    quotes = sum(is_bare(token) for line in lines if line.bare for token in line.tokens)
    inside = quotes % 2 == 1 and (whole or not _opens(lines))
    for line in lines:
        if not line.bare:
            if not inside:
                yield line
            continue
        kept_tokens: list[Token] = []
        for token in line.tokens:
            if is_bare(token):
                inside = not inside
                if inside:
                    kept_tokens.append(Token(token.space, '"""', TokenClass.STRING))
            elif not inside:
                kept_tokens.append(token)
        if kept_tokens:
            yield part_of_line(tuple(kept_tokens))


def _opens(lines: Sequence[CodeLine]) -> bool:
    before: list[Token] = []
    for token in (token for line in lines for token in line.tokens):
        if is_bare(token):
            break
        before.append(token)
    close = [token for token in before[-4:] if token.kind not in (TokenClass.NEWLINE, TokenClass.INDENT)]
    return not close or close[-1].text in (":", "=", "(", ",", "return", "[", "{", "+")


def _without_blank_lines(lines: Iterable[CodeLine]) -> Iterator[CodeLine]:
    begun = False  # whether the current line has any content so far
    indent: Token | None = None
    for line in lines:
        whole = line.tokens[0].kind is TokenClass.INDENT
        if whole and line.filled:
            yield line
            begun, indent = not line.ends, None
            continue
        kept_tokens: list[Token] = []
        for token in line.tokens:
            if token.kind is TokenClass.INDENT:
                indent, begun = token, False
            elif token.kind is TokenClass.NEWLINE and not begun:
                indent = None
            else:
                kept_tokens += [token] if indent is None else [indent, token]
                indent, begun = None, token.kind is not TokenClass.NEWLINE
        if kept_tokens:
            yield part_of_line(tuple(kept_tokens))
    if indent is not None:
        yield part_of_line((indent,))


def call_forms(tokens: Sequence[Token], language: Language) -> list[str]:
    """Return calls of the functions that `tokens` declare, as lines: ``f(a)`` and ``f(a=a)`` for ``def f(a)``."""
    forms = _python(tokens) if language.indented else _java(tokens)
    texts: list[str] = []
    for receiver, name, arguments in forms:
        head = f"{receiver}{name}"
        call = f"{head}({', '.join(arguments)})"
        end = "\n" if language.indented else ";\n"
        texts.append(call + end)
        if language.indented and arguments:
            keywords = [f"{argument}={argument}" for argument in arguments]
            if len(call) > LONG:
                texts.append(f"{head}(\n    " + ",\n    ".join(keywords) + ",\n)\n")
            else:
                texts.append(f"{head}({', '.join(keywords)})\n")
    return list(dict.fromkeys(texts))


def _parameters(tokens: Sequence[Token], at: int) -> tuple[list[list[Token]], int] | None:
    depth, parts = 0, [[]]  # type: tuple[int, list[list[Token]]]
    for index in range(at, min(len(tokens), at + 400)):
        token = tokens[index]
        if token.kind in (TokenClass.NEWLINE, TokenClass.INDENT):
            continue
        if token.kind is TokenClass.OPEN or token.text == "<":
            depth += 1
            if depth == 1:
                continue
        elif token.kind is TokenClass.CLOSE or token.text == ">":
            depth -= 1
            if depth == 0:
                return [part for part in parts if part][:_MAX_PARAMETERS], index
        if depth == 1 and token.kind is TokenClass.COMMA:
            parts.append([])
        else:
            parts[-1].append(token)
    return None


def _python(tokens: Sequence[Token]) -> list[tuple[str, str, list[str]]]:
    forms: list[tuple[str, str, list[str]]] = []
    owner, owner_indent, indent = "", -1, 0
    for at, token in enumerate(tokens[:-2]):
        if token.kind is TokenClass.INDENT:
            indent = len(token.text)
            continue
        name = tokens[at + 1]
        if token.text == "class" and name.kind in IDENTIFIERS:
            owner, owner_indent = name.text, indent
        elif token.text == "def" and name.kind in IDENTIFIERS and tokens[at + 2].text == "(":
            found_parts = _parameters(tokens, at + 2)
            if found_parts is None:
                continue
            parts = found_parts[0]
            names = [next((t.text for t in part if t.kind in IDENTIFIERS), "") for part in parts]
            arguments = [n for n in names if n and n not in ("self", "cls")]
            method = (owner and indent > owner_indent) or bool(names and names[0] in ("self", "cls"))
            if name.text == "__init__":
                if owner:
                    forms.append(("", owner, arguments))
            elif not name.text.startswith("__"):
                receiver = f"{_snake(owner)}." if owner and method else "self." if method else ""
                forms.append((receiver, name.text, arguments))
    return forms


def _java(tokens: Sequence[Token]) -> list[tuple[str, str, list[str]]]:
    forms: list[tuple[str, str, list[str]]] = []
    owner = ""
    for at in range(1, len(tokens) - 2):
        before, token = tokens[at - 1], tokens[at]
        if before.text in ("class", "interface", "enum", "record") and token.kind in IDENTIFIERS:
            owner = token.text
        if tokens[at + 1].text != "(" or token.kind not in IDENTIFIERS:
            continue
        typed = before.kind in IDENTIFIERS or before.text in (">", "]")
        typed = typed or (before.kind is TokenClass.KEYWORD and before.text not in ("new", "return", "throw", "else"))
        found_parts = _parameters(tokens, at + 1)
        if not typed or found_parts is None:
            continue
        parts, end = found_parts
        if any(sum(t.kind in IDENTIFIERS or t.kind is TokenClass.KEYWORD for t in p) < 2 for p in parts):
            continue
        if end + 1 >= len(tokens) or tokens[end + 1].text not in ("{", ";", "throws"):
            continue
        names = [[t.text for t in part if t.kind in IDENTIFIERS] for part in parts]
        arguments = [group[-1] for group in names if group]
        if token.text == owner:
            forms.append(("new ", owner, arguments))
        else:
            forms.append((f"{owner[:1].lower()}{owner[1:]}." if owner else "", token.text, arguments))
    return forms


def _snake(name: str) -> str:
    spread = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", spread).lower()
