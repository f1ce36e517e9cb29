"""From what a file says to what a run is of: labels, samples, and everything that must fit. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.bench.files import dump_line, sha256
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Kind, Language, Reference, Sample
from ctxbench.harness.imported.types import Answer, Recorded, Shape
from ctxbench.harness.tasklines import task_lines

STRATEGY = "recorded"
"""Label of predictions whose strategy nobody names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """What the caller calls the predictions; empty for what the file or its name says."""

    strategy: str = ""
    generator: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """The samples that predictions are of."""

    name: str
    digest: str
    samples: tuple[Sample, ...]
    references: Mapping[str, Reference] | None
    """None where there is no set: then nothing but verdicts is known."""
    remarks: tuple[str, ...] = ()
    """What a reader of numbers over these samples must know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """The predictions of one run."""

    basis: Basis
    strategy: str
    generator: str
    n: int
    answers: Mapping[str, tuple[Answer, ...]]
    """Sample id -> its answers, in the order of the samples; absent tasks are missing."""


def matched(
    found: Sequence[Recorded],
    shape: Shape,
    *,
    file: str,
    stem: str,
    labels: Labels,
    sample_set: SampleSet | None,
    language: Language | None,
) -> list[Matched]:
    """Return the runs of a file, one a pair of labels, in the order in which they first stand there.

    Args:
        found: its records.
        shape: how they were read.
        file: for messages.
        stem: label of the generator where nothing else gives one.
        labels: what goes before the file's own.
        sample_set: what the ids belong to; None if the file tells the facts of its samples.
        language: whose samples are meant; None for all.

    Raises:
        InputFault: if a record names an unknown sample, or one twice, or does not fit the others.
    """
    if not found:
        raise InputFault("no prediction in the file", where=file, cure=f"write {shape.SHAPE}")
    basis = _of_facts(found, file) if sample_set is None else _of_set(sample_set, language)
    found = _renamed(found, shape, sample_set)
    known = {sample.id: sample for sample in basis.samples}
    runs: dict[tuple[str, str], dict[str, Recorded]] = defaultdict(dict)
    for one in found:
        _check(one, known, shape, basis.name, language)
        key = (labels.strategy or one.strategy or STRATEGY, labels.generator or one.generator or stem)
        if not all(label.isprintable() for label in key):
            raise InputFault(
                f"the label {next(label for label in key if not label.isprintable())!r} cannot be printed in a table",
                where=one.where,
                cure="give another with --strategy or --generator",
            )
        if one.task in runs[key]:
            raise InputFault(
                f"{one.task!r} stands here a second time; the first is {runs[key][one.task].where}",
                where=one.where,
                cure="leave one of them out",
            )
        runs[key][one.task] = one
    return [_run(basis, key, records) for key, records in runs.items()]


def _of_set(sample_set: SampleSet, language: Language | None) -> Basis:
    samples = tuple(one for one in sample_set.samples if language in (None, one.language))
    if not samples:
        raise InputFault(f"the sample set {sample_set.name!r} has no sample in {language}", cure="leave --language out")
    return Basis(
        name=sample_set.name,
        digest=sample_set.digest,
        samples=samples,
        references=sample_set.references,
        remarks=tuple(sample_set.manifest.get("remarks", ())),
    )


def _of_facts(found: Sequence[Recorded], file: str) -> Basis:
    """Return the samples as a file itself tells them; files about the same samples give the same digest."""
    samples = {one.task: one.sample for one in found if one.sample is not None}
    if len(samples) < len({one.task for one in found}):
        raise InputFault(
            "the file does not say what its samples are", where=file, cure="name their sample set with --samples"
        )
    in_order = tuple(samples[task] for task in sorted(samples))
    facts = [[one.id, one.subkind, one.repo, one.name, one.path, one.language] for one in in_order]
    first = in_order[0]
    return Basis(
        name=f"{first.benchmark}-{first.language}",
        digest=sha256("".join(map(dump_line, facts))),
        samples=in_order,
        references=None,
    )


def _renamed(found: Sequence[Recorded], shape: Shape, sample_set: SampleSet | None) -> Sequence[Recorded]:
    """Return the records under the set's ids, where they use those that the set's samples get when exported."""
    if sample_set is None or shape.TASKS is None:
        return found
    if {one.task for one in found} <= {sample.id for sample in sample_set.samples}:
        return found
    tasks = task_lines(shape.TASKS, sample_set)
    official = {task["metadata"]["task_id"]: sample for sample, task in tasks.items()}
    return [replace(one, task=official.get(one.task, one.task)) for one in found]


def _check(one: Recorded, known: Mapping[str, Sample], shape: Shape, name: str, language: Language | None) -> None:
    sample = known.get(one.task)
    if sample is None:
        fault = UnknownName(f"sample of {name!r}", one.task, known)
        raise InputFault(fault.what, where=one.where, cure=fault.cure)
    if shape.KIND not in (None, sample.kind):
        raise InputFault(
            f"{sample.id!r} is a {sample.kind} sample, such predictions are of {shape.KIND} samples",
            where=one.where,
            cure="choose the sample set, or the format, that belongs to the file",
        )
    for said in (one.sample.language if one.sample else None, language):
        if said not in (None, sample.language):
            raise InputFault(
                f"{sample.id!r} is in {sample.language}, not in {said}",
                where=one.where,
                cure="choose the sample set, or the --language, that belongs to the file",
            )
    judged = sum(answer.verdict is not None for answer in one.answers)
    if judged and sample.kind is Kind.LINE:
        raise InputFault(
            f"field verdict: {sample.id!r} is a line sample, which has no tests", where=one.where, cure="leave it out"
        )


def _run(basis: Basis, labels: tuple[str, str], records: Mapping[str, Recorded]) -> Matched:
    n = max(len(one.answers) for one in records.values())
    for one in records.values():
        if len(one.answers) != n:
            raise InputFault(
                f"{one.task!r} has {len(one.answers)} completions, others have {n}",
                where=one.where,
                cure="give each sample equally many, or leave out those that lack some: they count as missing",
            )
    answers = {sample.id: records[sample.id].answers for sample in basis.samples if sample.id in records}
    return Matched(basis=basis, strategy=labels[0], generator=labels[1], n=n, answers=answers)
