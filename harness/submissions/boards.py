"""Reads a folder of packages and ranks their submissions for a public board. Prints nothing.

Confidence intervals and significance tests use the packages' scores of single samples, as on any board. `Entry.counts`
excludes superseded and withdrawn submissions. Packages are not trusted. `read_entries` refuses invalid ones, and those
whose samples or exclusions differ from the first package of their table: verified ones come first, then older ones.
"""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from ctxbench.bench.concurrency import Progress, silent
from ctxbench.bench.errors import InputFault
from ctxbench.harness import metrics
from ctxbench.harness.leaderboard import board
from ctxbench.harness.leaderboard.rows import Group
from ctxbench.harness.leaderboard.sections import BoardSection, sections
from ctxbench.harness.results import RunTable
from ctxbench.harness.store.runs import run_tables
from ctxbench.harness.store.store import open_reader, open_store
from ctxbench.harness.store.verdicts import PASS, PROFILE
from ctxbench.harness.submissions.format import is_package, read, verification_of
from ctxbench.harness.submissions.records import Manifest, PackageVerification, SampleRecord, SetPart, Submission
from ctxbench.harness.submissions.stored import add

TELLING = 12
"""Maximum number of samples on a submission's page."""
_LIMITS = (-1e6, 1e6)
"""Allowed range for metrics without bounds, such as bits."""
_ROUNDING = 1e-9
_CURE = "make the package with `ctxbench results pack`"


class BoardKey(NamedTuple):
    """The settings that all rows of a table share, including the versions of the sample set and the metrics."""

    set: SetPart
    metrics: str
    coder: str
    """Spec and version of the model that measured bits; empty for none. Bits of two models cannot be compared."""
    completions: int


def board_key(manifest: Manifest) -> BoardKey:
    """Return the settings that a submission shares with all others in its table."""
    versions = manifest.versions
    # The digest determines the protocol, so a wrong protocol name must not open a separate table.
    return BoardKey(replace(manifest.set, protocol=""), versions.metrics, versions.coder, manifest.sampling.completions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A submission that was read from a folder of packages, with its scores, verification and successor."""

    package: Submission
    folder: str
    """Name of the submission's folder."""
    tables: tuple[RunTable, ...]
    """The submission's scores: one table per language and repetition."""
    verification: PackageVerification | None = None
    successor: str = ""
    """Id of the submission that replaces this one; empty if none does."""

    @property
    def id(self) -> str:
        """The submission's id."""
        return self.package.manifest.id

    @property
    def verified(self) -> bool:
        """Whether the folder contains a verification of this submission that found no difference."""
        return self.verification is not None and self.verification.equal

    @property
    def counts(self) -> bool:
        """Whether boards rank the submission: no other one replaces it, and it was not withdrawn."""
        return not self.successor and self.package.manifest.withdrawn is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """A ranking of the submissions over one part of a sample set, in one language, with one model."""

    key: BoardKey
    section: BoardSection
    group: Group
    entries: tuple[Entry, ...]
    """Submissions, in the order of the group's rows."""


def read_entries(folder: Path, progress: Progress = silent) -> tuple[list[Entry], list[InputFault]]:
    """Read the packages in a folder; return the accepted ones, sorted by date and id, and an error for each other one.

    Raises:
        InputFault: if the folder has no package.
    """
    folders = sorted(Path(entry.path) for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False))
    packages = [path for path in folders if is_package(path)]
    if not packages:
        raise InputFault(
            "the folder contains no package", where=str(folder), cure="make one with `ctxbench results pack`"
        )
    entries: dict[str, Entry] = {}
    refused = []
    with progress("packages", len(packages)) as tick:
        for path in packages:
            try:
                entry = _entry(path)
                if entry.id in entries:
                    raise InputFault(
                        f"the folder contains the package {entry.id} twice",
                        where=str(path),
                        cure="remove one of the two folders",
                    )
                entries[entry.id] = entry
            except InputFault as fault:
                refused.append(fault)
            tick(1)
    ordered = sorted(entries.values(), key=lambda entry: (entry.package.manifest.date, entry.id))
    apart = _apart(ordered)
    cure = "compare samples.jsonl in the packages of this set, and remove the wrong package"
    refused += [
        InputFault(
            "the package's samples or exclusions differ from those of another package of the same set",
            where=str(folder / entry.folder),
            cure=cure,
        )
        for entry in ordered
        if entry.id in apart
    ]
    return _with_successors([entry for entry in ordered if entry.id not in apart]), refused


@contextmanager
def open_in_database(package: Submission, *, where: str = "") -> Iterator[tuple[str, list[str]]]:
    """Store a package in a temporary database; yield the database's URL and the ids of the runs, one per repetition.

    The runs are not marked as imported, so boards and exports include their costs. Errors name the place `where`.

    Raises:
        InputFault: if a score is out of range, or a language or metric is unknown.
    """
    with tempfile.TemporaryDirectory(prefix="ctxbench-") as folder:
        url = f"sqlite:///{folder}/package.db"
        _check(package, where)
        with open_store(url) as store:
            runs = add(store, package, imported=False)
        yield url, runs


def _check(package: Submission, where: str) -> None:
    """Refuse scores outside the range of their metric: one of them could decide a mean."""
    bounds: dict[tuple[str, str], tuple[float, float]] = {}
    for record in package.scores:
        for profile, values in record.scores.items():
            for metric, value in values.items():
                key = profile, metric
                if key not in bounds:
                    declared = (0, 1) if key == (PROFILE, PASS) else metrics.info(profile, metric).bounds
                    low, high = (limit if end is None else end for end, limit in zip(declared, _LIMITS, strict=True))
                    bounds[key] = low - _ROUNDING, high + _ROUNDING
                if value is not None and not bounds[key][0] <= value <= bounds[key][1]:
                    what = f"{metric} of the sample {record.sample!r} is {value:g}, outside its range"
                    raise InputFault(what, where=where, cure=_CURE)


def _entry(folder: Path) -> Entry:
    package = read(folder)
    withdrawn = package.manifest.withdrawn
    today = datetime.now(UTC).date().isoformat()
    if package.manifest.date > today:
        raise InputFault("the package's date is in the future", where=str(folder), cure=_CURE)
    if withdrawn and withdrawn.date > today:
        cure = "correct the date under [withdrawn] in submission.toml"
        raise InputFault("the withdrawal's date is in the future", where=str(folder), cure=cure)
    with open_in_database(package, where=str(folder)) as (url, _), open_reader(url) as store:
        return Entry(
            package=package,
            folder=folder.name,
            tables=tuple(run_tables(store)),
            verification=verification_of(folder, package),
        )


def _with_successors(entries: Sequence[Entry]) -> list[Entry]:
    """Return entries with their successors. A submission supersedes only one that is not newer and shares an author."""
    by_id = {entry.id: entry.package.manifest for entry in entries}
    successors = {}
    for new in by_id.values():
        old = by_id.get(new.supersedes or "")
        if old and old.id != new.id and old.date <= new.date and {*old.authors} & {*new.authors}:
            successors[old.id] = new.id
    return [replace(entry, successor=successors.get(entry.id, "")) for entry in entries]


def _apart(entries: Sequence[Entry]) -> set[str]:
    """Return the ids of entries whose samples or marks differ from those of their table."""
    first: dict[BoardKey, frozenset[object]] = {}
    ordered = sorted(entries, key=lambda entry: not entry.verified)
    samples = {entry.id: frozenset(entry.package.samples) for entry in ordered}
    for entry in ordered:
        first.setdefault(board_key(entry.package.manifest), samples[entry.id])
    return {entry.id for entry in entries if samples[entry.id] != first[board_key(entry.package.manifest)]}


def rankings(entries: Sequence[Entry]) -> list[Ranking]:
    """Return one ranking per board key, model and language. Versions of a set or the metrics are ranked separately."""
    alike: dict[tuple[BoardKey, str], list[Entry]] = defaultdict(list)
    for entry in entries:
        alike[board_key(entry.package.manifest), entry.tables[0].run.generator].append(entry)
    return [ranking for key in sorted(alike, key=str) for ranking in _rankings(key[0], alike[key])]


def _rankings(key: BoardKey, entries: Sequence[Entry]) -> Iterator[Ranking]:
    labelled: dict[str, Entry] = {}
    tables = []
    # The first row with a name may become the baseline. Dates are claims, so verified entries come first.
    for entry in sorted(entries, key=lambda entry: not entry.verified):
        label = entry.package.manifest.strategy.spec
        while label in labelled:
            # Two people may submit the same strategy, but a board shows one row per name.
            label += f" #{entry.id}"
        labelled[label] = entry
        tables += [replace(table, run=replace(table.run, strategy=label)) for table in entry.tables]
    for section in sections(board(tables, by_level=False)):
        if group := section.group:
            rows = tuple(labelled[row.run.strategy] for row in group.rows)
            yield Ranking(key=key, section=section, group=group, entries=rows)


def compared_with(
    ranking: Ranking, entry: Entry
) -> tuple[Entry | None, list[tuple[SampleRecord, list[tuple[float, str]]]]]:
    """Return the submission to compare an entry with, and the samples on which they differ most in each direction.

    An entry is compared with the baseline, or with the first other row if it is the baseline or there is none. Samples
    with the highest differences come first, then those with the lowest. Without another submission (None), the samples
    are those with the highest and lowest values. Each has the entry's (value, completion) pair, then the other's.
    """
    group = ranking.group
    others = [ranking.entries[group.rows.index(group.base)]] if group.base else []
    other = next((candidate for candidate in (*others, *ranking.entries) if candidate is not entry), None)
    sides = [(_values(of, group), _texts(of)) for of in (entry, other) if of]
    mine, beside = sides[0][0], sides[-1][0] if other else {}
    gains = {sample: mine[sample] - beside.get(sample, 0.0) for sample in mine if sample in beside or not other}
    order = sorted((sample for sample in gains if gains[sample] or not other), key=lambda sample: gains[sample])
    half = TELLING // 2
    facts = {record.id: record for record in entry.package.samples}
    return other, [
        (facts[sample], [(values[sample], texts.get(sample, "")) for values, texts in sides])
        for sample in (*reversed(order[half:][-half:]), *order[:half])
    ]


def _values(entry: Entry, group: Group) -> dict[str, float]:
    """Return sample -> value of the ranking metric in the board's unit, in the first repetition."""
    table = next(table for table in entry.tables if table.run.language == group.language)
    factor = group.scales[group.metric].factor if group.metric in group.scales else 1.0
    values = zip(table.sample, table.metrics.get(group.metric, ()), strict=False)
    return {sample: value * factor for sample, value in values if value is not None}


def _texts(entry: Entry) -> dict[str, str]:
    return {
        record.sample: record.completions[0].text
        for record in entry.package.completions
        if record.repetition == 0 and record.completions
    }
