"""Drafts of functions: the body that an answer means, its lines that call something, and its parts. Pure.

InferCom paper, its outlook on whole functions; the paper gives no sizes, these are ours.
"""

from __future__ import annotations

import re
import textwrap

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


def drafted_body(draft: str, query: Query) -> list[str]:
    """Return the lines of the body that an answer gives the target function.

    That is the function's body where the answer, or what stands in its tags or its last fence, holds the function;
    else all of it, as written by a model that goes on where the prompt ends.
    """
    tagged = _TAGGED.match(draft)
    text = tagged.group(1) if tagged else draft
    fenced = FENCED.findall(text)
    text = textwrap.dedent(fenced[-1] if fenced else text)
    functions = query.language.outline(text).functions
    definitions = [function for function in functions if function.name == query.name and function.has_body]
    start, end = definitions[-1].body if definitions else (0, None)
    return textwrap.dedent("\n".join(text.split("\n")[start:end])).strip("\n").split("\n")


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
