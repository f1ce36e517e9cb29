"""Strategies by name: the decorator, the entry points, and files that need no installation.

A strategy is a function ``(query, repo, *, parameters)``, ``(query, repo, generate, *, parameters)`` or
``(query, repo, generate, execute, *, parameters)``; ``generate`` asks the model on the way, ``execute`` runs in
the sandbox what it wrote (see `strategies.api`). It is named by the decorator and found
through the entry-point group ``ctxbench.strategies``, or in a file: ``path/to/file.py@name(key=value)``.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bench import spec as specs
from bench.errors import InputFault, UnknownName
from bench.files import sha256
from bench.registry import Registry, origin_of
from bench.repository import Repository
from bench.spec import Spec, Value
from bench.types import Kind, Query
from strategies import controls
from strategies.api import Context, Execute, Generate, Prompt
from strategies.from_file import being_loaded, load
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
        """A digest of that file, or of all files of its package, empty if it was typed in.

        An edited strategy is not taken for the one that ran before, nor is one whose helpers were edited.
        """
        path = Path(self.source)
        if not self.source or not path.is_file():
            return ""
        root = _package(self.function.__module__)
        files = [path] if root is None else sorted(root.rglob("*.py"))
        return sha256("".join(f"{one.name}\0{sha256(one.read_bytes())}\n" for one in files))[:12]


def _package(module: str) -> Path | None:
    """Return the folder of the package that a module is in; None if it is in none."""
    top, dot, _ = module.partition(".")
    file = getattr(sys.modules.get(top), "__file__", None)
    return Path(file).parent if dot and file and Path(file).name == "__init__.py" else None


class BoundStrategy:
    """A strategy with its parameters given."""

    def __init__(self, strategy: Strategy, spec: Spec) -> None:
        """Check the parameters of `spec`."""
        self.strategy = strategy
        given = bind(strategy.parameters, spec)
        wraps = {p.name: str(given.get(p.name, p.default)) for p in strategy.parameters if p.wraps}
        inner = {name: _inner(spec.name, text) for name, text in wraps.items()}
        self.inner: tuple[BoundStrategy, ...] = tuple(inner.values())
        """The strategies that it wraps."""
        self.arguments: Mapping[str, Value] = {**given, **{name: one.spec for name, one in inner.items()}}
        self.spec: str = str(Spec(spec.name, self.arguments))
        """The canonical spelling: parameters sorted, those that equal the default left out (what is wrapped stays)."""
        if not self.kinds:
            raise InputFault(
                f"{self.spec} would take no samples", cure=f"{spec.name} takes {_listed(strategy.kinds)} samples only"
            )

    @property
    def kinds(self) -> frozenset[Kind]:
        """The task kinds it accepts; a wrapper those that what it wraps accepts too."""
        return self.strategy.kinds.intersection(*(one.kinds for one in self.inner))

    @property
    def drafts(self) -> bool:
        """Whether it, or what it wraps, asks the model on the way."""
        return self.strategy.drafts or any(one.drafts for one in self.inner)

    @property
    def executes(self) -> bool:
        """Whether it runs what the model wrote, in the sandbox; a wrapper only if what it wraps does."""
        return any(one.executes for one in self.inner) if self.inner else self.strategy.executes

    @property
    def version(self) -> str:
        """A digest of the file that defines it, and of those that define what it wraps."""
        own = self.strategy.version
        return sha256(" ".join([own, *(one.version for one in self.inner)]))[:12] if self.inner else own

    def __call__(self, query: Query, repo: Repository, generate: Generate, execute: Execute | None = None) -> Prompt:
        """Return the prompt for one query; a returned `Context` is packed in the similar-code layout.

        Raises:
            InputFault: if the query's kind is not one of `kinds`, or the strategy returns something else.
        """
        if query.kind not in self.kinds:
            raise InputFault(
                f"{self.spec} does not take {query.kind} samples",
                where=query.id,
                cure=f"it takes {_listed(self.kinds)} samples",
            )
        if self.executes and execute is None:
            raise InputFault(f"{self.spec} needs a sandbox", where=query.id, cure="see `ctxbench doctor`")
        inputs = (query, repo, generate, execute)[: 2 + self.strategy.drafts + self.strategy.executes]
        result: object = self.strategy.function(*inputs, **self.arguments)
        if isinstance(result, Context):
            from strategies.similar import render  # noqa: PLC0415 - it imports the strategies' common parts

            return render(query, result)
        if not isinstance(result, Prompt):
            raise InputFault(
                f"{self.spec} returned {type(result).__name__}", where=query.id, cure="return a Context or a Prompt"
            )
        return result


def _listed(kinds: frozenset[Kind]) -> str:
    return " and ".join(sorted(kinds))


def _inner(outer: str, spec: str) -> BoundStrategy:
    """Return the strategy that a wrapper wraps."""
    found = resolve(spec)
    if found.inner:
        raise InputFault(f"{outer} cannot wrap {found.spec}", cure="wrap a strategy that wraps none")
    return found


_REGISTRY: Registry[Strategy] = Registry("strategy", group="ctxbench.strategies", command=COMMAND)


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
        if name in controls.NAMES:
            raise InputFault(f"{name!r} is the name of a control", cure="choose another name")
        drafts, executes, parameters = read_signature(function, name)
        made = Strategy(
            name=name,
            function=function,
            kinds=frozenset(kinds),
            drafts=drafts,
            executes=executes,
            parameters=parameters,
        )
        module, loading = being_loaded()
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
        if name in controls.NAMES:
            raise InputFault(
                f"{name} is a control, no strategy", cure=f"it only runs: `ctxbench run --strategy {name}`"
            )
        if name not in names():
            raise UnknownName("strategy", name, {*names(), *controls.NAMES}, command=COMMAND)
        return _REGISTRY.get(name)
    found = load(Path(path).expanduser().absolute(), path)
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
