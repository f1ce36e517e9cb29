"""File formats of benchmarks, for reading and writing samples and predictions: one module per benchmark.

Each module registers a `BenchmarkFormat` (`register`). The entry-point group ``ctxbench.formats`` lists the modules of
ctxbench and of plugins.
"""

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
    """A file of records."""

    name: str
    """File name without folder and suffixes, e.g. ``line_completion_rg1_bm25``."""
    source: str
    digest: str
    rows: Iterable[Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The caller's options for reading."""

    language: Language | None = None
    """The language of files that do not state it. Files in other languages are errors."""
    docstring: str = "raw"
    """CoderEval: ``raw`` for the original docstring, ``human`` for a docstring written by a person."""


@dataclass(frozen=True, slots=True)
class Task:
    """A sample and its answer, read from the benchmark's files alone."""

    sample: Sample
    reference: Reference
    where: str = field(default="", compare=False)
    """Location of the record, as in `Row`, for messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """A valid record that cannot become a sample. Such records are reported and counted."""

    id: str
    reason: str
    """A few words with underscores, e.g. ``empty_target``. The set's manifest counts the records per reason."""
    where: str
    detail: str = ""
    cure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleFiles:
    """A file format for a benchmark's samples."""

    shape: str
    """The fields that the format reads, for the command's help: a few sentences."""
    read: Callable[[Sequence[Table], Options], Iterator[Task | Unusable]]
    """Read and join tables. `InputFault` at the first malformed record, with file, line, field and cure."""
    records: Callable[[Iterable[Sample], Mapping[str, Reference]], Iterator[dict[str, Any]]]
    """Write samples and their references (by id), so that reading the records returns equal samples.

    `InputFault` at a sample that the format cannot represent."""
    in_repository: Callable[[Task, str], Task | None] | None = None
    """Rebuild a task from its whole file; None if prompt and answer are not at the recorded place.

    None for a benchmark without repositories."""
    in_snapshot: Callable[[Task, Mapping[str, str]], Task | Unusable] | None = None
    """Rebuild a task from all files of its repository (path -> text), for records that may name the wrong file. Takes
    precedence over `in_repository`."""
    remarks: Callable[[Sequence[Task]], Sequence[str]] = lambda _: ()
    """Return sentences that readers of the tasks' results must know."""
    document: str = ""
    """Key of the list if a file is one JSON object; empty for JSON Lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAnswer:
    """A completion in a file of predictions."""

    text: str
    """The text after the cursor; for functions the whole function, unless `behind` is true."""
    verdict: Verdict | None = None
    reason: str = ""
    """One short line; empty if the completion passed."""
    flags: tuple[str, ...] = ()
    reached: tuple[str, ...] = ()
    behind: bool = False
    """Whether the text follows the cursor for functions too. The whole function is then built as in a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSample:
    """The completions of one sample with the same labels, in any file format."""

    where: str
    """``FILE:LINE`` of the first record; empty for a sample that is to be written."""
    task: str
    answers: tuple[RecordedAnswer, ...]
    sample: Sample | None = None
    """The sample, if the file contains enough of its fields."""
    strategy: str = ""
    generator: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """The record's data on its task, in the format `PredictionFiles.tasks`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionFiles:
    """A file format for predictions."""

    shape: str
    """The fields that the format reads, in one sentence: the cure for a malformed record."""
    read: Callable[[Iterable[Row]], list[RecordedSample]]
    """Read all records. `InputFault` at the first malformed one, with file, line, field and cure."""
    write: Callable[[RecordedSample, Mapping[str, Any]], Iterable[dict[str, Any]]]
    """Return the lines of one sample, from its record in the format `tasks` (empty if ids are the set's)."""
    kind: Kind | None = None
    """Kind of the samples; None for both kinds."""
    tasks: Callable[[Sequence[Sample]], str] | None = None
    """Return the format whose task ids predictions of these samples use (``metadata.task_id``). None if predictions use
    the set's ids."""
    behind: bool = False
    """Whether texts follow the cursor for functions too, instead of being whole functions."""
    single: bool = False
    repeats: bool = False
    """Whether the scorer needs equally many answers of each task, as `--repeat` produces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkFormat:
    """The file formats of one benchmark: for its samples, for predictions, or both."""

    name: str
    samples: SampleFiles | None = None
    predictions: PredictionFiles | None = None


_REGISTRY: Registry[BenchmarkFormat] = Registry(
    "format", group="ctxbench.formats", command="ctxbench samples import --help"
)


def register(form: BenchmarkFormat) -> BenchmarkFormat:
    """Register a format under its name.

    Raises:
        InputFault: if the name is taken, or the format reads neither samples nor predictions.
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
    """Return the names of all installed formats, sorted, without importing them."""
    return _REGISTRY.names()


def sample_names() -> tuple[str, ...]:
    """Return the names of the formats for samples, sorted, without those that cannot be imported."""
    return tuple(name for name in names() if (form := _importable(name)) and form.samples)


def prediction_names() -> tuple[str, ...]:
    """Return the names of the formats for predictions, sorted, without those that cannot be imported."""
    return tuple(name for name in names() if (form := _importable(name)) and form.predictions)


def samples(name: str) -> SampleFiles:
    """Return the format for samples called `name`.

    Raises:
        UnknownName: if no format for samples has this name.
        InputFault: if the format's plugin cannot be imported.
    """
    files = _REGISTRY.get(name).samples
    if files is None:
        raise UnknownName("format of samples", name, sample_names(), command="ctxbench samples import --help")
    return files


def predictions(name: str) -> PredictionFiles:
    """Return the format for predictions called `name`.

    Raises:
        UnknownName: if no format for predictions has this name.
        InputFault: if the format's plugin cannot be imported.
    """
    files = _REGISTRY.get(name).predictions
    if files is None:
        raise UnknownName("format of predictions", name, prediction_names(), command="ctxbench results import --help")
    return files


def tasks(
    form: PredictionFiles, of: Sequence[Sample], references: Mapping[str, Reference]
) -> dict[str, dict[str, Any]]:
    """Return sample id -> the record of its task in the format that predictions use; empty if they use the set's ids.

    Raises:
        InputFault: if the tasks' format cannot represent a sample.
    """
    if form.tasks is None:
        return {}
    records = samples(form.tasks(of)).records(of, references)
    return {sample.id: record for sample, record in zip(of, records, strict=True)}


def _importable(name: str) -> BenchmarkFormat | None:
    try:
        return _REGISTRY.get(name)
    except InputFault:
        return None
