"""Runs in the box: compiles a Java repository, measures test coverage, judges changed files under ``judge.policy``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import coverage, judging, programs
from .programs import MissingProgram, settle

__all__ = ["build", "judge", "measure_coverage"]


def build(arguments: dict[str, Any]) -> dict[str, Any]:
    """Compile the repository (see `programs.build`)."""
    return _answered(programs.build, arguments)


def measure_coverage(arguments: dict[str, Any]) -> dict[str, Any]:
    """Run every test with probes (see `coverage.measure_coverage`)."""
    return _answered(coverage.measure_coverage, arguments)


def judge(arguments: dict[str, Any]) -> dict[str, Any]:
    """Compile one changed file, and run tests against it (see `judging.judge`)."""
    return _answered(judging.judge, arguments)


def _answered(work: Callable[[dict[str, Any]], dict[str, Any]], arguments: dict[str, Any]) -> dict[str, Any]:
    settle()
    try:
        return work(arguments)
    except MissingProgram as error:
        return {"unusable": str(error)}
