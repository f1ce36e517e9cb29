"""Runs in the box: compiles a Java repository, measures which tests reach which methods, and judges one changed file.

Each function takes one mapping of plain data in the repository's folder, and returns plain data. `judge` runs untrusted
code under the policy beside this file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import judging, programs, surveying
from .programs import MissingProgram, settle

__all__ = ["build", "judge", "survey"]


def build(arguments: dict[str, Any]) -> dict[str, Any]:
    """Compile the repository; see `programs.build`."""
    return _answered(programs.build, arguments)


def survey(arguments: dict[str, Any]) -> dict[str, Any]:
    """Run every test on sources with probes; see `surveying.survey`."""
    return _answered(surveying.survey, arguments)


def judge(arguments: dict[str, Any]) -> dict[str, Any]:
    """Run tests on one changed file; see `judging.judge`."""
    return _answered(judging.judge, arguments)


def _answered(work: Callable[[dict[str, Any]], dict[str, Any]], arguments: dict[str, Any]) -> dict[str, Any]:
    settle()
    try:
        return work(arguments)
    except MissingProgram as error:
        return {"unusable": str(error)}
