"""Put a drafted function into the target file, in the place of the one to write. Pure; Python.

For strategies that look at a draft. The harness cuts what a run scores out of the last answer.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.types import Query
from ctxbench.strategies.drafts import FENCED
from ctxbench.strategies.icl.source import bare

END = "[END OF CODE]"
"""Ends CoCoGen's answers."""


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
    at = _declaration(lines, bare(query.name or ""))
    code = code_of(answer)
    if at is None or not code.strip():
        return None
    indent = _margin(lines[at])
    whole = _function(code, bare(query.name or ""), indent) or _continued(lines[at:], code, indent)
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
