"""Predictions and verdicts that others recorded, made into stored runs: one module a shape, `read` in each."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from ctxbench.harness.imported.types import Shape

NAMES = ("codereval", "crosscodeeval", "ctxbench", "infercom", "repocoder")
"""The shapes that are known, sorted."""


def named(name: str) -> Shape:
    """Return the module of a shape; `name` is one of `NAMES`."""
    return cast("Shape", importlib.import_module(f"ctxbench.harness.imported.{name}"))
