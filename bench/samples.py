"""Sample sets on disk: ``samples/<name>/{samples.jsonl,references.jsonl,manifest.json}``, whole or absent.

Owns their checks: every record against its type, ids, references, digests. The answers lie in a file of
their own, so that whatever a strategy is given can be built without it. Nothing in a set tells the time
or the machine: building it again gives the same bytes.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ctxbench.bench import languages, records, snapshot
from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.bench.files import explained, parse_json, read_text, sha256, sha256_file, write_atomic, write_jsonl
from ctxbench.bench.home import Home
from ctxbench.bench.snapshot import Snapshot
from ctxbench.bench.types import Reference, Sample

FORMAT = 1
"""Version of the files' layout."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
SAMPLES, REFERENCES, _MANIFEST = "samples.jsonl", "references.jsonl", "manifest.json"


@dataclass(frozen=True, slots=True)
class SampleSet:
    """A named set of samples with their answers; the trusted side's."""

    name: str
    digest: str
    """SHA-256 over the digests of both files; equal sets have equal digests."""
    samples: tuple[Sample, ...] = field(repr=False)
    references: Mapping[str, Reference] = field(repr=False)
    """Sample id -> answer."""
    manifest: Mapping[str, Any] = field(repr=False)


def folder(home: Home, name: str) -> Path:
    """Return the folder of a set.

    Raises:
        InputFault: if the name could leave the home folder or is hard to type.
    """
    if not _NAME.fullmatch(name):
        raise InputFault(
            f"{name!r} is no name for a sample set", cure="use letters, digits, dots, dashes and underscores"
        )
    return home.samples / name


def names(home: Home) -> tuple[str, ...]:
    """Return the names of the sets in the home folder, sorted."""
    if not home.samples.is_dir():
        return ()
    with explained(home.samples):
        candidates = [entry.name for entry in home.samples.iterdir() if (entry / _MANIFEST).is_file()]
    # A name that does not fit is what a killed build left beside its place.
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
    """Write a set: beside its place, the manifest last, then renamed in as one folder.

    An equal set of that name is left as it is.

    Raises:
        InputFault: if another set has the name and `force` is not given.
    """
    place = folder(home, name)
    with explained(place):
        home.samples.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{name}.", suffix=".part", dir=home.samples))
        try:
            # Record by record: a benchmark's set can be larger than memory allows twice.
            files = {
                SAMPLES: write_jsonl(beside / SAMPLES, map(records.from_sample, samples)),
                REFERENCES: write_jsonl(beside / REFERENCES, map(records.from_reference, references)),
            }
            whole = {"format": FORMAT, **manifest, "samples": len(samples), "files": files}
            text = json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
            write_atomic(beside / _MANIFEST, text)
            if not place.exists() or not _same(place, text, files):
                _check_free(place, name, force)
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
    if not all((place / file).is_file() for file in (_MANIFEST, *files)):
        return False
    return (place / _MANIFEST).read_bytes() == manifest.encode() and all(
        sha256_file(place / file) == digest for file, digest in files.items()
    )


def _swap(beside: Path, place: Path) -> None:
    """Put the new folder in place; an old one leaves only after the new one is whole."""
    old = beside.with_suffix(".old")
    if place.exists():
        place.rename(old)
    beside.rename(place)
    shutil.rmtree(old, ignore_errors=True)


def manifest_of(home: Home, name: str) -> dict[str, Any]:
    """Return the account that a set gives of itself; its samples are not read.

    Raises:
        UnknownName: if there is none of that name.
        InputFault: if it is malformed.
    """
    place = folder(home, name)
    if not (place / _MANIFEST).is_file():
        raise UnknownName("sample set", name, names(home), command="ctxbench samples list")
    return _manifest(place / _MANIFEST)


def load(home: Home, name: str) -> SampleSet:
    """Read a set and check it.

    Raises:
        UnknownName: if there is none of that name.
        InputFault: at the first fault, with file, line and field.
    """
    place, manifest = folder(home, name), manifest_of(home, name)
    # Records first: a fault with line and field says more than a digest that differs.
    samples = tuple(records.read_samples(place / SAMPLES))
    references = {item.id: item for item in records.read_references(place / REFERENCES)}
    _check_pairs(place, samples, references)
    for file in (SAMPLES, REFERENCES):
        if sha256_file(place / file) != manifest["files"][file]:
            raise InputFault(
                "was changed after it was built: its sha256 is not the manifest's",
                where=str(place / file),
                cure="build the set again with --force, or keep your own version under another name",
            )
    return SampleSet(name, digest_of(manifest["files"]), samples, references, manifest)


def digest_of(files: Mapping[str, str]) -> str:
    """Return the digest of a set from those of its two files."""
    return sha256(f"{files[SAMPLES]}\n{files[REFERENCES]}\n")


def _manifest(path: Path) -> dict[str, Any]:
    cure = "build the set again with --force"
    try:
        manifest = parse_json(read_text(path), str(path), 1)
    except InputFault as fault:
        raise InputFault(fault.what, where=fault.where, cure=cure) from None
    version = manifest.get("format") if isinstance(manifest, dict) else None
    if not isinstance(version, int):
        raise InputFault("field format is missing or no number", where=str(path), cure=cure)
    if version > FORMAT:
        raise InputFault(
            f"has format {version}, this ctxbench reads up to {FORMAT}", where=str(path), cure="upgrade ctxbench"
        )
    files = manifest.get("files")
    if not isinstance(files, dict) or not all(isinstance(files.get(file), str) for file in (SAMPLES, REFERENCES)):
        raise InputFault("field files lacks the digests of both files", where=str(path), cure=cure)
    repositories = manifest.get("repositories")
    if not isinstance(repositories, dict):
        raise InputFault("field repositories is missing", where=str(path), cure=cure)
    for name, entry in repositories.items():
        if not isinstance(entry, dict):
            raise InputFault(f"field repositories.{name} is no object", where=str(path), cure=cure)
        # What was imported without its repository has no checkout.
        for key in ("language", "checkout", "snapshot") if entry.get("checkout") else ("language",):
            if not isinstance(entry.get(key), str):
                raise InputFault(f"field repositories.{name}.{key} is missing or no text", where=str(path), cure=cure)
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


def snapshots(home: Home, sample_set: SampleSet) -> dict[str, Snapshot]:
    """Return the repositories that a set was built from, by name; none for those imported without one.

    Raises:
        InputFault: if one is not fetched, or its files are not those that the set was built from.
    """
    loaded: dict[str, Snapshot] = {}
    for name, entry in sorted(sample_set.manifest["repositories"].items()):
        if not entry.get("checkout"):
            continue
        root = home.repos / entry["checkout"]
        cure = entry.get("cure") or f"fetch it with `ctxbench repo fetch {name}`"
        if not root.is_dir():
            raise InputFault(f"the repository {name!r} is not fetched", where=str(root), cure=cure)
        repository = snapshot.load(
            name,
            root,
            languages.get(entry["language"]),
            entry.get("source_dir", ""),
            hygiene=entry.get("hygiene", True),
            # Sets that do not say were built when everything was read as UTF-8, or from copies that are.
            declared="encodings" in entry,
        )
        if repository.digest != entry["snapshot"]:
            raise InputFault(
                f"the files of {name!r} are not those that the sample set {sample_set.name!r} was built from",
                where=str(root),
                cure=f"remove that folder, then {cure}",
            )
        loaded[name] = repository
    return loaded
