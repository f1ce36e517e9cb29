"""Whole runs in the formats of other tools: a file or a folder that those tools' own libraries read.

Predictions in the shapes of benchmarks are `harness.exported`; here goes all that is known of a run: prompts, answers,
scores, costs, means with their intervals. Each format is a function from an `ExportedRun` to files, by relative path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ctxbench.bench.errors import InputFault
from ctxbench.harness.exports.every_eval_ever import every_eval_ever
from ctxbench.harness.exports.hub import hub
from ctxbench.harness.exports.inspect_log import inspect_log
from ctxbench.harness.exports.stored import ExportedRun, read_run
from ctxbench.harness.exports.trec import trec

__all__ = ["RUN_FORMATS", "ExportedRun", "RunFormat", "read_run", "run_format"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFormat:
    """A format that holds a whole run."""

    shape: str
    """What it is, for the command's help: one or two sentences."""
    write: Callable[[ExportedRun], Iterator[tuple[str, str]]]
    """Return the files: (path below the folder, text); of a format of one file the path is empty."""
    folder: bool = False
    """Whether it is a folder of files."""
    needs_samples: bool = False
    """Whether the run's sample set and its repositories must be here."""


RUN_FORMATS: Mapping[str, RunFormat] = {
    "every-eval-ever": RunFormat(
        shape="one JSON document of Every Eval Ever's schema 0.3.0: a result a language and metric.",
        write=every_eval_ever,
    ),
    "huggingface": RunFormat(
        shape="a folder: a data set of all samples with its card, and results.md, the model-index of a model card.",
        write=hub,
        folder=True,
    ),
    "inspect": RunFormat(
        shape="a log of Inspect (inspect_ai), as JSON, with prompts, answers, targets and scores.", write=inspect_log
    ),
    "trec": RunFormat(
        shape="a folder: qrels.txt (the files that define what a target uses) and run.txt (the files that the prompt "
        "showed, in their order), as ir_measures, pytrec_eval and trec_eval read them.",
        write=trec,
        folder=True,
        needs_samples=True,
    ),
}
"""Name -> format."""


def run_format(name: str) -> RunFormat:
    """Return the format of whole runs called `name`.

    Raises:
        InputFault: if there is none.
    """
    if name not in RUN_FORMATS:
        raise InputFault(f"there is no format of runs {name!r}", cure=f"use one of {', '.join(RUN_FORMATS)}")
    return RUN_FORMATS[name]
