"""Agent: a model looks around in the repository by tools, step by step, and names the places that the prompt shows.

The way of agents that work on repositories (SWE-agent, OpenHands), cut down to finding context: it changes nothing and
runs nothing. The model reads and writes calls of tools itself where its generator can, and else the text protocol of
`strategies.chat`. An answer is a step, whatever stands in it. It ends with the tool `show`, or by its budgets; then the
places that the last answers named are shown, and the prompt says so.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Annotated

from ctxbench.bench.parameters import AsksEngine, AtLeast
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Kind, Place, Query
from ctxbench.strategies.agent.tools import SHOW, TOOLS, Refusal, Tools
from ctxbench.strategies.api import Generate, Prompt
from ctxbench.strategies.chat import Chat, Message, Role, ToolCall
from ctxbench.strategies.layout import (
    BUDGET,
    HALF,
    Fragment,
    build_infile,
    first_shown_line,
    similar_prompt,
    target,
)
from ctxbench.strategies.registry import strategy
from ctxbench.strategies.tokens import count

ROLE = "explore"
"""The role of its calls of the model."""
ANSWER = 512
"""Most new tokens of a step."""
RESULT = 2000
"""Most tokens of the result of one call."""
_NEIGHBOURS = 10
"""Lines around a line that `grep` named, if it is shown unasked."""
_LINES = 20
"""Lines before the cursor that similar code is looked for with, where the model names none."""
PLAIN = "plain_exploration"
"""Flag: the model follows no instructions, and similar code is shown in place of what it would have found."""
UNFINISHED, NONSENSE, REPEATED = "agent_unfinished", "agent_nonsense", "agent_repeated"
"""Flags: it named no places; an answer called no tool as it should; it called the same again."""
_TASK = """\
You look for code in a repository of {language}. Somebody writes at the cursor, at line {line} of the file {path}, and \
will see this end of that file:

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
    engine: Annotated[str | None, AsksEngine()] = None,
    budget: Annotated[int, AtLeast(0)] = BUDGET,
    infile: Annotated[int, AtLeast(1)] = HALF,
) -> Prompt:
    """Let the model look around by list, read, definitions, grep and search, and show the places that it names.

    Args:
        query: the sample's query.
        repo: the repository.
        generate: the model.
        steps: answers of the model at most.
        tokens: tokens of its answers and of what tools answered, all together; a step begins only within them.
        engine: what `search` asks; none for BM25 over functions.
        budget: tokens for what is shown, header included.
        infile: tokens for the in-file text.
    """
    tools = Tools(query, repo, engine, first_shown_line(query, infile))
    places: list[Place] = []
    flags: tuple[str, ...] = (PLAIN,)
    if generate.instructs:
        search = Exploration(query, tools, generate, steps=steps, tokens=tokens, infile=infile)
        places, flags = search.places(), search.flags
    if not places:
        hits = repo.search("\n".join(query.prefix.split("\n")[-_LINES:]), unit="function", ranker="bm25", top=20)
        places = [place for hit in hits if (place := tools.clipped(hit.place)) is not None]
    fragments = [
        Fragment(paths=(place.path,), text=tools.text(place), places=(place,), score=float(len(places) - at))
        for at, place in enumerate(dict.fromkeys(places))
    ]
    prompt = similar_prompt(query, fragments, budget=budget, infile=infile)
    return Prompt(blocks=prompt.blocks, dropped=prompt.dropped, flags=(*prompt.flags, *flags))


class Exploration:
    """One walk of the model through a repository."""

    def __init__(self, query: Query, tools: Tools, generate: Generate, *, steps: int, tokens: int, infile: int) -> None:
        """Begin at the task; the first step is taken by `places`."""
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
        self._marks: dict[str, None] = {}

    @property
    def flags(self) -> tuple[str, ...]:
        """Remarks on the walk so far."""
        return tuple(self._marks)

    def places(self) -> list[Place]:
        """Walk to the end; return the places to show, the most useful first."""
        for step in range(1, self._steps + 1):
            last = step == self._steps or self._room <= 0
            places = self._step(last=last)
            if places or last:
                break
        if not places:
            self._marks[UNFINISHED] = None
            places = self._named()
        return places

    def _step(self, *, last: bool) -> list[Place]:
        """Ask once, and answer its calls; return the places that it shows, if it does."""
        if last:
            # Not a message of its own: many models' templates refuse two of the user's in a row.
            *before, latest = self._chat.messages
            latest = replace(latest, text=f"{latest.text}\n\n{_LAST}")
            self._chat = Chat(messages=(*before, latest), tools=(SHOW,))
        message = self._generate(self._chat, role=ROLE, max_tokens=ANSWER)
        self._room -= count(str(message))
        self._chat = self._chat.then(message)
        if not message.calls:
            self._marks[NONSENSE] = None
            self._chat = self._chat.then(Message(role=Role.USER, text=_NO_CALL))
        places: list[Place] = []
        for call in message.calls:
            if call.name == SHOW.name:
                shown_places, result = self._show(call)
                places += shown_places
            else:
                result = self._result(call)
            self._room -= count(result)
            self._chat = self._chat.then(Message(role=Role.TOOL, text=result))
        return places

    def _show(self, call: ToolCall) -> tuple[list[Place], str]:
        try:
            return self._tools.places(call), ""
        except Refusal as refusal:
            self._marks[NONSENSE] = None
            return [], str(refusal)

    def _result(self, call: ToolCall) -> str:
        """Return what a call is answered with."""
        key = (call.name, call.arguments)
        self._called[key] += 1
        if self._called[key] > 1:
            self._marks[REPEATED] = None
            return "You called this before; its result stands above."
        if self._room <= 0:
            return "There is no room for more: call show."
        try:
            return self._tools.answer(call, min(RESULT, self._room))
        except Refusal as refusal:
            self._marks[NONSENSE] = None
            return str(refusal)

    def _named(self) -> list[Place]:
        """Return the places that answers named, the last first; a single line with those around it."""
        places: list[Place] = []
        for place in reversed(self._tools.named):
            around = _NEIGHBOURS if place.end - place.start == 1 else 0
            wider = Place(path=place.path, start=max(0, place.start - around), end=place.end + around)
            clipped = self._tools.clipped(wider)
            if clipped is not None and not any(_within(clipped, other) for other in places):
                places.append(clipped)
        return places


def _within(place: Place, other: Place) -> bool:
    return place.path == other.path and other.start <= place.start and place.end <= other.end
