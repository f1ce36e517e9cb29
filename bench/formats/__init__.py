"""Sample files in the shapes of other benchmarks, in and out: one module a shape (see `bench.formats.types.Format`)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from ctxbench.bench.formats.types import Format

NAMES = ("codereval", "crosscodeeval", "ctxbench", "projbench", "repobench", "repoeval")
"""The shapes that are known, sorted."""

DOCUMENTS = {"codereval": "RECORDS"}
"""Shapes whose file is one JSON object, with the key of its list; the others are JSON Lines."""

STORED_ONLY = frozenset({"repobench"})
"""Shapes whose benchmark brings no repositories."""


def named(name: str) -> Format:
    """Return the module of a shape; `name` is one of `NAMES`."""
    return cast("Format", importlib.import_module(f"ctxbench.bench.formats.{name}"))
