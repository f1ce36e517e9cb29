"""Line completion: the end of a line, the message around a chat model's prompt, and the code in its answer. Pure.

The message is the one that InferCom's released code sends to a chat model, word for word: one that is shown bare
code explains it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ctxbench.bench.languages.answers import fenced
from ctxbench.bench.types import Kind
from ctxbench.harness.generators.base import Request
from ctxbench.strategies.api import BlockKind

END = "\n"
OPEN = "<output_start>"
CLOSE = ("<output_end>", "</output_end>", "</output_start>")
_MESSAGE = """\
You are a code completion assistant. Given a {language} code prefix, your task is to generate the next few lines of \
code that would logically follow the prefix. Stop at the first newline character. Do not include explanations or \
additional output.

Only output the generated code between the special tokens <output_start> and <output_end>.

Here is the code prefix:

{prefix}

Complete the code (do not repeat the prefix):"""


def is_line(request: Request) -> bool:
    """Return whether a prompt is code to continue; questions about code are sent unchanged."""
    blocks = request.prompt.blocks
    return request.kind is Kind.LINE and bool(blocks) and blocks[-1].kind is BlockKind.INFILE


def end(text: str) -> int | None:
    """Return the end of the first line of an answer that is not blank; None if none is complete."""
    at = text.find(END, len(text) - len(text.lstrip()))
    return at if at >= 0 else None


def message(request: Request) -> str:
    """Return the message to a chat model: it asks for the line after code; any other prompt is the whole message."""
    text = request.prompt.text
    if not is_line(request):
        return text
    return _MESSAGE.format(language=request.language.label, prefix=text)


def answer(request: Request, text: str) -> str:
    """Return the code in an answer to `message`: the text between the marks, else all of it; of fences the first."""
    if not is_line(request):
        return text
    _, mark, inner = text.partition(OPEN)
    text = inner if mark else text
    text = text[: min((at for close in CLOSE if (at := text.find(close)) >= 0), default=len(text))]
    # The release leaves a fence in, and scores its mark as the line.
    blocks = fenced(text) if text.lstrip().startswith("```") else []
    return next(filter(str.strip, blocks), text)


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The end of an answer, by texts or by its first line."""

    stops: tuple[str, ...] = ()
    """Texts; the answer ends before the first."""
    line: bool = False
    """Whether it ends with its first complete line that is not blank, before the line's end."""

    def __bool__(self) -> bool:
        """Return whether there is anything to search for."""
        return self.line or bool(self.stops)

    def find(self, text: str) -> int | None:
        """Return how many characters of a text are the answer; None if it does not end there yet."""
        ends = [at for stop in self.stops if (at := text.find(stop)) >= 0]
        if self.line and (line_end := end(text)) is not None:
            ends.append(line_end)
        return min(ends, default=None)


def end_of(request: Request, *, chat: bool) -> End:
    """Return the end of an answer to a request.

    Args:
        request: the request.
        chat: whether a chat model answers: its line stands between marks, and is cut there.
    """
    stops = tuple(stop for stop in request.sampling.stop if stop)
    return End(stops=stops, line=request.one_line and not chat)
