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
        """Have those that are not ours read by `read`, which must not import them in this process."""
        self._read = read
        self._registrations: dict[str, Registration] = {}
        self._bound: dict[str, Bound[Registration]] = {}

    def get(self, name: str) -> Registration:
        """Return what the strategy called `name`, or the one in ``file.py@name``, says of itself.

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
        """Return the registrations of all installed strategies by name, or why one cannot be had.

        Raises:
            MachineFault: if no cell could be had.
        """
        names = registry.names()
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            # One that hangs must not add its time to that of the others.
            foreign = {name: threads.submit(self._or_fault, name) for name in names if not _is_read_here(name)}
            return {name: foreign[name].result() if name in foreign else self._or_fault(name) for name in names}

    def _or_fault(self, name: str) -> Registration | InputFault:
        try:
            return self.get(name)
        except InputFault as fault:
            return fault


def _check_file(name: str) -> None:
    """See that there is a file where ``file.py@name`` says: a cell cannot tell a folder from what it may not open."""
    path, at, _ = name.rpartition("@")
    if at:
        with explained(path):
            if Path(path).expanduser().is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            Path(path).expanduser().stat()


def is_ours(bound: Bound[Registration], spec: str) -> bool:
    """Say whether all code of a strategy, what it wraps included, is our own."""
    names = [specs.parse(spec).name, *(specs.parse(inner.spec).name for inner in bound.inner)]
    return all("@" not in name and registry.is_ours(name) for name in names)


def _is_read_here(name: str) -> bool:
    """Say whether a name is that of our own code, or of nothing at all: then the registry says so."""
    return "@" not in name and (name not in registry.names() or registry.is_ours(name))
