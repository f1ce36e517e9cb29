"""Drafts of functions: their bodies, the lines and parts of them, and the target file with a draft in it. Pure.

InferCom paper, its outlook on whole functions; the paper gives no sizes, these are ours. The harness itself cuts what
a run scores out of the last answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ctxbench.bench.languages.answers import FunctionHead
from ctxbench.bench.types import Query

LINES = 20
"""Most lines that are looked up."""
LEAST, MOST = 5, 15
"""Lines of a part."""
_TAGGED = re.compile(r"(?s:.*)\[code\]((?s:.*?))(?:\[/code\]|\Z)", re.I)
FENCED = re.compile(r"^[ \t]*```[^\n]*\n((?s:.*?))(?:^[ \t]*```|\Z)", re.M)
"""A fenced block of an answer; the last one may be left open."""
_CALL = re.compile(r"([A-Za-z_]\w*)\s*\(")
_NO_CALL = frozenset(
    {"and", "assert", "await", "catch", "class", "def", "del", "elif", "except", "for", "if", "in", "is", "lambda"}
    | {"not", "or", "return", "super", "switch", "synchronized", "throw", "try", "while", "with", "yield"}
)
"""Words before a bracket that call nothing of a repository."""
_BLANK_LINES = re.compile(r"\A\s*\n")
"""Those before the first line of a text that is not blank."""
END = "[END OF CODE]"
"""Ends CoCoGen's answers."""


def bare_name(name: str) -> str:
    """Return a function's name without its classes and parameter types."""
    return name.partition("(")[0].rpartition(".")[2]


def drafted_body(draft: str, query: Query) -> list[str]:
    """Return the lines of the body that an answer gives the target function.

    That is the function's body where the answer, or what stands in its tags or its last fence, holds the function;
    else all of it, as written by a model that goes on where the prompt ends.
    """
    tagged = _TAGGED.match(draft)
    text = tagged.group(1) if tagged else draft
    text = [text, *FENCED.findall(text)][-1]
    name = bare_name(query.name or "")
    functions = query.language.outline(text).functions
    definitions = [function for function in functions if function.name == name and function.has_body]
    start, end = definitions[-1].body if definitions else (0, None)
    moved = "\n".join(query.language.shift(text.split("\n")[start:end], ""))
    return _BLANK_LINES.sub("", moved).rstrip().split("\n")


def calls(body: list[str]) -> list[str]:
    """Return the lines that call something, the first `LINES` of them."""
    calling_lines = [line for line in body if any(name not in _NO_CALL for name in _CALL.findall(line))]
    return calling_lines[:LINES]


def stretches(body: list[str]) -> list[str]:
    """Return the body, or if it has more than `MOST` lines its parts of `LEAST` to `MOST` lines.

    They end at blank lines and before statements at the body's own depth where they can; the last may be shorter.
    """
    if len(body) <= MOST:
        return ["\n".join(body)]
    parts: list[list[str]] = [[]]
    for line in body:
        outer = not line.strip() or not line.startswith((" ", "\t", "}", ")"))
        if len(parts[-1]) >= MOST or (outer and len(parts[-1]) >= LEAST):
            parts.append([])
        parts[-1].append(line)
    if len(parts) > 1 and len(parts[-1]) < LEAST and len(parts[-2]) + len(parts[-1]) <= MOST:
        last = parts.pop()
        parts[-1] += last
    return ["\n".join(part).strip("\n") for part in parts if any(line.strip() for line in part)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftedFile:
    """A file with a drafted function in it."""

    text: str
    function: str
    """The function, in the file's indentation."""
    start: int
    """Its first line, that of ``def``."""
    end: int
    """The line after its last one."""

    def line(self, number: int) -> str:
        """Return a line of the file without its indentation; empty for one that is not there."""
        lines = self.text.split("\n")
        return lines[number].strip() if 0 <= number < len(lines) else ""


def placed(query: Query, answer: str) -> DraftedFile | None:
    """Return the target file with the answer's function; None if the answer or the prefix holds none.

    It is taken out of the answer as out of those that are scored, so that a checker reads what tests would run.
    """
    lines = query.prefix.split("\n")
    name = bare_name(query.name or "")
    at = _declaration(lines, name)
    code = answer.partition(END)[0]
    if at is None or not code.strip():
        return None
    head = FunctionHead(name=name, signature=query.signature or "", head="\n".join(lines[at:]))
    function, _ = query.language.answers.function(head, code, wrapped=False)
    whole = "\n".join(query.language.shift(function.split("\n"), head.indent)).rstrip()
    before = "".join(f"{line}\n" for line in lines[:at])
    return DraftedFile(
        text=f"{before}{whole}\n{query.suffix or ''}", function=whole, start=at, end=at + whole.count("\n") + 1
    )


def _declaration(lines: list[str], name: str) -> int | None:
    word = re.compile(rf"\s*(?:async\s+)?def\s+{re.escape(name)}\b")
    return next((at for at in range(len(lines) - 1, -1, -1) if word.match(lines[at])), None)
