"""The files of a package: one folder per submission, for people to read and for `ctxbench results verify` to check.

``submission.toml`` is the manifest. ``samples.jsonl`` lists the samples, ``completions.jsonl`` the model's answers, and
``scores.jsonl`` the scores and verdicts. ``strategy/NAME.py`` is the source of a strategy from a file. A package is
untrusted input: `read` refuses links, unknown files and fields, and sizes and values out of range.
"""

from __future__ import annotations

import json
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from ctxbench.bench import languages
from ctxbench.bench.checking import storable, validated, why_unstorable
from ctxbench.bench.errors import InputFault
from ctxbench.bench.escaping import visible
from ctxbench.bench.files import (
    dump_line,
    explained,
    json_object,
    parse_json,
    read_own_file,
    read_text,
    sha256,
    write_atomic,
)
from ctxbench.bench.repositories.manifest import toml_value
from ctxbench.harness.metrics import DEFAULT, PASS, common_metric, metrics
from ctxbench.harness.submissions.records import (
    MAX_RECORDS,
    AnsweredRecord,
    Manifest,
    PackageVerification,
    SampleRecord,
    ScoreRecord,
    Submission,
    digest_of,
    plain,
)

MANIFEST, SAMPLES, COMPLETIONS, SCORES = "submission.toml", "samples.jsonl", "completions.jsonl", "scores.jsonl"
VERIFICATION = "verification.json"
"""Output of `ctxbench results verify --format json`. It is not part of the package: anyone may write it."""
STRATEGY_FOLDER = "strategy"
MAX_BYTES = 64 << 20
"""Maximum size of a package in bytes. Packages of lite sets take at most 10 MB."""
MAX_MANIFEST, MAX_SOURCE, MAX_LINE = 128 << 10, 1 << 20, 4 << 20
"""Maximum sizes in bytes of a manifest, of a strategy's source, and of a line in the other files."""
MAX_TOML_LINE = 4_000
"""Maximum characters of a manifest's line. The time to read a key is quadratic in the number of its parts."""
MAX_COLUMNS = 300
"""Maximum number of metrics of all profiles together."""
_FILE = re.compile(r"[/\\@]|\.(py|toml)\b")
"""Matches a part of a spec that names a file."""
_CURE = "make the package with `ctxbench results pack`"
R = TypeVar("R")


def is_package(folder: Path) -> bool:
    """Return whether a folder contains ``submission.toml``, the manifest of a package."""
    return (folder / MANIFEST).is_file()


def sealed(submission: Submission) -> Submission:
    """Return a submission whose manifest contains the digests of its files, and the id computed from the manifest."""
    digests = {path: sha256(content) for path, content in _contents(submission).items()}
    manifest = replace(submission.manifest, files=digests)
    return replace(submission, manifest=replace(manifest, id=digest_of(manifest)[:12]))


def write(folder: Path, submission: Submission) -> None:
    """Write a package into a new or empty folder, or over the same package. Equal submissions produce equal bytes.

    Raises:
        InputFault: if the folder contains anything else, or a package whose manifest differs or was edited.
    """
    text = manifest_text(submission.manifest)
    with explained(folder):
        used = folder.is_dir() and any(folder.iterdir())
        if used and not (is_package(folder) and read_text(folder / MANIFEST) == text):
            raise InputFault(
                "the folder contains another package, an edited one, or other files",
                where=str(folder),
                cure="give --out a new folder, or remove this folder first",
            )
    for path, content in _contents(submission).items():
        write_atomic(folder / path, content)
    write_atomic(folder / MANIFEST, text)


def manifest_text(manifest: Manifest) -> str:
    """Return the text of ``submission.toml``."""
    return "\n".join(_toml(plain(manifest))) + "\n"


def _contents(submission: Submission) -> dict[str, str]:
    parts: dict[str, tuple[Any, ...]] = {
        SAMPLES: submission.samples,
        COMPLETIONS: submission.completions,
        SCORES: submission.scores,
    }
    lines = {name: "".join(dump_line(plain(record)) for record in records) for name, records in parts.items()}
    return lines | {f"{STRATEGY_FOLDER}/{name}": text for name, text in sorted(submission.sources.items())}


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
    """Read a package, and check its files, digests, fields and records without its sample set.

    Raises:
        InputFault: at the first fault, with its place. The message has no invisible characters.
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
        raise InputFault(f"the file {odd!r} does not match the manifest", where=f"{folder / MANIFEST}", cure=_CURE)
    sources = {path.partition("/")[2]: _decoded(raw, path) for path, raw in files.items() if "/" in path}
    if set(sources) != {manifest.strategy.file} - {None}:
        raise InputFault(
            "field strategy.file does not name the file in strategy/", where=f"{folder / MANIFEST}", cure=_CURE
        )
    submission = Submission(
        manifest=manifest,
        samples=tuple(_records(SampleRecord, files[SAMPLES], folder / SAMPLES)),
        completions=tuple(_records(AnsweredRecord, files[COMPLETIONS], folder / COMPLETIONS)),
        scores=tuple(_records(ScoreRecord, files[SCORES], folder / SCORES)),
        sources=sources,
    )
    if manifest.id != digest_of(manifest)[:12]:
        raise InputFault("field id does not match the content", where=f"{folder / MANIFEST}", cure=_CURE)
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
                raise InputFault("the path is not a folder", where=str(place), cure=_CURE)
            for entry in islice(place.iterdir(), 20):
                path = entry.relative_to(folder).as_posix()
                if path == STRATEGY_FOLDER and len(places) > 1:
                    continue
                status, expected = entry.lstat(), path in needed | {VERIFICATION} or place != folder
                if not expected or not stat.S_ISREG(status.st_mode):
                    raise InputFault(f"{path!r} is not part of a package", where=str(folder), cure=f"remove {path!r}")
                sizes[path] = status.st_size
    if missing := sorted(needed - sizes.keys()):
        raise InputFault(f"the file {missing[0]} is missing", where=str(folder), cure=_CURE)
    if sum(sizes.values()) > MAX_BYTES or len(sizes) > len(needed) + 2:
        raise InputFault(
            f"the package is larger than {MAX_BYTES >> 20} MiB, or has too many files", where=str(folder), cure=_CURE
        )
    return sizes


def _file(folder: Path, path: str, sizes: Mapping[str, int]) -> bytes:
    limit = {MANIFEST: MAX_MANIFEST, SAMPLES: MAX_BYTES, COMPLETIONS: MAX_BYTES, SCORES: MAX_BYTES}.get(
        path, MAX_SOURCE
    )
    if sizes[path] > limit:
        raise InputFault(f"the file is larger than {limit >> 10} KiB", where=str(folder / path), cure=_CURE)
    return read_own_file(folder / path)


def _decoded(raw: bytes, where: object) -> str:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise InputFault("the file is not UTF-8", where=str(where), cure=_CURE) from None
    if fault := why_unstorable(text):
        raise InputFault(fault, where=str(where), cure=_CURE)
    return text


def _manifest(folder: Path, sizes: Mapping[str, int]) -> Manifest:
    where = str(folder / MANIFEST)
    text = _decoded(_file(folder, MANIFEST, sizes), where)
    if max(map(len, text.split("\n"))) > MAX_TOML_LINE:
        raise InputFault(f"the file has a line of more than {MAX_TOML_LINE} characters", where=where, cure=_CURE)
    try:
        return _valid(Manifest, tomllib.loads(text), where)
    except (ValueError, RecursionError) as error:
        raise InputFault(f"the file is not valid TOML: {error}", where=where, cure=_CURE) from None


def _records(kind: type[R], raw: bytes, path: Path) -> Iterator[R]:
    lines = raw.split(b"\n")
    if lines.pop() or len(lines) > MAX_RECORDS or max(map(len, lines), default=0) > MAX_LINE:
        what = f"the file has an unfinished line, over {MAX_RECORDS} lines, or a line of over {MAX_LINE >> 20} MiB"
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
    versions, model = submission.manifest.versions, submission.manifest.model
    # A strategy's arguments may be any text. A model's contain its name.
    names = (strategy.spec.partition("(")[0], model.spec, versions.coder, versions.tokenizer)
    faults = {
        "strategy.spec: the package lacks the strategy's file": (name if at else None) != strategy.file
        or _FILE.search(arguments if at else name),
        "strategy, model or versions: a name contains non-ASCII characters": not all(map(str.isascii, names)),
        f"language: {min(foreign, default='')!r} is not one of {', '.join(languages.names())}": foreign,
        f"scores: {min(unknown, default='')!r} is not a metric of this version": unknown,
        f"scores: there are more than {MAX_COLUMNS} metrics": len(columns) > MAX_COLUMNS,
        f"scores: {PASS} contradicts a verdict": any(map(_contradicts, submission.scores)),
        "sampling.seeds: the same seed occurs twice": len(set(seeds)) < len(seeds),
    }
    if fault := next((fault for fault, holds in faults.items() if holds), ""):
        raise InputFault(f"field {fault}", where=str(folder), cure=_CURE)


def _contradicts(line: ScoreRecord) -> bool:
    """Return whether a completion's pass score contradicts its verdict, or is above 0 without a verdict."""
    value = line.scores.get(DEFAULT, {}).get(PASS)
    return value != float(line.verdict == "PASSED") if line.verdict else bool(value)


def _check_lines(submission: Submission, folder: Path) -> None:
    """Refuse records that are duplicate, missing, or for an unknown sample."""
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
        what = "the package does not contain each sample, repetition and completion once, in the samples' order"
        raise InputFault(what, where=str(folder), cure=_CURE)


def verification_of(folder: Path, submission: Submission) -> PackageVerification | None:
    """Return the verification in a package's folder; None if it is missing, or does not match this package.

    Raises:
        InputFault: if the file is not a valid verification.
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
    return json.dumps(plain(verification), ensure_ascii=False, indent=1) + "\n"
