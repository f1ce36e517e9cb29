"""Whole runs in the formats of other tools, which those tools' own libraries read.

Predictions in the shapes of benchmarks are `harness.exported`; here goes all that is known of a run: prompts, answers,
scores, costs, means with their intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ctxbench.harness.exports.every_eval_ever import every_eval_ever
from ctxbench.harness.exports.inspect_log import inspect_log
from ctxbench.harness.exports.stored import ExportedRun, read_run

__all__ = ["RUN_FORMATS", "ExportedRun", "RunFormat", "read_run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFormat:
    """A format of one file that holds a whole run."""

    shape: str
    """What it is, for the command's help: one sentence."""
    write: Callable[[ExportedRun], str]
    """Return the file's text."""


RUN_FORMATS: Mapping[str, RunFormat] = {
    "every-eval-ever": RunFormat(
        shape="one JSON document of Every Eval Ever's schema 0.3.0: a result a language and metric.",
        write=every_eval_ever,
    ),
    "inspect": RunFormat(
        shape="a log of Inspect (inspect_ai), as JSON, with prompts, answers, targets and scores.", write=inspect_log
    ),
}
"""Name -> format."""
