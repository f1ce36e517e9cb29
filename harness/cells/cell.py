"""Runs one strategy on one query inside a cell. The repository, model and sandbox are reached over a socket."""

from __future__ import annotations

import functools
import resource
import socket
import threading
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ctxbench.bench.errors import InputFault
from ctxbench.bench.languages.base import Language
from ctxbench.bench.retrieval.units import Hit
from ctxbench.bench.windows import SIZE, STRIDE, WindowHit
from ctxbench.harness.cells import protocol, wire
from ctxbench.harness.cells.wire import fitting
from ctxbench.strategies import api, registry, resolve
from ctxbench.strategies.api import Execution, Misshapen, Prompt
from ctxbench.strategies.chat import Chat

_CELLS_FOLDER = Path(__file__).parent


class RemoteRepository:
    """The query's repository, read over the socket. Files that the strategy has read are cached."""

    def __init__(self, ask: Ask, name: str, language: Language) -> None:
        self._ask, self.name, self.language = ask, name, language
        self.files = functools.cache(self._files)
        self.read = functools.cache(self._read)

    def _files(self) -> tuple[str, ...]:
        return tuple(self._question("files"))

    def _read(self, path: str) -> str:
        text: str = self._question("read", path=path)
        return text

    def similar_windows(
        self, text: str, *, top: int = 20, size: int = SIZE, stride: int = STRIDE, before: int = 0
    ) -> tuple[WindowHit, ...]:
        """Return the windows of `size` lines that are most similar to `text`, at most `top`, best first."""
        return wire.load_hits(
            self._question("similar_windows", text=text, top=top, size=size, stride=stride, before=before)
        )

    def search(self, text: str, *, unit: str = "function", ranker: str = "minilm", top: int = 10) -> tuple[Hit, ...]:
        """Return the functions, or other code units, that are most similar to `text`, at most `top`, best first."""
        return wire.load_found(self._question("search", text=text, unit=unit, ranker=ranker, top=top))

    def grep(self, pattern: str, *, top: int = 100) -> tuple[Hit, ...]:
        """Return at most `top` lines that match `pattern`, in the order of files and lines; see `bench.grep`."""
        return wire.load_found(self._question("grep", pattern=pattern, top=top))

    def engine(self, name: str) -> RemoteEngine:
        """Return the context engine called `name`."""
        return RemoteEngine(self._question, name)

    def similarity(self, text: str, candidates: Sequence[str], *, ranker: str = "minilm") -> tuple[float, ...]:
        """Return the similarity of each candidate to `text`, in order; higher is more similar."""
        return tuple(self._question("similarity", text=text, candidates=list(candidates), ranker=ranker))

    def _question(self, call: str, **arguments: Any) -> Any:
        """Check the types of the arguments before sending them, so that the traceback shows the author's line."""
        return self._ask(call=call, **fitting(call, arguments))


class RemoteEngine:
    """A context engine that is queried over the socket."""

    def __init__(self, question: Callable[..., Any], name: str) -> None:
        self._question, self._name = question, name

    def search(self, text: str, *, top: int = 10, before: int = 0) -> tuple[Hit, ...]:
        """Return at most `top` results of the engine for the query `text`, best first."""
        return wire.load_found(self._question("engine", name=self._name, text=text, top=top, before=before))


class RemoteModel:
    """The model that a strategy may ask, queried over the socket."""

    def __init__(self, ask: Ask, *, instructs: bool, summarises: bool) -> None:
        self._ask, self.instructs, self.summarises = ask, instructs, summarises

    def __call__(self, prompt: Prompt | Chat, *, role: str = "draft", max_tokens: int = 128) -> str:
        """Return the model's raw answer."""
        asked = wire.dump_chat(prompt) if isinstance(prompt, Chat) else wire.dump_prompt(prompt)
        text: str = self._ask(call="generate", prompt=asked, role=role, max_tokens=max_tokens)
        return text


class RemoteSandbox:
    """The sandbox that runs a strategy's programs, reached over the socket."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def __call__(self, program: str, *, seconds: float = 10.0) -> Execution:
        """Run a Python program for at most `seconds`."""
        seconds = float(seconds) if type(seconds) is int else seconds
        finished, output = self._ask(call="execute", **fitting("execute", {"program": program, "seconds": seconds}))
        return Execution(finished=finished, output=output)


class Ask:
    """A channel for questions to the trusted process outside the cell, one at a time; thread-safe."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel, self._lock = channel, threading.Lock()

    def __call__(self, **question: Any) -> Any:
        """Return the answer, or raise the fault that the trusted process reports."""
        with self._lock:
            protocol.send(self._channel, question)
            answer = protocol.take(self._channel)
        if "fault" in answer:
            what, where, cure = answer["fault"]
            raise InputFault(what, where=where, cure=cure)
        return answer["value"]


def work(channel: socket.socket) -> None:
    """Read one job from the socket, run it, and send the result."""
    job = protocol.take(channel)
    try:
        protocol.send(channel, _do(job, Ask(channel)), most=protocol.MESSAGE)
    except (protocol.ProtocolError, MemoryError) as error:
        protocol.send(channel, _error(error))


def _do(job: dict[str, Any], ask: Ask) -> dict[str, Any]:
    try:
        if "register" in job:
            registration = registry.get(job["register"]).registration
            return {"registration": wire.dump_registration(registration)}
        bound = resolve(job["spec"])
        edited = [name for name, version in job["versions"].items() if registry.get(name).version != version]
        if edited:
            return {"fault": [f"{edited[0]} was edited after the run began", "", "run the same command again"]}
    except InputFault as error:
        return {"fault": [error.what, error.where, error.cure]}
    except BaseException as error:  # noqa: BLE001 - importing foreign code may raise anything
        return _error(error)

    try:
        query = wire.load_query(job["query"])
        model = RemoteModel(ask, instructs=job["instructs"], summarises=job["summarises"])
        sandbox = RemoteSandbox(ask) if job["executes"] else None
        repo = RemoteRepository(ask, job["name"], query.language)
        if not job["checks"]:
            return {"prompt": wire.dump_prompt(bound(query, repo, model, sandbox))}
        from ctxbench.strategies import conformance  # noqa: PLC0415 - runs do not need it

        prompt, network = conformance.in_process(bound)(query, repo, model, sandbox)
        return {"prompt": wire.dump_prompt(prompt), "network": list(network)}
    except Misshapen as error:
        # Report only the message, because the strategy itself raised no exception.
        return {"error": ["", _shortened(f"{error.what}; {error.cure}"), ""]}
    except BaseException as error:  # noqa: BLE001 - the trusted side reports whatever a strategy raises
        return _error(error, bound.strategy.source)


def _error(error: BaseException, source: str = "") -> dict[str, Any]:
    most, reserve = resource.getrlimit(resource.RLIMIT_DATA)
    if isinstance(error, MemoryError):
        # Release the strategy's memory, and allow the use of the reserve.
        traceback.clear_frames(error.__traceback__)
        resource.setrlimit(resource.RLIMIT_DATA, (reserve, reserve))
    # Omit ctxbench's own frames, which do not help the strategy's author.
    frames = [(Path(frame.filename), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    frames = [frame for frame in frames if not _is_ours(frame[0])]
    frames = [frame for frame in frames if source and frame[0].is_relative_to(Path(source).parent)] or frames
    place = f" ({frames[-1][0].name}:{frames[-1][1]})" if frames else ""
    text = str(error)
    if isinstance(error, MemoryError) and most != resource.RLIM_INFINITY:
        text = f"{text}{'; ' * bool(text)}a strategy may use {most / protocol.GIGABYTE:.3g} GiB"
    trace = "".join(traceback.format_exception(error))
    return {"error": [type(error).__name__, f"{_shortened(text)}{place}", _shortened(trace)]}


def _is_ours(file: Path) -> bool:
    return file.parent == _CELLS_FOLDER or str(file) == api.__file__


def _shortened(text: str) -> str:
    half = protocol.TEXT // 4
    return text if len(text) <= 2 * half else f"{text[:half]} … {text[-half:]}"
