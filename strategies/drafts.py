"""Drafts of functions: their bodies, the lines and parts of them, and the target file with a draft in it. Pure.

InferCom paper, its outlook on whole functions; the paper gives no sizes, these are ours. The harness itself cuts what
a run scores out of the last answer.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

from ctxbench.bench.languages.python import PYTHON
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


def code_of(answer: str) -> str:
    """Return the code of an answer: what stands in its last fence, else all of it."""
    text = answer.partition(END)[0]
    fenced = FENCED.findall(text)
    return textwrap.dedent(fenced[-1]) if fenced else text


def placed(query: Query, answer: str) -> DraftedFile | None:
    """Return the target file with the answer's function; None if the answer or the prefix holds none.

    An answer without the function is taken for its body, as a model writes it that goes on at the cursor.
    """
    lines = query.prefix.split("\n")
    at = _declaration(lines, bare_name(query.name or ""))
    code = code_of(answer)
    if at is None or not code.strip():
        return None
    indent = _margin(lines[at])
    whole = _function(code, bare_name(query.name or ""), indent) or _continued(lines[at:], code, indent)
    before = "".join(f"{line}\n" for line in lines[:at])
    return DraftedFile(
        text=f"{before}{whole}\n{query.suffix or ''}", function=whole, start=at, end=at + whole.count("\n") + 1
    )


def _declaration(lines: list[str], name: str) -> int | None:
    word = re.compile(rf"\s*(?:async\s+)?def\s+{re.escape(name)}\b")
    return next((at for at in range(len(lines) - 1, -1, -1) if word.match(lines[at])), None)


def _function(code: str, name: str, indent: str) -> str | None:
    """Return the last function of that name in the code, in the indentation of the file."""
    lines = code.split("\n")
    functions = PYTHON.outline(code).functions
    definitions = [function for function in functions if function.name == name and function.has_body]
    at = definitions[-1].head if definitions else _declaration(lines, name)
    if at is None:
        return None
    # The parser may not find the end of a function that is wrong; that is for the checker to say.
    tail = [lines[at], *_deeper(lines[at + 1 :], _margin(lines[at]))]
    function_lines = lines[at : definitions[-1].lines[1]] if definitions else tail
    return textwrap.indent(textwrap.dedent("\n".join(function_lines)), indent).rstrip()


def _deeper(lines: list[str], indent: str) -> list[str]:
    """Return the lines up to the first that stands no deeper than `indent`."""
    ends = (at for at, line in enumerate(lines) if line.strip() and len(_margin(line)) <= len(indent))
    return lines[: next(ends, len(lines))]


def _margin(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _continued(head: list[str], code: str, indent: str) -> str:
    """Return the function's head and the code up to the first line that stands no deeper than it."""
    *above, last = head
    if last.strip():
        above, last = head, ""
    step = f"{indent}\t" if indent.startswith("\t") else f"{indent}    "
    first, _, later_lines = code.lstrip("\n").partition("\n")
    # The first line may go on where the cursor stands, behind the indentation.
    begun = first if first[:1] in (" ", "\t") else f"{last or step}{first}"
    return "\n".join([*above, begun, *_deeper(later_lines.split("\n"), indent)]).rstrip()
