"""Inside a cell: one strategy, one query, and a channel to ask for everything else."""

from __future__ import annotations

import functools
import socket
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.errors import InputFault
from bench.retrieval.types import Hit
from bench.types import Language
from bench.windows import SIZE, STRIDE, WindowHit
from harness.cells import bounds, wire
from strategies import conformance, registry, resolve
from strategies.api import Execution, Prompt

_HERE = Path(__file__).parent


class RemoteRepository:
    """The `Repository` of the query, asked for over the channel; holds only what it has been told."""

    def __init__(self, ask: Ask, name: str, language: Language) -> None:
        """Make a stand-in for the view of that name."""
        self._ask, self.name, self.language = ask, name, language
        self.files = functools.cache(self._files)
        self.read = functools.cache(self._read)

    def _files(self) -> tuple[str, ...]:
        """Return the paths, sorted."""
        return tuple(self._ask(call="files"))

    def _read(self, path: str) -> str:
        """Return a file's text; the target file up to the cursor."""
        text: str = self._ask(call="read", path=path)
        return text

    def similar_windows(
        self, text: str, *, top: int = 20, size: int = SIZE, stride: int = STRIDE
    ) -> tuple[WindowHit, ...]:
        """Return the windows most like `text`, best first."""
        return wire.load_hits(self._ask(call="similar_windows", text=text, top=top, size=size, stride=stride))

    def search(self, text: str, *, unit: str = "function", ranker: str = "minilm", top: int = 10) -> tuple[Hit, ...]:
        """Return the units most like `text`, best first."""
        return wire.load_found(self._ask(call="search", text=text, unit=unit, ranker=ranker, top=top))

    def similarity(self, text: str, candidates: Sequence[str], *, ranker: str = "minilm") -> tuple[float, ...]:
        """Return how like `text` each candidate is."""
        return tuple(self._ask(call="similarity", text=text, candidates=list(candidates), ranker=ranker))


class RemoteModel:
    """The model, asked over the channel."""

    def __init__(self, ask: Ask, *, instructs: bool) -> None:
        """Make a stand-in for a model that does or does not follow instructions."""
        self._ask, self.instructs = ask, instructs

    def __call__(self, prompt: Prompt, *, role: str = "draft", max_tokens: int = 128) -> str:
        """Return the model's raw answer."""
        text: str = self._ask(call="generate", prompt=wire.dump_prompt(prompt), role=role, max_tokens=max_tokens)
        return text


class RemoteSandbox:
    """The sandbox, asked over the channel."""

    def __init__(self, ask: Ask) -> None:
        """Make a stand-in for the run's sandbox."""
        self._ask = ask

    def __call__(self, program: str, *, seconds: float = 10.0) -> Execution:
        """Run a Python program."""
        finished, output = self._ask(call="execute", program=program, seconds=float(seconds))
        return Execution(finished=finished, output=output)


class Ask:
    """Questions to the trusted side, one at a time, whichever thread asks."""

    def __init__(self, channel: socket.socket) -> None:
        """Ask over `channel`."""
        self._channel, self._lock = channel, threading.Lock()

    def __call__(self, **question: Any) -> Any:
        """Return the answer.

        Raises:
            InputFault: as the trusted side's object raised it.
        """
        with self._lock:
            wire.send(self._channel, question)
            answer = wire.receive(self._channel)[0]
        if "fault" in answer:
            what, where, cure = answer["fault"]
            raise InputFault(what, where=where, cure=cure)
        return answer["value"]


def work(channel: socket.socket) -> None:
    """Take one job from the channel, do it, and send what came of it."""
    job, _ = wire.receive(channel)
    try:
        wire.send(channel, _do(job, Ask(channel)), most=bounds.MESSAGE)
    except wire.Garbage as error:
        wire.send(channel, _error(error))


def _do(job: dict[str, Any], ask: Ask) -> dict[str, Any]:
    try:
        if "register" in job:
            return {"registration": wire.dump_registration(registry.get(job["register"]).registration)}
        bound = resolve(job["spec"])
    except InputFault as error:
        return {"fault": [error.what, error.where, error.cure]}
    except BaseException as error:  # noqa: BLE001 - importing foreign code may raise anything
        return _error(error)

    try:
        query = wire.load_query(job["query"])
        model = RemoteModel(ask, instructs=job["instructs"])
        sandbox = RemoteSandbox(ask) if job["executes"] else None
        repo = RemoteRepository(ask, job["name"], query.language)
        if not job["checks"]:
            return {"prompt": wire.dump_prompt(bound(query, repo, model, sandbox))}
        prompt, network = conformance.here(bound)(query, repo, model, sandbox)
        return {"prompt": wire.dump_prompt(conformance.typed(prompt)), "network": list(network)}
    except BaseException as error:  # noqa: BLE001 - whatever a strategy raises is told to the trusted side
        return _error(error)


def _error(error: BaseException) -> dict[str, Any]:
    # What asks for the strategy is no place where its author could look.
    frames = [one for one in traceback.extract_tb(error.__traceback__) if Path(one.filename).parent != _HERE]
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    trace = "".join(traceback.format_exception(error))
    return {"error": [type(error).__name__, f"{_shortened(str(error))}{place}", _shortened(trace)]}


def _shortened(text: str) -> str:
    """Return the beginning and the end of a text that is longer than what is kept of it."""
    half = bounds.TEXT // 4
    return text if len(text) <= 2 * half else f"{text[:half]} … {text[-half:]}"
