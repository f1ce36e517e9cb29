"""Extracts completions from models' answers: the rest of a line, a line from a chat model, a whole function."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice

from ctxbench.bench.languages.answers import AnswerReader, FunctionHead, before_fences, fenced, unlabelled
from ctxbench.bench.types import Kind, Sample
from ctxbench.harness.generators.base import Request
from ctxbench.strategies.api import BlockKind

LINE_END = "\n"
LINE_OPEN = "<output_start>"
LINE_CLOSE = ("<output_end>", "</output_end>", "</output_start>")
_MESSAGE = """\
You are a code completion assistant. Given a {language} code prefix, your task is to generate the next few lines of \
code that would logically follow the prefix. Stop at the first newline character. Do not include explanations or \
additional output.

Only output the generated code between the special tokens <output_start> and <output_end>.

Here is the code prefix:

{prefix}

Complete the code (do not repeat the prefix):"""


def is_line(request: Request) -> bool:
    """Return whether a request is for a line sample and its prompt ends with code to continue, not with a question."""
    blocks = request.prompt.blocks
    return request.kind is Kind.LINE and bool(blocks) and blocks[-1].kind is BlockKind.INFILE


def end(text: str) -> int | None:
    """Return the index where the first non-blank line of an answer ends; None if that line is incomplete."""
    at = text.find(LINE_END, len(text) - len(text.lstrip()))
    return at if at >= 0 else None


def line_message(request: Request) -> str:
    """Return the message for a chat model: a request for the next line of code, or the prompt if not `is_line`."""
    text = request.prompt.text
    if not is_line(request):
        return text
    return _MESSAGE.format(language=request.language.label, prefix=text)


def line_answer(request: Request, text: str) -> str:
    """Return the code in an answer to `line_message`, without tags and fences; the whole answer if not `is_line`."""
    if not is_line(request):
        return text
    _, mark, inner = text.partition(LINE_OPEN)
    text = inner if mark else text
    text = text[: min((at for close in LINE_CLOSE if (at := text.find(close)) >= 0), default=len(text))]
    # InferCom's released program keeps the fence and scores it as the line.
    blocks = fenced(text) if text.lstrip().startswith("```") else []
    return next(filter(str.strip, blocks), text)


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The rules for the end of an answer, which is before a stop text or after the first line."""

    stops: tuple[str, ...] = ()
    line: bool = False
    """Whether the answer ends after its first non-blank line, before the newline."""

    def __bool__(self) -> bool:
        return self.line or bool(self.stops)

    def find(self, text: str) -> int | None:
        """Return how many characters of a text belong to the answer; None if the answer has not ended."""
        ends = [at for stop in self.stops if (at := text.find(stop)) >= 0]
        if self.line and (line_end := end(text)) is not None:
            ends.append(line_end)
        return min(ends, default=None)


def end_of(request: Request, *, chat: bool) -> End:
    """Return the rules for the end of an answer. They ignore lines for a `chat` model, which may write text first."""
    stops = tuple(stop for stop in request.sampling.stop if stop)
    return End(stops=stops, line=request.one_line and not chat)


_OPEN = re.compile(r"\[code\]", re.I)
_CLOSE = re.compile(r"\[/code\]", re.I)
_WORD = re.compile(r"\w")
_MOST = 50

PARSE_FAILED = "parse_failed"
"""Flag of an answer without a valid function. Unless the answer is blank, its tests still run."""

NO_CODE_TAGS = "no_code_tags"
"""Flag of an answer that does not continue the prompt and has no ``[CODE]`` tags."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """A function extracted from an answer."""

    text: str
    """The whole function, indented as in the file or in the answer; empty if the answer or its tagged code is blank."""
    flags: tuple[str, ...] = ()


def extract(sample: Sample, answer: str) -> Extracted:
    """Extract the whole function from a model's answer to a function sample."""
    answer = answer.replace("\r\n", "\n")
    head, reader = head_of(sample), sample.language.answers
    inner = _tagged(reader, head, answer)
    if inner is not None and not inner.strip() and any(map(str.strip, fenced(answer))):
        inner = None  # A small model may write its code in a fence, followed by a tag with nothing after it.
    code = answer if inner is None else inner
    if not code.strip():
        return Extracted(text="", flags=(PARSE_FAILED,))
    text, parsed = reader.function(head, code, inner is not None)
    flags = () if parsed else (PARSE_FAILED,)
    if inner is None and not (text.startswith(head.head.rstrip()) and _begins(answer) in text):
        flags = (NO_CODE_TAGS, *flags)
    return Extracted(text=text, flags=flags)


def _begins(answer: str) -> str:
    return answer.strip().partition("\n")[0].rstrip()


def body(sample: Sample, text: str) -> str:
    """Return the body of a whole function, without signature, docstring and indentation.

    If the function is invalid, the sample's signature and docstring are removed from its beginning.
    """
    text = moved(sample, text, "")
    statements = sample.language.answers.body(text)
    if statements is None:
        statements = text.removeprefix(moved(sample, head_of(sample).lines, ""))
    return moved(sample, statements, "").strip("\n")


def after_cursor(sample: Sample, target: str) -> str:
    """Return the part of `target`, a whole dedented function, after the cursor. It is indented as in the file."""
    head = head_of(sample)
    lines = moved(sample, target, head.indent).split("\n")[head.head.count("\n") :] or [""]
    return "\n".join([lines[0][sample.cursor.column :], *lines[1:]])


def moved(sample: Sample, text: str, to: str) -> str:
    """Shift lines of code to the indentation `to`. The content of strings is unchanged."""
    return "\n".join(sample.language.shift(text.split("\n"), to))


def head_of(sample: Sample) -> FunctionHead:
    """Return the signature and docstring of a sample's function."""
    name = (sample.name or "").partition("(")[0].rpartition(".")[2]
    lines = sample.prefix.split("\n")
    start = sample.span[0] if sample.span else _declaration(lines, name)
    return FunctionHead(name=name, signature=sample.signature or "", head="\n".join(lines[start:]))


def _declaration(lines: list[str], name: str) -> int:
    """Return the index of the last line that may declare `name`, for sets that do not record a function's lines."""
    word = re.compile(rf"\b{re.escape(name)}\s*\(")
    return next((at for at in range(len(lines) - 1, -1, -1) if word.search(lines[at])), max(0, len(lines) - 1))


def _tagged(reader: AnswerReader, head: FunctionHead, answer: str) -> str | None:
    """Return the text from ``[CODE]`` to ``[/CODE]``, the next ``[CODE]`` or the end; None without a tag.

    A model may also mention the tags in its plan, so there may be several texts. The last text that declares the
    function has precedence, then the last valid body, then the last text.
    """
    texts = dict.fromkeys(_unfenced(_CLOSE.split(text, maxsplit=1)[0]) for text in reversed(_OPEN.split(answer)[1:]))
    body = None
    for text in islice(filter(_WORD.search, texts), _MOST):
        function, parsed = reader.function(head, text, True)
        if parsed and _declares(head.name, function, text):
            return text
        if parsed and body is None:
            body = text
    return next(iter(texts), None) if body is None else body


def _unfenced(text: str) -> str:
    blocks = [] if before_fences(text).strip() else fenced(text)
    return unlabelled(blocks[-1] if blocks else text)


def _declares(name: str, function: str, text: str) -> bool:
    declaration = function.partition("(")[0].strip()
    return declaration in text and declaration.split()[-1:] in ([name], [f"_{name}"], [name.removeprefix("_")])
