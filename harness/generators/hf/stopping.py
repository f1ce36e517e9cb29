"""`End`: the end of an answer that the model would go on with. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ctxbench.harness.generators.base import Request


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
        begin = len(text) - len(text.lstrip())
        if self.line and (at := text.find("\n", begin)) >= 0:
            ends.append(at)
        return min(ends, default=None)


def end_of(request: Request, *, chat: bool) -> End:
    """Return the end of an answer to a request.

    Args:
        request: the request.
        chat: whether a chat model answers: its line stands between marks, and is cut there.
    """
    stops = tuple(stop for stop in request.sampling.stop if stop)
    return End(stops=stops, line=request.one_line and not chat)
