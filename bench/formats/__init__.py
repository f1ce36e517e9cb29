"""File formats of benchmarks' samples and predictions. One module per benchmark registers a `BenchmarkFormat`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.bench.judging.types import Verdict
from ctxbench.bench.languages.base import Language
from ctxbench.bench.registry import Registry, origin_of
from ctxbench.bench.types import Kind, Reference, Sample

Row = tuple[str, Mapping[str, Any]]
"""Location of a record (``FILE:LINE``, or ``FILE: RECORDS[3]``), and the record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The records of one input file, with its name and digest."""

    name: str
    """File name without folder and suffixes, e.g. ``line_completion_rg1_bm25``."""
    source: str
    digest: str
    rows: Iterable[Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The user's options for reading a benchmark's files."""

    language: Language | None = None
    """The only accepted language. Samples in other languages are errors. None accepts all languages."""
    docstring: str = "raw"
    """Docstring in CoderEval's prompts: ``raw``, the original, or ``human``, which a person wrote for the benchmark."""


@dataclass(frozen=True, slots=True)
class Task:
    """A sample with its reference, as read from a benchmark's files or rebuilt from the repository."""

    sample: Sample
    reference: Reference
    where: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """A valid record that cannot become a sample. Such records are reported and counted."""

    id: str
    reason: str
    """Words joined by underscores, e.g. ``empty_target``. The set's manifest counts records per reason."""
    where: str
    detail: str = ""
    cure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleFiles:
    """A file format of a benchmark's samples."""

    shape: str
    """Sentences that list the fields that the format reads, for `--help`."""
    read: Callable[[Sequence[Table], Options], Iterator[Task | Unusable]]
    """Function that reads and joins tables. It raises `InputFault` at the first malformed record."""
    records: Callable[[Iterable[Sample], Mapping[str, Reference]], Iterator[dict[str, Any]]] | None = None
    """Function that converts samples and their references to records that `read` converts back. None if the format
    cannot be exported."""
    in_repository: Callable[[Task, str], Task | None] | None = None
    """Function that rebuilds a task from its file's text, or returns None if they differ. None
    if the format uses `in_snapshot` or has no repositories."""
    in_snapshot: Callable[[Task, Mapping[str, str]], Task | Unusable] | None = None
    """Like `in_repository`, but receives all files (path -> text), because a record's file may be wrong or missing."""
    remarks: Callable[[Sequence[Task]], Sequence[str]] = lambda _: ()
    """Function that returns remarks on the tasks: sentences for readers of the tasks' results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAnswer:
    """A completion in a predictions file."""

    text: str
    """Text after the cursor; for functions, the whole function."""
    verdict: Verdict | None = None
    reason: str = ""
    flags: tuple[str, ...] = ()
    reached: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSample:
    """One sample's completions by the same strategy and generator."""

    where: str
    """``FILE:LINE`` of the first record; empty for a sample that will be written."""
    task: str
    answers: tuple[RecordedAnswer, ...]
    sample: Sample | None = None
    """The sample, if the file contains enough fields to build it; otherwise None."""
    strategy: str = ""
    generator: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """The record's ``metadata``, which repeats the task's; empty if the record has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionFiles:
    """A file format of predictions."""

    shape: str
    """A phrase that describes the records, for `--help`. Errors about malformed records show it after ``write``."""
    read: Callable[[Iterable[Row]], list[RecordedSample]]
    """Function that reads all records. It raises `InputFault` at the first malformed record."""
    write: Callable[[RecordedSample, Mapping[str, Any]], Iterable[dict[str, Any]]]
    """Function that converts a sample's answers to records. Its second argument is the task (see `tasks`) or empty."""
    kind: Kind | None = None
    """The only kind of sample that the format supports; None if it supports lines and functions."""
    tasks: Callable[[Sequence[Sample]], str] | None = None
    """Function that returns the name of the format whose task ids predictions use. None if they use the set's ids."""
    single: bool = False
    repeats: bool = False
    """Whether the benchmark's own scorer expects a fixed number of answers per task, so that `--repeat` is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkFormat:
    """A benchmark's file formats, for samples, predictions or both."""

    name: str
    samples: SampleFiles | None = None
    predictions: PredictionFiles | None = None


_REGISTRY: Registry[BenchmarkFormat] = Registry(
    "format", group="ctxbench.formats", command="ctxbench samples import --help"
)


def register(form: BenchmarkFormat) -> BenchmarkFormat:
    """Register a format under its name.

    Raises:
        InputFault: if the name is taken, or the format has neither samples nor predictions.
    """
    files = form.samples or form.predictions
    if files is None:
        raise InputFault(
            "the format has neither samples nor predictions",
            where=f"format {form.name}",
            cure="set samples or predictions",
        )
    return _REGISTRY.add(form.name, form, origin=origin_of(files.read))


def names() -> tuple[str, ...]:
    """Return the names of all installed formats, sorted. No plugin is imported."""
    return _REGISTRY.names()


def sample_names() -> tuple[str, ...]:
    """Return the names of formats for samples, sorted, without those whose plugin fails to import."""
    return tuple(name for name in names() if (form := _importable(name)) and form.samples)


def prediction_names() -> tuple[str, ...]:
    """Return the names of formats for predictions, sorted, without those whose plugin fails to import."""
    return tuple(name for name in names() if (form := _importable(name)) and form.predictions)


def samples(name: str) -> SampleFiles:
    """Return a format for samples by name.

    Raises:
        UnknownName: if no format for samples has this name.
        InputFault: if its plugin cannot be imported, or two packages declare the name.
    """
    files = _REGISTRY.get(name).samples
    if files is None:
        raise UnknownName("format of samples", name, sample_names(), command="ctxbench samples import --help")
    return files


def predictions(name: str) -> PredictionFiles:
    """Return a format for predictions by name.

    Raises:
        UnknownName: if no format for predictions has this name.
        InputFault: if its plugin cannot be imported, or two packages declare the name.
    """
    files = _REGISTRY.get(name).predictions
    if files is None:
        raise UnknownName("format of predictions", name, prediction_names(), command="ctxbench results import --help")
    return files


def tasks(
    form: PredictionFiles, of: Sequence[Sample], references: Mapping[str, Reference]
) -> dict[str, dict[str, Any]]:
    """Return task records in the format that `form.tasks` names, by sample id; empty if `form.tasks` is None.

    Raises:
        InputFault: if the tasks' format cannot represent a sample.
    """
    if form.tasks is None:
        return {}
    return {sample.id: record for sample, record in zip(of, records(form.tasks(of), of, references), strict=True)}


def records(name: str, of: Iterable[Sample], references: Mapping[str, Reference]) -> Iterator[dict[str, Any]]:
    """Convert samples to records of the format called `name`.

    Raises:
        InputFault: if the format is unknown, has no `records` function, or cannot represent a sample.
    """
    write = samples(name).records
    if write is None:
        raise InputFault(f"the format {name} can only be imported", cure="choose another --format, e.g. ctxbench")
    return write(of, references)


def _importable(name: str) -> BenchmarkFormat | None:
    try:
        return _REGISTRY.get(name)
    except InputFault:
        return None
