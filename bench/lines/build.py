"""Builds sets of line samples: fetches repositories, lists candidate lines, draws samples and writes the set."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ctxbench.bench import samples as sets
from ctxbench.bench.concurrency import Progress, silent
from ctxbench.bench.errors import InputFault
from ctxbench.bench.formats.hygiene import VerbatimIndex
from ctxbench.bench.home import Home
from ctxbench.bench.languages.base import FileFacts
from ctxbench.bench.leakage import FileImports, SoughtLine, in_sight
from ctxbench.bench.lines.candidates import (
    OURS,
    Cut,
    LineProtocol,
    analyse,
    candidates,
    cut,
    fault,
    ordered,
)
from ctxbench.bench.masking import blanked
from ctxbench.bench.repositories import snapshot
from ctxbench.bench.repositories.snapshot import Snapshot
from ctxbench.bench.samples import SampleSet, account
from ctxbench.bench.types import Cursor, Kind, Reference, Sample

if TYPE_CHECKING:
    from ctxbench.bench.repositories.git import Since
    from ctxbench.bench.repositories.manifest import RepoManifest


BENCHMARK = "ctxbench"
Excluded = Callable[[str], bool]
IN_SIGHT, IMPORT_IN_SIGHT = "in_sight", "import_in_sight"
"""Why a line is dropped: its tokens occur elsewhere, or its file reveals a masked import."""
OLDER, UNCOMMITTED, SEEN = "older", "uncommitted", "seen_before"
"""Why a line is not new: it is too old, its file differs from the history, or older text contains it."""


@dataclass(frozen=True, slots=True)
class Added:
    """Functions that find the lines added since a point of a history, and the text before that point."""

    days: Callable[[Mapping[str, Sequence[int]]], Mapping[str, Mapping[int, date] | None]]
    """Takes 0-based lines by path. Returns added lines with their days; None if the file differs from the history."""
    earlier: Callable[[Sequence[str]], Mapping[str, str]]
    """Takes paths. Returns older texts: of all files at that point, and of all earlier versions of the given files."""


@dataclass(frozen=True, slots=True)
class RepositorySamples:
    """One repository's samples."""

    samples: tuple[Sample, ...]
    references: tuple[Reference, ...]
    counts: Mapping[str, Any]
    """Counts for the manifest: files, lines, candidates, drops by reason, kept."""


def sample_repository(
    snapshot: Snapshot,
    facts: Mapping[str, FileFacts],
    *,
    per_repo: int,
    seed: int,
    excluded: Excluded | None = None,
    added: Added | None = None,
    protocol: LineProtocol = OURS,
) -> RepositorySamples:
    """Draw at most `per_repo` samples from one repository.

    Args:
        facts: results of `bench.lines.candidates.analyse`.
        excluded: returns whether a file is excluded from samples. Excluded files are still searched for leaks.
        added: finds the new lines, to draw samples only from these; None to draw from all lines.
    """
    lines = {path: text.split("\n") for path, text in snapshot.texts.items()}
    loads = snapshot.language.resolve(facts)
    reasons = {path: _reason(path, snapshot, facts[path], excluded, protocol) for path in snapshot.texts}
    in_files = [
        candidates(lines[path], facts[path], loads[path], protocol) for path, reason in reasons.items() if not reason
    ]
    line_candidates = [candidate for usable, _ in in_files for candidate in usable]
    drops = sum((dropped for _, dropped in in_files), Counter[str]())
    index = VerbatimIndex(snapshot.texts)
    cuts = [cut(candidate, repo=snapshot.name, seed=seed, protocol=protocol) for candidate in line_candidates]
    usable_cuts = _without(cuts, [fault(line_cut, index, protocol) for line_cut in cuts], drops)
    days: Mapping[str, Mapping[int, date] | None] = {}
    if added is not None:
        days = added.days(_numbers(usable_cuts))
        usable_cuts = _without(usable_cuts, [_age(line_cut, days) for line_cut in usable_cuts], drops)
    # Order first and drop visible lines afterwards, so that a drop does not change the order of the others.
    usable_cuts = ordered(usable_cuts, repo=snapshot.name, seed=seed, protocol=protocol)
    if protocol.filtered:
        usable_cuts = _without(usable_cuts, _sights(usable_cuts, snapshot, lines), drops)
    if added is not None:
        usable_cuts = _without(usable_cuts, _seen(usable_cuts, added), drops)
    drawn = usable_cuts[:per_repo]
    pairs = [_sample(snapshot, lines[line_cut.candidate.path], line_cut, _day_of(line_cut, days)) for line_cut in drawn]
    counts = {
        "files": len(snapshot.texts),
        "lines": sum(text.count("\n") for text in snapshot.texts.values()),
        "left_out": dict(snapshot.dropped),
        "skipped_as_targets": dict(sorted(Counter(filter(None, reasons.values())).items())),
        "candidates": len(line_candidates),
        "first_uses": sum(bool(candidate.masked) for candidate in line_candidates),
        "usable": len(usable_cuts),
        "kept": len(pairs),
        "kept_masked": sum(bool(line_cut.candidate.masked) for line_cut in drawn),
        "kept_masked_shared": sum(line_cut.candidate.shared for line_cut in drawn),
        "kept_rest_elsewhere": sum(index.rest_repeated(line_cut.target) for line_cut in drawn),
        "drops": dict(sorted(drops.items())),
    }
    return RepositorySamples(tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs), counts)


def _without(cuts: Sequence[Cut], reasons: Sequence[str], drops: Counter[str]) -> list[Cut]:
    drops.update(filter(None, reasons))
    return [line_cut for line_cut, reason in zip(cuts, reasons, strict=True) if not reason]


def _numbers(cuts: Sequence[Cut]) -> dict[str, list[int]]:
    numbers: dict[str, list[int]] = {}
    for line_cut in cuts:
        numbers.setdefault(line_cut.candidate.path, []).append(line_cut.candidate.line)
    return numbers


def _line(line_cut: Cut, *, own: str = "") -> SoughtLine:
    candidate = line_cut.candidate
    tokens = candidate.tokens or ((0, len(candidate.text)),)  # a line inside a multi-line string has no token
    return SoughtLine(own, candidate.line, candidate.text[tokens[0][0] : tokens[-1][1]])


def _seen(cuts: Sequence[Cut], added: Added) -> list[str]:
    before = added.earlier(tuple(_numbers(cuts)))
    return [SEEN if seen else "" for seen in in_sight([_line(line_cut) for line_cut in cuts], before)]


def _sights(cuts: Sequence[Cut], snapshot: Snapshot, lines: Mapping[str, list[str]]) -> list[str]:
    again = in_sight([_line(line_cut, own=line_cut.candidate.path) for line_cut in cuts], snapshot.texts)
    imports: dict[str, FileImports] = {}
    reasons = [IN_SIGHT if seen else "" for seen in again]
    for number, line_cut in enumerate(cuts):
        candidate = line_cut.candidate
        if reasons[number] or not candidate.masked:
            continue
        if candidate.path not in imports:
            imports[candidate.path] = FileImports(candidate.path, lines[candidate.path])
        if imports[candidate.path].in_sight(candidate.line, candidate.masked, candidate.hidden, candidate.uses):
            reasons[number] = IMPORT_IN_SIGHT
    return reasons


def _reason(path: str, snapshot: Snapshot, facts: FileFacts, excluded: Excluded | None, protocol: LineProtocol) -> str:
    if excluded is not None and excluded(path):
        return "excluded"
    if path in snapshot.undecoded:
        return "bad_encoding"
    return "syntax_error" if facts.broken and protocol.filtered else ""


def _day_of(line_cut: Cut, days: Mapping[str, Mapping[int, date] | None]) -> date | None:
    return (days.get(line_cut.candidate.path) or {}).get(line_cut.candidate.line)


def _age(line_cut: Cut, days: Mapping[str, Mapping[int, date] | None]) -> str:
    if days[line_cut.candidate.path] is None:
        return UNCOMMITTED
    return "" if _day_of(line_cut, days) else OLDER


def _sample(snapshot: Snapshot, lines: list[str], line_cut: Cut, day: date | None) -> tuple[Sample, Reference]:
    candidate = line_cut.candidate
    line, column = candidate.line, line_cut.column
    identity = f"{snapshot.name}/{candidate.path}#L{line}C{column}"
    visible = blanked(lines[:line], candidate.masked)
    sample = Sample(
        id=identity,
        benchmark=BENCHMARK,
        language=snapshot.language,
        kind=Kind.LINE,
        subkind=line_cut.subkind,
        repo=snapshot.name,
        path=candidate.path,
        cursor=Cursor(line=line, column=column),
        masked=candidate.masked,
        prefix="".join(f"{text}\n" for text in visible) + lines[line][:column],
        suffix="\n".join(lines[line + 1 :]),
        uses=candidate.uses,
        dated=day,
    )
    hidden = "\n".join("\n".join(lines[start:end]) for start, end in candidate.masked)
    return sample, Reference(id=identity, target=line_cut.target, original_import=hidden or None)


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


def build(  # noqa: PLR0913 - what is built, from what, and its reports
    manifests: Sequence[RepoManifest],
    home: Home,
    name: str,
    *,
    per_repo: int | None = None,
    seed: int = 0,
    workers: int = 1,
    report: Report = lambda _: None,
    force: bool = False,
    since: Since | None = None,
    protocol: LineProtocol = OURS,
    progress: Progress = silent,
) -> SampleSet:
    """Fetch missing repositories and write the sample set ``samples/<name>/``.

    Each repository needs a unique name. The order of `manifests` and the number of `workers` do not change the result;
    the workers only run ``git blame``. `progress` shows the number of files that they have read.
    Without `per_repo`, the protocol's default applies. `since` selects lines that were added after that day or
    commit, and requires sources with a history.

    Raises:
        InputFault: if `per_repo` < 1, a repository is repeated or lacks usable lines or history, or the name is taken.
    """
    from ctxbench.bench.repositories import git  # noqa: PLC0415 - readers of sets do not need it

    sets.folder(home, name)
    per_repo = protocol.per_repo if per_repo is None else per_repo
    ordered = sorted(manifests, key=lambda manifest: manifest.name)
    if since is not None:
        ordered = [git.with_history(manifest) for manifest in ordered]
    origins = [_origin(manifest, home, since, workers, report, progress) for manifest in ordered]
    snapshots = [origin.snapshot for origin in origins]
    excluded = {manifest.name: manifest.excludes for manifest in ordered}
    added = {origin.snapshot.name: origin.added for origin in origins if origin.added is not None}
    built = build_samples(snapshots, per_repo=per_repo, seed=seed, excluded=excluded, added=added, protocol=protocol)
    for repo, counts in built.counts.items():
        report(f"{repo}: {counts['kept']} samples of {counts['usable']} usable lines")
    entries = {origin.snapshot.name: origin.entry for origin in origins}
    about = manifest_of(built, snapshots, entries, seed=seed, per_repo=per_repo, protocol=protocol)
    return sets.save(home, name, built.samples, built.references, about, force=force)


@dataclass(frozen=True, slots=True)
class _Origin:
    snapshot: Snapshot
    entry: Mapping[str, Any]
    added: Added | None


def _origin(
    manifest: RepoManifest, home: Home, since: Since | None, workers: int, report: Report, progress: Progress
) -> _Origin:
    from ctxbench.bench.repositories import checkout, git  # noqa: PLC0415 - readers of sets need neither

    fetched = checkout.fetch(manifest, home, report=report)
    files = snapshot.load(manifest.name, fetched.root, manifest.language, manifest.source_dir)
    entry = {
        **manifest.account(),
        "source": fetched.source,
        "checkout": fetched.root.relative_to(home.repos).as_posix(),
        "source_dir": manifest.source_dir,
        "exclude": list(manifest.exclude),
    }
    if since is None:
        return _Origin(files, entry, None)
    past = git.open_history(manifest, home, since, report=report)
    days = functools.partial(past.days, root=fetched.root, texts=files.texts, workers=workers, progress=progress)
    # `repo fetch` takes the first source, which may be another one.
    entry |= {"since": str(since), "commit": past.commit, "cure": f"build the set again with --since {since}"}
    return _Origin(files, entry, Added(days, functools.partial(past.earlier, suffix=manifest.language.suffix)))


def beginning(home: Home, sample_set: SampleSet, count: int) -> SampleSet:
    """Replace a saved set of one repository by its first `count` samples, and return the new set."""
    samples = sample_set.samples[:count]
    [(repo, entry)] = sample_set.manifest["repositories"].items()
    new_counts = {"kept": len(samples), "kept_masked": sum(bool(sample.masked) for sample in samples)}
    # Drop the other counts of kept samples: they are known only for the whole set.
    counts = {
        key: value for key, value in (entry | new_counts).items() if key in new_counts or not key.startswith("kept")
    }
    totals = {key: counts[key] for key in sample_set.manifest["totals"] if key in counts}
    about = {**sample_set.manifest, "per_repo": count, "repositories": {repo: counts}, "totals": totals}
    references = [sample_set.references[sample.id] for sample in samples]
    return sets.save(home, sample_set.name, samples, references, about, force=True)


def build_samples(
    snapshots: Sequence[Snapshot],
    *,
    per_repo: int,
    seed: int,
    excluded: Mapping[str, Excluded] = MappingProxyType({}),
    added: Mapping[str, Added] = MappingProxyType({}),
    protocol: LineProtocol = OURS,
) -> BuiltSamples:
    """Draw samples from repositories, in their order.

    Args:
        excluded, added: arguments of `sample_repository`, by repository name.

    Raises:
        InputFault: if `per_repo` is below 1, repositories share a name, or a repository has no usable line.
    """
    if per_repo < 1:
        raise InputFault(f"{per_repo} samples per repository are too few", cure="type 1 or more after --per-repo")
    names = {repository.name for repository in snapshots}
    if len(names) < len(snapshots):
        raise InputFault("a repository is listed twice", cure="name each repository once")
    parts: list[RepositorySamples] = []
    for repository in snapshots:
        part = sample_repository(
            repository,
            analyse(repository),
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
                cure="type an earlier --since"
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
    return f"{counts['files']} files; {reasons or 'no line uses an internal import'}"


def manifest_of(
    built: BuiltSamples,
    snapshots: Sequence[Snapshot],
    origins: Mapping[str, Mapping[str, Any]],
    *,
    seed: int,
    per_repo: int,
    protocol: LineProtocol = OURS,
) -> dict[str, Any]:
    """Return the set's manifest: versions, seed, and counts of read, dropped and kept lines."""
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
