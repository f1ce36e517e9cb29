"""Conformance checks of strategies on a tiny repository, for `ctxbench strategy check` and tests."""

from __future__ import annotations

import os
import re
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product, zip_longest
from pathlib import Path

from ctxbench.bench.errors import InputFault
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Kind, Place, Query
from ctxbench.bench.windows import split_lines
from ctxbench.strategies.api import Block, BlockKind, Execute, Execution, Model, Prompt, named
from ctxbench.strategies.chat import Chat
from ctxbench.strategies.layout import RULE
from ctxbench.strategies.registry import BoundStrategy
from ctxbench.strategies.tiny import OTHER, PLANTED, SearchLedger, bare_case, query_for, view_for

_DRAFT = "apply_tax(cart.total, rate)\n    return round(total, 2)\n"
_SEED = "seed random numbers with query.seed and sort the elements of sets"
_HIDDEN = ("with another answer", "so it reads hidden code")
_MARKS = ("", "# ", "// ")
_NETWORK = [f"socket.{event}" for event in ("__new__", "connect", "getaddrinfo", "gethostbyname", "sendto", "bind")]


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyCheck:
    """The result of one conformance check."""

    name: str
    passed: bool
    detail: str


@dataclass(slots=True)
class _Trial:
    query: Query
    repo: Repository
    prompt: Prompt | None = None
    fault: str = ""
    seconds: float = 0.0
    model_prompts: list[str] = field(default_factory=list)
    network: Sequence[str] = ()


class _Model:
    def __init__(self, prompts: list[str], *, instructs: bool = True) -> None:
        self._prompts, self.instructs, self.summarises = prompts, instructs, instructs

    def __call__(self, prompt: Prompt | Chat, *, role: str = "draft", max_tokens: int = 128) -> str:
        self._prompts.append(prompt.text)
        return _DRAFT


def _execute(program: str, *, seconds: float = 10.0) -> Execution:  # noqa: ARG001 - the protocol's
    return Execution(finished=False, output="NameError: name 'checkout' is not defined")


Attempt = Callable[[Query, Repository, Model, Execute | None], tuple[Prompt, Sequence[str]]]
"""Runs a strategy once. Returns its prompt and its attempts to use the network."""


def check(strategy: BoundStrategy) -> list[StrategyCheck]:
    """Check a strategy in this process, for every task kind it declares."""
    return findings(strategy.kinds, in_process(strategy))


def findings(kinds: Collection[Kind], attempt: Attempt) -> list[StrategyCheck]:
    """Check a strategy for the given task kinds. `attempt` runs the strategy."""
    return [finding for kind in sorted(kinds) for finding in _check_kind(attempt, kind)]


def in_process(strategy: BoundStrategy) -> Attempt:
    """Return an `Attempt` that runs a strategy in this process."""

    def attempt(
        query: Query, repo: Repository, generate: Model, execute: Execute | None
    ) -> tuple[Prompt, Sequence[str]]:
        _watch()
        _TRIES.append([])
        try:
            return strategy(query, repo, generate, execute), _TRIES[-1]
        finally:
            _TRIES.pop()

    return attempt


def _check_kind(attempt: Attempt, kind: Kind) -> list[StrategyCheck]:
    query, ledger = query_for(kind), SearchLedger()
    first = _try(attempt, query, view_for(query, ledger=ledger))
    cost = f"{first.seconds * 1e3:.1f} ms, {len(first.model_prompts)} calls to the model"
    prompt = first.prompt
    if prompt is None:  # A further attempt would fail again, and may take as long.
        return [StrategyCheck(name=f"{kind}: runs", passed=False, detail=first.fault)]
    second = _try(attempt, query, view_for(query))
    bare = _try(attempt, *bare_case(kind))
    plain = _try(attempt, query, view_for(query), instructs=False)
    other = _try(attempt, query, view_for(query, OTHER))
    outcomes: list[tuple[str, str, str]] = [
        ("runs", first.fault, cost),
        ("runs on an empty file", bare.fault, f"{bare.seconds * 1e3:.1f} ms"),
        ("runs with a model that takes no instructions", plain.fault, f"{len(plain.model_prompts)} calls to the model"),
        ("is deterministic", _difference(first, second, "the second time", _SEED), "two runs, equal prompts"),
        ("places match the blocks", _place_fault(prompt, first.repo, ledger), _note(prompt, first, ledger)),
        ("keeps to the cursor", _leak([first, bare, plain]), "the planted answer is in no prompt"),
        ("does not depend on the answer", _difference(first, other, *_HIDDEN), "two answers, equal prompts"),
        ("shows no path of this machine", _path_fault(first), "only paths of the repository"),
        ("uses no network", ", ".join(sorted({*first.network, *bare.network})), "no connection tried"),
    ]
    if kind is Kind.LINE:
        outcomes.append(("ends with the file", _ending_fault(prompt, query), "the last block is the in-file text"))
    return [StrategyCheck(name=f"{kind}: {name}", passed=not bad, detail=bad or good) for name, bad, good in outcomes]


def _try(attempt: Attempt, query: Query, repo: Repository, *, instructs: bool = True) -> _Trial:
    trial = _Trial(query, repo)
    began = time.perf_counter()
    try:
        trial.prompt, trial.network = attempt(query, repo, _Model(trial.model_prompts, instructs=instructs), _execute)
    except InputFault as error:
        trial.fault = str(error)
    except Exception as error:  # noqa: BLE001 - any exception of a foreign strategy is a finding
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(frame.filename).name}:{frame.lineno}"
        trial.fault = " ".join(f"raised {type(error).__name__}: {error} ({place})".split())
    trial.seconds = time.perf_counter() - began
    return trial


def _difference(first: _Trial, second: _Trial, setting: str, reason: str) -> str:
    if second.fault:
        return f"{setting} the strategy failed ({second.fault}); {reason}"
    if differing := _first_difference(first, second):
        return f"{setting} the strategy returned another {differing}; {reason}"
    return ""


def _first_difference(first: _Trial, second: _Trial) -> str:
    for at, (mine, theirs) in enumerate(zip_longest(first.model_prompts, second.model_prompts)):
        if mine != theirs:
            return f"prompt in call {at} of the model"
    blocks = [trial.prompt.blocks if trial.prompt else () for trial in (first, second)]
    for at, (ours, others) in enumerate(zip_longest(*blocks)):
        if ours != others:
            return named(at, ours or others)
    return "" if first.prompt == second.prompt else "list of flags or dropped blocks"


def _place_fault(prompt: Prompt, repo: Repository, ledger: SearchLedger) -> str:
    for at, block in enumerate(prompt.blocks):
        if block.cut or block.kind not in (BlockKind.SIMILAR, BlockKind.INFILE):
            continue
        for place in block.places:
            try:
                text = repo.read(place.path)
                if len(text.splitlines()) > len(split_lines(text)):
                    continue  # a line that ends at a form feed is shown as two
                fault = _misplaced(block, place, text.split("\n"), ledger)
            except InputFault as error:
                fault = str(error)
            if fault:
                return f"{named(at, block)}: {fault}"
    return ""


def _misplaced(block: Block, place: Place, lines: list[str], ledger: SearchLedger) -> str:
    rule = "lines are counted from 0, and the end is the line after the last"
    if place.end > len(lines):
        return f"{place.path} has {len(lines) - (not lines[-1])} lines; {rule}"
    # A unit may omit blank lines, begin within a line, or describe the code in words.
    units = [text.split("\n") for text, places in ledger.hits if place in places]
    is_unit = any(_text(unit, 0, len(unit), mark, 0) in block.text for unit in units for mark in _MARKS)
    for shift in (0,) if is_unit else (0, -1, 1):
        start, end = place.start + shift, min(place.end + shift, len(lines))
        while start < end and not lines[end - 1].strip():
            end -= 1
        # Code may be dedented, such as a method shown without its class.
        margins = {0, *(len(line) - len(line.lstrip()) for line in filter(str.strip, lines[max(0, start) :][:1]))}
        forms = [form for form in product(_MARKS, margins) if _text(lines, start, end, *form) in block.text]
        if not forms or start < 0:
            continue
        if shift:
            return f"its text is at lines {place.start + shift} to {place.end + shift} of {place.path}; {rule}"
        # Blank lines at an edge are invisible.
        before = next((at for at in reversed(range(start)) if lines[at].strip()), start)
        after = next((at + 1 for at in range(end, len(lines)) if lines[at].strip()), end)
        for line, wider in ((before, (before, end)), (after - 1, (start, after))):
            covered = any(other.path == place.path and other.start <= line < other.end for other in block.places)
            if not covered and any(f"{_text(lines, *wider, *form)}\n" in f"{block.text}\n" for form in forms):
                return f"it shows line {line} of {place.path} too; {rule}"
        return ""
    return "" if is_unit else f"its text differs from {place.path}, lines {place.start} to {place.end}; {rule}"


def _note(prompt: Prompt, trial: _Trial, ledger: SearchLedger) -> str:
    """Return a note on blocks that look like mistakes but may be intended."""
    texts = [*map(trial.repo.read, trial.repo.files()), *(text for text, _ in ledger.hits)]
    repository, infile = _code(*texts), _code(*(b.text for b in prompt.blocks if b.kind is BlockKind.INFILE))
    notes: dict[str, str] = {}
    for at, block in enumerate(prompt.blocks):
        text = block.text if block.kind is BlockKind.SIMILAR and not block.cut else ""
        code = _code(*(text.split(RULE)[1:2] or [text]))  # of our own layout what is between its rules
        copied = code & repository
        if code and not block.places and not copied:
            notes.setdefault("shows text that is in no file of the repository", named(at, block))
        if copied & infile and (copied <= infile or any(place.path == trial.query.path for place in block.places)):
            notes.setdefault(
                "repeats code of the target file that the prompt contains above the cursor", named(at, block)
            )
    note = "; ".join(f"{name} {says}" for says, name in notes.items())
    return f"note: {note}" if note else "every place contains its block's text"


def _code(*texts: str) -> set[str]:
    return {line.lstrip("#/ \t").rstrip() for text in texts for line in text.split("\n") if re.search(r"\w", line)}


def _text(lines: list[str], start: int, end: int, mark: str, margin: int) -> str:
    moved = (line[min(margin, len(line) - len(line.lstrip())) :] for line in lines[start:end])
    return "\n".join(mark + line for line in moved)


def _leak(trials: list[_Trial]) -> str:
    location = next(filter(None, (_showing(trial, PLANTED) for trial in trials)), "")
    return f"text after the cursor is in {location}" if location else ""


def _path_fault(trial: _Trial) -> str:
    roots = {str(Path.cwd()), str(Path.home()), tempfile.gettempdir(), sys.prefix}
    for root in sorted(roots):
        if len(root) > 1 and (location := _showing(trial, root + os.sep)):
            return f"the path {root} is in {location}"
    return ""


def _showing(trial: _Trial, text: str) -> str:
    for at, prompt in enumerate(trial.model_prompts):
        if text in prompt:
            return f"the prompt in call {at} of the model"
    for at, block in enumerate(trial.prompt.blocks if trial.prompt else ()):
        if text in block.text:
            return named(at, block)
    return "the prompt" if trial.prompt and text in trial.prompt.text else ""


def _ending_fault(prompt: Prompt, query: Query) -> str:
    if not prompt.blocks or prompt.blocks[-1].kind is not BlockKind.INFILE:
        return "the last block is not of kind INFILE; end with ctxbench.strategies.layout.infile_block"
    last = prompt.blocks[-1].text
    if not last or not query.prefix.endswith(last):
        return "the last block is not the end of query.prefix"
    return ""


_TRIES: list[list[str]] = []


@cache
def _watch() -> None:
    """Record attempts to use the network, also by C code. Python cannot remove an audit hook, so it stays."""
    sys.addaudithook(_audit)


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if not _TRIES or event not in _NETWORK:
        return
    # Sockets of other families are used within a program and reach no network.
    if event != "socket.__new__" or arguments[1] in (socket.AF_INET, socket.AF_INET6):
        _TRIES[-1].append(f"{event} {arguments[1:]!r:.80}")
