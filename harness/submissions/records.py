"""The records of a package: manifest, lines of its files, and verification. Fields have exact types and ranges."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, Field, TypeAdapter

from ctxbench.bench.checking import adapter
from ctxbench.bench.dates import read_date
from ctxbench.bench.files import sha256

FORMAT: Literal[1] = 1
"""Version of the format."""
MAX_RECORDS = 200_000
"""Maximum number of lines in a file."""

Label = Annotated[str, Field(max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]
"""A text on one line. It may contain markup, so escape it before display."""
Name = Annotated[str, Field(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]+$")]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Id = Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]
Day = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$"), AfterValidator(lambda day: read_date(day).isoformat())]
Seed = Annotated[int, Field(ge=0, lt=1 << 63)]
Text = Annotated[str, Field(max_length=1 << 20)]
Count = Annotated[int, Field(ge=0, lt=1 << 53)]
Amount = Annotated[float, Field(ge=0, le=1e12)]
Pinned = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}==[A-Za-z0-9][A-Za-z0-9.+!_-]{0,99}$")]
AnswerStatus: TypeAlias = Literal["scored", "model-failed"]
Score = Annotated[float, Field(ge=-1e9, le=1e9)]
FileName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,79}\.py$")]


class Record:
    """Base class of a package's parts. Unknown fields, values of another type, infinities and NaN are errors."""

    __slots__ = ()
    __pydantic_config__: ClassVar = {"extra": "forbid", "strict": True, "allow_inf_nan": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPart(Record):
    """The sample set, and the part of the set that was run."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$")]
    digest: Digest
    """Digest of the set; see `bench.samples`."""
    kind: Literal["line", "function"]
    protocol: Label = "ctxbench"
    """Name of the sampling rules, such as ``ctxbench`` or ``projbench``."""
    samples: Annotated[int, Field(ge=1, le=MAX_RECORDS)]
    """Number of samples that were run."""
    limit: Count | None = None
    after: Day | None = None
    """Only samples dated after this day were run; None for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPart(Record):
    """The model that wrote the answers, and its capabilities."""

    spec: Name
    """Spec of the generator, without paths."""
    version: Label
    """Version of the model's weights or of its service."""
    service_date: Day | None = None
    """Day in UTC on which the last attempt at the runs started; None if no service ran the model."""
    instructs: bool = False
    """Whether the model follows instructions, so that strategies may ask it for more than a continuation."""
    tools: bool = False
    """Whether the model accepts chats with tools."""
    summaries: bool = False
    """Whether a model summarised APIs for prompts. Packages lack the summaries, so prompts cannot be derived again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyPart(Record):
    """The strategy that built the prompts, and where its source is."""

    spec: Name
    """Spec of the strategy, without paths: ``lc.infile`` or ``mine.py@mine(top=3)``."""
    version: Label
    """Digest of the files that define the strategy."""
    source: Literal["built-in", "file", "package"]
    file: FileName | None = None
    """Name of the source file in ``strategy/``; None if the package contains none."""
    package: Pinned | None = None
    """Distribution that contains the strategy, as ``NAME==VERSION``; None if the source is ``file``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingPart(Record):
    """Decoding parameters of the model."""

    max_tokens: Count
    temperature: Amount
    top_p: Annotated[float, Field(ge=0, le=1)]
    stop: Annotated[tuple[Label, ...], Field(max_length=100)] = ()
    fim: bool = False
    completions: Annotated[int, Field(ge=0, le=1000)]
    """Completions per sample; 0 if no model was asked."""
    seeds: Annotated[tuple[Seed, ...], Field(min_length=1, max_length=100)]
    """The seed of each repetition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionsPart(Record):
    """Versions of ctxbench, the metrics, the tokenizer and the model that measured bits."""

    ctxbench: Name
    metrics: Digest
    """Digest of the values of all metrics for fixed texts, in the languages of the samples."""
    tokenizer: Name
    coder: Label
    """Spec and version of the model that measured bits; empty if none were measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostPart(Record):
    """Costs of the run, over all samples and repetitions."""

    strategy_seconds: Amount
    generator_seconds: Amount
    tokens_in: Count
    tokens_out: Count
    price: Amount | None = None
    """Price in US dollars; None if unknown."""
    machine: Label = ""
    """Numbers of processors and of parallel tasks, in words; empty if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanPart(Record):
    """A mean over the samples of one language, as the board shows it."""

    language: Name
    metric: Name
    mean: float
    low: float | None = None
    high: float | None = None
    """Upper end of the 95% interval; None without an interval. `low` is the lower end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawal(Record):
    """Reason and date of a submission's withdrawal."""

    reason: Name
    date: Day


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest(Record):
    """Manifest of a package: what was run, by whom, at which cost."""

    format: Literal[1]
    id: Id
    """First twelve digits of the digest that `digest_of` returns."""
    title: Name
    authors: Annotated[tuple[Name, ...], Field(min_length=1, max_length=100)]
    license: Name
    """Licence of the data, as an SPDX expression."""
    date: Day
    supersedes: Id | None = None
    """Id of the submission that this one corrects."""
    set: SetPart
    model: ModelPart
    strategy: StrategyPart
    sampling: SamplingPart
    versions: VersionsPart
    cost: CostPart
    files: Annotated[Mapping[Name, Digest], Field(max_length=10)]
    """SHA-256 of each file except the manifest, by path in the package."""
    mean: Annotated[tuple[MeanPart, ...], Field(max_length=1000)] = ()
    withdrawn: Withdrawal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRecord(Record):
    """A line of ``samples.jsonl``: the public facts of a sample."""

    id: Name
    benchmark: Name
    language: Name
    level: Label
    repo: Name
    path: Name
    line: Count
    """Line of the cursor, 0-based like `column`."""
    column: Count
    day: Day | None = None
    """Day on which the code was written, if known."""
    marks: Annotated[tuple[Literal["broken", "vacuous"], ...], Field(max_length=2)] = ()
    """Reasons to exclude the sample from scores; empty if there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerUsage(Record):
    """How an answer of the model ended, and its cost."""

    finish: Label = "stop"
    tokens_in: Count = 0
    tokens_out: Count = 0
    seconds: Amount = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord(AnswerUsage):
    """A model call before the final prompt."""

    role: Name
    prompt: Digest
    answer: Text
    max_tokens: Count

    @property
    def written(self) -> str:
        """The model's whole answer."""
        return self.answer


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRecord(AnswerUsage):
    """One final answer of the model."""

    status: AnswerStatus
    text: Text
    """The completion that is scored."""
    answer: Text | None = None
    """The model's whole answer; None if it equals `text`."""

    @property
    def written(self) -> str:
        """The model's whole answer."""
        return self.text if self.answer is None else self.answer


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredRecord(Record):
    """A line of ``completions.jsonl``: one sample in one repetition."""

    sample: Name
    repetition: Annotated[int, Field(ge=0, le=99)] = 0
    status: AnswerStatus
    prompt: Digest
    """Digest of the final prompt's text."""
    context_tokens: Count
    flags: Annotated[tuple[Name, ...], Field(max_length=100)] = ()
    """Flags of the final prompt, such as `overflow_trimmed` for a prompt that was cut to the model's window."""
    strategy_seconds: Amount
    generator_seconds: Amount
    calls: Annotated[tuple[CallRecord, ...], Field(max_length=1000)] = ()
    completions: Annotated[tuple[AnswerRecord, ...], Field(max_length=1000)] = ()
    """Final answers of the model; empty if no model was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRecord(Record):
    """A line of ``scores.jsonl``: the scores of one completion, or of a prompt if no model was asked."""

    sample: Name
    repetition: Annotated[int, Field(ge=0, le=99)] = 0
    completion: Count = 0
    scores: Mapping[Name, Mapping[Name, Score | None]]
    """Values on each profile's own scale, by profile and metric; None if undefined."""
    verdict: Literal["PASSED", "FAILED", "TIMED_OUT", "NO_TESTS"] | None = None
    """Verdict of the tests; None if untested. The reason is left out: it may quote a machine's times and paths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A package that was read, or is to be written."""

    manifest: Manifest
    samples: tuple[SampleRecord, ...]
    completions: tuple[AnsweredRecord, ...]
    scores: tuple[ScoreRecord, ...]
    sources: Mapping[str, str] = field(default_factory=dict)
    """Texts of the files in ``strategy/``, by file name."""


PartName: TypeAlias = Literal[
    "samples", "strategy", "prompts", "answers", "completions", "scores", "verdicts", "means", "description"
]


class PartState(StrEnum):
    """How far a part of a package was checked."""

    DERIVED = "re-derived"
    """Computed again from the sample set, the strategy, or the package's own answers and scores."""
    RESCORED = "rescored only"
    """Computed again from the completions, without the strategy."""
    TRUSTED = "trusted"
    """Not checked: the author's claim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueDifference(Record):
    """The first difference found in a part of a package."""

    sample: Label
    """Id of the sample; empty for a value of the whole package."""
    what: Label
    expected: Text
    """Value in the package, at most its first 300 characters."""
    got: Text
    """Value computed on this machine, or the error that prevented it; at most its first 300 characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartCheck(Record):
    """Result of checking one part of a package."""

    name: PartName
    state: Annotated[PartState, Field(strict=False)]
    checked: Count
    """Number of compared values, out of `of`."""
    of: Count
    note: Text = ""
    """What was not checked, and why; empty if everything was checked."""
    differing: Count = 0
    difference: ValueDifference | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageVerification(Record):
    """Result of `ctxbench results verify`, and the content of ``verification.json``."""

    id: Id
    digest: Digest
    """Digest of the package by `digest_of`, so that a verification cannot be used for another package."""
    ctxbench: Name
    samples: Count
    """Number of samples drawn for the check, out of `of`."""
    of: Count
    parts: Annotated[tuple[PartCheck, ...], Field(max_length=20)]

    @property
    def equal(self) -> bool:
        """Whether all compared values equal the package's."""
        return not any(part.differing for part in self.parts)


def digest_of(manifest: Manifest) -> str:
    """Return the digest of a manifest without the fields `id`, `title`, `supersedes` and `withdrawn`."""
    later = ("id", "title", "supersedes", "withdrawn")
    claims = {name: value for name, value in asdict(manifest).items() if name not in later}
    return sha256(json.dumps(claims, sort_keys=True))


def plain(record: Record) -> dict[str, Any]:
    """Return a record as JSON data, without fields that have their default values."""
    value: dict[str, Any] = adapter(type(record)).dump_python(record, mode="json", exclude_defaults=True)
    return value


def schema() -> str:
    """Return the JSON schema of a package's manifest and of the lines of its three JSON Lines files."""
    kinds = (Manifest, SampleRecord, AnsweredRecord, ScoreRecord)
    schemas = {kind.__name__: TypeAdapter(kind).json_schema(ref_template="#/$defs/{model}") for kind in kinds}
    inner = {name: part for kind in schemas.values() for name, part in kind.pop("$defs", {}).items()}
    return json.dumps({"$defs": dict(sorted((inner | schemas).items())), "$ref": "#/$defs/Manifest"}, indent=1) + "\n"
