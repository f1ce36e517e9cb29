"""Assigns the records of a predictions file to samples and to runs (strategy and generator)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from ctxbench.bench import formats
from ctxbench.bench.dates import dates_of
from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.bench.files import dump_line, sha256
from ctxbench.bench.formats import PredictionFiles, RecordedAnswer, RecordedSample
from ctxbench.bench.languages.base import Language
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Kind, Reference, Sample

STRATEGY = "recorded"

_PLACE = ("fpath_tuple", "line_no", "ground_truth")
"""Metadata fields that distinguish tasks with the same number in different sets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """The caller's labels for predictions. If a label is empty, the file's label or a default is used."""

    strategy: str = ""
    generator: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """The samples that a predictions file should cover: those of a sample set, or those that the file describes."""

    name: str
    digest: str
    samples: tuple[Sample, ...]
    references: Mapping[str, Reference] | None
    """References by sample id; None without a sample set, when only verdicts are known."""
    remarks: tuple[str, ...] = ()
    days: Mapping[str, date] = field(default_factory=dict)
    """Date of each sample's code, by sample id; only known dates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedRun:
    """The predictions of one run, assigned to its samples."""

    basis: Basis
    strategy: str
    generator: str
    n: int
    answers: Mapping[str, tuple[RecordedAnswer, ...]]
    """Answers by sample id, in the order of the samples, without missing samples."""


def match_runs(
    recorded: Sequence[RecordedSample],
    shape: PredictionFiles,
    *,
    file: str,
    stem: str,
    labels: Labels,
    sample_set: SampleSet | None,
    language: Language | None,
) -> list[MatchedRun]:
    """Return the runs of a file, one per strategy and generator, in the order of appearance.

    Args:
        file: name of the file in error messages.
        stem: generator label if neither the caller nor the file has one.
        sample_set: the set that contains the file's sample ids; None if the file describes its samples.
        language: the only language that the samples may have; None for any.

    Raises:
        InputFault: if there are no records or no samples for them; if a record does not match its sample or the other
            records; or if a label is unprintable.
    """
    if not recorded:
        raise InputFault("the file contains no prediction", where=file, cure=f"write {shape.shape}")
    basis = _of_facts(recorded, file) if sample_set is None else _of_set(sample_set, language)
    recorded = _renamed(recorded, shape, sample_set)
    samples = {sample.id: sample for sample in basis.samples}
    runs: dict[tuple[str, str], dict[str, RecordedSample]] = defaultdict(dict)
    for record in recorded:
        _check(record, samples, shape, basis.name, language)
        key = (labels.strategy or record.strategy or STRATEGY, labels.generator or record.generator or stem)
        if not all(label.isprintable() for label in key):
            raise InputFault(
                f"the label {next(label for label in key if not label.isprintable())!r} cannot be printed in a table",
                where=record.where,
                cure="give another label with --strategy or --generator",
            )
        if record.task in runs[key]:
            raise InputFault(
                f"{record.task!r} is repeated here; its first record is {runs[key][record.task].where}",
                where=record.where,
                cure="leave one record out",
            )
        runs[key][record.task] = record
    return [_run(basis, key, records) for key, records in runs.items()]


def _of_set(sample_set: SampleSet, language: Language | None) -> Basis:
    samples = tuple(sample for sample in sample_set.samples if language in (None, sample.language))
    if not samples:
        raise InputFault(f"the sample set {sample_set.name!r} has no sample in {language}", cure="leave --language out")
    return Basis(
        name=sample_set.name,
        digest=sample_set.digest,
        samples=samples,
        references=sample_set.references,
        remarks=tuple(sample_set.manifest.get("remarks", ())),
        days=dates_of(sample_set),
    )


def _of_facts(recorded: Sequence[RecordedSample], file: str) -> Basis:
    """Return the samples that the file describes. Files with equal samples get equal digests."""
    samples = {record.task: record.sample for record in recorded if record.sample is not None}
    if len(samples) < len({record.task for record in recorded}):
        raise InputFault(
            "the file does not describe its samples", where=file, cure="name their sample set with --samples"
        )
    in_order = tuple(samples[task] for task in sorted(samples))
    facts = [[record.id, record.subkind, record.repo, record.name, record.path, record.language] for record in in_order]
    first = in_order[0]
    return Basis(
        name=f"{first.benchmark}-{first.language}",
        digest=sha256("".join(map(dump_line, facts))),
        samples=in_order,
        references=None,
    )


def _renamed(
    recorded: Sequence[RecordedSample], shape: PredictionFiles, sample_set: SampleSet | None
) -> Sequence[RecordedSample]:
    """Return the records with the set's sample ids in place of the ids of the format's exported tasks."""
    if sample_set is None or shape.tasks is None:
        return recorded
    own = {record.task for record in recorded} <= {sample.id for sample in sample_set.samples}
    if own and not any(record.metadata.keys() & _PLACE for record in recorded):
        return recorded
    tasks = formats.tasks(shape, sample_set.samples, sample_set.references)
    official = {} if own else {task["metadata"]["task_id"]: sample for sample, task in tasks.items()}
    renamed = [replace(record, task=official.get(record.task, record.task)) for record in recorded]
    for record in renamed:
        differing = _differing(record, tasks[record.task]["metadata"]) if record.task in tasks else None
        if differing is not None:
            raise InputFault(
                f"field metadata.{differing} differs from that of {record.task!r} in the sample set "
                f"{sample_set.name!r}",
                where=record.where,
                cure="give --samples the set that the file was made for",
            )
    return renamed


def _differing(record: RecordedSample, task: Mapping[str, Any]) -> str | None:
    told = [name for name in _PLACE if name in record.metadata and name in task]
    return next((name for name in told if _tidy(record.metadata[name]) != _tidy(task[name])), None)


def _tidy(value: object) -> object:
    return "\n".join(value.splitlines()).rstrip() if isinstance(value, str) else value


def _check(
    record: RecordedSample, samples: Mapping[str, Sample], shape: PredictionFiles, name: str, language: Language | None
) -> None:
    sample = samples.get(record.task)
    if sample is None:
        fault = UnknownName(f"sample of {name!r}", record.task, samples)
        raise InputFault(fault.what, where=record.where, cure=fault.cure)
    if shape.kind not in (None, sample.kind):
        raise InputFault(
            f"{sample.id!r} is a {sample.kind} sample, but the format is for {shape.kind} samples",
            where=record.where,
            cure="give the sample set or format that matches the file",
        )
    for expected in (record.sample.language if record.sample else None, language):
        if expected not in (None, sample.language):
            raise InputFault(
                f"{sample.id!r} is in {sample.language}, not in {expected}",
                where=record.where,
                cure="give the sample set or --language that matches the file",
            )
    judged = sum(answer.verdict is not None for answer in record.answers)
    if judged and sample.kind is Kind.LINE:
        raise InputFault(
            f"field verdict: {sample.id!r} is a line sample, which has no tests",
            where=record.where,
            cure="leave the field out",
        )


def _run(basis: Basis, labels: tuple[str, str], records: Mapping[str, RecordedSample]) -> MatchedRun:
    n = max(len(record.answers) for record in records.values())
    for record in records.values():
        if len(record.answers) != n:
            raise InputFault(
                f"{record.task!r} has {len(record.answers)} completions, but other records have {n}",
                where=record.where,
                cure="give each sample the same number, or leave out incomplete samples, which then count as missing",
            )
    answers = {sample.id: records[sample.id].answers for sample in basis.samples if sample.id in records}
    return MatchedRun(basis=basis, strategy=labels[0], generator=labels[1], n=n, answers=answers)
