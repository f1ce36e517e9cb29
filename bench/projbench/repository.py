"""One repository: facts of its files -> candidates -> leak filters -> samples, every drop counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from ctxbench.bench.formats.hygiene import VerbatimIndex
from ctxbench.bench.languages.base import FileFacts
from ctxbench.bench.languages.outline import Span
from ctxbench.bench.projbench.candidates import (
    OURS,
    Cut,
    LineCandidate,
    LineProtocol,
    candidates,
    cut,
    fault,
    ordered,
)
from ctxbench.bench.repositories.snapshot import Snapshot
from ctxbench.bench.types import Cursor, Kind, Reference, Sample

BENCHMARK = "ctxbench"
Excluded = Callable[[str], bool]
Added = Callable[[str], Mapping[int, date] | None]
"""Path -> its lines, from 0, that were added after some point, and the day of each; None if nothing tells."""
OLDER, UNCOMMITTED = "older", "uncommitted"
"""Why a usable line gives no sample of new lines: it is older, or its file is not as the history has it."""


@dataclass(frozen=True, slots=True)
class RepositorySamples:
    """The samples of one repository."""

    samples: tuple[Sample, ...]
    references: tuple[Reference, ...]
    counts: Mapping[str, Any]
    """For the manifest: files, lines, candidates, drops by reason, kept."""


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
    """Make at most `per_repo` samples of one repository.

    Args:
        snapshot: its files.
        facts: what `bench.projbench.candidates` found in each.
        per_repo: most samples.
        seed: of every draw.
        excluded: tells which paths give no samples; their text still counts when leaks are looked for.
        added: tells which lines of a path give samples, and the day of each; without it, all that are usable do.
        protocol: the rules by which lines are chosen.
    """
    lines = {path: text.split("\n") for path, text in snapshot.texts.items()}
    skipped: Counter[str] = Counter()
    drops: Counter[str] = Counter()
    line_candidates: list[LineCandidate] = []
    loads = snapshot.language.resolve(facts)
    for path in snapshot.texts:
        reason = _reason(path, snapshot, facts[path], excluded, protocol)
        if reason:
            skipped[reason] += 1
            continue
        usable, dropped = candidates(lines[path], facts[path], loads[path], protocol)
        line_candidates += usable
        drops += dropped
    index = VerbatimIndex(snapshot.texts.values())
    cuts = [cut(candidate, repo=snapshot.name, seed=seed) for candidate in line_candidates]
    faults = [fault(line_cut, index, protocol) for line_cut in cuts]
    drops.update(reason for reason in faults if reason)
    usable_cuts = [line_cut for line_cut, reason in zip(cuts, faults, strict=True) if not reason]
    days: dict[str, Mapping[int, date] | None] = {}
    if added is not None:
        days = {path: added(path) for path in dict.fromkeys(line_cut.candidate.path for line_cut in usable_cuts)}
        reasons = [_age(line_cut, days) for line_cut in usable_cuts]
        drops.update(filter(None, reasons))
        usable_cuts = [line_cut for line_cut, reason in zip(usable_cuts, reasons, strict=True) if not reason]
    drawn = ordered(usable_cuts, repo=snapshot.name, seed=seed, protocol=protocol)[:per_repo]
    pairs = [_sample(snapshot, lines[line_cut.candidate.path], line_cut, _day_of(line_cut, days)) for line_cut in drawn]
    counts = {
        "files": len(snapshot.texts),
        "lines": sum(text.count("\n") for text in snapshot.texts.values()),
        "left_out": dict(snapshot.dropped),
        "skipped_as_targets": dict(sorted(skipped.items())),
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


def _reason(path: str, snapshot: Snapshot, facts: FileFacts, excluded: Excluded | None, protocol: LineProtocol) -> str:
    """Return why a file gives no samples, empty if it may."""
    if excluded is not None and excluded(path):
        return "excluded"
    if path in snapshot.undecoded:
        return "bad_encoding"
    return "syntax_error" if facts.broken and protocol.filtered else ""


def _day_of(line_cut: Cut, days: Mapping[str, Mapping[int, date] | None]) -> date | None:
    return (days.get(line_cut.candidate.path) or {}).get(line_cut.candidate.line)


def _age(line_cut: Cut, days: Mapping[str, Mapping[int, date] | None]) -> str:
    """Return why a line is not a new one, empty if it is."""
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


def blanked(lines: list[str], masked: tuple[Span, ...]) -> list[str]:
    """Return the lines with the masked ones empty; their number stays."""
    return ["" if any(start <= number < end for start, end in masked) else text for number, text in enumerate(lines)]
