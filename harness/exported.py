"""Export a run's completions in the shapes that official scorers read. Pure.

`ctxbench` is our own (`ctxbench exec` and `ctxbench results import` read it); `codereval`, `crosscodeeval` and
`repocoder` are what the official scorers of these benchmarks take, `projbench` what InferCom's does.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle, islice
from typing import Any

from ctxbench.bench.errors import InputFault
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Kind, Sample
from ctxbench.harness.extract import body
from ctxbench.harness.extract.parts import head_of
from ctxbench.harness.imported.infercom import first_line
from ctxbench.harness.store.runs import Completed
from ctxbench.harness.tasklines import task_lines

NAMES = ("codereval", "crosscodeeval", "ctxbench", "projbench", "repocoder")
"""The shapes, sorted."""
_KINDS: Mapping[str, Kind] = {"codereval": Kind.FUNCTION, "crosscodeeval": Kind.LINE, "projbench": Kind.LINE}
"""Shapes that take a single kind of sample."""
_Line = Callable[[dict[str, Any], Sequence[str]], dict[str, Any]]


def rows(
    run: Completed, shape: str, sample_set: SampleSet | None = None, *, repeat: int = 1
) -> Iterator[dict[str, Any]]:
    """Yield a run's records, sample by sample in the plan's order; missing samples are left out.

    Args:
        run: the completions.
        shape: one of `NAMES`.
        sample_set: the run's samples; needed for the shapes in `tasklines.SHAPES`.
        repeat: the number of answers that CoderEval's harness expects of each task; fewer are repeated.

    Raises:
        InputFault: if the shape has no place for such samples, or for several completions.
    """
    check(run, shape)
    if shape == "ctxbench":
        yield from _own(run)
    elif shape == "codereval":
        for sample_id, texts in run.texts.items():
            answers = islice(cycle(completion.text for completion in texts), max(repeat, len(texts)))
            yield {"_id": sample_id, "generate_results": list(answers)}
    elif sample_set is not None:
        tasks = task_lines(shape, sample_set)
        for sample in sample_set.samples:
            if sample.id in run.texts:
                yield _LINES[shape](
                    tasks[sample.id], [_behind_cursor(sample, completion.text) for completion in run.texts[sample.id]]
                )


def check(run: Completed, shape: str) -> None:
    """Raise `InputFault` if a shape has no place for a run's samples, or for several completions of each."""
    kind = _KINDS.get(shape)
    odd = next((sample for sample, sample_kind in run.kinds.items() if kind not in (None, sample_kind)), None)
    if odd is not None:
        raise InputFault(
            f"{odd!r} is a {run.kinds[odd]} sample, the format {shape} is for {kind} samples",
            cure="choose another --format; ctxbench takes every run",
        )
    if kind is Kind.LINE and run.n > 1:
        raise InputFault(
            f"the run {run.run} has {run.n} completions a sample, the format {shape} has room for one",
            cure="choose --format ctxbench or repocoder",
        )


def _own(run: Completed) -> Iterator[dict[str, Any]]:
    labels = {"strategy": run.strategy, "generator": run.generator}
    for sample, texts in run.texts.items():
        for index, completion in enumerate(texts):
            judged: dict[str, Any] = (
                {} if completion.verdict is None else {"verdict": completion.verdict, "reason": completion.reason}
            )
            judged |= {"flags": list(completion.flags)} if completion.flags else {}
            yield {"sample": sample, "index": index, "text": completion.text, **labels, **judged}


def _behind_cursor(sample: Sample, text: str) -> str:
    """Return what follows the cursor; for a function whose head is not the sample's, its body."""
    if sample.kind is Kind.LINE or not text.strip():
        return text
    head = head_of(sample)
    if text.startswith(head.head):
        return text.removeprefix(head.head)
    return textwrap.indent(body(sample, text), head.body_indent)


def _crosscodeeval(task: dict[str, Any], texts: Sequence[str]) -> dict[str, Any]:
    return {"task_id": task["metadata"]["task_id"], "pred": texts[0]}


def _projbench(task: dict[str, Any], texts: Sequence[str]) -> dict[str, Any]:
    return {**task, "pred_res": texts[0], "choices": [{"text": first_line(texts[0])}]}


def _repocoder(task: dict[str, Any], texts: Sequence[str]) -> dict[str, Any]:
    return {**task, "choices": [{"text": text} for text in texts]}


_LINES: Mapping[str, _Line] = {"crosscodeeval": _crosscodeeval, "projbench": _projbench, "repocoder": _repocoder}
