"""`Registry`: named things that come in by a decorator or by an entry point.

Our own built-ins are declared as entry points in our `pyproject.toml`, so they come in by the
same door as anyone's. Entry points are imported when a name is first asked for; one that fails to
import is named in listings and fatal only when its own name is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

from ctxbench.bench import old_names
from ctxbench.bench.errors import InputFault, UnknownName

T = TypeVar("T")


class Registry(Generic[T]):
    """A table of named things of one kind."""

    def __init__(self, kind: str, *, group: str, command: str = "") -> None:
        """Make an empty table.

        Args:
            kind: the noun used in messages, e.g. ``strategy``.
            group: the entry-point group, e.g. ``ctxbench.strategies``.
            command: the command that lists the names, shown as a cure.
        """
        self.kind, self.group, self.command = kind, group, command
        self._items: dict[str, T] = {}
        self._modules: dict[str, str] = {}
        self._declared: dict[str, EntryPoint] | None = None
        self._clashes: dict[str, tuple[str, str]] = {}

    def add(self, name: str, item: T, *, origin: str = "") -> T:
        """Register `item`; a second registration of a name from elsewhere is an error."""
        registered = self._items.get(name)
        if registered is not None and self._modules.get(name) != (origin or None):
            raise InputFault(
                f"the {self.kind} {name!r} is registered twice ({self._modules[name]} and {origin})",
                cure="rename one of them",
            )
        declared = self._points().get(name)
        if declared is not None and not _within(origin.partition(":")[0], declared.module):
            # Otherwise whoever is imported first would stand in for a built-in of the same name.
            elsewhere = origin or "something else"
            raise InputFault(
                f"the {self.kind} {name!r} is declared by {declared.value} and registered by {elsewhere}",
                cure="rename one of them",
            )
        self._items[name] = item
        self._modules[name] = origin
        return item

    def get(self, name: str) -> T:
        """Return the thing called `name`, importing its entry point if need be.

        Raises:
            UnknownName: if nothing is called so.
            InputFault: if its plugin cannot be imported, or two packages declare it.
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
                    f"no installed package declares any {self.kind}: what is installed is older than the code",
                    cure="install it again (`pip install -e .` in its folder)",
                )
            if name not in points:
                raise UnknownName(self.kind, name, {*self._items, *points}, command=self.command)
            self._load(points[name])
        return self._items[name]

    def names(self) -> tuple[str, ...]:
        """Return every known name, sorted; nothing is imported for it."""
        return tuple(sorted({*self._items, *self._points()}))

    def has(self, name: str) -> bool:
        """Say whether the thing called `name` is here already, so that nothing has to be imported for it."""
        return name in self._items

    def provider(self, name: str) -> str:
        """Return the distribution that declares `name`; empty if none does, or nobody knows. Imports nothing."""
        point = self._points().get(name)
        if point is None or point.dist is None or name in self._clashes:
            return ""
        return point.dist.name

    def _load(self, point: EntryPoint) -> None:
        where = f"plugin {point.value}"
        old_names.accept()
        try:
            point.load()
        except Exception as error:
            raise InputFault(
                f"the {self.kind} {point.name!r} cannot be imported ({type(error).__name__}: {error})",
                where=where,
                cure="mend or uninstall the package that provides it",
            ) from error
        if point.name not in self._items:
            raise InputFault(
                f"importing it registered no {self.kind} called {point.name!r}",
                where=where,
                cure="make the entry point's name equal to the registered name",
            )

    def _points(self) -> Mapping[str, EntryPoint]:
        if self._declared is not None:
            return self._declared
        points: dict[str, EntryPoint] = {}
        for point in entry_points(group=self.group):
            other = points.setdefault(point.name, point)
            if other.value != point.value:
                self._clashes[point.name] = (other.value, point.value)
        self._declared = points
        return points


def _within(module: str, package: str) -> bool:
    """Say whether a module is the one declared, or stands inside it."""
    return module == package or module.startswith(f"{package}.")


def origin_of(function: Callable[..., object]) -> str:
    """Say where a function is defined, so that importing its module again is not a clash."""
    return f"{function.__module__}:{function.__qualname__}"
