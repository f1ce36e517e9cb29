"""Registries of named objects. Decorators or entry points register them; entry points are imported on request."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.bench.parameters import Parameter, bind, check_keyword_only, parameters_of
from ctxbench.bench.spec import Shorthand, Spec, Value, parse

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


class Registry(Generic[T]):
    """A table of named objects of one kind."""

    def __init__(self, kind: str, *, group: str, command: str = "") -> None:
        """Create an empty table.

        Args:
            kind: noun in messages, e.g. ``strategy``.
            group: entry-point group.
            command: command that lists the names, for error messages.
        """
        self.kind, self.group, self.command = kind, group, command
        self._items: dict[str, T] = {}
        self._modules: dict[str, str] = {}
        self._declared: dict[str, EntryPoint] | None = None
        self._clashes: dict[str, tuple[str, str]] = {}

    def add(self, name: str, item: T, *, origin: str = "") -> T:
        """Register and return an object. Raises `InputFault` if other code has registered or declared the name."""
        registered = self._items.get(name)
        if registered is not None and self._modules.get(name) != (origin or None):
            raise InputFault(
                f"the {self.kind} {name!r} is registered twice ({self._modules[name]} and {origin})",
                cure="rename one of them",
            )
        declared = self._points().get(name)
        if declared is not None and not _within(origin.partition(":")[0], declared.module):
            # Without this check, a plugin that is imported first could replace a built-in of the same name.
            elsewhere = origin or "something else"
            raise InputFault(
                f"the {self.kind} {name!r} is declared by {declared.value} and registered by {elsewhere}",
                cure="rename one of them",
            )
        self._items[name] = item
        self._modules[name] = origin
        return item

    def get(self, name: str) -> T:
        """Return an object by name. Its entry point is imported if necessary.

        Raises:
            UnknownName: if the name is unknown.
            InputFault: if its plugin cannot be imported or does not register it, or two packages declare it.
        """
        points = self._points()
        if name in self._clashes:
            raise InputFault(
                f"two packages provide the {self.kind} {name!r} ({' and '.join(self._clashes[name])})",
                cure="uninstall one of them",
            )
        if name not in self._items:
            if not points and not self._items:
                raise InputFault(
                    f"no installed package declares any {self.kind}: the installed version is older than the code",
                    cure="install ctxbench again (`pip install -e .` in the folder of the code)",
                )
            if name not in points:
                raise UnknownName(self.kind, name, {*self._items, *points}, command=self.command)
            self._load(points[name])
        return self._items[name]

    def names(self) -> tuple[str, ...]:
        """Return all names, sorted. Nothing is imported."""
        return tuple(sorted({*self._items, *self._points()}))

    def has(self, name: str) -> bool:
        """Return whether `name` is already registered, without an import."""
        return name in self._items

    def provider(self, name: str) -> str:
        """Return the distribution that declares `name`; "" if none or several do. Nothing is imported."""
        point = self._points().get(name)
        if point is None or point.dist is None or name in self._clashes:
            return ""
        return point.dist.name

    def _load(self, point: EntryPoint) -> None:
        where = f"plugin {point.value}"
        try:
            point.load()
        except Exception as error:
            raise InputFault(
                f"the {self.kind} {point.name!r} cannot be imported ({type(error).__name__}: {error})",
                where=where,
                cure="repair or uninstall the package that provides it",
            ) from error
        if point.name not in self._items:
            raise InputFault(
                f"the import registered no {self.kind} called {point.name!r}",
                where=where,
                cure="make the entry point's name equal to the registered name",
            )

    def _points(self) -> Mapping[str, EntryPoint]:
        if self._declared is not None:
            return self._declared
        from importlib.metadata import entry_points  # noqa: PLC0415 - takes a megabyte of memory

        points: dict[str, EntryPoint] = {}
        for point in entry_points(group=self.group):
            other = points.setdefault(point.name, point)
            if other.value != point.value:
                self._clashes[point.name] = (other.value, point.value)
        self._declared = points
        return points


class Factories(Registry[Callable[..., T]]):
    """A table of factories. Each builds an object from the parameters of a spec."""

    def __init__(self, kind: str, *, group: str, command: str = "", facts: Sequence[Parameter] = ()) -> None:
        """Create an empty table.

        Args:
            kind: noun in messages.
            group: entry-point group.
            command: command that lists the names, for error messages.
            facts: parameters that every spec may set besides its factory's. `canonical` omits them.
        """
        super().__init__(kind, group=group, command=command)
        self._facts = {fact.name: fact for fact in facts}
        self._shorthands: dict[str, Shorthand] = {}
        self._speed: dict[str, frozenset[str]] = {}

    def register(
        self,
        name: str,
        factory: F,
        *,
        machine: Sequence[str] = (),
        shorthand: Shorthand | None = None,
    ) -> F:
        """Register and return a factory.

        Args:
            machine: parameters that affect only speed, not results. `canonical` omits them.
            shorthand: short spelling, ``name:TEXT``.

        Raises:
            InputFault: if the name is taken, a parameter is not keyword-only, or `machine` or `shorthand` names a
                missing parameter.
        """
        where = f"{self.kind} {name}"
        check_keyword_only(factory, where)
        names = {parameter.name for parameter in parameters_of(factory, where)}
        for source, needed in (
            ("machine", set(machine)),
            ("shorthand", shorthand.parameters if shorthand else set()),
        ):
            for parameter in sorted(needed - names):
                raise InputFault(f"the factory has no parameter {parameter!r}", where=where, cure=f"correct {source}=")
        self.add(name, factory, origin=origin_of(factory))
        self._speed[name] = frozenset(machine)
        if shorthand is not None:
            self._shorthands[name] = shorthand
        return factory

    def read(self, text: str) -> Spec:
        """Parse a spec or its registered short spelling: ``hf:MODEL`` is ``hf(model=MODEL)``.

        Raises:
            InputFault: if the text is not a spec or sets a parameter twice, or a plugin cannot be imported.
        """
        spec = parse(text)
        name, colon, rest = spec.name.partition(":")
        if not colon or name not in self.names():
            return spec
        self.get(name)
        shorthand = self._shorthands.get(name)
        if shorthand is None:
            return spec
        arguments = shorthand.read(rest, name)
        for key in arguments.keys() & spec.arguments.keys():
            raise InputFault(f"{name} sets {key!r} twice", cure="keep one of them")
        return Spec(name, {**arguments, **spec.arguments})

    def parameters(self, name: str) -> tuple[Parameter, ...]:
        """Return a factory's parameters. Raises what `get` raises."""
        return parameters_of(self.get(name), f"{self.kind} {name}")

    def summary(self, name: str) -> str:
        """Return the first line of a factory's docstring. Raises what `get` raises."""
        return (inspect.getdoc(self.get(name)) or "").partition("\n")[0]

    def canonical(self, text: str) -> str:
        """Return the spec under which results are stored: keys sorted; no defaults, speed parameters or `facts`."""
        name, arguments, _ = self._bound(text)
        lasting = {key: value for key, value in arguments.items() if key not in self._speed[name]}
        return str(Spec(name, lasting))

    def facts(self, text: str) -> dict[str, Value]:
        """Return the values of the additional parameters (`facts`) that a spec sets. Raises what `make` raises."""
        return self._bound(text)[2]

    def make(self, text: str) -> T:
        """Build the object that a spec describes.

        Raises:
            InputFault: if the text is not a spec, the name is unknown, a parameter is unknown, missing or invalid, or a
                plugin cannot be imported.
        """
        name, arguments, _ = self._bound(text)
        return self.get(name)(**arguments)

    def _bound(self, text: str) -> tuple[str, dict[str, Value], dict[str, Value]]:
        spec = self.read(text)
        parameters = self.parameters(spec.name)
        facts = self._facts.keys() - {parameter.name for parameter in parameters}
        bound = bind((*parameters, *(self._facts[name] for name in sorted(facts))), spec, command=self.command)
        arguments = {key: value for key, value in bound.items() if key not in facts}
        return spec.name, arguments, {key: value for key, value in bound.items() if key in facts}


def _within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def origin_of(function: Callable[..., object]) -> str:
    """Return where a function is defined, as ``module:name``. Importing the module again does not change it."""
    return f"{function.__module__}:{function.__qualname__}"
