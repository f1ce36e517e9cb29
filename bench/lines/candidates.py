"""Lists the lines of a file that can become samples, and the imports to mask for each.

At a name's first use in a file, all earlier import statements that bind the name are blanked. These statements may also
bind other names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from random import Random
from typing import Literal

from ctxbench.bench.errors import UnknownName
from ctxbench.bench.formats.hygiene import VerbatimIndex
from ctxbench.bench.languages.base import FileFacts, InternalLoad
from ctxbench.bench.languages.outline import Span
from ctxbench.bench.parameters import bind, parameters_of
from ctxbench.bench.repositories.snapshot import Snapshot
from ctxbench.bench.spec import Spec, Value, parse
from ctxbench.bench.types import NEXT_LINE, SINGLE_LINE, Use

MIN_TOKENS = 4
MAX_CHARACTERS = 400
"""Maximum length of a line. Longer lines are data or minified code."""
_LEAST_TOKENS = 2
_BEFORE_VALUES = frozenset({"=", "return", "await", "raise", "throw"})
FirstUse = Literal["name", "member"]
CursorPlace = Literal["token", "value"]
DrawKey = Literal["place", "text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineProtocol:
    """The rules for choosing lines: ctxbench's, or ProjBench's as in the InferCom paper and its released records."""

    name: str = "ctxbench"
    per_repo: int = 50
    filtered: bool = True
    """Whether ctxbench's filters apply. The InferCom paper states none."""
    first_use: FirstUse = "name"
    """First use that masks an import: the first use of the imported ``name``, or of a ``member`` reached through it."""
    cursor: CursorPlace = "token"
    """Cursor inside a line: before a random ``token`` (InferCom paper), or before an assigned or returned ``value``."""
    draw: DrawKey = "place"
    """Basis of a line's random cursor and order: its ``place``, or its ``text``, which a move does not change."""

    def __str__(self) -> str:
        """Return the spec for `read_protocol`."""
        options: dict[str, Value] = {"cursor": self.cursor, "first_use": self.first_use, "draw": self.draw}
        return str(Spec(self.name, {key: value for key, value in options.items() if value != getattr(OURS, key)}))


OURS = LineProtocol()


def _ours(*, draw: DrawKey = "place") -> LineProtocol:
    return replace(OURS, draw=draw)


def _projbench(*, cursor: CursorPlace = "token", first_use: FirstUse = "name") -> LineProtocol:
    return LineProtocol(name="projbench", per_repo=200, filtered=False, cursor=cursor, first_use=first_use)


def read_protocol(text: str) -> LineProtocol:
    """Return the line protocol that a spec describes, such as ``ctxbench`` or ``projbench(cursor=value)``.

    Raises:
        InputFault: if the text is not a spec, the name or a parameter is unknown, or a value is invalid.
    """
    spec = parse(text)
    protocols: dict[str, Callable[..., LineProtocol]] = {OURS.name: _ours, "projbench": _projbench}
    if spec.name not in protocols:
        raise UnknownName("protocol", spec.name, tuple(protocols), command="ctxbench samples build --help")
    return protocols[spec.name](**bind(parameters_of(protocols[spec.name], spec.name, strict=True), spec))


@dataclass(frozen=True, slots=True, kw_only=True)
class LineCandidate:
    """A line that uses the repository's own API."""

    path: str
    line: int
    text: str
    tokens: tuple[Span, ...]
    """Column spans of tokens. A string is one token or, in ProjBench's protocol, several (see `FileFacts.leaves`)."""
    column: int
    uses: tuple[Use, ...]
    masked: tuple[Span, ...]
    hidden: frozenset[str]
    """Names whose imports are masked, as the file binds them."""
    shared: bool
    """Whether a masked statement also binds a name that an earlier line uses."""


def candidates(
    lines: list[str], facts: FileFacts, loads: tuple[InternalLoad, ...], protocol: LineProtocol = OURS
) -> tuple[list[LineCandidate], Counter[str]]:
    """Return a file's candidate lines in order, and the number of rejected lines by reason."""
    usable: list[LineCandidate] = []
    drops: Counter[str] = Counter()
    earlier_names: set[tuple[str, tuple[Span, ...]]] = set()
    used: set[Span] = set()
    for line, group in groupby(loads, key=lambda load: load.line):
        line_loads = list(group)
        reason = _reason(lines[line], facts, line, line_loads, protocol)
        if reason:
            drops[reason] += 1
        else:
            visible_loads = [load for load in line_loads if not (protocol.filtered and load.quoted)]
            first_loads = [load for load in visible_loads if _first_use_key(load, protocol) not in earlier_names]
            # Names in strings count: a cursor after such a name would reveal it although its import is masked.
            column = line_loads[0].column
            tokens = (facts.tokens if protocol.filtered else facts.leaves)[line]
            usable.append(_candidate(lines[line], facts.path, tokens, visible_loads, first_loads, used, column=column))
        earlier_names.update(_first_use_key(load, protocol) for load in line_loads)
        used.update(statement for load in line_loads for statement in load.statements)
    return usable, drops


def _first_use_key(load: InternalLoad, protocol: LineProtocol) -> tuple[str, tuple[Span, ...]]:
    return load.uses[-1].name if protocol.first_use == "member" else load.name, load.statements


def _reason(text: str, facts: FileFacts, line: int, loads: list[InternalLoad], protocol: LineProtocol) -> str:
    if not protocol.filtered:
        return "import" if facts.barred.get(line) == "import" else ""
    if all(load.quoted for load in loads):
        return "in_string"
    if line in facts.barred:
        return facts.barred[line]
    if len(facts.tokens.get(line, ())) < MIN_TOKENS:
        return "few_tokens"
    return "long_line" if len(text) > MAX_CHARACTERS else ""


def _candidate(
    text: str,
    path: str,
    tokens: tuple[Span, ...],
    loads: list[InternalLoad],
    first_loads: list[InternalLoad],
    used: set[Span],
    *,
    column: int,
) -> LineCandidate:
    line = loads[0].line
    masked = sorted({span for load in first_loads for span in load.statements if span[0] < line})
    return LineCandidate(
        path=path,
        line=line,
        text=text.rstrip(),
        tokens=tokens,
        column=column,
        uses=tuple(dict.fromkeys(use for load in loads for use in load.near)),
        masked=tuple(masked),
        hidden=frozenset(load.name for load in first_loads),
        shared=any(span in used for span in masked),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A candidate line with its cursor."""

    candidate: LineCandidate
    subkind: str
    column: int
    target: str
    """Rest of the line after the cursor, without trailing white space."""


def cut(candidate: LineCandidate, *, repo: str, seed: int, protocol: LineProtocol = OURS) -> Cut:
    """Place the cursor before the line or inside it, each with probability 1/2 (see `LineProtocol.cursor`)."""
    draw = _draw(*_key(candidate, repo, seed, protocol))
    if draw.random() < 0.5:
        return Cut(candidate=candidate, subkind=NEXT_LINE, column=0, target=candidate.text)
    starts = [start for start, _ in candidate.tokens if start <= candidate.column]
    # A line inside a multi-line string may start without a token.
    column = draw.choice(starts or [candidate.column]) if protocol.cursor == "token" else _value_start(candidate)
    return Cut(candidate=candidate, subkind=SINGLE_LINE, column=column, target=candidate.text[column:])


def _value_start(candidate: LineCandidate) -> int:
    column, depth, follows = candidate.column, 0, False
    for start, end in candidate.tokens:
        if start > candidate.column:
            break
        column = start if follows else column
        token = candidate.text[start:end]
        depth += (token in ("(", "[", "{")) - (token in (")", "]", "}"))
        follows = depth <= 0 and token in _BEFORE_VALUES
    return column


def _key(candidate: LineCandidate, repo: str, seed: int, protocol: LineProtocol) -> tuple[str | int, ...]:
    return seed, repo, candidate.path, candidate.text if protocol.draw == "text" else candidate.line


def _draw(*key: str | int) -> Random:
    return Random("\0".join(map(str, key)))  # noqa: S311 - a sample, not a secret


def fault(line_cut: Cut, index: VerbatimIndex, protocol: LineProtocol = OURS) -> str:
    """Return why a line cannot be a sample: ``verbatim`` (it occurs elsewhere) or ``near_empty``; empty if it can."""
    text, tokens = line_cut.candidate.text, line_cut.candidate.tokens
    if not protocol.filtered:
        return "verbatim" if index.in_another_file(line_cut.target, line_cut.candidate.path) else ""
    if index.repeated(text):
        return "verbatim"
    target_tokens = [text[start:end] for start, end in tokens if start >= line_cut.column]
    if len(target_tokens) < _LEAST_TOKENS or not any(any(map(_is_word, token)) for token in target_tokens):
        return "near_empty"
    return ""


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def ordered(cuts: Sequence[Cut], *, repo: str, seed: int, protocol: LineProtocol = OURS) -> list[Cut]:
    """Return lines in the order in which they are chosen. A smaller set is the beginning of a larger one.

    In ctxbench's protocol, files take turns in a seeded order, and so do a file's lines: otherwise large files would
    dominate. In ProjBench's protocol, all lines have the same chance.
    """
    if not protocol.filtered:
        drawn = sorted(cuts, key=lambda line_cut: (line_cut.candidate.path, line_cut.candidate.line))
        _draw(seed, repo).shuffle(drawn)
        return drawn
    files: dict[str, list[Cut]] = {}
    for line_cut in cuts:
        files.setdefault(line_cut.candidate.path, []).append(line_cut)
    names = sorted(files)
    if protocol.draw == "text":
        # A shuffle would move many lines when one file or line is new. A key for each line keeps the turns.
        names.sort(key=lambda name: _draw(seed, repo, name).random())
        for file_cuts in files.values():
            file_cuts.sort(key=lambda line_cut: _draw("turn", *_key(line_cut.candidate, repo, seed, protocol)).random())
    else:
        _draw(seed, repo).shuffle(names)
        for name in names:
            files[name].sort(key=lambda line_cut: line_cut.candidate.line)
            _draw(seed, repo, name).shuffle(files[name])
    rounds = max((len(file_cuts) for file_cuts in files.values()), default=0)
    return [files[name][turn] for turn in range(rounds) for name in names if turn < len(files[name])]


def analyse(snapshot: Snapshot) -> dict[str, FileFacts]:
    """Return the facts of every file in a snapshot, by path."""
    language, facts = snapshot.language, dict[str, FileFacts]()
    for path, text in snapshot.texts.items():
        read = language.analyse(path, text)
        facts[path] = replace(read, broken=read.broken or not language.parses(text))
    return facts
