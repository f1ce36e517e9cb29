"""Registrations: strategies as plain data, and specs bound to them. Pure: no strategy is imported or run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from ctxbench.bench import spec as specs
from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import sha256
from ctxbench.bench.parameters import Parameter, bind
from ctxbench.bench.spec import Spec, Value
from ctxbench.bench.types import Kind

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


class Registered(Protocol):
    """A strategy, or its registration, as far as the check of a spec needs it."""

    @property
    def name(self) -> str:
        """How specs call it."""
        ...

    @property
    def kinds(self) -> frozenset[Kind]:
        """The task kinds it accepts."""
        ...

    @property
    def languages(self) -> frozenset[str]:
        """The names of the languages whose samples it accepts; empty for all."""
        ...

    @property
    def drafts(self) -> bool:
        """Whether it asks the model on the way."""
        ...

    @property
    def executes(self) -> bool:
        """Whether it runs what the model wrote, in the sandbox."""
        ...

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What it takes, in the order written."""
        ...

    @property
    def version(self) -> str:
        """A digest of what defines it; empty if unknown."""
        ...

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        ...


R = TypeVar("R", bound=Registered)


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A strategy without its code: all that listings, plans and the check of parameters need."""

    name: str
    """How it is registered; of ``file.py@name`` the part behind the ``@``."""
    kinds: frozenset[Kind]
    languages: frozenset[str]
    """Empty for all."""
    drafts: bool
    executes: bool
    parameters: tuple[Parameter, ...]
    text: str
    """Its docstring, dedented; empty if it has none."""
    source: str
    """The file that defines it, or else its module."""
    version: str

    @property
    def summary(self) -> str:
        """The first line of its docstring, its text on the leaderboard."""
        return self.text.partition("\n")[0]


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
        if not self.kinds:
            raise InputFault(
                f"{self.spec} would take no samples", cure=f"{spec.name} takes {listed(strategy.kinds)} samples only"
            )
        named = [names for names in (strategy.languages, *(wrapped.languages for wrapped in self.inner)) if names]
        self.languages: frozenset[str] = frozenset.intersection(*named) if named else frozenset()
        """The names of the languages whose samples it accepts, empty for all; a wrapper those of what it wraps."""
        if named and not self.languages:
            raise InputFault(
                f"{self.spec} would take no samples",
                cure=f"{spec.name} takes {' and '.join(sorted(strategy.languages))} samples only",
            )

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


def listed(kinds: frozenset[Kind]) -> str:
    """Return task kinds in words."""
    return " and ".join(sorted(kinds))


def _inner(outer: str, text: str, lookup: Callable[[str], R]) -> Bound[R]:
    """Return the strategy that a wrapper wraps."""
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
