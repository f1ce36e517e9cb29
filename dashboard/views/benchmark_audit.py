"""The audit of a sample set: checks against leaked answers, and certificates, each with its count. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ctxbench.bench.anatomy import Measured
from ctxbench.dashboard.views.benchmark import Cells, Manifest, entries
from ctxbench.harness.store.write import Mark

HELP: Mapping[str, str] = {
    "check": "The check.",
    "found": "Their number.",
    "of": "Out of this many; empty where that is not counted.",
    "meaning": "The meaning of the number.",
}


def audit(manifest: Manifest, measured: Sequence[Measured], marks: Sequence[Mark]) -> list[Cells]:
    """Return the checks of a set, what could give an answer away first.

    Args:
        manifest: the set's.
        measured: its samples.
        marks: of samples that no score is to rest on.
    """
    rows = [*_lines(manifest, measured), *_copies(manifest), *_functions(manifest, measured), *_marks(measured, marks)]
    return [{"check": check, "found": count, "of": of, "meaning": says} for check, count, of, says in rows]


_Row = tuple[str, int, int | None, str]


def _lines(manifest: Manifest, measured: Sequence[Measured]) -> Iterator[_Row]:
    lines = [sample for sample in measured if sample.kind == "line"]
    if not lines:
        return
    first = sum(line.masked for line in lines)
    yield "first uses", first, len(lines), "the line is the first use of a name in its file: its import is blanked"
    if _has(manifest, "kept_masked_shared"):
        says = "the blanked import also binds a name that is used earlier"
        yield "shared imports", _sum(manifest, "kept_masked_shared"), first, says
    if _has(manifest, "kept_rest_elsewhere"):
        yield (
            "whole lines elsewhere",
            0,
            len(lines),
            "such lines were left out when the set was built (verbatim, below)",
        )
        says = "the answer also ends another line, where it may be found; kept, as in ProjBench"
        yield "rests of lines elsewhere", _sum(manifest, "kept_rest_elsewhere"), len(lines), says


def _copies(manifest: Manifest) -> Iterator[_Row]:
    if not any(entry.get("checkout") for entry in entries(manifest).values()):
        yield "repositories", 0, len(entries(manifest)), "none is here: only the benchmark's stored prompts can be used"
        return
    samples = _sum(manifest, "kept")
    for key, check, says in (
        ("verbatim_elsewhere", "lines elsewhere", "the whole line stands elsewhere too; kept, as the benchmark does"),
        ("copies_hidden", "copies hidden", "files that hold an exact copy of an answer: hidden from its sample"),
        ("copies_in_file", "copies in the same file", "the answer stands a second time in its file: cannot be hidden"),
        ("copies_visible", "copies in sight", "files with an exact copy of an answer that strategies may find"),
    ):
        if _has(manifest, key):
            yield check, _sum(manifest, key), samples if key != "copies_hidden" else None, says
    off = sum(entry.get("hygiene") is False for entry in entries(manifest).values())
    if off:
        yield "hygiene off", off, len(entries(manifest)), "repositories whose copies of answers were left in sight"


def _functions(manifest: Manifest, measured: Sequence[Measured]) -> Iterator[_Row]:
    functions = [sample for sample in measured if sample.kind == "function"]
    if not functions:
        return
    hidden = sum(function.hidden > 0 for function in functions)
    yield (
        "hidden files",
        hidden,
        len(functions),
        "samples for which no strategy sees the tests, or copies of the answer",
    )
    tested = sum(function.tests > 0 for function in functions)
    yield "tests", tested, len(functions), "samples with tests that judge a completion"
    says = "when the set was built, the reference passed its tests three times and an empty body failed them"
    if not _certified(manifest):
        says = "nothing ran the tests when the set was made: `ctxbench samples verify NAME --mark` does"
    yield "certified", tested if _certified(manifest) else 0, len(functions), says


def _certified(manifest: Manifest) -> bool:
    """Say whether the set was made by the builders, which keep certified functions only."""
    return bool(manifest.get("rebuilt")) or (manifest.get("kind") == "function" and "seed" in manifest)


def _marks(measured: Sequence[Measured], marks: Sequence[Mark]) -> Iterator[_Row]:
    counted = Counter(mark.mark for mark in marks)
    meaning = {
        "broken": "marked: the reference fails its tests here; leaderboards leave these samples out",
        "vacuous": "marked: an empty body passes the tests; leaderboards leave these samples out",
    }
    for mark, count in sorted(counted.items()):
        yield mark, count, len(measured) or None, meaning.get(mark, "marked")


def _has(manifest: Manifest, key: str) -> bool:
    return any(key in entry for entry in entries(manifest).values())


def _sum(manifest: Manifest, key: str) -> int:
    counts = (entry.get(key) for entry in entries(manifest).values())
    return sum(value for value in counts if isinstance(value, int))
