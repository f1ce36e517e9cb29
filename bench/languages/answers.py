"""Interface for extracting functions from a model's answers (`AnswerReader`), and helpers for all languages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

_STEP = "    "
_FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})[ \t]*(?P<label>[^\n`]*)$", re.M)
_DEEPER = 3
"""A closing fence may be indented at most this many columns deeper than the opening fence, as in CommonMark."""
_WORD = re.compile(r"\A\s*(?:python3?|java)[ \t]*\n", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionHead:
    """A function's head, from its declaration to the cursor."""

    name: str
    signature: str
    head: str
    """Signature and docstring as in the file, up to the start of the body."""

    @property
    def indent(self) -> str:
        """The declaration's indentation."""
        return _indentation(self.head)

    @property
    def body_indent(self) -> str:
        """Indentation of the head's last line that is deeper than the declaration; one level deeper if no line is."""
        for line in reversed(self.head.split("\n")[1:]):
            indent = _indentation(line)
            if indent.startswith(self.indent) and indent != self.indent:
                return indent
        return self.indent + ("\t" if self.indent.startswith("\t") else _STEP)

    @property
    def lines(self) -> str:
        """The head with a final newline and without the spaces before the cursor."""
        whole, newline, last = self.head.rpartition("\n")
        return whole + newline if newline and not last.strip() else f"{self.head.rstrip()}\n"


def _indentation(text: str) -> str:
    return text[: len(text) - len(text.lstrip(" \t"))]


def fenced(answer: str) -> list[str]:
    """Return the code in each Markdown code block of an answer, in order. An unclosed block extends to the end."""
    blocks: list[str] = []
    at = 0
    while opening := _FENCE.search(answer, at):
        closing = _closing(answer, opening)
        end = closing.start() if closing else len(answer)
        blocks.append(unlabelled(answer[opening.end() + 1 : end]))
        at = closing.end() if closing else len(answer)
    return blocks


def _closing(answer: str, opening: re.Match[str]) -> re.Match[str] | None:
    """Return the fence that closes `opening`, skipping deeper fences in docstrings; None if there is none.

    A model may indent the closing fence too deep. Then it is the last deeper fence, which has no partner.
    """
    deeper: list[re.Match[str]] = []
    for fence in _FENCE.finditer(answer, opening.end()):
        if fence["fence"] != opening["fence"]:
            continue
        if _column(fence) > _column(opening) + _DEEPER:
            deeper.append(fence)
        elif not fence["label"]:
            return fence
        elif len(deeper) % 2:
            break
    return deeper[-1] if len(deeper) % 2 and not deeper[-1]["label"] else None


def _column(fence: re.Match[str]) -> int:
    return len(fence["indent"].expandtabs(4))


def before_fences(answer: str) -> str:
    """Return the text before the first Markdown fence; without a fence, the whole answer."""
    opening = _FENCE.search(answer)
    return answer[: opening.start()] if opening else answer


def unlabelled(code: str) -> str:
    """Return code without a first line that only says ``python``, ``python3`` or ``java``, in any letter case."""
    return _WORD.sub("", code)


class AnswerReader(Protocol):
    """Extracts functions in one language from a model's answers."""

    def function(self, head: FunctionHead, answer: str, wrapped: bool) -> tuple[str, bool]:
        """Return the whole function, indented as in the file or the answer, and whether the reader accepts its syntax.

        Args:
            wrapped: whether `answer` was between tags and therefore contains only code.
        """
        ...

    def body(self, text: str) -> str | None:
        """Return the body in a function's text, without the docstring; None if the reader finds no body."""
        ...


def _open_braces(text: str) -> int:
    return text.count("{") - text.count("}")


class PlainAnswerReader:
    """The default `AnswerReader`, which does not parse code."""

    def function(self, head: FunctionHead, answer: str, wrapped: bool) -> tuple[str, bool]:
        """Return the last code block and True; without a code block, the head followed by the answer, and True.

        A `wrapped` answer is a block. If the text before all fences closes the head's braces, it counts as the answer.
        """
        blocks = [answer] if wrapped else fenced(answer)
        continued = head.head + before_fences(answer)
        if not blocks or (not wrapped and 0 == _open_braces(continued) < _open_braces(head.head)):
            return continued, True
        return blocks[-1].strip("\n"), True

    def body(self, text: str) -> str | None:
        """Return None, because this reader cannot find where the body begins."""
        return None
