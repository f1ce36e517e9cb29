"""`Tools`: what a model may call to look around in the view of a repository. The view alone answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ctxbench.bench.errors import InputFault
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Place, Query
from ctxbench.bench.windows import split_lines
from ctxbench.strategies.chat import Tool, ToolCall, ToolParameter
from ctxbench.strategies.tokens import count

SHOW = Tool(
    name="show",
    help="End the search and name the places that the writer should see, the most useful first.",
    parameters=(
        ToolParameter(
            name="places", kind="strings", help="Each as PATH:FIRST-LAST, lines counted from 1: a/b.py:10-24"
        ),
    ),
)
_PATH = ToolParameter(name="path", help="A file, as `list` names it.")
TOOLS = (
    Tool(
        name="list",
        help="List the files and folders of a folder.",
        parameters=(ToolParameter(name="folder", help="Left out: the top of the repository.", optional=True),),
    ),
    Tool(
        name="read",
        help="Read lines of a file.",
        parameters=(
            _PATH,
            ToolParameter(name="first", kind="integer", help="First line, counted from 1.", optional=True),
            ToolParameter(name="last", kind="integer", help="Last line.", optional=True),
        ),
    ),
    Tool(name="definitions", help="List the classes and functions of a file, with their lines.", parameters=(_PATH,)),
    Tool(
        name="grep",
        help="List the lines of all files that contain a text.",
        parameters=(ToolParameter(name="text", help="`|` stands between two texts, `.*` for anything."),),
    ),
    Tool(
        name="search",
        help="Find code that is most like a text.",
        parameters=(ToolParameter(name="text", help="Code, names or a description."),),
    ),
    SHOW,
)
_PLACE = re.compile(r"(?P<path>.+?):(?P<first>\d{1,8})(?:\s*[-:]\s*(?P<last>\d{1,8}))?")
_READ, _HITS, _GREPPED, _EXCERPT, _WIDTH = 200, 8, 60, 12, 300
"""Lines of one `read`; hits of one `search`, and of one `grep`; lines of a hit, and characters of a line."""
_LONGEST = 500
"""Characters of a text that is looked for with `grep`."""
_TYPES: Mapping[str, type] = {"string": str, "integer": int, "strings": list}


class Refusal(Exception):
    """Raised for a call that cannot be answered; the model is told why."""


class Tools:
    """The tools over one view, with the places that their answers named."""

    def __init__(self, query: Query, repo: Repository, engine: str | None, before: int) -> None:
        """Look around in `repo`.

        Args:
            query: the sample's query.
            repo: its view.
            engine: the context engine that `search` asks; None for BM25 over functions.
            before: the first line of the target file that the prompt shows anyway.
        """
        self._query, self._repo, self._engine, self._before = query, repo, engine, before
        self._answers: Mapping[str, Callable[..., Iterator[str]]] = {
            "list": self._list,
            "read": self._read,
            "definitions": self._definitions,
            "grep": self._grep,
            "search": self._search,
        }
        self.named: list[Place] = []
        """What answers named, in the order of the calls."""

    def answer(self, call: ToolCall, most: int) -> str:
        """Return the answer to a call of a tool but `show`, in `most` tokens.

        Raises:
            Refusal: if there is no such tool, or an argument is wrong.
        """
        arguments = arguments_of(call)
        return _within(self._answers[call.name](**arguments), most)

    def places(self, call: ToolCall) -> list[Place]:
        """Return the places that a call of `show` names, as far as they are in the view and the prompt lacks them.

        Raises:
            Refusal: if none is.
        """
        texts = [text for text in arguments_of(call)["places"] if isinstance(text, str)]
        places = [place for text in texts if (place := self._place(text)) is not None]
        if not places:
            raise Refusal("none of these is a place of the repository that the writer does not see anyway")
        return places

    def _place(self, text: str) -> Place | None:
        match = _PLACE.fullmatch(text.strip())
        if match is None or match["path"] not in self._repo.files():
            return None
        first = max(1, int(match["first"]))
        return self.clipped(Place(path=match["path"], start=first - 1, end=max(first, int(match["last"] or first))))

    def clipped(self, place: Place) -> Place | None:
        """Return what of a place there is and the prompt lacks; None if that is nothing."""
        end = min(place.end, len(split_lines(self._repo.read(place.path))))
        if place.path == self._query.path:
            end = min(end, self._before)
        return Place(path=place.path, start=place.start, end=end) if place.start < end else None

    def text(self, place: Place) -> str:
        """Return the lines of a place."""
        return "\n".join(split_lines(self._repo.read(place.path))[place.start : place.end])

    def _list(self, folder: str = "") -> Iterator[str]:
        prefix = folder.strip("/ ").removeprefix("./")
        prefix = f"{prefix}/" if prefix not in ("", ".") else ""
        inside = [path.removeprefix(prefix) for path in self._repo.files() if path.startswith(prefix)]
        if not inside:
            raise Refusal(f"there is no folder {folder!r:.100}; list without a folder begins at the top")
        yield from sorted({f"{path.partition('/')[0]}/" if "/" in path else path for path in inside})

    def _read(self, path: str, first: int = 1, last: int = 0) -> Iterator[str]:
        lines = split_lines(self._text_of(path))
        start = max(0, first - 1)
        end = min(max(last, first) if last else start + _READ, start + _READ, len(lines))
        if start >= end:
            raise Refusal(f"{path} has {len(lines)} lines")
        self.named.append(Place(path=path, start=start, end=end))
        for number in range(start, end):
            yield f"{number + 1}: {lines[number][: 10 * _WIDTH]}"
        if end < len(lines):
            yield f"({path} has {len(lines)} lines)"

    def _definitions(self, path: str) -> Iterator[str]:
        outline = self._repo.language.outline(self._text_of(path))
        heads = [(type_.lines, type_.header) for type_ in outline.types]
        heads += [(f.lines, f.header or f.qualified) for f in outline.functions if not f.inside]
        for (start, end), header in sorted(heads):
            yield f"{start + 1}-{end}: {' '.join(header.split())}"
        if not heads:
            yield f"{path} defines no class and no function."

    def _text_of(self, path: str) -> str:
        if path not in self._repo.files():
            raise Refusal(f"there is no file {path!r:.100}; call list")
        return self._repo.read(path)

    def _grep(self, text: str) -> Iterator[str]:
        try:
            hits = self._repo.grep(text[:_LONGEST], top=_GREPPED)
        except InputFault as fault:
            raise Refusal(f"{fault.what}; {fault.cure}") from None
        for hit in hits:
            self.named.append(hit.place)
            yield f"{hit.place.path}:{hit.place.start + 1}: {hit.text.strip()[:_WIDTH]}"
        if not hits:
            yield "No line contains it."

    def _search(self, text: str) -> Iterator[str]:
        if self._engine is None:
            hits = self._repo.search(text, unit="function", ranker="bm25", top=_HITS)
        else:
            hits = self._repo.engine(self._engine).search(text, top=_HITS, before=self._before)
        for hit in hits:
            self.named.append(hit.place)
            yield f"{hit.place.path}:{hit.place.start + 1}-{hit.place.end}"
            yield from (f"    {line[:_WIDTH]}" for line in hit.text.split("\n")[:_EXCERPT])
        if not hits:
            yield "Nothing is like it."


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """Return the arguments of a call, checked against the tool's parameters.

    Raises:
        Refusal: if there is no such tool, or one is missing or of another type.
    """
    tool = next((tool for tool in TOOLS if tool.name == call.name), None)
    if tool is None:
        raise Refusal(f"there is no tool {call.name!r:.100}; there are {', '.join(tool.name for tool in TOOLS)}")
    values = call.values
    if values is None:
        raise Refusal(f"the arguments of {call.name} are no JSON object")
    arguments: dict[str, Any] = {}
    for parameter in tool.parameters:
        value = values.get(parameter.name)
        if value is None and parameter.optional:
            continue
        # Models write numbers as texts, and a single place without its list.
        if parameter.kind == "integer" and isinstance(value, str) and value.isdecimal() and len(value) < 9:
            value = int(value)
        if parameter.kind == "strings" and isinstance(value, str):
            value = [value]
        if type(value) is not _TYPES[parameter.kind] or (isinstance(value, int) and abs(value) > 10**8):
            raise Refusal(f"{call.name} needs {parameter.name} ({parameter.kind}): {parameter.help}")
        arguments[parameter.name] = value
    return arguments


def _within(lines: Iterable[str], most: int) -> str:
    """Return lines joined, as many as `most` tokens hold."""
    kept: list[str] = []
    room = most
    for line in lines:
        room -= count(line) + 1
        if room < 0:
            return "\n".join([*kept, "(cut here: it is longer)"])
        kept.append(line)
    return "\n".join(kept)
