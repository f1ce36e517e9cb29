"""Files in the shapes of benchmarks, samples and predictions, in and out: one module a benchmark.

A format is a `BenchmarkFormat` that a module registers (`register`); modules are found through the entry-point group
``ctxbench.formats``, ours and anyone's.
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
"""Where it stands (``FILE:LINE``, or ``FILE: RECORDS[3]``), and the record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One file, opened."""

    name: str
    """The file's name without folder and endings, e.g. ``line_completion_rg1_bm25``."""
    source: str
    """Its path as given."""
    digest: str
    """SHA-256."""
    rows: Iterable[Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The caller's options for reading."""

    language: Language | None = None
    """The language of the files that do not say it themselves; others are refused."""
    docstring: str = "raw"
    """CoderEval: ``raw``, the original one, or ``human``, the one written by a person."""


@dataclass(frozen=True, slots=True)
class Task:
    """One sample and its answer, as the files alone give them."""

    sample: Sample
    reference: Reference
    where: str = field(default="", compare=False)
    """Where its record stands, as in `Row`; for messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """A record that is well formed and yet no sample; reported and counted, never dropped in silence."""

    id: str
    reason: str
    """A few words with underscores, e.g. ``empty_target``: the key of the count in the set's manifest."""
    where: str
    detail: str = ""
    cure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleFiles:
    """How a benchmark's samples stand in files, in and out."""

    shape: str
    """The fields that it reads, for the command's help: one or a few sentences."""
    read: Callable[[Sequence[Table], Options], Iterator[Task | Unusable]]
    """Read and join tables; `InputFault` at the first malformed record, naming file, line, field and cure."""
    records: Callable[[Iterable[Sample], Mapping[str, Reference]], Iterator[dict[str, Any]]]
    """Write samples and their references (by id), so that reading the records gives equal samples.

    `InputFault` at a sample that the format has no place for."""
    in_repository: Callable[[Task, str], Task | None] | None = None
    """Make a task anew from its whole file; None if prompt and answer do not stand where the record says.

    Without it the benchmark brings no repositories."""
    in_snapshot: Callable[[Task, Mapping[str, str]], Task | Unusable] | None = None
    """The same from all files of its repository (path -> text), for records that may name the wrong one; goes before
    `in_repository`."""
    remarks: Callable[[Sequence[Task]], Sequence[str]] = lambda _: ()
    """Whole sentences on the tasks for whoever reads their numbers."""
    document: str = ""
    """The key of the list, where a file is one JSON object; empty for JSON Lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAnswer:
    """One completion of a file of predictions."""

    text: str
    """The text after the cursor; for functions the whole function, unless `behind` is set."""
    verdict: Verdict | None = None
    """The outcome of its tests; None if the file has none."""
    reason: str = ""
    """One short line; empty when it passed."""
    flags: tuple[str, ...] = ()
    reached: tuple[str, ...] = ()
    """The flags of its verdict."""
    behind: bool = False
    """Whether the text follows the cursor for functions too: then the whole function is made of it, as in a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSample:
    """The completions of one sample under one pair of labels, whatever the format of their file."""

    where: str
    """``FILE:LINE`` of its (first) record; empty if it is to be written."""
    task: str
    """The benchmark's id of the sample."""
    answers: tuple[RecordedAnswer, ...]
    sample: Sample | None = None
    """The facts of the sample, where the file itself tells enough of them."""
    strategy: str = ""
    generator: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """What its record says of its task, in the words of the format `PredictionFiles.tasks`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionFiles:
    """How predictions stand in files, in and out."""

    shape: str
    """The fields that it reads, one sentence: the cure of a malformed record."""
    read: Callable[[Iterable[Row]], list[RecordedSample]]
    """Read all records; `InputFault` at the first malformed one, naming file, line, field and cure."""
    write: Callable[[RecordedSample, Mapping[str, Any]], Iterable[dict[str, Any]]]
    """Return the lines of one sample, given its record in the format `tasks` (empty if the ids are the set's)."""
    kind: Kind | None = None
    """The kind of sample that is completed; None for either."""
    tasks: Callable[[Sequence[Sample]], str] | None = None
    """The format in whose records predictions of these samples name their tasks (``metadata.task_id``); None where
    they use the set's ids."""
    behind: bool = False
    """Whether texts follow the cursor for functions too, rather than being whole functions."""
    single: bool = False
    """Whether there is room for one completion a sample only."""
    repeats: bool = False
    """Whether its scorer wants equally many answers of each task, so that `--repeat` makes sense."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkFormat:
    """The files of one benchmark: those of its samples, of predictions for them, or both."""

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
        raise InputFault("it has neither samples nor predictions", where=f"format {form.name}", cure="give one of them")
    return _REGISTRY.add(form.name, form, origin=origin_of(files.read))


def names() -> tuple[str, ...]:
    """Return the names of all installed formats, sorted; imports none."""
    return _REGISTRY.names()


def sample_names() -> tuple[str, ...]:
    """Return the names of the formats of samples, sorted; those that cannot be imported are left out."""
    return tuple(name for name in names() if (form := _importable(name)) and form.samples)


def prediction_names() -> tuple[str, ...]:
    """Return the names of the formats of predictions, sorted; those that cannot be imported are left out."""
    return tuple(name for name in names() if (form := _importable(name)) and form.predictions)


def samples(name: str) -> SampleFiles:
    """Return the format of samples called `name`.

    Raises:
        UnknownName: if there is none.
        InputFault: if its plug-in cannot be imported.
    """
    files = _REGISTRY.get(name).samples
    if files is None:
        raise UnknownName("format of samples", name, sample_names(), command="ctxbench samples import --help")
    return files


def predictions(name: str) -> PredictionFiles:
    """Return the format of predictions called `name`.

    Raises:
        UnknownName: if there is none.
        InputFault: if its plug-in cannot be imported.
    """
    files = _REGISTRY.get(name).predictions
    if files is None:
        raise UnknownName("format of predictions", name, prediction_names(), command="ctxbench results import --help")
    return files


def tasks(
    form: PredictionFiles, of: Sequence[Sample], references: Mapping[str, Reference]
) -> dict[str, dict[str, Any]]:
    """Return sample id -> the record of its task, which predictions refer to; empty if they use the set's ids.

    Raises:
        InputFault: if the tasks' format has no place for one of the samples.
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
