"""What extraction takes apart: the head of a sample's function, and the code of an answer between tags and fences."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ctxbench.bench.types import Sample

_STEP = "    "
_OPEN = re.compile(r"\[code\]", re.I)
_CLOSE = re.compile(r"\[/code\]", re.I)
_FENCE = re.compile(r"^[ \t]*(?P<fence>`{3,}|~{3,})[^\n`]*$", re.M)
_WORD = re.compile(r"\A\s*(?:python3?|java)[ \t]*\n", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionHead:
    """The head of a function, from the line of its declaration to the cursor."""

    name: str
    """Bare: without class and parameter types."""
    signature: str
    head: str
    """Signature and docstring, as in the file; ends where the body begins."""

    @property
    def indent(self) -> str:
        """The indentation of the declaration."""
        return _indentation(self.head)

    @property
    def body_indent(self) -> str:
        """The indentation of the body: that of the cursor's line, or of the docstring, or one step in."""
        for line in reversed(self.head.split("\n")[1:]):
            indent = _indentation(line)
            if indent.startswith(self.indent) and indent != self.indent:
                return indent
        return self.indent + ("\t" if self.indent.startswith("\t") else _STEP)

    @property
    def lines(self) -> str:
        """The head without the blanks that stand before the cursor in its line, ended by a newline."""
        whole, newline, last = self.head.rpartition("\n")
        return whole + newline if newline and not last.strip() else f"{self.head.rstrip()}\n"


def head_of(sample: Sample) -> FunctionHead:
    """Return the head of a sample's function."""
    name = (sample.name or "").partition("(")[0].rpartition(".")[2]
    lines = sample.prefix.split("\n")
    start = sample.span[0] if sample.span else _declaration(lines, name)
    return FunctionHead(name=name, signature=sample.signature or "", head="\n".join(lines[start:]))


def _declaration(lines: list[str], name: str) -> int:
    """Return the last line that may declare the name, for sets that do not record the function's lines."""
    word = re.compile(rf"\b{re.escape(name)}\s*\(")
    return next((at for at in range(len(lines) - 1, -1, -1) if word.search(lines[at])), max(0, len(lines) - 1))


def _indentation(text: str) -> str:
    return text[: len(text) - len(text.lstrip(" \t"))]


def tagged(answer: str) -> str | None:
    """Return what stands after the last ``[CODE]``, up to its ``[/CODE]`` or the end; None without a tag.

    A plan may mention the tags earlier. A fence in it is taken off.
    """
    tags = list(_OPEN.finditer(answer))
    if not tags:
        return None
    inner = answer[tags[-1].end() :]
    inner = _CLOSE.split(inner, maxsplit=1)[0]
    blocks = fenced(inner)
    return _WORD.sub("", blocks[-1] if blocks else inner)


def fenced(answer: str) -> list[str]:
    """Return the code in markdown fences, in order; a fence that is not closed goes on to the end."""
    blocks: list[str] = []
    at = 0
    while opening := _FENCE.search(answer, at):
        fence = opening["fence"]
        closing = re.compile(rf"^[ \t]*{re.escape(fence)}[ \t]*$", re.M).search(answer, opening.end())
        end = closing.start() if closing else len(answer)
        blocks.append(_WORD.sub("", answer[opening.end() + 1 : end]))
        at = closing.end() if closing else len(answer)
    return blocks
