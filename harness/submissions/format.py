"""The format of a package: one folder per submission, for people to read and for `ctxbench results verify` to check.

``submission.toml`` is the manifest. ``samples.jsonl`` lists the samples, ``completions.jsonl`` what the model wrote for
them, ``scores.jsonl`` the scores and verdicts. ``strategy/NAME.py`` is the source of a strategy from a file. A package
is hostile input: `read` refuses links, unknown files and fields, and sizes and values out of range.
"""

from __future__ import annotations

import json
import re
import shutil
import stat
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar

from pydantic import AfterValidator, Field, TypeAdapter

from ctxbench.bench import languages
from ctxbench.bench.checking import storable, unfit, validated
from ctxbench.bench.dates import read_date
from ctxbench.bench.errors import InputFault
from ctxbench.bench.escaping import visible
from ctxbench.bench.files import dump_line, explained, json_object, parse_json, read_own_file, sha256, write_atomic
from ctxbench.bench.repositories.manifest import toml_value
from ctxbench.harness.metrics import DEFAULT, PASS, common_metric, metrics

FORMAT: Literal[1] = 1
"""Version of the format."""
MANIFEST, SAMPLES, COMPLETIONS, SCORES = "submission.toml", "samples.jsonl", "completions.jsonl", "scores.jsonl"
VERIFICATION = "verification.json"
"""What `ctxbench results verify --format json` printed; anyone may write it, so it is not part of the package."""
STRATEGY_FOLDER = "strategy"
MAX_BYTES = 64 << 20
"""Largest size of a package. Packages of lite sets take at most 10 MB."""
MAX_MANIFEST, MAX_SOURCE, MAX_LINE = 128 << 10, 1 << 20, 4 << 20
"""Largest sizes in bytes of a manifest, of a strategy's source and of a line of the other files."""
MAX_TOML_LINE = 4_000
"""Most characters of a manifest's line: reading a key takes time by the square of its parts."""
MAX_RECORDS = 200_000
"""Most lines of a file."""
MAX_COLUMNS = 300
"""Most metrics of all profiles together."""
_FILE = re.compile(r"[/\\@]|\.(py|toml)\b")
"""What a part of a spec has if it names a file."""
_CURE = "make the package with `ctxbench results pack`"
R = TypeVar("R")

Label = Annotated[str, Field(max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]
"""A text on one line. It may hold markup: escape it where it is shown."""
Name = Annotated[str, Field(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]+$")]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Id = Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]
Day = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$"), AfterValidator(lambda day: read_date(day).isoformat())]
Seed = Annotated[int, Field(ge=0, lt=1 << 63)]
Text = Annotated[str, Field(max_length=1 << 20)]
Count = Annotated[int, Field(ge=0, lt=1 << 53)]
Amount = Annotated[float, Field(ge=0, le=1e12)]
Pinned = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}==[A-Za-z0-9][A-Za-z0-9.+!_-]{0,99}$")]
Score = Annotated[float, Field(ge=-1e9, le=1e9)]
FileName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,79}\.py$")]


class _Record:
    """What every part of a package is: known fields of the exact types, and finite numbers."""

    __slots__ = ()
    __pydantic_config__: ClassVar = {"extra": "forbid", "strict": True, "allow_inf_nan": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPart(_Record):
    """The sample set, and the part of it that was run."""

    name: Name
    digest: Digest
    """Digest of the set; see `bench.samples`."""
    kind: Literal["line", "function"]
    protocol: Label = "ctxbench"
    """How the samples were drawn."""
    samples: Annotated[int, Field(ge=1, le=MAX_RECORDS)]
    """Number of samples that were run."""
    limit: Count | None = None
    after: Day | None = None
    """Only samples dated after that day; None for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPart(_Record):
    """The model."""

    spec: Name
    """The generator, without paths."""
    version: Label
    """What identifies its weights or its service."""
    service_date: Day | None = None
    """The day on which a service answered; None for weights on the author's machine."""
    instructs: bool = False
    """Whether it follows instructions, so that strategies may ask it for more than a continuation."""
    tools: bool = False
    """Whether it takes chats with tools."""
    summaries: bool = False
    """Whether a model summarised APIs; a package does not hold the summaries, so nobody can derive the prompts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyPart(_Record):
    """The strategy."""

    spec: Name
    """The strategy, without paths: ``lc.infile`` or ``mine.py@mine(top=3)``."""
    version: Label
    """Digest of the files that define it."""
    source: Literal["built-in", "file", "package"]
    file: FileName | None = None
    """For ``file``: the name of its source in ``strategy/``."""
    package: Pinned | None = None
    """For ``built-in`` and ``package``: ``NAME==VERSION``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingPart(_Record):
    """How the model decoded."""

    max_tokens: Count
    temperature: Amount
    top_p: Annotated[float, Field(ge=0, le=1)]
    stop: Annotated[tuple[Label, ...], Field(max_length=100)] = ()
    fim: bool = False
    completions: Annotated[int, Field(ge=0, le=1000)]
    """Completions of a sample; 0 if no model was asked."""
    seeds: Annotated[tuple[Seed, ...], Field(min_length=1, max_length=100)]
    """The seed of each repetition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionsPart(_Record):
    """What the prompts and scores depend on."""

    ctxbench: Name
    metrics: Digest
    """Digest of all metrics' values of fixed texts."""
    tokenizer: Name
    coder: Label
    """What measured costs in bits; empty if nothing did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostPart(_Record):
    """What the run took, over all samples and repetitions."""

    strategy_seconds: Amount
    generator_seconds: Amount
    tokens_in: Count
    tokens_out: Count
    price: Amount | None = None
    """US dollars; None if unknown."""
    machine: Label = ""
    """Processors and loads, in words; empty if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanPart(_Record):
    """A mean over the samples of one language, as the board shows it."""

    language: Name
    metric: Name
    mean: float
    low: float | None = None
    high: float | None = None
    """The ends of the 95 % interval; None without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawal(_Record):
    """Why a submission no longer counts."""

    reason: Name
    date: Day


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest(_Record):
    """What a package says of itself."""

    format: Literal[1]
    id: Id
    """The beginning of `digest_of`."""
    title: Name
    authors: Annotated[tuple[Name, ...], Field(min_length=1, max_length=100)]
    license: Name
    """Licence of the data, as an SPDX expression."""
    date: Day
    supersedes: Id | None = None
    """The submission that this one corrects."""
    set: SetPart
    model: ModelPart
    strategy: StrategyPart
    sampling: SamplingPart
    versions: VersionsPart
    cost: CostPart
    files: Annotated[Mapping[Name, Digest], Field(max_length=10)]
    """Path in the package -> digest."""
    mean: Annotated[tuple[MeanPart, ...], Field(max_length=1000)] = ()
    withdrawn: Withdrawal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRecord(_Record):
    """A line of ``samples.jsonl``: the public facts of a sample."""

    id: Name
    benchmark: Name
    language: Name
    level: Label
    repo: Name
    path: Name
    line: Count
    """Line of the cursor, 0-based; `column` is too."""
    column: Count
    day: Day | None = None
    """The day of its code, if known."""
    marks: Annotated[tuple[Literal["broken", "vacuous"], ...], Field(max_length=2)] = ()
    """Why no score is to rest on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerUsage(_Record):
    """How an answer of the model ended, and what it took."""

    finish: Label = "stop"
    tokens_in: Count = 0
    tokens_out: Count = 0
    seconds: Amount = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord(AnswerUsage):
    """A question to the model before the final prompt."""

    role: Name
    prompt: Digest
    answer: Text
    max_tokens: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRecord(AnswerUsage):
    """One final answer of the model."""

    status: Literal["scored", "model-failed"]
    text: Text
    """The completion that is scored."""
    answer: Text | None = None
    """What the model wrote; None if that is `text`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredRecord(_Record):
    """A line of ``completions.jsonl``: one sample in one repetition."""

    sample: Name
    repetition: Annotated[int, Field(ge=0, le=99)] = 0
    status: Literal["scored", "model-failed"]
    prompt: Digest
    """Digest of the final prompt's text."""
    context_tokens: Count
    flags: Annotated[tuple[Name, ...], Field(max_length=100)] = ()
    """Flags of the prompt; `overflow_trimmed`: it was cut to the model's window in the model's own tokens."""
    strategy_seconds: Amount
    generator_seconds: Amount
    calls: Annotated[tuple[CallRecord, ...], Field(max_length=1000)] = ()
    completions: Annotated[tuple[AnswerRecord, ...], Field(max_length=1000)] = ()
    """Empty if no model was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictPart(_Record):
    """What the tests said."""

    verdict: Name
    reason: Annotated[str, Field(max_length=2000)] = ""
    tests_run: Count = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRecord(_Record):
    """A line of ``scores.jsonl``: the scores of one completion, or of a prompt if no model was asked."""

    sample: Name
    repetition: Annotated[int, Field(ge=0, le=99)] = 0
    completion: Count = 0
    scores: Mapping[Name, Mapping[Name, Score | None]]
    """Profile -> metric -> value in the profile's own scale; None if it is undefined."""
    verdict: VerdictPart | None = None
    """None for lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A package that was read, or is to be written."""

    manifest: Manifest
    samples: tuple[SampleRecord, ...]
    completions: tuple[AnsweredRecord, ...]
    scores: tuple[ScoreRecord, ...]
    sources: Mapping[str, str] = field(default_factory=dict)
    """Name of a file in ``strategy/`` -> its text."""


class PartState(StrEnum):
    """How far a part of a package was checked."""

    DERIVED = "re-derived"
    """Made again from the sample set, the strategy and the answers."""
    RESCORED = "rescored only"
    """Computed again from the completions, without the strategy."""
    TRUSTED = "trusted"
    """The author's word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueDifference(_Record):
    """The first value of a part that is not the package's."""

    sample: Label
    """Empty if it is of the whole package."""
    what: Label
    expected: Text
    """The package's value."""
    got: Text
    """The value here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartCheck(_Record):
    """What was checked of one part of a package."""

    name: Literal[
        "samples", "strategy", "prompts", "answers", "completions", "scores", "verdicts", "means", "description"
    ]
    state: Annotated[PartState, Field(strict=False)]
    checked: Count
    """Number of values that were compared, out of `of`."""
    of: Count
    note: Text = ""
    """Why it was not checked further."""
    differing: Count = 0
    difference: ValueDifference | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageVerification(_Record):
    """What `ctxbench results verify` found; also the content of ``verification.json``."""

    id: Id
    digest: Digest
    """`digest_of` the package: a verification of another package says nothing of this one."""
    ctxbench: Name
    samples: Count
    """Number of samples that were drawn."""
    of: Count
    parts: Annotated[tuple[PartCheck, ...], Field(max_length=20)]

    @property
    def equal(self) -> bool:
        """Whether nothing differs from what the package says."""
        return not any(part.differing for part in self.parts)


class BoardKey(NamedTuple):
    """What the rows of one table share; two versions of a set or of the metrics differ in it."""

    set: str
    set_digest: str
    kind: str
    limit: int | None
    after: str | None
    metrics: str
    coder: str
    """Coder of the bits: bits of two coders cannot be compared."""
    completions: int


def board_key(manifest: Manifest) -> BoardKey:
    """Return the key of the table where a submission belongs."""
    part = manifest.set
    return BoardKey(
        set=part.name,
        set_digest=part.digest,
        kind=part.kind,
        limit=part.limit,
        after=part.after,
        metrics=manifest.versions.metrics,
        coder=manifest.versions.coder,
        completions=manifest.sampling.completions,
    )


def digest_of(manifest: Manifest) -> str:
    """Return the digest of what a submission claims: everything but its id, its title and later corrections."""
    later = ("id", "title", "supersedes", "withdrawn")
    claims = {name: value for name, value in asdict(manifest).items() if name not in later}
    return sha256(json.dumps(claims, sort_keys=True))


def is_package(folder: Path) -> bool:
    """Return whether a folder holds a package."""
    return (folder / MANIFEST).is_file()


def sealed(submission: Submission) -> Submission:
    """Return a submission with the digests of its files, and the id that follows from them."""
    digests = {path: sha256(content) for path, content in _contents(submission).items()}
    manifest = replace(submission.manifest, files=digests)
    return replace(submission, manifest=replace(manifest, id=digest_of(manifest)[:12]))


def write(folder: Path, submission: Submission) -> None:
    """Write a package; an older one in the same folder is replaced. Equal submissions give equal bytes.

    Raises:
        InputFault: if the folder holds anything else than a package.
    """
    with explained(folder):
        if folder.is_dir() and any(folder.iterdir()) and not is_package(folder):
            raise InputFault(
                "contains files that are not part of a package", where=str(folder), cure="give --out an empty folder"
            )
        shutil.rmtree(folder / STRATEGY_FOLDER, ignore_errors=True)
    for path, content in _contents(submission).items():
        write_atomic(folder / path, content)
    write_atomic(folder / MANIFEST, manifest_text(submission.manifest))


def manifest_text(manifest: Manifest) -> str:
    """Return the text of ``submission.toml``."""
    return "\n".join(_toml(_plain(manifest))) + "\n"


def _contents(submission: Submission) -> dict[str, str]:
    parts: dict[str, tuple[Any, ...]] = {
        SAMPLES: submission.samples,
        COMPLETIONS: submission.completions,
        SCORES: submission.scores,
    }
    lines = {name: "".join(dump_line(_plain(record)) for record in records) for name, records in parts.items()}
    return lines | {f"{STRATEGY_FOLDER}/{name}": text for name, text in sorted(submission.sources.items())}


def _plain(value: Any) -> Any:
    """Return a record as JSON would have it, without the fields that have their default values."""
    if is_dataclass(value):
        members = ((item.name, getattr(value, item.name), item.default) for item in fields(value))
        return {name: _plain(inner) for name, inner, default in members if inner != default}
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def _toml(table: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Yield the lines of a table: first its values, then the tables in it."""
    for name, value in table.items():
        if not _holds_tables(value):
            yield f"{name if name.isidentifier() else toml_value(name)} = {toml_value(value)}"
    for name, value in table.items():
        if _holds_tables(value):
            head, inner_tables = (f"[{path}{name}]", [value]) if isinstance(value, dict) else (f"[[{name}]]", value)
            for inner in inner_tables:
                yield from ("", head, *_toml(inner, f"{path}{name}."))


def _holds_tables(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(inner, dict) for inner in value))


def read(folder: Path) -> Submission:
    """Read a package, and check everything that can be checked without its sample set.

    Raises:
        InputFault: at the first fault, with file, line and field. The message has no invisible characters.
    """
    try:
        return _read(folder)
    except InputFault as fault:
        raise InputFault(visible(fault.what)[:500], where=visible(fault.where), cure=fault.cure) from None


def _read(folder: Path) -> Submission:
    sizes = _sizes(folder)
    manifest = _manifest(folder, sizes)
    files = {path: _file(folder, path, sizes) for path in sorted(sizes.keys() - {MANIFEST, VERIFICATION})}
    digests = {path: sha256(raw) for path, raw in files.items()}
    if odd := next(
        (path for path in sorted({*digests, *manifest.files}) if digests.get(path) != manifest.files.get(path)), ""
    ):
        raise InputFault(f"{odd!r} is not the file that the manifest names", where=f"{folder / MANIFEST}", cure=_CURE)
    sources = {path.partition("/")[2]: _decoded(raw, path) for path, raw in files.items() if "/" in path}
    if set(sources) != {manifest.strategy.file} - {None}:
        raise InputFault("field strategy.file is not the file in strategy/", where=f"{folder / MANIFEST}", cure=_CURE)
    submission = Submission(
        manifest=manifest,
        samples=tuple(_records(SampleRecord, files[SAMPLES], folder / SAMPLES)),
        completions=tuple(_records(AnsweredRecord, files[COMPLETIONS], folder / COMPLETIONS)),
        scores=tuple(_records(ScoreRecord, files[SCORES], folder / SCORES)),
        sources=sources,
    )
    if manifest.id != digest_of(manifest)[:12]:
        raise InputFault("field id is not that of its content", where=f"{folder / MANIFEST}", cure=_CURE)
    _check_fields(submission, folder)
    _check_lines(submission, folder)
    if manifest.set.kind == "line" and any(record.marks for record in submission.samples):
        raise InputFault("field marks: only functions have marks", where=f"{folder / SAMPLES}", cure=_CURE)
    return submission


def _sizes(folder: Path) -> dict[str, int]:
    """Return path -> size of the files in a package; only known names, regular files and small sizes pass."""
    needed = {MANIFEST, SAMPLES, COMPLETIONS, SCORES}
    sizes: dict[str, int] = {}
    with explained(folder):
        places = [folder, *([folder / STRATEGY_FOLDER] if (folder / STRATEGY_FOLDER).is_dir() else [])]
        for place in places:
            if not stat.S_ISDIR(place.lstat().st_mode):
                raise InputFault("is not a folder", where=str(place), cure=_CURE)
            for entry in islice(place.iterdir(), 20):
                path = entry.relative_to(folder).as_posix()
                if path == STRATEGY_FOLDER and len(places) > 1:
                    continue
                status, expected = entry.lstat(), path in needed | {VERIFICATION} or place != folder
                if not expected or not stat.S_ISREG(status.st_mode):
                    raise InputFault(f"{path!r} is not part of a package", where=str(folder), cure="remove it")
                sizes[path] = status.st_size
    if missing := sorted(needed - sizes.keys()):
        raise InputFault(f"{missing[0]} is missing", where=str(folder), cure=_CURE)
    if sum(sizes.values()) > MAX_BYTES or len(sizes) > len(needed) + 2:
        raise InputFault(f"is larger than {MAX_BYTES >> 20} MiB, or has too many files", where=str(folder), cure=_CURE)
    return sizes


def _file(folder: Path, path: str, sizes: Mapping[str, int]) -> bytes:
    limit = {MANIFEST: MAX_MANIFEST, SAMPLES: MAX_BYTES, COMPLETIONS: MAX_BYTES, SCORES: MAX_BYTES}.get(
        path, MAX_SOURCE
    )
    if sizes[path] > limit:
        raise InputFault(f"is larger than {limit >> 10} KiB", where=str(folder / path), cure=_CURE)
    return read_own_file(folder / path)


def _decoded(raw: bytes, where: object) -> str:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise InputFault("is not UTF-8", where=str(where), cure=_CURE) from None
    if fault := unfit(text):
        raise InputFault(fault, where=str(where), cure=_CURE)
    return text


def _manifest(folder: Path, sizes: Mapping[str, int]) -> Manifest:
    where = str(folder / MANIFEST)
    text = _decoded(_file(folder, MANIFEST, sizes), where)
    if max(map(len, text.split("\n"))) > MAX_TOML_LINE:
        raise InputFault(f"has a line of more than {MAX_TOML_LINE} characters", where=where, cure=_CURE)
    try:
        return _valid(Manifest, tomllib.loads(text), where)
    except (ValueError, RecursionError) as error:
        raise InputFault(f"is not TOML: {error}", where=where, cure=_CURE) from None


def _records(kind: type[R], raw: bytes, path: Path) -> Iterator[R]:
    lines = raw.split(b"\n")
    if lines.pop() or len(lines) > MAX_RECORDS or max(map(len, lines), default=0) > MAX_LINE:
        what = f"has an unfinished line, more than {MAX_RECORDS} lines, or a line of more than {MAX_LINE >> 20} MiB"
        raise InputFault(what, where=str(path), cure=_CURE)
    for number, line in enumerate(lines, 1):
        where = f"{path}:{number}"
        record = json_object(parse_json(_decoded(line, where), str(path), number), where)
        yield _valid(kind, storable(record, where), where)


def _valid(kind: type[R], data: Mapping[str, Any], where: str) -> R:
    value, problems = validated(kind, data)
    if value is None:
        key, what, _ = problems[0]
        raise InputFault(f"field {key or 'text'}: {what}", where=where, cure=_CURE)
    return value


def _check_fields(submission: Submission, folder: Path) -> None:
    """Refuse values that contradict others, and names that this version does not know."""
    columns = {
        (profile, metric) for line in submission.scores for profile in line.scores for metric in line.scores[profile]
    }
    unknown = {
        metric
        for profile, metric in columns
        if profile in (DEFAULT, "context") and metric not in (*metrics(DEFAULT), PASS) and common_metric(metric) is None
    }
    foreign = {sample.language for sample in submission.samples} - {*languages.names()}
    seeds, strategy = submission.manifest.sampling.seeds, submission.manifest.strategy
    name, at, arguments = strategy.spec.partition("@")
    faults = {
        "strategy.spec: names a file that the package does not hold": (name if at else None) != strategy.file
        or _FILE.search(arguments if at else name),
        f"language: {min(foreign, default='')!r} is not one of {', '.join(languages.names())}": foreign,
        f"scores: {min(unknown, default='')!r} is not a metric of this version": unknown,
        f"scores: has more than {MAX_COLUMNS} metrics": len(columns) > MAX_COLUMNS,
        "sampling.seeds: has a seed twice": len(set(seeds)) < len(seeds),
    }
    if fault := next((fault for fault, holds in faults.items() if holds), ""):
        raise InputFault(f"field {fault}", where=str(folder), cure=_CURE)


def _check_lines(submission: Submission, folder: Path) -> None:
    """Refuse records that are double, missing or of no sample."""
    sampling, ids = submission.manifest.sampling, [sample.id for sample in submission.samples]
    repetitions, completions = len(sampling.seeds), max(1, sampling.completions)
    whole = (
        len(set(ids)) == len(ids) == submission.manifest.set.samples
        # Counts first: their product may be large.
        and len(submission.completions) == len(ids) * repetitions
        and len(submission.scores) == len(ids) * repetitions * completions
    )
    due = [(sample, repetition) for repetition in range(repetitions) for sample in ids] if whole else []
    if (
        not whole
        or {len(record.completions) for record in submission.completions} != {sampling.completions}
        or [(record.sample, record.repetition) for record in submission.completions] != due
        or [(line.sample, line.repetition, line.completion) for line in submission.scores]
        != [(*key, index) for key in due for index in range(completions)]
    ):
        what = "does not hold each sample, repetition and completion once, in the samples' order"
        raise InputFault(what, where=str(folder), cure=_CURE)


def verification_of(folder: Path, submission: Submission) -> PackageVerification | None:
    """Return the verification beside a package; None without one, or if it is of another package.

    Raises:
        InputFault: if the file is not a verification.
    """
    path = folder / VERIFICATION
    if not path.exists():
        return None
    where = str(path)
    with explained(path):
        sizes = {VERIFICATION: path.lstat().st_size}
    text = _decoded(_file(folder, VERIFICATION, sizes), where)
    verification = _valid(PackageVerification, json_object(parse_json(text, where, 1), where), where)
    counted = verification.samples <= verification.of == len(submission.samples)
    mine = verification.id == submission.manifest.id and verification.digest == digest_of(submission.manifest)
    return verification if mine and counted else None


def verification_text(verification: PackageVerification) -> str:
    """Return the text of ``verification.json``."""
    return json.dumps(_plain(verification), ensure_ascii=False, indent=1) + "\n"


def schema() -> str:
    """Return the JSON schema of the manifest and of the lines of the three other files."""
    kinds = (Manifest, SampleRecord, AnsweredRecord, ScoreRecord)
    schemas = {kind.__name__: TypeAdapter(kind).json_schema(ref_template="#/$defs/{model}") for kind in kinds}
    inner = {name: part for kind in schemas.values() for name, part in kind.pop("$defs", {}).items()}
    return json.dumps({"$defs": dict(sorted((inner | schemas).items())), "$ref": "#/$defs/Manifest"}, indent=1) + "\n"
