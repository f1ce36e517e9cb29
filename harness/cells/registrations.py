"""Descriptions of strategies by name: our own are read here, all others in a cell."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ctxbench.bench import spec as specs
from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import explained
from ctxbench.strategies import registry
from ctxbench.strategies.registration import Bound, Registration

_AT_ONCE = 8


class Registrations:
    """Registrations, each read once. Safe to use from many threads."""

    def __init__(self, read: Callable[[str], Registration]) -> None:
        """Read registrations that are not ours by `read`, which must not import their code in this process."""
        self._read = read
        self._registrations: dict[str, Registration] = {}
        self._bound: dict[str, Bound[Registration]] = {}

    def get(self, name: str) -> Registration:
        """Return the registration of the strategy called `name`, or of the one in ``file.py@name``.

        Raises:
            InputFault: if there is none, or its module or file cannot be imported.
            MachineFault: if no cell could be had.
        """
        if name not in self._registrations:
            _check_file(name)
            self._registrations[name] = registry.get(name).registration if _is_read_here(name) else self._read(name)
        return self._registrations[name]

    def bound(self, spec: str) -> Bound[Registration]:
        """Return the strategy that a spec spells, parameters checked.

        Raises:
            InputFault: if the spec cannot be read, the name is unknown, or a parameter does not fit.
            MachineFault: if no cell could be had.
        """
        if spec not in self._bound:
            parsed = specs.parse(spec)
            self._bound[spec] = Bound(self.get(parsed.name), parsed, self.get)
        return self._bound[spec]

    def installed(self) -> Mapping[str, Registration | InputFault]:
        """Return the registrations of all installed strategies by name, or the faults of those that cannot be imported.

        Raises:
            MachineFault: if no cell could be had.
        """
        names = registry.names()
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            # A strategy that hangs must not delay the others.
            foreign = {name: threads.submit(self._or_fault, name) for name in names if not _is_read_here(name)}
            return {name: foreign[name].result() if name in foreign else self._or_fault(name) for name in names}

    def _or_fault(self, name: str) -> Registration | InputFault:
        try:
            return self.get(name)
        except InputFault as fault:
            return fault


def _check_file(name: str) -> None:
    """Check that the file of ``file.py@name`` is there: a cell cannot tell a folder from a file it may not open."""
    path, at, _ = name.rpartition("@")
    if at:
        with explained(path):
            if Path(path).expanduser().is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            Path(path).expanduser().stat()


def is_ours(bound: Bound[Registration], spec: str) -> bool:
    """Return whether all code of a strategy, wrapped strategies included, is our own."""
    names = [specs.parse(spec).name, *(specs.parse(inner.spec).name for inner in bound.inner)]
    return all("@" not in name and registry.is_ours(name) for name in names)


def _is_read_here(name: str) -> bool:
    """Return whether a name belongs to our own code, or to nothing, which the registry then reports."""
    return "@" not in name and (name not in registry.names() or registry.is_ours(name))
