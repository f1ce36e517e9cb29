"""Versions that are resolved once in a home folder, so that building a set again installs the same ones."""

from __future__ import annotations

import contextlib
import json
import platform
from collections.abc import Sequence

from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import read_text, sha256, write_atomic
from ctxbench.bench.functions.mining import Lock
from ctxbench.bench.home import Home


def locked(requirements: Sequence[str], distribution: str, home: Home, lock: Lock) -> tuple[str, ...]:
    """Return ``name==version`` for each requirement and what it requires.

    Args:
        requirements: pip requirement strings.
        distribution: the project under test as ``name==version``, itself left out; empty for none.
        home: keeps the answer under ``cache/locks/``.
        lock: resolves what is not kept; may use the network.
    """
    python = ".".join(platform.python_version_tuple()[:2])
    key = sha256(json.dumps([sorted(requirements), distribution, python]))
    place = home.cache / "locks" / f"{key[:32]}.json"
    with contextlib.suppress(InputFault, ValueError):
        stored = json.loads(read_text(place))
        if isinstance(stored, list) and all(isinstance(requirement, str) for requirement in stored):
            return tuple(stored)
    pinned = tuple(sorted(lock(requirements, distribution)))
    write_atomic(place, json.dumps(pinned, indent=1) + "\n")
    return pinned
