"""Strategy registry: the decorator, entry points (``ctxbench.strategies``), strategy files and specs.

A strategy is a function ``(query, repo[, generate[, execute]], *, parameters)``. It is installed, or in a file:
``path/to/file.py@name(key=value)``.
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
from ctxbench.bench.engines import recipe
from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.bench.files import explained, sha256
from ctxbench.bench.parameters import Parameter, bind, parameters_of
from ctxbench.bench.registry import Registry, origin_of
from ctxbench.bench.repository import Repository
from ctxbench.bench.spec import POSITIONAL, Spec, Value
from ctxbench.bench.types import Kind, Query
from ctxbench.strategies.api import Context, Execute, Generate, Misshapen, Model, Prompt, check_parts
from ctxbench.strategies.sources import digest, sources_of, with_neighbours

F = TypeVar("F", bound=Callable[..., Context | Prompt])
COMMAND = "ctxbench strategy list"
DISTRIBUTION = "ctxbench"
_SERVICES = ["generate", "execute"]
CONTROLS: Mapping[str, str] = {
    "gold": "The completion is the reference: what a perfect model would score.",
    "blank": "The completion is empty: the score of a model that writes nothing.",
    "oracle-context": "The prompt contains code and signatures that were retrieved with the reference.",
    "oracle-stored": "The prompt contains the context that the benchmark's authors retrieved with the reference.",
}
"""Controls, which check the metrics: name -> description. `harness.run.controls` computes them from the answers."""
_PREFIXES = ("control.", "oracle.")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredStrategy:
    """The properties that a strategy declares."""

    name: str
    """Registered name; in ``file.py@name`` the part after the ``@``."""
    kinds: frozenset[Kind]
    languages: frozenset[str]
    drafts: bool
    executes: bool
    """Whether the strategy runs the model's code in the sandbox."""
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration(DeclaredStrategy):
    """A strategy without its code, for listings, plans and parameter checks."""

    text: str
    source: str
    """File or module that defines the strategy."""
    version: str
    """Digest of the source files; empty if unknown."""

    @property
    def summary(self) -> str:
        """First line of the docstring, shown on the leaderboard."""
        return self.text.partition("\n")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy(DeclaredStrategy):
    """A registered strategy, without parameter values."""

    function: Callable[..., Context | Prompt]

    @property
    def summary(self) -> str:
        """First line of the docstring."""
        return self.registration.summary

    @property
    def registration(self) -> Registration:
        """The strategy without its code."""
        return Registration(
            **{field.name: getattr(self, field.name) for field in fields(DeclaredStrategy)},
            text=inspect.getdoc(self.function) or "",
            source=self.source or self.function.__module__,
            version=self.version,
        )

    @property
    def source(self) -> str:
        """File that defines the strategy; empty if it was typed in an interactive session."""
        return inspect.getsourcefile(self.function) or ""

    @property
    def version(self) -> str:
        """Digest of the strategy's package, or of its file and the local files it imports; empty without a file."""
        path = Path(self.source)
        if path in _LOADED:
            return _LOADED[path][0]  # the version that was loaded, even if the file has changed since
        return digest(sources_of(self.function.__module__, path)) if self.source and path.is_file() else ""


R = TypeVar("R", bound=Registration | Strategy)


_REGISTRY: Registry[Strategy] = Registry("strategy", group="ctxbench.strategies", command=COMMAND)
_FILE: ContextVar[tuple[str, dict[str, Strategy]]] = ContextVar("_FILE", default=("", {}))
"""Module name and strategies of the file being loaded. Files may reuse names."""
_LOADED: dict[Path, tuple[str, dict[str, Strategy]]] = {}
"""Strategy file -> digest of its source files, and its strategies."""
_DECLARED = re.compile(r"""^@strategy\(\s*["']([\w.+\-]+)["']""", re.M)
_NEIGHBOURS: set[str] = set()


class Bound(Generic[R]):
    """A strategy with parameter values."""

    def __init__(self, strategy: R, spec: Spec, lookup: Callable[[str], R]) -> None:
        """Check the parameters of `spec`.

        Args:
            lookup: name -> strategy, for wrapped strategies.

        Raises:
            InputFault: if a parameter is invalid, or a strategy cannot be wrapped.
        """
        self.strategy = strategy
        arguments = bind(strategy.parameters, spec, command=f"ctxbench strategy show {spec.name}")
        wraps = {p.name: str(arguments.get(p.name, p.default)) for p in strategy.parameters if p.wraps}
        inner = {name: _inner(spec.name, text, lookup) for name, text in wraps.items()}
        self.inner: tuple[Bound[R], ...] = tuple(inner.values())
        # The engine stays in the spelling even as the default: a row must name it.
        asked = {p.name: arguments.get(p.name, p.default) for p in strategy.parameters if p.asks_engine}
        self.arguments: Mapping[str, Value] = {
            **arguments,
            **{name: str(specs.parse(str(value))) for name, value in asked.items() if value is not None},
            **{name: wrapped.spec for name, wrapped in inner.items()},
        }
        first = next((p.name for p in strategy.parameters[:1] if p.asks_engine), None)
        keyed = {POSITIONAL if name == first else name: value for name, value in self.arguments.items()}
        self.spec: str = str(Spec(spec.name, keyed))
        """Canonical spec: an engine without key, then sorted parameters without defaults. It includes wrapped
        strategies."""
        named = [names for names in (strategy.languages, *(wrapped.languages for wrapped in self.inner)) if names]
        self.languages: frozenset[str] = frozenset.intersection(*named) if named else frozenset()
        """Languages that the strategy and its wrapped strategies accept; empty for all."""
        for own, is_none in ((strategy.kinds, not self.kinds), (strategy.languages, named and not self.languages)):
            if is_none:
                cure = f"wrap another strategy: {spec.name} takes {listed(own)} samples only"
                raise InputFault(f"{self.spec} accepts no samples", cure=cure)

    @property
    def kinds(self) -> frozenset[Kind]:
        """Task kinds that the strategy and its wrapped strategies accept."""
        return self.strategy.kinds.intersection(*(wrapped.kinds for wrapped in self.inner))

    @property
    def drafts(self) -> bool:
        """Whether the strategy or a wrapped strategy may call the model."""
        return self.strategy.drafts or any(wrapped.drafts for wrapped in self.inner)

    @property
    def executes(self) -> bool:
        """Whether the strategy runs the model's code in the sandbox; for a wrapper, whether a wrapped strategy does."""
        return any(wrapped.executes for wrapped in self.inner) if self.inner else self.strategy.executes

    @property
    def engines(self) -> tuple[str, ...]:
        """Specs of context engines that the strategy or a wrapped strategy may use."""
        own = [self.arguments.get(p.name) for p in self.strategy.parameters if p.asks_engine]
        inner = [spec for wrapped in self.inner for spec in wrapped.engines]
        return tuple(dict.fromkeys(str(spec) for spec in (*own, *inner) if spec is not None))

    @property
    def encoders(self) -> tuple[str, ...]:
        """Specs of encoders in all parameters, including defaults and those of wrapped strategies."""
        own = [self.arguments.get(p.name, p.default) for p in self.strategy.parameters if p.names_encoder]
        return (*(str(spec) for spec in own if spec), *(spec for wrapped in self.inner for spec in wrapped.encoders))

    @property
    def texts(self) -> tuple[str, ...]:
        """All free-text arguments, including defaults and those of wrapped strategies. Each may name an encoder."""
        free = [p for p in self.strategy.parameters if p.kind is str and not (p.choices or p.wraps or p.asks_engine)]
        own = [str(self.arguments.get(p.name, p.default)) for p in free]
        return (*own, *(text for wrapped in self.inner for text in wrapped.texts))

    @property
    def unmasked(self) -> bool:
        """Whether the strategy or a wrapped strategy sees import lines that samples mask."""
        own = any(p.unmasks and self.arguments.get(p.name, p.default) for p in self.strategy.parameters)
        return own or any(wrapped.unmasked for wrapped in self.inner)

    @property
    def version(self) -> str:
        """Digest of the source files, including wrapped strategies."""
        own = self.strategy.version
        return sha256(" ".join([own, *(wrapped.version for wrapped in self.inner)]))[:12] if self.inner else own


def listed(names: frozenset[str]) -> str:
    """Join names with "and", sorted."""
    return " and ".join(sorted(names))


def _inner(outer: str, text: str, lookup: Callable[[str], R]) -> Bound[R]:
    spec = specs.parse(text)
    strategy = lookup(spec.name)
    # Check this before the parameters: a wrapper whose default is itself would recurse forever.
    if any(parameter.wraps for parameter in strategy.parameters):
        raise InputFault(f"{outer} cannot wrap {spec}", cure="wrap a strategy that is not a wrapper")
    return Bound(strategy, spec, lookup)


def is_control(spec: str) -> bool:
    """Return whether a spec names a control. Leaderboards show controls without a rank.

    Names that begin with ``control.`` or ``oracle.`` are controls too, also in a file.
    """
    name = spec.partition("(")[0]
    return name in CONTROLS or name.rpartition("@")[2].startswith(_PREFIXES)


class BoundStrategy(Bound[Strategy]):
    """A strategy with parameter values, callable in this process."""

    def __call__(
        self, query: Query, repo: Repository, model: Model | Generate, execute: Execute | None = None
    ) -> Prompt:
        """Return the prompt for one query. A returned `Context` is packed in the similar-code layout.

        Raises:
            InputFault: if the strategy does not accept the query's kind, or needs a sandbox and `execute` is None.
            Misshapen: if the result has another type, or a part of it has a wrong type or value.
        """
        if query.kind not in self.kinds:
            raise InputFault(
                f"{self.spec} does not take {query.kind} samples",
                where=query.id,
                cure=f"use it for {listed(self.kinds)} samples",
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
        name: name in specs; by convention ``family.name``.
        kinds: accepted task kinds. A strategy for functions should return a `Prompt`: `Context` has a layout for lines.
        languages: accepted languages, such as ``python``; empty for all.

    Raises:
        InputFault: if the name is malformed or taken, or the function's signature is not a strategy's.
    """

    def register(function: F) -> F:
        try:
            is_name = specs.parse(name) == Spec(name) and "@" not in name
        except InputFault:
            is_name = False
        if not is_name:
            raise InputFault(f"{name!r} cannot name a strategy", cure="use letters, digits, '.', '_' and '-'")
        if not kinds:
            raise InputFault(
                f"{name} accepts no kind of task", cure="leave kinds out, or name Kind.LINE or Kind.FUNCTION"
            )
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
    arguments = inspect.signature(function).parameters.values()
    fixed = [a.name for a in arguments if a.kind in (a.POSITIONAL_ONLY, a.POSITIONAL_OR_KEYWORD)]
    is_variadic = any(a.kind in (a.VAR_POSITIONAL, a.VAR_KEYWORD) for a in arguments)
    services = fixed[2:]
    if is_variadic or len(fixed) < 2 or services != _SERVICES[: len(services)]:
        raise InputFault(
            f"the strategy takes ({', '.join(map(str, arguments))})",
            where=f"strategy {name}",
            cure="write it as (query, repo, *, …) or (query, repo, generate, *, …), parameters after the star",
        )
    return services


def names() -> tuple[str, ...]:
    """Return the names of all installed strategies, sorted. Nothing is imported."""
    return _REGISTRY.names()


def is_ours(name: str) -> bool:
    """Return whether a process outside cells may import a strategy: it is built in, or registered in this process."""
    return _REGISTRY.has(name) or _REGISTRY.provider(name) == DISTRIBUTION


def get(name: str) -> Strategy:
    """Return the strategy called `name`, or the one in ``file.py@name``.

    Raises:
        InputFault: if the strategy does not exist, or its module or file cannot be imported.
    """
    path, at, inside = name.rpartition("@")
    if not at:
        if name in CONTROLS:
            raise InputFault(
                f"{name} is a control, not a strategy", cure=f"use it in a run: `ctxbench run --strategy {name}`"
            )
        if name not in names():
            specs.check_no_file(name, _declared, noun="strategy")
            engines = (f"engine({engine})" for engine in (*recipe.names(), *[name] * name.endswith(".toml")))
            raise UnknownName("strategy", name, {*names(), *CONTROLS, *engines}, command=COMMAND)
        return _REGISTRY.get(name)
    strategies = _load_file(Path(path).expanduser().absolute(), path)
    if inside not in strategies:
        raise UnknownName("strategy", inside, strategies, command=f"grep '@strategy' {path}")
    return strategies[inside]


def _declared(source: bytes, _: str) -> list[str]:
    return _DECLARED.findall(source.decode("utf-8", errors="replace")) or ["NAME"]


def default_of(name: str, parameter: str) -> float | None:
    """Return a built-in or registered strategy's numeric default for a parameter; None without such a default."""
    if not is_ours(name) or name in CONTROLS:
        return None
    defaults = {declared.name: declared.default for declared in get(name).parameters}
    value = defaults.get(parameter)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _load_file(path: Path, display_name: str) -> dict[str, Strategy]:
    with explained(display_name):
        contents = with_neighbours(path)
    version = digest(contents)
    loaded = _LOADED.get(path)
    if loaded is not None and loaded[0] == version:
        return loaded[1]
    module_name = f"_strategy_file_{sha256(str(path))[:12]}"
    module_spec = importlib.util.spec_from_file_location(module_name, path)
    if module_spec is None:
        raise InputFault("the file is not a Python file", where=display_name, cure="use a file that ends in .py")
    module = importlib.util.module_from_spec(module_spec)
    strategies: dict[str, Strategy] = {}
    with _beside(path, contents):
        sys.modules[module_name] = module
        token = _FILE.set((module_name, strategies))
        try:
            # The loader's bytecode cache would miss an edit within the same second.
            exec(compile(contents[path], str(path), "exec"), module.__dict__)  # noqa: S102 - as an import would
        except Exception as error:
            raise InputFault(
                f"the file cannot be imported ({type(error).__name__}: {error})",
                where=display_name,
                cure="correct the file",
            ) from error
        finally:
            _FILE.reset(token)
    _LOADED[path] = (version, strategies)
    return strategies


@contextlib.contextmanager
def _beside(path: Path, files: Iterable[Path]) -> Iterator[None]:
    """Let a strategy file import its current neighbours among `files`. Installed modules have priority."""
    folder = str(path.parent)
    names = {file.relative_to(path.parent).parts[0].removesuffix(".py") for file in files}
    for name in [name for name in _NEIGHBOURS if name.partition(".")[0] in names]:
        # It was edited since, or it belongs to another file's folder.
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
    """Return the strategy for a spec.

    Raises:
        InputFault: if the spec is malformed, the name is unknown, or a parameter is invalid.
    """
    parsed = specs.parse(spec)
    return BoundStrategy(get(parsed.name), parsed, get)
