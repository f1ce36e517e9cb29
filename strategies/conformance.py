"""What every strategy must do, tried on a tiny repository: used by `strategy check`, by our tests and by authors."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.errors import InputFault
from bench.repository import Repository
from bench.types import Kind, Place, Query
from bench.windows import split_lines
from strategies.api import Block, BlockKind, Execute, Execution, Generate, Prompt
from strategies.registry import BoundStrategy
from strategies.tiny import OTHER, PLANTED, bare_case, query_for, view_for

_DRAFT = "apply_tax(cart.total, rate)\n    return round(total, 2)\n"
_NETWORK = tuple(
    f"socket.{event}" for event in ("__new__", "connect", "getaddrinfo", "gethostbyname", "sendto", "bind")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The outcome of one check."""

    name: str
    passed: bool
    detail: str


@dataclass(slots=True)
class _Trial:
    """One run of the strategy and what was seen of it."""

    query: Query
    repo: Repository
    prompt: Prompt | None = None
    fault: str = ""
    seconds: float = 0.0
    asked: list[str] = field(default_factory=list)
    """The prompts of its own calls to the model."""
    network: Sequence[str] = ()


class _Model:
    """Answers everything with one draft."""

    def __init__(self, asked: list[str], *, instructs: bool = True) -> None:
        self._asked, self.instructs = asked, instructs

    def __call__(self, prompt: Prompt, *, role: str = "draft", max_tokens: int = 128) -> str:
        self._asked.append(prompt.text)
        return _DRAFT


def _execute(program: str, *, seconds: float = 10.0) -> Execution:  # noqa: ARG001 - the protocol's
    """Run nothing."""
    return Execution(finished=False, output="NameError: name 'checkout' is not defined")


Attempt = Callable[[Query, Repository, Generate, Execute | None], tuple[Prompt, Sequence[str]]]
"""Runs a strategy once; returns its prompt, and its tries to use the network."""


def check(strategy: BoundStrategy) -> list[Finding]:
    """Run the conformance list in this process, for every task kind that the strategy declares."""
    return findings(strategy.kinds, here(strategy))


def findings(kinds: Collection[Kind], attempt: Attempt) -> list[Finding]:
    """Run the conformance list for some task kinds on whatever runs the strategy."""
    return [finding for kind in sorted(kinds) for finding in _check_kind(attempt, kind)]


def here(strategy: BoundStrategy) -> Attempt:
    """Return what runs a strategy in this very process, its tries to use the network noted."""

    def attempt(
        query: Query, repo: Repository, generate: Generate, execute: Execute | None
    ) -> tuple[Prompt, Sequence[str]]:
        network: list[str] = []
        with _watched(network.append):
            return strategy(query, repo, generate, execute), network

    return attempt


def _check_kind(attempt: Attempt, kind: Kind) -> list[Finding]:
    query = query_for(kind)
    first, second = (_try(attempt, query, view_for(query)) for _ in range(2))
    bare = _try(attempt, *bare_case(kind))
    plain = _try(attempt, query, view_for(query), instructs=False)
    other = _try(attempt, query, view_for(query, OTHER))
    outcomes: list[tuple[str, str, str]] = [
        ("runs", first.fault, f"{first.seconds * 1e3:.1f} ms, {len(first.asked)} calls to the model"),
        ("runs on an empty file", bare.fault, f"{bare.seconds * 1e3:.1f} ms"),
        ("runs with a model that takes no instructions", plain.fault, f"{len(plain.asked)} calls to the model"),
    ]
    prompt = first.prompt
    if prompt is not None:
        fault = _type_fault(prompt)
        outcomes.append(("returns a prompt", fault, "every block is a Block"))
        if fault:
            prompt = None
    if prompt is None:  # the other checks have nothing to read
        return [_finding(kind, *outcome) for outcome in outcomes]
    outcomes += [
        ("is deterministic", _difference(first, second), "two runs, equal prompts"),
        ("blocks are where they say", _place_fault(prompt, first.repo), "every place holds its block's text"),
        ("keeps to the cursor", _leak([first, bare, plain]), "the planted answer is in no prompt"),
        ("cannot tell one answer from another", _told(first, other), "two planted answers, equal prompts"),
        ("shows no path of this machine", _path_fault(first), "only paths of the repository"),
        ("uses no network", ", ".join(sorted({*first.network, *bare.network})), "no connection tried"),
    ]
    if kind is Kind.LINE:
        outcomes.append(("ends with the file", _ending_fault(prompt, query), "the last block is the in-file text"))
    return [_finding(kind, *outcome) for outcome in outcomes]


def _finding(kind: Kind, name: str, fault: str, good: str) -> Finding:
    return Finding(name=f"{kind}: {name}", passed=not fault, detail=fault or good)


def _try(attempt: Attempt, query: Query, repo: Repository, *, instructs: bool = True) -> _Trial:
    trial = _Trial(query, repo)

    began = time.perf_counter()
    try:
        trial.prompt, trial.network = attempt(query, repo, _Model(trial.asked, instructs=instructs), _execute)
    except InputFault as error:
        trial.fault = str(error)
    except Exception as error:  # noqa: BLE001 - whatever a foreign strategy raises is a finding
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(frame.filename).name}:{frame.lineno}"
        trial.fault = " ".join(f"raised {type(error).__name__}: {error} ({place})".split())
    trial.seconds = time.perf_counter() - began
    return trial


def typed(prompt: Prompt) -> Prompt:
    """Return the prompt.

    Raises:
        InputFault: if a part of it is not of the type that it should have.
    """
    if fault := _type_fault(prompt):
        raise InputFault(fault, cure="see docs/writing-a-strategy.md")
    return prompt


def _type_fault(prompt: Prompt) -> str:
    blocks: Any = prompt.blocks
    if not isinstance(blocks, tuple):
        return f"its blocks are a {type(blocks).__name__}; make them a tuple"
    for block in blocks:
        if not isinstance(block, Block) or not isinstance(block.text, str) or not isinstance(block.kind, BlockKind):
            return f"a block is {block!r:.60}; make it a Block with a text and a BlockKind"
        if not all(isinstance(place, Place) for place in block.places):
            return "a block's places are not Place objects"
    return ""


def _told(first: _Trial, other: _Trial) -> str:
    if first.prompt == other.prompt and first.asked == other.asked:
        return ""
    return f"with another answer it {'failed' if other.fault else 'gave another prompt'}: it reads what is hidden"


def _difference(first: _Trial, second: _Trial) -> str:
    if first.prompt == second.prompt and first.asked == second.asked:
        return ""
    return "two runs gave different prompts; seed random numbers with query.seed, sort what comes from sets"


def _place_fault(prompt: Prompt, repo: Repository) -> str:
    for block in prompt.blocks:
        if block.cut or block.kind not in (BlockKind.SIMILAR, BlockKind.INFILE):
            continue
        for place in block.places:
            try:
                lines = split_lines(repo.read(place.path))[place.start : place.end]
            except InputFault as error:
                return str(error)
            shown = ("\n".join(mark + line for line in lines) for mark in ("", "# ", "// "))
            if all(text not in block.text for text in shown):
                return f"{place.path}, lines {place.start} to {place.end}, is not the block's text"
    return ""


def _leak(trials: list[_Trial]) -> str:
    for trial in trials:
        texts = [trial.prompt.text if trial.prompt else "", *trial.asked]
        if any(PLANTED in text for text in texts):
            return "text that stands after the cursor is in the prompt"
    return ""


def _path_fault(trial: _Trial) -> str:
    roots = {str(Path.cwd()), str(Path.home()), tempfile.gettempdir(), sys.prefix}
    for text in (trial.prompt.text if trial.prompt else "", *trial.asked):
        for root in sorted(roots):
            if len(root) > 1 and root + os.sep in text:
                return f"the path {root} is in the prompt"
    return ""


def _ending_fault(prompt: Prompt, query: Query) -> str:
    if not prompt.blocks or prompt.blocks[-1].kind is not BlockKind.INFILE:
        return "the last block is not of kind INFILE; end with strategies.infile_text.infile_block"
    last = prompt.blocks[-1].text
    if not last or not query.prefix.endswith(last):
        return "the last block is not the end of query.prefix"
    return ""


_WATCHERS: list[Callable[[str], None]] = []
_HOOKED: list[bool] = []


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if not _WATCHERS or event not in _NETWORK:
        return
    # One of another family is no network: programs use it within themselves.
    if event != "socket.__new__" or arguments[1] in (socket.AF_INET, socket.AF_INET6):
        for watcher in _WATCHERS:
            watcher(f"{event} {arguments[1:]!r:.80}")


@contextlib.contextmanager
def _watched(note: Callable[[str], None]) -> Iterator[None]:
    """Note every try to use the network, also one from C code."""
    if not _HOOKED:
        sys.addaudithook(_audit)  # stays for the process's life, idle while nobody watches
        _HOOKED.append(True)
    _WATCHERS.append(note)
    try:
        yield
    finally:
        _WATCHERS.remove(note)
