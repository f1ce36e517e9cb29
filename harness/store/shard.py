"""`Shard`: a process's results for some samples of a run, as a file that another store can merge.

A shard is gzipped JSON Lines. A manifest with the digests of run and sample set comes first. Prompts, answers and
verdicts follow, each sorted, then finished samples or an attempt's log. Values that vary between repetitions come last,
such as seconds. The file name has a digest of all lines before them, so a repeated work unit has the same file name.
"""

from __future__ import annotations

import dataclasses
import functools
import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import json_object, parse_json, read_lines, sha256, write_atomic
from ctxbench.harness.results import Load
from ctxbench.harness.run.spec import RunSpec
from ctxbench.harness.store.write import (
    Finished,
    StoredConstruction,
    StoredFault,
    StoredGeneration,
    StoredVerdict,
    clean,
)

FORMAT = 4
SUFFIX = ".shard.gz"
_CURE = "repeat the `ctxbench run --shard` command that wrote the shard, or leave the shard out"
_TIMES: Mapping[str, tuple[str, ...]] = {
    "answer": ("seconds", "cached", "price"),
    "verdict": ("reason", "output", "seconds", "peak_bytes", "earlier"),
    "sample": ("strategy_seconds", "generator_seconds", "engines"),
}
_KEYS = {"answer": "id", "verdict": "key", "sample": "sample_id"}
_LEVEL = 6
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptLog:
    """A finished attempt at a run or at part of a run."""

    started: float
    """Start of the attempt, in seconds since 1970."""
    isolation: str
    load: Load | None
    ended: float
    reason: str
    finished: int
    missing: int
    faults: tuple[StoredFault, ...] = ()
    constructions: tuple[StoredConstruction, ...] = ()
    summaries: tuple[str, ...] = ()
    """Ids of the answers that contain summaries of APIs."""
    remarks: tuple[str, ...] = ()
    cutoff: str | None = None
    """Last day of the generator's training data (``YYYY-MM-DD``); None if the spec does not state it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """Finished samples of a run with all data that they refer to, or only verdicts, or an attempt's log."""

    spec: RunSpec
    snapshots: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Digests of the repositories' files, by repository, for the repositories of the samples."""
    generations: tuple[StoredGeneration, ...] = ()
    verdicts: tuple[StoredVerdict, ...] = ()
    finished: tuple[Finished, ...] = ()
    attempt: AttemptLog | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardManifest:
    """The first line of a shard: its format, run and repositories' digests, and the ids of its finished samples."""

    format: int
    run: str
    spec: RunSpec
    snapshots: dict[str, str]
    finished: tuple[str, ...]


def encode(shard: Shard) -> tuple[str, bytes]:
    """Return a shard's file name and content."""
    facts, times = _lines(shard)
    text = "".join(facts)
    name = f"{shard.spec.id}-{sha256(text)[:24]}{SUFFIX}"
    return name, gzip.compress("".join([text, *times]).encode(), _LEVEL, mtime=0)


def write(folder: Path, shard: Shard) -> None:
    """Write a shard into a folder atomically. A file that it replaces has the same results."""
    name, content = encode(shard)
    write_atomic(folder / name, content)


def manifest_of(path: Path) -> ShardManifest:
    """Return a shard's manifest without reading the rest of the file.

    Raises:
        InputFault: if the file is not a shard.
    """
    for number, line in read_lines(path):
        return _manifest(_record(line, str(path), number), f"{path}:{number}")
    raise InputFault("the file is empty", where=str(path), cure=_CURE)


def read(path: Path) -> Shard:
    """Read a shard and check its content against its name.

    Raises:
        InputFault: if the file is not a shard or was changed; the message names the file, and the line if one is wrong.
    """
    where = str(path)
    facts: list[str] = []
    prompts: dict[str, str] = {}
    records: list[tuple[str, str, dict[str, Any]]] = []
    times: dict[tuple[str, str], dict[str, Any]] = {}
    manifest: ShardManifest | None = None
    for number, line in read_lines(path):
        record, at = _record(line, where, number), f"{where}:{number}"
        match record:
            case _ if manifest is None:
                manifest = _manifest(record, at)
            case {"times": [str(kind), str(key), *values]}:
                times[kind, key] = dict(zip(_TIMES.get(kind, ()), values, strict=False))
                continue
            case {"prompt": [str(digest), str(text)]}:
                prompts[digest] = text
            case {"answer": dict()} | {"verdict": dict()} | {"sample": dict()} | {"attempt": dict()}:
                records.append((at, *record.popitem()))
            case _:
                raise InputFault("the line does not belong to a shard", where=at, cure=_CURE)
        facts.append(line)
    if manifest is None:
        raise InputFault("the file is empty", where=where, cure=_CURE)
    if sha256("".join(facts))[:24] != path.name.removesuffix(SUFFIX).rpartition("-")[2]:
        raise InputFault(
            "the file was changed or damaged: its content does not match its name", where=where, cure=_CURE
        )
    whole = []
    for at, kind, record in records:
        key = str(record.get(_KEYS.get(kind, ""), ""))
        whole.append((at, kind, record | times.get((kind, key), {})))
    return _shard(manifest, prompts, whole)


def _lines(shard: Shard) -> tuple[list[str], list[str]]:
    manifest = ShardManifest(
        format=FORMAT,
        run=shard.spec.id,
        spec=shard.spec,
        snapshots=dict(sorted(shard.snapshots.items())),
        finished=tuple(sample.sample_id for sample in shard.finished),
    )
    prompts: dict[str, str] = {}
    facts: list[str] = []
    times: list[str] = []

    def add(kind: str, record: dict[str, Any]) -> None:
        moving = [record.pop(name) for name in _TIMES[kind]]
        facts.append(_dump({kind: record}))
        times.append(_dump({"times": [kind, record[_KEYS[kind]], *moving]}))

    for answer in sorted(shard.generations, key=lambda answer: answer.id):
        record = dataclasses.asdict(answer)
        prompts[answer.prompt_digest] = record.pop("prompt")
        add("answer", record)
    for verdict in sorted(shard.verdicts, key=lambda verdict: verdict.key):
        add("verdict", dataclasses.asdict(verdict))
    for sample in shard.finished:
        add("sample", _sample(sample, prompts))
    if shard.attempt is not None:
        facts.append(_dump({"attempt": dataclasses.asdict(shard.attempt)}))
    texts = [_dump({"prompt": [digest, text]}) for digest, text in sorted(prompts.items())]
    return [_dump(dataclasses.asdict(manifest)), *texts, *facts], times


def _sample(sample: Finished, prompts: dict[str, str]) -> dict[str, Any]:
    record = dataclasses.asdict(sample)
    prompts[sample.prompt_digest] = record.pop("prompt")
    for cost in record["bits"]:
        prompts[cost["prompt_digest"]] = cost.pop("prompt")
    for scored in (record, *record["completions"]):
        scored["scores"] = [[*key, clean(value)] for key, value in sorted(scored["scores"].items())]
    return record


def _dump(record: object) -> str:
    return json.dumps(_cleaned(record), ensure_ascii=False, separators=(",", ":"), default=str) + "\n"


def _cleaned(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _cleaned(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(inner) for inner in value]
    return clean(value)


def _record(line: str, where: str, number: int) -> dict[str, Any]:
    return json_object(parse_json(line.rstrip("\n"), where, number), f"{where}:{number}")


def _manifest(record: dict[str, Any], where: str) -> ShardManifest:
    if isinstance(version := record.get("format"), int) and version != FORMAT:
        raise InputFault(
            f"the shard has format {version}, and this ctxbench reads format {FORMAT}", where=where, cure=_CURE
        )
    manifest = _typed(ShardManifest, record, where)
    if manifest.run != manifest.spec.id:
        raise InputFault("the run's settings do not match its id", where=where, cure=_CURE)
    return manifest


def _shard(
    manifest: ShardManifest, prompts: Mapping[str, str], records: Sequence[tuple[str, str, dict[str, Any]]]
) -> Shard:
    def of_kind(kind: str) -> list[tuple[str, dict[str, Any]]]:
        return [(where, record) for where, name, record in records if name == kind]

    return Shard(
        spec=manifest.spec,
        snapshots=manifest.snapshots,
        generations=tuple(
            _typed(StoredGeneration, {**record, "prompt": prompts.get(record.get("prompt_digest", ""))}, where)
            for where, record in of_kind("answer")
        ),
        verdicts=tuple(_typed(StoredVerdict, record, where) for where, record in of_kind("verdict")),
        finished=tuple(_finished(record, prompts, where) for where, record in of_kind("sample")),
        attempt=next((_typed(AttemptLog, record, where) for where, record in of_kind("attempt")), None),
    )


def _finished(record: dict[str, Any], prompts: Mapping[str, str], where: str) -> Finished:
    try:
        bits = [{**cost, "prompt": prompts.get(cost["prompt_digest"])} for cost in record["bits"]]
        whole, *completions = [
            {**scored, "scores": {(profile, metric): value for profile, metric, value in scored["scores"]}}
            for scored in (record, *record["completions"])
        ]
    except (KeyError, TypeError, ValueError):
        raise InputFault("the line is not a finished sample", where=where, cure=_CURE) from None
    whole |= {"bits": bits, "completions": completions, "prompt": prompts.get(record.get("prompt_digest", ""))}
    return _typed(Finished, whole, where)


def _typed(kind: type[R], record: Mapping[str, Any], where: str) -> R:
    from pydantic import ValidationError  # noqa: PLC0415 - needed only for merging

    try:
        adapter: Any = _adapter(kind)  # type: ignore[arg-type]  # a class is hashable
        value: R = adapter.validate_python(record)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise InputFault(f"field {field}: {first['msg'].lower()}", where=where, cure=_CURE) from None
    return value


@functools.cache
def _adapter(kind: Any) -> Any:
    from pydantic import TypeAdapter  # noqa: PLC0415

    return TypeAdapter(kind)
