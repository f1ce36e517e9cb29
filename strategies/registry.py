"""Strategies by name: the decorator, the entry points, and files that need no installation.

A strategy is a function ``(query, repo, *, parameters)``, ``(query, repo, generate, *, parameters)`` or
``(query, repo, generate, execute, *, parameters)``; ``generate`` asks the model on the way, ``execute`` runs in
the sandbox what it wrote (see `strategies.api`). It is named by the decorator and found
through the entry-point group ``ctxbench.strategies``, or in a file: ``path/to/file.py@name(key=value)``.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from bench import spec as specs
from bench.errors import InputFault, UnknownName
from bench.files import explained, sha256
from bench.registry import Registry, origin_of
from bench.repository import Repository
from bench.spec import Spec, Value
from bench.types import Kind, Query
from strategies.api import Context, Execute, Generate, Prompt
from strategies.parameters import Parameter, bind, read_signature

F = TypeVar("F", bound=Callable[..., Context | Prompt])
COMMAND = "ctxbench strategy list"


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """A registered strategy, parameters open."""

    name: str
    function: Callable[..., Context | Prompt]
    kinds: frozenset[Kind]
    drafts: bool
    """Whether it asks the model on the way."""
    executes: bool
    """Whether it runs what the model wrote, in the sandbox."""
    parameters: tuple[Parameter, ...]

    @property
    def summary(self) -> str:
        """The first line of its docstring, its text on the leaderboard."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]

    @property
    def source(self) -> str:
        """The file that defines it; empty if it was typed in."""
        return inspect.getsourcefile(self.function) or ""

    @property
    def version(self) -> str:
        """A digest of that file, so that an edited strategy is not taken for the one that ran before."""
        path = Path(self.source)
        return sha256(path.read_bytes())[:12] if self.source and path.is_file() else ""


class BoundStrategy:
    """A strategy with its parameters given."""

    def __init__(self, strategy: Strategy, spec: Spec) -> None:
        """Check the parameters of `spec`."""
        self.strategy = strategy
        self.arguments: Mapping[str, Value] = bind(strategy.parameters, spec)
        self.spec = str(Spec(spec.name, self.arguments))
        """The canonical spelling: parameters sorted, those that equal the default left out."""

    @property
    def kinds(self) -> frozenset[Kind]:
        """The task kinds it accepts."""
        return self.strategy.kinds

    @property
    def drafts(self) -> bool:
        """Whether it asks the model on the way."""
        return self.strategy.drafts

    @property
    def executes(self) -> bool:
        """Whether it runs what the model wrote, in the sandbox."""
        return self.strategy.executes

    @property
    def version(self) -> str:
        """A digest of the file that defines it."""
        return self.strategy.version

    def __call__(self, query: Query, repo: Repository, generate: Generate, execute: Execute | None = None) -> Prompt:
        """Return the prompt for one query; a returned `Context` is packed in the similar-code layout.

        Raises:
            InputFault: if the query's kind is not one of `kinds`, or the strategy returns something else.
        """
        if query.kind not in self.kinds:
            accepted = " and ".join(sorted(self.kinds))
            raise InputFault(
                f"{self.spec} does not take {query.kind} samples", where=query.id, cure=f"it takes {accepted} samples"
            )
        if self.executes and execute is None:
            raise InputFault(f"{self.spec} needs a sandbox", where=query.id, cure="see `ctxbench doctor`")
        inputs = (query, repo, generate, execute)[: 2 + self.drafts + self.executes]
        result: object = self.strategy.function(*inputs, **self.arguments)
        if isinstance(result, Context):
            from strategies.similar import render  # noqa: PLC0415 - it imports the strategies' common parts

            return render(query, result)
        if not isinstance(result, Prompt):
            raise InputFault(
                f"{self.spec} returned {type(result).__name__}", where=query.id, cure="return a Context or a Prompt"
            )
        return result


_REGISTRY: Registry[Strategy] = Registry("strategy", group="ctxbench.strategies", command=COMMAND)
_FILE: ContextVar[tuple[str, dict[str, Strategy]]] = ContextVar("_FILE", default=("", {}))
"""Module name and strategies of the file being loaded: names in a file clash with nothing outside it."""


def strategy(name: str, *, kinds: tuple[Kind, ...] = (Kind.LINE,)) -> Callable[[F], F]:
    """Register a function as the strategy `name`.

    Args:
        name: how specs call it; by custom ``family.name``.
        kinds: the task kinds it accepts; the layout of a returned `Context` is made for lines.

    Raises:
        InputFault: if the name is no name or is taken, or the function's signature does not fit.
    """

    def register(function: F) -> F:
        if Spec(name) != _parsed(name) or "@" in name or not kinds:
            raise InputFault(f"{name!r} cannot name a strategy", cure="use letters, digits, '.', '_' and '-'")
        drafts, executes, parameters = read_signature(function, name)
        made = Strategy(
            name=name,
            function=function,
            kinds=frozenset(kinds),
            drafts=drafts,
            executes=executes,
            parameters=parameters,
        )
        module, loading = _FILE.get()
        if function.__module__ != module:
            _REGISTRY.add(name, made, origin=origin_of(function))
        elif name in loading:
            raise InputFault(f"the strategy {name!r} is registered twice in one file", cure="rename one of them")
        else:
            loading[name] = made
        return function

    return register


def _parsed(name: str) -> Spec | None:
    try:
        return specs.parse(name)
    except InputFault:
        return None


def names() -> tuple[str, ...]:
    """Return the names of all installed strategies, sorted; imports none."""
    return _REGISTRY.names()


def get(name: str) -> Strategy:
    """Return the strategy called `name`, or the one in ``file.py@name``.

    Raises:
        InputFault: if there is none, or its module or file cannot be imported.
    """
    path, at, inside = name.rpartition("@")
    if not at:
        return _REGISTRY.get(name)
    found = _load(Path(path).expanduser().absolute(), path)
    if inside not in found:
        raise UnknownName("strategy", inside, found, command=f"grep '@strategy' {path}")
    return found[inside]


def resolve(spec: str) -> BoundStrategy:
    """Return the strategy that a spec spells, parameters checked.

    Raises:
        InputFault: if the spec cannot be read, the name is unknown, or a parameter does not fit.
    """
    parsed = specs.parse(spec)
    return BoundStrategy(get(parsed.name), parsed)


_LOADED: dict[Path, tuple[str, dict[str, Strategy]]] = {}


def _load(path: Path, shown: str) -> dict[str, Strategy]:
    """Import a strategy file, once for each content of it."""
    with explained(shown):
        content = path.read_bytes()
    digest = sha256(content)
    known = _LOADED.get(path)
    if known is not None and known[0] == digest:
        return known[1]
    module_name = f"_strategy_file_{sha256(str(path))[:12]}"
    module_spec = importlib.util.spec_from_file_location(module_name, path)
    if module_spec is None:
        raise InputFault("is not a Python file", where=shown, cure="give a file that ends in .py")
    module = importlib.util.module_from_spec(module_spec)
    with _collecting(module_name) as found, _beside(path.parent):
        sys.modules[module_name] = module
        try:
            # Not by the loader: its bytecode cache takes an edit within the same second for no edit.
            exec(compile(content, str(path), "exec"), module.__dict__)  # noqa: S102 - what importing it would do
        except Exception as error:
            raise InputFault(
                f"cannot be imported ({type(error).__name__}: {error})", where=shown, cure="mend the file"
            ) from error
    _LOADED[path] = (digest, found)
    return found


@contextlib.contextmanager
def _collecting(module: str) -> Iterator[dict[str, Strategy]]:
    found: dict[str, Strategy] = {}
    token = _FILE.set((module, found))
    try:
        yield found
    finally:
        _FILE.reset(token)


@contextlib.contextmanager
def _beside(folder: Path) -> Iterator[Any]:
    """Let a strategy file import its neighbours, after everything that is installed."""
    sys.path.append(str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
