"""Agent strategy: a model explores the repository with tools and chooses the places for the prompt."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any

from ctxbench.bench.errors import InputFault
from ctxbench.bench.parameters import AtLeast, Purpose
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Kind, Place, Query
from ctxbench.bench.windows import split_lines
from ctxbench.strategies.api import Generate, Prompt
from ctxbench.strategies.chat import Chat, Message, Role, Tool, ToolCall, ToolParameter
from ctxbench.strategies.layout import (
    BUDGET,
    HALF,
    build_infile,
    count,
    first_shown_line,
    fragment,
    similar_prompt,
    target,
)
from ctxbench.strategies.registry import strategy

ROLE = "explore"
ANSWER = 512
RESULT = 2000
_NEIGHBOURS = 10
_LINES = 20
"""Lines before the cursor in the search for similar code if the model chooses no places."""
PLAIN = "plain_exploration"
"""Flag: the model does not follow instructions, and the prompt shows similar code instead."""
UNFINISHED, NONSENSE, REPEATED = "agent_unfinished", "agent_nonsense", "agent_repeated"
"""Flags: the model chose no places; an answer had no valid tool call; the model repeated a call."""
_TASK = """\
You look for code in a repository of {language}. A developer writes at the cursor, at line {line} of the file {path}, \
and will see this end of that file:

{code}

{task}Find the code elsewhere in the repository that helps most to write what comes next: definitions of what is used \
there, and code that does the same. You have {steps} steps; end with `show`. Do not write the code itself."""
_LAST = "This is the last step: call show now."
_NO_CALL = "Call one of the tools."


@strategy("agent.explore", kinds=(Kind.LINE, Kind.FUNCTION))
def explore(
    query: Query,
    repo: Repository,
    generate: Generate,
    *,
    steps: Annotated[int, AtLeast(1)] = 8,
    tokens: Annotated[int, AtLeast(1)] = 12_000,
    engine: Annotated[str | None, Purpose("asks_engine")] = None,
    budget: Annotated[int, AtLeast(0)] = BUDGET,
    infile: Annotated[int, AtLeast(1)] = HALF,
) -> Prompt:
    """Let the model explore the repository with list, read, definitions, grep and search; show the places it chooses.

    Args:
        steps: maximum number of answers of the model.
        tokens: tokens of the model's answers and the tools' results; once used up, the next step is the last.
        engine: context engine for `search`; by default BM25 over functions.
        budget: tokens for the places, header included.
        infile: tokens for the in-file text.
    """
    tools = Tools(query, repo, engine, first_shown_line(query, infile))
    places: list[Place] = []
    flags = [PLAIN]
    if generate.instructs:
        search = Exploration(query, tools, generate, steps=steps, tokens=tokens, infile=infile)
        places, flags = search.places(), search.flags
    if not places:
        hits = repo.search("\n".join(query.prefix.split("\n")[-_LINES:]), unit="function", ranker="bm25", top=20)
        places = [place for hit in hits if (place := tools.clipped(hit.place)) is not None]
    fragments = [
        fragment([place.path], tools.text(place), (place,), float(len(places) - at))
        for at, place in enumerate(dict.fromkeys(places))
    ]
    return similar_prompt(query, fragments, budget=budget, infile=infile).flagged(*flags)


class Exploration:
    """One exploration of a repository by the model."""

    def __init__(self, query: Query, tools: Tools, generate: Generate, *, steps: int, tokens: int, infile: int) -> None:
        self._tools, self._generate, self._steps, self._room = tools, generate, steps, tokens
        task = _TASK.format(
            language=query.language.label,
            line=query.cursor.line + 1,
            path=query.path,
            code=build_infile(query.prefix, infile),
            task=f"The task is to write the body of:\n\n{target(query)}\n\n" if query.kind is Kind.FUNCTION else "",
            steps=steps,
        )
        self._chat = Chat(messages=(Message(role=Role.USER, text=task),), tools=TOOLS)
        self._called: Counter[tuple[str, str]] = Counter()
        self.flags: list[str] = []

    def places(self) -> list[Place]:
        """Explore until the model chooses places, or its steps or tokens run out. Return the places, best first."""
        for step in range(1, self._steps + 1):
            last = step == self._steps or self._room <= 0
            places = self._step(last=last)
            if places or last:
                break
        if not places:
            self.flags.append(UNFINISHED)
            places = self._named()
        return places

    def _step(self, *, last: bool) -> list[Place]:
        if last:
            # Append it instead of sending a new message: many models' templates reject two user messages in a row.
            *before, latest = self._chat.messages
            latest = replace(latest, text=f"{latest.text}\n\n{_LAST}")
            self._chat = Chat(messages=(*before, latest), tools=(SHOW,))
        message = self._generate(self._chat, role=ROLE, max_tokens=ANSWER)
        self._room -= count(str(message))
        self._chat = self._chat.then(message)
        if not message.calls:
            self.flags.append(NONSENSE)
            self._chat = self._chat.then(Message(role=Role.USER, text=_NO_CALL))
        places: list[Place] = []
        for call in message.calls:
            result = ""
            try:
                if call.name == SHOW.name:
                    places += self._tools.places(call)
                else:
                    result = self._result(call)
            except Refusal as refusal:
                self.flags.append(NONSENSE)
                result = str(refusal)
            self._room -= count(result)
            self._chat = self._chat.then(Message(role=Role.TOOL, text=result))
        return places

    def _result(self, call: ToolCall) -> str:
        key = (call.name, call.arguments)
        self._called[key] += 1
        if self._called[key] > 1:
            self.flags.append(REPEATED)
            return "You called this before; its result is above."
        if self._room <= 0:
            return "No tokens are left: call show."
        return self._tools.answer(call, min(RESULT, self._room))

    def _named(self) -> list[Place]:
        places: list[Place] = []
        for place in reversed(self._tools.named):
            around = _NEIGHBOURS if place.end - place.start == 1 else 0
            wider = Place(path=place.path, start=max(0, place.start - around), end=place.end + around)
            clipped = self._tools.clipped(wider)
            if clipped is not None and not any(
                other.path == clipped.path and other.start <= clipped.start and clipped.end <= other.end
                for other in places
            ):
                places.append(clipped)
        return places


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
        parameters=(ToolParameter(name="folder", help="A folder; by default the repository's root.", optional=True),),
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
        parameters=(ToolParameter(name="text", help="`|` separates alternative texts, `.*` matches anything."),),
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
"""Limits: lines per `read`, hits per `search` and `grep`, lines per hit, characters per line."""
_LONGEST = 500
_TYPES: Mapping[str, type] = {"string": str, "integer": int, "strings": list}


class Refusal(Exception):
    """An invalid tool call. The model receives the message."""


class Tools:
    """The model's tools for one sample. The object records the places in the tools' results."""

    def __init__(self, query: Query, repo: Repository, engine: str | None, before: int) -> None:
        """Set up the tools.

        Args:
            engine: spec of the context engine for `search`; None for BM25 over functions.
            before: first line of the target file that the prompt shows anyway, 0-based.
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

    def answer(self, call: ToolCall, most: int) -> str:
        """Return the result of a tool call other than `show`, truncated to `most` tokens.

        Raises:
            Refusal: if the tool does not exist, or an argument is wrong.
        """
        arguments = arguments_of(call)
        return _joined(self._answers[call.name](**arguments), most)

    def places(self, call: ToolCall) -> list[Place]:
        """Return the places in a `show` call, without lines that do not exist or are already in the prompt.

        Raises:
            Refusal: if an argument is wrong, or no place remains.
        """
        texts = [text for text in arguments_of(call)["places"] if isinstance(text, str)]
        places = [place for text in texts if (place := self._place(text)) is not None]
        if not places:
            raise Refusal("these places are not in the repository, or the writer sees them anyway")
        return places

    def _place(self, text: str) -> Place | None:
        match = _PLACE.fullmatch(text.strip())
        if match is None or match["path"] not in self._repo.files():
            return None
        first = max(1, int(match["first"]))
        return self.clipped(Place(path=match["path"], start=first - 1, end=max(first, int(match["last"] or first))))

    def clipped(self, place: Place) -> Place | None:
        """Return the part of a place that exists and is not already in the prompt; None if empty."""
        end = min(place.end, len(split_lines(self._repo.read(place.path))))
        if place.path == self._query.path:
            end = min(end, self._before)
        return Place(path=place.path, start=place.start, end=end) if place.start < end else None

    def text(self, place: Place) -> str:
        """Return a place's source text."""
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
    """Return a tool call's arguments by name, after checking their types.

    Raises:
        Refusal: if the tool does not exist, or an argument is missing or of another type.
    """
    tool = next((tool for tool in TOOLS if tool.name == call.name), None)
    if tool is None:
        raise Refusal(f"there is no tool {call.name!r:.100}; there are {', '.join(tool.name for tool in TOOLS)}")
    values = call.values
    if values is None:
        raise Refusal(f"the arguments of {call.name} are not a JSON object")
    arguments: dict[str, Any] = {}
    for parameter in tool.parameters:
        value = values.get(parameter.name)
        if value is None and parameter.optional:
            continue
        # Models write numbers as strings, and a single place without a list.
        if parameter.kind == "integer" and isinstance(value, str) and value.isdecimal() and len(value) < 9:
            value = int(value)
        if parameter.kind == "strings" and isinstance(value, str):
            value = [value]
        if type(value) is not _TYPES[parameter.kind] or (isinstance(value, int) and abs(value) > 10**8):
            raise Refusal(f"{call.name} needs {parameter.name} ({parameter.kind}): {parameter.help}")
        arguments[parameter.name] = value
    return arguments


def _joined(lines: Iterable[str], most: int) -> str:
    kept: list[str] = []
    room = most
    for line in lines:
        room -= count(line) + 1
        if room < 0:
            return "\n".join([*kept, "(cut here: it is longer)"])
        kept.append(line)
    return "\n".join(kept)
