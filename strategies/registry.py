"""Strategies by name: the decorator, the entry points, files that need no installation, and specs bound to them.

A strategy is a function ``(query, repo, *, parameters)``, ``(query, repo, generate, *, parameters)`` or
``(query, repo, generate, execute, *, parameters)``; ``generate`` asks the model on the way, ``execute`` runs in
the sandbox what it wrote (see `strategies.api`). It is named by the decorator and found
through the entry-point group ``ctxbench.strategies``, or in a file: ``path/to/file.py@name(key=value)``.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Generic, TypeVar

from ctxbench.bench import spec as specs
from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.bench.files import explained, sha256
from ctxbench.bench.parameters import Parameter, bind, parameters_of
from ctxbench.bench.registry import Registry, origin_of
from ctxbench.bench.repository import Repository
from ctxbench.bench.spec import Spec, Value
from ctxbench.bench.types import Kind, Query
from ctxbench.strategies.api import Context, Execute, Generate, Misshapen, Model, Prompt, check_parts
from ctxbench.strategies.sources import digest, sources_of, with_neighbours

F = TypeVar("F", bound=Callable[..., Context | Prompt])
COMMAND = "ctxbench strategy list"
DISTRIBUTION = "ctxbench"
"""The package that brings our own strategies."""
_SERVICES = ["generate", "execute"]
CONTROLS: Mapping[str, str] = {
    "gold": "The completion is the reference: what a perfect model would score.",
    "blank": "The completion is empty: what a model that says nothing scores.",
    "oracle-context": "The prompt holds code and signatures retrieved with the reference; the model completes.",
    "oracle-stored": "The prompt holds what the benchmark's authors retrieved with the reference; the model completes.",
}
"""Controls: rows made with the answer, to check the measure itself. Name -> one line on what it is.

They are no strategies: they need the reference, so they are no plug-ins and run in no cell. Nothing else may be called
so; `harness.run.controls` makes them."""
_PREFIXES = ("control.", "oracle.")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredStrategy:
    """What a strategy declares."""

    name: str
    """How it is registered; of ``file.py@name`` the part behind the ``@``."""
    kinds: frozenset[Kind]
    """The task kinds it accepts."""
    languages: frozenset[str]
    """The names of the languages whose samples it accepts; empty for all."""
    drafts: bool
    """Whether it asks the model on the way."""
    executes: bool
    """Whether it runs what the model wrote, in the sandbox."""
    parameters: tuple[Parameter, ...]
    """In the order written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration(DeclaredStrategy):
    """A strategy without its code: all that listings, plans and the check of parameters need."""

    text: str
    """Its docstring, dedented; empty if it has none."""
    source: str
    """The file that defines it, or else its module."""
    version: str
    """A digest of what defines it; empty if unknown."""

    @property
    def summary(self) -> str:
        """The first line of its docstring, its text on the leaderboard."""
        return self.text.partition("\n")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy(DeclaredStrategy):
    """A registered strategy, parameters open."""

    function: Callable[..., Context | Prompt]

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return self.registration.summary

    @property
    def registration(self) -> Registration:
        """Itself without its code."""
        return Registration(
            **{field.name: getattr(self, field.name) for field in fields(DeclaredStrategy)},
            text=inspect.getdoc(self.function) or "",
            source=self.source or self.function.__module__,
            version=self.version,
        )

    @property
    def source(self) -> str:
        """The file that defines it; empty if it was typed in."""
        return inspect.getsourcefile(self.function) or ""

    @property
    def version(self) -> str:
        """A digest of that file and of what it imports from beside it, or of all files of its package.

        Empty if it was typed in. An edited strategy is not taken for the one that ran before, nor is one whose helpers
        were edited.
        """
        path = Path(self.source)
        if path in _LOADED:
            return _LOADED[path][0]  # of what was loaded, whatever lies there since
        return digest(sources_of(self.function.__module__, path)) if self.source and path.is_file() else ""


R = TypeVar("R", bound=Registration | Strategy)


_REGISTRY: Registry[Strategy] = Registry("strategy", group="ctxbench.strategies", command=COMMAND)
_FILE: ContextVar[tuple[str, dict[str, Strategy]]] = ContextVar("_FILE", default=("", {}))
"""Module name and strategies of the file being loaded: names in a file clash with nothing outside it."""
_LOADED: dict[Path, tuple[str, dict[str, Strategy]]] = {}
"""Strategy file -> digest of itself and its neighbours, and its strategies."""
_DECLARED = re.compile(r"""^@strategy\(\s*["']([\w.+\-]+)["']""", re.M)
_NEIGHBOURS: set[str] = set()
"""Names of the modules that strategy files imported from beside them."""


class Bound(Generic[R]):
    """A strategy with its parameters given."""

    def __init__(self, strategy: R, spec: Spec, lookup: Callable[[str], R]) -> None:
        """Check the parameters of `spec`.

        Args:
            strategy: what the spec names.
            spec: its name and parameters.
            lookup: name -> strategy, for those that it wraps.

        Raises:
            InputFault: if a parameter does not fit, or it wraps what cannot be wrapped.
        """
        self.strategy = strategy
        arguments = bind(strategy.parameters, spec, command=f"ctxbench strategy show {spec.name}")
        wraps = {p.name: str(arguments.get(p.name, p.default)) for p in strategy.parameters if p.wraps}
        inner = {name: _inner(spec.name, text, lookup) for name, text in wraps.items()}
        self.inner: tuple[Bound[R], ...] = tuple(inner.values())
        """The strategies that it wraps."""
        # An engine stays in the spelling too: a row without its name would say nothing.
        asked = {p.name: arguments.get(p.name, p.default) for p in strategy.parameters if p.asks_engine}
        self.arguments: Mapping[str, Value] = {
            **arguments,
            **{name: str(specs.parse(str(value))) for name, value in asked.items() if value is not None},
            **{name: wrapped.spec for name, wrapped in inner.items()},
        }
        self.spec: str = str(Spec(spec.name, self.arguments))
        """The canonical spelling: parameters sorted, those that equal the default left out (what is wrapped stays)."""
        named = [names for names in (strategy.languages, *(wrapped.languages for wrapped in self.inner)) if names]
        self.languages: frozenset[str] = frozenset.intersection(*named) if named else frozenset()
        """The names of the languages whose samples it accepts, empty for all; a wrapper those of what it wraps."""
        for own, is_none in ((strategy.kinds, not self.kinds), (strategy.languages, named and not self.languages)):
            if is_none:
                cure = f"{spec.name} takes {listed(own)} samples only"
                raise InputFault(f"{self.spec} would take no samples", cure=cure)

    @property
    def kinds(self) -> frozenset[Kind]:
        """The task kinds it accepts; a wrapper those that what it wraps accepts too."""
        return self.strategy.kinds.intersection(*(wrapped.kinds for wrapped in self.inner))

    @property
    def drafts(self) -> bool:
        """Whether it, or what it wraps, asks the model on the way."""
        return self.strategy.drafts or any(wrapped.drafts for wrapped in self.inner)

    @property
    def executes(self) -> bool:
        """Whether it runs what the model wrote, in the sandbox; a wrapper only if what it wraps does."""
        return any(wrapped.executes for wrapped in self.inner) if self.inner else self.strategy.executes

    @property
    def engines(self) -> tuple[str, ...]:
        """The specs of the context engines that it, or what it wraps, may ask."""
        own = [self.arguments.get(p.name) for p in self.strategy.parameters if p.asks_engine]
        inner = [spec for wrapped in self.inner for spec in wrapped.engines]
        return tuple(dict.fromkeys(str(spec) for spec in (*own, *inner) if spec is not None))

    @property
    def encoders(self) -> tuple[str, ...]:
        """The specs of the encoders that its parameters name, defaults included, and those of what it wraps."""
        own = [self.arguments.get(p.name, p.default) for p in self.strategy.parameters if p.names_encoder]
        return (*(str(spec) for spec in own if spec), *(spec for wrapped in self.inner for spec in wrapped.encoders))

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts among its arguments, defaults included, and those of what it wraps: each may name an encoder."""
        free = [p for p in self.strategy.parameters if p.kind is str and not (p.choices or p.wraps or p.asks_engine)]
        own = [str(self.arguments.get(p.name, p.default)) for p in free]
        return (*own, *(text for wrapped in self.inner for text in wrapped.texts))

    @property
    def unmasked(self) -> bool:
        """Whether it, or what it wraps, is shown the import lines that samples mask."""
        own = any(p.unmasks and self.arguments.get(p.name, p.default) for p in self.strategy.parameters)
        return own or any(wrapped.unmasked for wrapped in self.inner)

    @property
    def version(self) -> str:
        """A digest of the file that defines it, and of those that define what it wraps."""
        own = self.strategy.version
        return sha256(" ".join([own, *(wrapped.version for wrapped in self.inner)]))[:12] if self.inner else own


def listed(names: frozenset[str]) -> str:
    """Return task kinds or languages in words."""
    return " and ".join(sorted(names))


def _inner(outer: str, text: str, lookup: Callable[[str], R]) -> Bound[R]:
    spec = specs.parse(text)
    strategy = lookup(spec.name)
    # Before its parameters are looked at: a wrapper whose default is itself would never come to an end.
    if any(parameter.wraps for parameter in strategy.parameters):
        raise InputFault(f"{outer} cannot wrap {spec}", cure="wrap a strategy that wraps none")
    return Bound(strategy, spec, lookup)


def is_control(spec: str) -> bool:
    """Return whether a row of a strategy, named by its canonical spec, is a control: shown, never ranked.

    Besides the reserved names, these are strategies whose author says so by a name that begins with ``control.``
    or ``oracle.``, in a file too.
    """
    name = spec.partition("(")[0]
    return name in CONTROLS or name.rpartition("@")[2].startswith(_PREFIXES)


class BoundStrategy(Bound[Strategy]):
    """A strategy with its parameters given, to be called here."""

    def __call__(
        self, query: Query, repo: Repository, model: Model | Generate, execute: Execute | None = None
    ) -> Prompt:
        """Return the prompt for one query; a returned `Context` is packed in the similar-code layout.

        Raises:
            InputFault: if the query's kind is not one of `kinds`.
            Misshapen: if the strategy returns something else, or a part of it is not what it should be.
        """
        if query.kind not in self.kinds:
            raise InputFault(
                f"{self.spec} does not take {query.kind} samples",
                where=query.id,
                cure=f"it takes {listed(self.kinds)} samples",
            )
        if self.executes and execute is None:
            raise InputFault(f"{self.spec} needs a sandbox", where=query.id, cure="see `ctxbench doctor`")
        inputs = (query, repo, Generate(model), execute)[: 2 + self.strategy.drafts + self.strategy.executes]
        result: object = self.strategy.function(*inputs, **self.arguments)
        if not isinstance(result, Context | Prompt):
            raise Misshapen(type(result).__name__, cure="return a Context or a Prompt")
        check_parts(result)
        if isinstance(result, Prompt):
            return result
        from ctxbench.strategies.layout import render  # noqa: PLC0415 - it imports the strategies' common parts

        return render(query, result)


def strategy(name: str, *, kinds: tuple[Kind, ...] = (Kind.LINE,), languages: tuple[str, ...] = ()) -> Callable[[F], F]:
    """Register a function as the strategy `name`.

    Args:
        name: how specs call it; by custom ``family.name``.
        kinds: the task kinds it accepts; the layout of a returned `Context` is made for lines.
        languages: the names of the languages whose samples it accepts, such as ``python``; all if none is given.

    Raises:
        InputFault: if the name is no name or is taken, or the function's signature does not fit.
    """

    def register(function: F) -> F:
        try:
            is_name = specs.parse(name) == Spec(name) and "@" not in name
        except InputFault:
            is_name = False
        if not is_name or not kinds:
            raise InputFault(f"{name!r} cannot name a strategy", cure="use letters, digits, '.', '_' and '-'")
        if name in CONTROLS:
            raise InputFault(f"{name!r} is the name of a control", cure="choose another name")
        services = _services(function, name)
        registered = Strategy(
            name=name,
            function=function,
            kinds=frozenset(kinds),
            languages=frozenset(languages),
            drafts=len(services) > 0,
            executes=len(services) > 1,
            parameters=parameters_of(function, f"strategy {name}", strict=True),
        )
        module, loading = _FILE.get()
        if function.__module__ != module:
            _REGISTRY.add(name, registered, origin=origin_of(function))
        elif name in loading:
            raise InputFault(f"the strategy {name!r} is registered twice in one file", cure="rename one of them")
        else:
            loading[name] = registered
        return function

    return register


def _services(function: Callable[..., object], name: str) -> list[str]:
    """Return which of the model and the sandbox a strategy asks, by the names of its arguments."""
    arguments = inspect.signature(function).parameters.values()
    fixed = [a.name for a in arguments if a.kind in (a.POSITIONAL_ONLY, a.POSITIONAL_OR_KEYWORD)]
    is_variadic = any(a.kind in (a.VAR_POSITIONAL, a.VAR_KEYWORD) for a in arguments)
    services = fixed[2:]
    if is_variadic or len(fixed) < 2 or services != _SERVICES[: len(services)]:
        raise InputFault(
            f"it takes ({', '.join(map(str, arguments))})",
            where=f"strategy {name}",
            cure="write it as (query, repo, *, …) or (query, repo, generate, *, …), parameters after the star",
        )
    return services


def names() -> tuple[str, ...]:
    """Return the names of all installed strategies, sorted; imports none."""
    return _REGISTRY.names()


def is_ours(name: str) -> bool:
    """Say whether a strategy is our own code, or is in this process already: whoever asks for it may import it."""
    return _REGISTRY.has(name) or _REGISTRY.provider(name) == DISTRIBUTION


def get(name: str) -> Strategy:
    """Return the strategy called `name`, or the one in ``file.py@name``.

    Raises:
        InputFault: if there is none, or its module or file cannot be imported.
    """
    path, at, inside = name.rpartition("@")
    if not at:
        if name in CONTROLS:
            raise InputFault(
                f"{name} is a control, no strategy", cure=f"it only runs: `ctxbench run --strategy {name}`"
            )
        if name not in names():
            specs.check_no_file(name, _declared, noun="strategy")
            raise UnknownName("strategy", name, {*names(), *CONTROLS}, command=COMMAND)
        return _REGISTRY.get(name)
    strategies = _load_file(Path(path).expanduser().absolute(), path)
    if inside not in strategies:
        raise UnknownName("strategy", inside, strategies, command=f"grep '@strategy' {path}")
    return strategies[inside]


def _declared(source: bytes, _: str) -> list[str]:
    """Return the strategies that a text declares; nothing of it is run: this process may be one that runs none."""
    return _DECLARED.findall(source.decode("utf-8", errors="replace")) or ["NAME"]


def default_of(name: str, parameter: str) -> float | None:
    """Return the number that a spec of one of our strategies means where it lacks a parameter.

    None if that is no number, or nobody knows: nothing of others is imported to ask it.
    """
    if not is_ours(name) or name in CONTROLS:
        return None
    defaults = {declared.name: declared.default for declared in get(name).parameters}
    value = defaults.get(parameter)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _load_file(path: Path, display_name: str) -> dict[str, Strategy]:
    """Return the strategies of a file by name; messages call the file by its display name."""
    with explained(display_name):
        contents = with_neighbours(path)
    version = digest(contents)
    loaded = _LOADED.get(path)
    if loaded is not None and loaded[0] == version:
        return loaded[1]
    module_name = f"_strategy_file_{sha256(str(path))[:12]}"
    module_spec = importlib.util.spec_from_file_location(module_name, path)
    if module_spec is None:
        raise InputFault("is not a Python file", where=display_name, cure="give a file that ends in .py")
    module = importlib.util.module_from_spec(module_spec)
    strategies: dict[str, Strategy] = {}
    with _beside(path, contents):
        sys.modules[module_name] = module
        token = _FILE.set((module_name, strategies))
        try:
            # Not by the loader: its bytecode cache takes an edit within the same second for no edit.
            exec(compile(contents[path], str(path), "exec"), module.__dict__)  # noqa: S102 - what importing it would do
        except Exception as error:
            raise InputFault(
                f"cannot be imported ({type(error).__name__}: {error})", where=display_name, cure="mend the file"
            ) from error
        finally:
            _FILE.reset(token)
    _LOADED[path] = (version, strategies)
    return strategies


@contextlib.contextmanager
def _beside(path: Path, files: Iterable[Path]) -> Iterator[None]:
    """Let a strategy file import its neighbours among `files`, after what is installed, and as they are now."""
    folder = str(path.parent)
    names = {file.relative_to(path.parent).parts[0].removesuffix(".py") for file in files}
    for name in [name for name in _NEIGHBOURS if name.partition(".")[0] in names]:
        # Edited since, or of another file's folder.
        _NEIGHBOURS.remove(name)
        sys.modules.pop(name, None)
    before = set(sys.modules)
    sys.path.append(folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
        _NEIGHBOURS.update(name for name in sys.modules.keys() - before if name.partition(".")[0] in names)


def resolve(spec: str) -> BoundStrategy:
    """Return the strategy that a spec spells, parameters checked.

    Raises:
        InputFault: if the spec cannot be read, the name is unknown, or a parameter does not fit.
    """
    parsed = specs.parse(spec)
    return BoundStrategy(get(parsed.name), parsed, get)
