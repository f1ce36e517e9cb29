"""Build sample sets: manifests -> checkouts -> snapshots -> samples, with a manifest that accounts for all."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ctxbench.bench import samples as sets
from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import explained
from ctxbench.bench.home import Home
from ctxbench.bench.lines.candidates import OURS, LineProtocol, analyse
from ctxbench.bench.lines.repository import OLDER, Added, Excluded, RepositorySamples, sample_repository
from ctxbench.bench.repositories import snapshot
from ctxbench.bench.repositories.snapshot import Snapshot
from ctxbench.bench.samples import SampleSet, account
from ctxbench.bench.types import Kind, Reference, Sample

if TYPE_CHECKING:
    from ctxbench.bench.repositories.git import History, Since
    from ctxbench.bench.repositories.manifest import RepoManifest

Report = Callable[[str], None]
_TOTALS = (
    "files",
    "lines",
    "candidates",
    "first_uses",
    "usable",
    "kept",
    "kept_masked",
    "kept_masked_shared",
    "kept_rest_elsewhere",
)


@dataclass(frozen=True, slots=True)
class BuiltSamples:
    """The samples of a build, before they are written."""

    samples: tuple[Sample, ...]
    references: tuple[Reference, ...]
    counts: Mapping[str, Mapping[str, Any]]
    """Repository name -> its counts."""


def _silent(_: str) -> None:
    return


def build(  # noqa: PLR0913 - what is built, of what, and who hears of it
    manifests: Sequence[RepoManifest],
    home: Home,
    name: str,
    *,
    per_repo: int | None = None,
    seed: int = 0,
    workers: int = 1,
    report: Report = _silent,
    force: bool = False,
    since: Since | None = None,
    protocol: LineProtocol = OURS,
) -> SampleSet:
    """Fetch the repositories that are missing and write the sample set ``samples/<name>/``.

    The order of `manifests` and the number of `workers` change nothing.

    Args:
        manifests: the repositories, names unique.
        home: where repositories and samples are kept.
        name: the set's name.
        per_repo: most samples a repository; at least 1; None for as many as the protocol has.
        seed: of every draw.
        workers: processes for reading files.
        report: told what happens, a line at a time.
        force: replace another set of that name.
        since: take only lines that were added after that day or commit, from sources with a history.
        protocol: the rules by which lines are chosen.

    Raises:
        InputFault: if a name is given twice, a repository gives no sample or has no history, or another set has the
            name.
    """
    from ctxbench.bench.repositories import checkout, git  # noqa: PLC0415 - needed by no reader of sets

    sets.folder(home, name)
    per_repo = protocol.per_repo if per_repo is None else per_repo
    ordered = sorted(manifests, key=lambda manifest: manifest.name)
    if since is not None:
        ordered = [git.with_history(manifest) for manifest in ordered]
    snapshots, origins, added = [], {}, dict[str, Added]()
    for manifest in ordered:
        fetched = checkout.fetch(manifest, home, report=report)
        snapshots.append(snapshot.load(manifest.name, fetched.root, manifest.language, manifest.source_dir))
        origins[manifest.name] = {
            **manifest.account(),
            "source": fetched.source,
            "checkout": fetched.root.relative_to(home.repos).as_posix(),
            "source_dir": manifest.source_dir,
            "exclude": list(manifest.exclude),
        }
        if since is not None:
            past = git.open_history(manifest, home, since, report=report)
            added[manifest.name] = _added(past, fetched.root, snapshots[-1])
            # The first source, which `repo fetch` brings, may be another one.
            cure = f"build the set again with --since {since}"
            origins[manifest.name] |= {"since": str(since), "commit": past.commit, "cure": cure}
    excluded = {manifest.name: manifest.excludes for manifest in ordered}
    built = build_samples(
        snapshots, per_repo=per_repo, seed=seed, workers=workers, excluded=excluded, added=added, protocol=protocol
    )
    for repo, counts in built.counts.items():
        report(f"{repo}: {counts['kept']} samples of {counts['usable']} usable lines")
    about = manifest_of(built, snapshots, origins, seed=seed, per_repo=per_repo, protocol=protocol)
    return sets.save(home, name, built.samples, built.references, about, force=force)


def _added(past: History, root: Path, repository: Snapshot) -> Added:
    def added(path: str) -> Mapping[int, date] | None:
        text, place = repository.texts[path], root / path
        with explained(place):
            return past.days(path, place.read_bytes(), text.count("\n") + (not text.endswith("\n")))

    return Added(added, functools.partial(past.earlier, suffix=repository.language.suffix))


def build_samples(
    snapshots: Sequence[Snapshot],
    *,
    per_repo: int,
    seed: int,
    workers: int = 1,
    excluded: Mapping[str, Excluded] = MappingProxyType({}),
    added: Mapping[str, Added] = MappingProxyType({}),
    protocol: LineProtocol = OURS,
) -> BuiltSamples:
    """Make the samples of some repositories, in the order given.

    Args:
        snapshots: the repositories, names unique.
        per_repo: most samples of each.
        seed: of every draw.
        workers: processes for reading files.
        excluded: repository name -> which of its paths give no samples.
        added: repository name -> which lines of its paths give samples, where not all do.
        protocol: the rules by which lines are chosen.

    Raises:
        InputFault: if a name is given twice, or a repository has no usable line.
    """
    if per_repo < 1:
        raise InputFault(f"{per_repo} samples a repository are none", cure="ask for 1 or more with --per-repo")
    names = {repository.name for repository in snapshots}
    if len(names) < len(snapshots):
        raise InputFault("a repository is given twice", cure="name each repository once")
    facts = analyse(snapshots, workers=workers)
    parts: list[RepositorySamples] = []
    for repository in snapshots:
        part = sample_repository(
            repository,
            facts[repository.name],
            per_repo=per_repo,
            seed=seed,
            excluded=excluded.get(repository.name),
            added=added.get(repository.name),
            protocol=protocol,
        )
        if not part.samples:
            only_old = part.counts["drops"].get(OLDER)
            raise InputFault(
                f"no line of {repository.name!r} can become a sample ({_reasons(part.counts)})",
                cure="give an earlier --since"
                if only_old
                else "choose a repository whose files import from each other",
            )
        parts.append(part)
    return BuiltSamples(
        tuple(sample for part in parts for sample in part.samples),
        tuple(reference for part in parts for reference in part.references),
        {repository.name: part.counts for repository, part in zip(snapshots, parts, strict=True)},
    )


def _reasons(counts: Mapping[str, Any]) -> str:
    drops = {**counts["skipped_as_targets"], **counts["drops"]}
    reasons = ", ".join(f"{reason} {count}" for reason, count in drops.items())
    return f"{counts['files']} files; {reasons or 'no use of an internal import'}"


def manifest_of(
    built: BuiltSamples,
    snapshots: Sequence[Snapshot],
    origins: Mapping[str, Mapping[str, Any]],
    *,
    seed: int,
    per_repo: int,
    protocol: LineProtocol = OURS,
) -> dict[str, Any]:
    """Return the account of a build: versions, seed, and for every repository what was read, dropped and kept."""
    repositories = {
        repository.name: {
            "language": repository.language,
            **origins.get(repository.name, {}),
            "snapshot": repository.digest,
            "read_with_replacement": len(repository.undecoded),
            "encodings": dict(repository.encodings),
            **built.counts[repository.name],
        }
        for repository in snapshots
    }
    rules = {} if protocol == OURS else {"protocol": str(protocol)}
    return account(Kind.LINE, repositories, _TOTALS, seed=seed, per_repo=per_repo) | rules
