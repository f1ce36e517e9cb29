"""Sample sets on disk, each complete or absent: ``samples/<name>/{samples.jsonl,references.jsonl,manifest.json}``."""

from __future__ import annotations

import difflib
import hashlib
import json
import platform
import re
import shutil
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ctxbench.bench import records
from ctxbench.bench.errors import CtxbenchError, InputFault, UnknownName
from ctxbench.bench.files import (
    dump_line,
    explained,
    parse_json,
    read_text,
    sha256,
    sha256_file,
    write_atomic,
    write_jsonl,
)
from ctxbench.bench.home import Home
from ctxbench.bench.languages.base import Language
from ctxbench.bench.repositories import snapshot
from ctxbench.bench.repositories.snapshot import Snapshot
from ctxbench.bench.types import Kind, Reference, Sample

FORMAT = 1
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_PARSERS = ("tree-sitter", "tree-sitter-java", "tree-sitter-python")
SAMPLES, REFERENCES, _MANIFEST = "samples.jsonl", "references.jsonl", "manifest.json"


@dataclass(frozen=True, slots=True)
class SampleSet:
    """A named set of samples with their answers. Strategies never receive a set."""

    name: str
    digest: str
    """SHA-256 of the digests of ``samples.jsonl`` and ``references.jsonl``. Equal sets have equal digests."""
    samples: tuple[Sample, ...] = field(repr=False)
    references: Mapping[str, Reference] = field(repr=False)
    manifest: Mapping[str, Any] = field(repr=False)


def folder(home: Home, name: str) -> Path:
    """Return a set's folder.

    Raises:
        InputFault: if the name is not a simple file name of at most 80 characters.
    """
    if not _NAME.fullmatch(name):
        raise InputFault(
            f"{name!r} is not a valid name for a sample set",
            cure="begin with a letter or digit; use at most 80 letters, digits, dots, dashes and underscores",
        )
    return home.samples / name


def names(home: Home) -> tuple[str, ...]:
    """Return the names of all sets in the home folder, sorted."""
    if not home.samples.is_dir():
        return ()
    with explained(home.samples):
        candidates = [entry.name for entry in home.samples.iterdir() if (entry / _MANIFEST).is_file()]
    # A killed build leaves a folder whose name starts with a dot.
    return tuple(sorted(name for name in candidates if _NAME.fullmatch(name)))


def save(
    home: Home,
    name: str,
    samples: Sequence[Sample],
    references: Iterable[Reference],
    manifest: Mapping[str, Any],
    *,
    force: bool = False,
) -> SampleSet:
    """Write a set atomically, and load it. An equal set of the same name stays unchanged.

    Raises:
        InputFault: if another set has the name and `force` is false.
    """
    place = folder(home, name)
    with explained(place):
        home.samples.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{name}.", suffix=".part", dir=home.samples))
        try:
            # Write record by record: a benchmark's set may not fit into memory twice.
            files = {
                SAMPLES: write_jsonl(beside / SAMPLES, map(records.from_sample, samples)),
                REFERENCES: write_jsonl(beside / REFERENCES, map(records.from_reference, references)),
            }
            whole = {"format": FORMAT, **manifest, "samples": len(samples), "files": files}
            text = json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
            write_atomic(beside / _MANIFEST, text)
            if not place.exists() or not _same(place, text, files):
                _check_free(place, name, force or _holds(place, files))
                beside.chmod(0o755)
                _swap(beside, place)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    return load(home, name)


def _check_free(place: Path, name: str, force: bool) -> None:
    if place.exists() and not force:
        raise InputFault(
            f"another sample set is called {name!r}",
            where=str(place),
            cure="add --force to replace it, or choose another name",
        )


def _same(place: Path, manifest: str, files: Mapping[str, str]) -> bool:
    account = place / _MANIFEST
    return account.is_file() and account.read_bytes() == manifest.encode() and _holds(place, files)


def _holds(place: Path, files: Mapping[str, str]) -> bool:
    return all((place / file).is_file() and sha256_file(place / file) == digest for file, digest in files.items())


def _swap(beside: Path, place: Path) -> None:
    old = beside.with_suffix(".old")
    if place.exists():
        place.rename(old)
    beside.rename(place)
    shutil.rmtree(old, ignore_errors=True)


def manifest_of(home: Home, name: str) -> dict[str, Any]:
    """Return a set's manifest, without reading its samples.

    Raises:
        UnknownName: if no set has this name.
        InputFault: if the manifest is malformed, or of a newer format.
    """
    place = folder(home, name)
    if not (place / _MANIFEST).is_file():
        raise UnknownName("sample set", name, names(home), command="ctxbench samples list")
    return _manifest(place / _MANIFEST)


def load(home: Home, name: str) -> SampleSet:
    """Read a set and check it.

    Raises:
        UnknownName: if no set has this name.
        InputFault: if a file is malformed (the message names the place), or changed after the build.
    """
    place, manifest = folder(home, name), manifest_of(home, name)
    # Read the records first: an error with line and field is more helpful than a differing digest.
    samples = tuple(records.read_samples(place / SAMPLES))
    references = {item.id: item for item in records.read_references(place / REFERENCES)}
    _check_pairs(place, samples, references)
    for file in (SAMPLES, REFERENCES):
        if sha256_file(place / file) != manifest["files"][file]:
            raise _changed(place / file)
    return SampleSet(name, digest_of(manifest["files"]), samples, references, manifest)


def find(sample_set: SampleSet, sample_id: str) -> Sample:
    """Return a sample by its id.

    Raises:
        InputFault: if the set has no such sample. The message suggests similar ids.
    """
    samples_by_id = {sample.id: sample for sample in sample_set.samples}
    if sample_id not in samples_by_id:
        near = difflib.get_close_matches(sample_id, samples_by_id, n=2, cutoff=0.6)
        hint = f"did you mean {' or '.join(near)}? Or " if near else ""
        raise InputFault(
            f"no sample of {sample_set.name!r} is called {sample_id!r}",
            cure=f"{hint}see `ctxbench samples show {sample_set.name} --ids`",
        )
    return samples_by_id[sample_id]


def _changed(file: Path) -> InputFault:
    return InputFault(
        "the file was changed after it was built: its sha256 differs from the manifest's",
        where=str(file),
        cure="build the set again with --force; if you need your changes, copy the file first",
    )


def digest_of(files: Mapping[str, str]) -> str:
    """Return a set's digest, from its files' digests."""
    return sha256(f"{files[SAMPLES]}\n{files[REFERENCES]}\n")


def _manifest(path: Path) -> dict[str, Any]:
    cure = "build the set again with --force"
    try:
        manifest = parse_json(read_text(path), str(path), 1)
    except InputFault as fault:
        raise InputFault(fault.what, where=fault.where, cure=cure) from None
    version = manifest.get("format") if isinstance(manifest, dict) else None
    if not isinstance(version, int):
        raise InputFault("field format is missing or not a number", where=str(path), cure=cure)
    if version > FORMAT:
        raise InputFault(
            f"the set has format {version}, but this ctxbench reads only up to {FORMAT}",
            where=str(path),
            cure="upgrade ctxbench",
        )
    files = manifest.get("files")
    if not isinstance(files, dict) or not all(isinstance(files.get(file), str) for file in (SAMPLES, REFERENCES)):
        raise InputFault("the field `files` lacks the digest of a file", where=str(path), cure=cure)
    repositories = manifest.get("repositories")
    if not isinstance(repositories, dict):
        raise InputFault("field repositories is missing or not an object", where=str(path), cure=cure)
    for name, entry in repositories.items():
        if not isinstance(entry, dict):
            raise InputFault(f"field repositories.{name} is not an object", where=str(path), cure=cure)
        # A repository that was imported without its files has no checkout.
        for key in ("language", "checkout", "snapshot") if entry.get("checkout") else ("language",):
            if not isinstance(entry.get(key), str):
                raise InputFault(f"field repositories.{name}.{key} is missing or not text", where=str(path), cure=cure)
    return dict(manifest)


def _check_pairs(place: Path, samples: Sequence[Sample], references: Mapping[str, Reference]) -> None:
    cure = "build the set again with --force"
    for number, sample in enumerate(samples, 1):
        if sample.id not in references:
            where = f"{place / SAMPLES}:{number}"
            raise InputFault(f"sample {sample.id!r} has no reference in {REFERENCES}", where=where, cure=cure)
    extra = references.keys() - {sample.id for sample in samples}
    if extra:
        raise InputFault(f"no sample has the id {min(extra)!r}", where=str(place / REFERENCES), cure=cure)


def snapshots(home: Home, sample_set: SampleSet, repos: Collection[str] | None = None) -> dict[str, Snapshot]:
    """Return the snapshots of a set's repositories, by name. Repositories imported without files are left out.

    Args:
        repos: names of the needed repositories; None for all.

    Raises:
        InputFault: if a repository is not fetched, or its files changed after the set was built.
    """
    loaded: dict[str, Snapshot] = {}
    for name, entry in sorted(sample_set.manifest["repositories"].items()):
        if (repos is not None and name not in repos) or not entry.get("checkout"):
            continue
        root = home.repos / entry["checkout"]
        cure = entry.get("cure") or f"fetch it with `ctxbench repo fetch {name}`"
        if not root.is_dir():
            raise InputFault(f"the repository {name!r} has not been fetched", where=str(root), cure=cure)
        repository = snapshot.load(
            name,
            root,
            Language(entry["language"]),
            entry.get("source_dir", ""),
            hygiene=entry.get("hygiene", True),
            packages=entry.get("packages", False),
            # Sets without this key were built when ctxbench read every file as UTF-8, or from UTF-8 copies.
            declared="encodings" in entry,
        )
        if repository.digest != entry["snapshot"]:
            raise InputFault(
                f"the files of {name!r} changed after the sample set {sample_set.name!r} was built",
                where=str(root),
                cure=f"remove that folder, then {cure}",
            )
        loaded[name] = repository
    return loaded


def account(
    kind: Kind, repositories: Mapping[str, Mapping[str, Any]], totals: Sequence[str], *, seed: int, per_repo: int
) -> dict[str, Any]:
    """Return the manifest of a new set, without the fields that `save` adds.

    Args:
        repositories: each repository's entry, which contains its counts, by name.
        totals: names of the counts to sum over all repositories.
    """
    return {
        "ctxbench": version("ctxbench"),
        "python": platform.python_version(),
        "parsers": {name: version(name) for name in _PARSERS},
        "kind": kind.value,
        "seed": seed,
        "per_repo": per_repo,
        "repositories": dict(repositories),
        "totals": {key: sum(entry[key] for entry in repositories.values()) for key in totals},
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredTask:
    """A sample's task with its answer."""

    prefix: str
    signature: str
    docstring: str
    target: str
    tests: tuple[str, ...]
    original_import: str
    has_answer: bool
    """Whether the sample has an answer, rather than only tests."""


def answered_task(home: Home, name: str, digest: str, sample: str) -> AnsweredTask | None:
    """Return a sample with its answer, or None if no set with this digest contains the sample.

    Args:
        name: the name of the set to try first.

    Raises:
        InputFault: if the set was changed after it was built, or cannot be read.
    """
    for set_name in sorted(names(home), key=lambda other: (other != name, other)):
        try:
            files = manifest_of(home, set_name)["files"]
        except CtxbenchError:
            # Skip an unreadable set; `ctxbench samples show` reports its error.
            continue
        if digest_of(files) == digest:
            place = folder(home, set_name)
            task, answer = (_record(place / file, files[file], sample) for file in (SAMPLES, REFERENCES))
            return None if task is None or answer is None else _task(task, answer)
    return None


def _record(file: Path, digest: str, sample: str) -> dict[str, Any] | None:
    start = dump_line({"id": sample}).removesuffix("}\n").encode()
    whole, record = hashlib.sha256(), b""
    with explained(file), file.open("rb") as handle:
        for line in handle:
            whole.update(line)
            record = line if line.startswith(start) else record
    if whole.hexdigest() != digest:
        raise _changed(file)
    return dict(json.loads(record)) if record else None


def _task(sample: Mapping[str, Any], reference: Mapping[str, Any]) -> AnsweredTask:
    return AnsweredTask(
        prefix=sample["prefix"],
        signature=sample.get("signature") or "",
        docstring=sample.get("docstring") or "",
        target=reference["target"],
        tests=tuple(reference.get("tests") or ()),
        original_import=reference.get("original_import") or "",
        has_answer=not (reference.get("fields") or {}).get("no_reference"),
    )
