"""One repository: facts of its files -> candidates -> leak filters -> samples, every drop counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from ctxbench.bench.formats.hygiene import VerbatimIndex
from ctxbench.bench.languages.base import FileFacts
from ctxbench.bench.lines.candidates import (
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
from ctxbench.bench.sight import SoughtLine, in_sight
from ctxbench.bench.sight_imports import FileImports
from ctxbench.bench.types import Cursor, Kind, Reference, Sample
from ctxbench.bench.views.masking import blanked

BENCHMARK = "ctxbench"
Excluded = Callable[[str], bool]
IN_SIGHT, IMPORT_IN_SIGHT = "in_sight", "import_in_sight"
"""Why a line gives no sample: another place has its tokens, or its file still says what a masked import said."""
OLDER, UNCOMMITTED, SEEN = "older", "uncommitted", "seen_before"
"""Why a usable line gives no sample of new lines: it is older, its file is not as the history has it, or its tokens
stand in what is older."""


@dataclass(frozen=True, slots=True)
class Added:
    """What a history says of the lines that were added after some point."""

    days: Callable[[str], Mapping[int, date] | None]
    """Path -> its lines, from 0, that were added, and the day of each; None if nothing tells."""
    earlier: Callable[[Sequence[str]], Mapping[str, str]]
    """Paths -> the texts of the tree at that point, and of earlier versions of those files, by any name."""


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
        facts: what `bench.lines.candidates` found in each.
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
    usable_cuts = _without(cuts, [fault(line_cut, index, protocol) for line_cut in cuts], drops)
    days: dict[str, Mapping[int, date] | None] = {}
    if added is not None:
        days = {path: added.days(path) for path in _paths(usable_cuts)}
        usable_cuts = _without(usable_cuts, [_age(line_cut, days) for line_cut in usable_cuts], drops)
    # Ordered before what is in sight goes, so that lines which are dropped exchange no others.
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


def _without(cuts: Sequence[Cut], reasons: Sequence[str], drops: Counter[str]) -> list[Cut]:
    drops.update(filter(None, reasons))
    return [line_cut for line_cut, reason in zip(cuts, reasons, strict=True) if not reason]


def _paths(cuts: Sequence[Cut]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(line_cut.candidate.path for line_cut in cuts))


def _line(line_cut: Cut, *, own: str = "") -> SoughtLine:
    candidate = line_cut.candidate
    tokens = candidate.tokens or ((0, len(candidate.text)),)  # a line inside a string of several has none
    return SoughtLine(own, candidate.line, candidate.text[tokens[0][0] : tokens[-1][1]])


def _seen(cuts: Sequence[Cut], added: Added) -> list[str]:
    before = added.earlier(_paths(cuts))
    return [SEEN if seen else "" for seen in in_sight([_line(line_cut) for line_cut in cuts], before)]


def _sights(cuts: Sequence[Cut], snapshot: Snapshot, lines: Mapping[str, list[str]]) -> list[str]:
    """Return why the answer of each cut is in sight, empty if it is not."""
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
