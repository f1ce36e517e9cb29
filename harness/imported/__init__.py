"""Import predictions and verdicts that others recorded as stored runs: a module for each format, with `read`."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from ctxbench.harness.imported.types import PredictionFormat

NAMES = ("codereval", "crosscodeeval", "ctxbench", "infercom", "repocoder")
"""The formats that can be read, sorted."""


def named(name: str) -> PredictionFormat:
    """Return the module of a format; `name` is one of `NAMES`."""
    return cast("PredictionFormat", importlib.import_module(f"ctxbench.harness.imported.{name}"))
