"""`AnswerReader`: how functions of a language are taken out of answers, and what all languages need for that."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

_STEP = "    "
_FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})[ \t]*(?P<label>[^\n`]*)$", re.M)
_DEEPER = 3
"""The most columns by which a closing fence may stand deeper than its opening one, as in CommonMark."""
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


def _indentation(text: str) -> str:
    return text[: len(text) - len(text.lstrip(" \t"))]


def fenced(answer: str) -> list[str]:
    """Return the code in markdown fences, in order; a fence that is not closed goes on to the end."""
    blocks: list[str] = []
    at = 0
    while opening := _FENCE.search(answer, at):
        closing = _closing(answer, opening)
        end = closing.start() if closing else len(answer)
        blocks.append(unlabelled(answer[opening.end() + 1 : end]))
        at = closing.end() if closing else len(answer)
    return blocks


def _closing(answer: str, opening: re.Match[str]) -> re.Match[str] | None:
    """Return the fence that closes another: not one in a docstring, which stands deeper.

    Models may set it too deep themselves. It is then what the pairs of deeper ones leave over.
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
    """Return what stands before the first markdown fence; all of an answer without one."""
    opening = _FENCE.search(answer)
    return answer[: opening.start()] if opening else answer


def unlabelled(code: str) -> str:
    """Return code without a first line that only names its language."""
    return _WORD.sub("", code)


class AnswerReader(Protocol):
    """Takes functions of one language out of answers. Pure."""

    def function(self, head: FunctionHead, answer: str, wrapped: bool) -> tuple[str, bool]:
        """Return the function in the indentation of the file, and whether it is one as far as syntax tells.

        Args:
            head: the head of the sample's function.
            answer: the model's text.
            wrapped: whether it stood between tags, so that it is nothing but code.
        """
        ...

    def body(self, text: str) -> str | None:
        """Return what a whole function does, without signature and docstring; None if the text is not one function."""
        ...


def _open_braces(text: str) -> int:
    return text.count("{") - text.count("}")


class PlainAnswerReader:
    """The answers of a language that nobody has taught more: code, or what continues the prompt, taken as it is."""

    def function(self, head: FunctionHead, answer: str, wrapped: bool) -> tuple[str, bool]:
        """Return the last code in a fence, or else the head with the answer behind it.

        A fence behind an answer that closes the braces of the head opens nothing, but ends the answer.
        """
        blocks = [answer] if wrapped else fenced(answer)
        continued = head.head + before_fences(answer)
        if not blocks or (not wrapped and 0 == _open_braces(continued) < _open_braces(head.head)):
            return continued, True
        return blocks[-1].strip("\n"), True

    def body(self, text: str) -> str | None:
        """Return None: where a body begins is not known."""
        return None
