"""`Frame`: the place of a token: brackets, callee, argument slot, place in its line.

One step rule serves the tokens of the prompt and those being written.
"""

from __future__ import annotations

from typing import NamedTuple

from ctxbench.harness.generators.incontext.lexer import Token, TokenClass

_LINE_KIND = {
    **dict.fromkeys(("import", "from", "package"), 1),
    **dict.fromkeys(("def", "async", "public", "private", "protected", "static", "abstract"), 2),
    **dict.fromkeys(("class", "interface", "enum"), 3),
    **dict.fromkeys(("return", "yield", "raise", "throw"), 4),
    **dict.fromkeys(("if", "elif", "else", "while", "for", "with", "try", "except", "}", "assert", "catch"), 5),
    **dict.fromkeys(("@",), 6),
}
LINE_KINDS = 9
OPENERS = {"(": 1, "[": 2, "{": 3}


class Bracket(NamedTuple):
    """One open bracket."""

    opener: str
    callee: str
    """The token before the bracket, empty if it is none that can be called."""
    slot: int
    """Commas since it was opened."""
    tokens: tuple[str, ...]
    """The tokens since it was opened that stand directly in it."""
    indent: str
    """Indentation of the line that opened it."""


class Frame(NamedTuple):
    """The state before a token; `advance` gives the state after it."""

    stack: tuple[Bracket, ...] = ()
    line: tuple[str, ...] = ()
    """Texts of the tokens of this physical line so far, indentation left out."""
    indent: str = ""
    """Indentation of this line."""
    ended: str = ""
    """Last token of the line before."""
    began: str = ""
    """First token of the line before."""
    above: str = ""
    """Indentation of the line before."""
    last: str = ""
    function: int = 0
    """The number of functions begun before."""

    @property
    def opener(self) -> str:
        """The innermost open bracket, empty if none."""
        return self.stack[-1].opener if self.stack else ""

    @property
    def callee(self) -> str:
        """The callee of the innermost open bracket, empty if none."""
        return self.stack[-1].callee if self.stack else ""

    @property
    def line_kind(self) -> int:
        """The kind of line by its first token: 0 a plain one, `LINE_KINDS` - 1 its beginning."""
        return _LINE_KIND.get(self.line[0], 0) if self.line else LINE_KINDS - 1


def advance(frame: Frame, token: Token) -> Frame:
    """Return the state after `token`."""
    text, kind = token.text, token.kind
    if kind is TokenClass.NEWLINE:
        if not frame.line:
            return frame._replace(last=text)
        return frame._replace(line=(), ended=frame.last, began=frame.line[0], above=frame.indent, last=text)
    if kind is TokenClass.INDENT:
        return frame._replace(indent=text, last=text)
    stack = frame.stack
    if kind is TokenClass.OPEN:
        callable_before = frame.last.isidentifier() or frame.last in (")", "]")
        # Depth is bounded for the same reason as the tokens below.
        stack = (*stack[-60:], Bracket(text, frame.last if callable_before else "", 0, (), frame.indent))
    elif kind is TokenClass.CLOSE:
        stack = stack[:-1]
    elif stack:
        top = stack[-1]
        # The list of tokens is bounded: a huge literal must not cost quadratic time.
        tokens = (*top.tokens[-40:], text)
        stack = (*stack[:-1], top._replace(slot=top.slot + (kind is TokenClass.COMMA), tokens=tokens))
    begins = text in ("def", "class") or (not frame.line and text in ("public", "private", "protected"))
    return frame._replace(stack=stack, line=(*frame.line[-60:], text), last=text, function=frame.function + begins)
