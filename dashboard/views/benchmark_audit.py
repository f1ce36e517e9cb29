"""The audit of a sample set: checks against leaked answers, certificates, and what was left out, with counts. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ctxbench.bench.anatomy import Measured
from ctxbench.dashboard.views.benchmark import Cells, Manifest, entries
from ctxbench.harness.store.write import Mark

AUDIT_HELP: Mapping[str, str] = {
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


STAGES: Mapping[str, str] = {
    "left_out": "files not read",
    "skipped_as_targets": "files without targets",
    "drops": "lines or functions",
    "tests_dropped": "tests",
    "unusable": "records of the benchmark",
}
"""Key of a manifest -> what it counts."""

REASONS: Mapping[str, str] = {
    "binary": "holds a zero byte",
    "generated": "says at its head that a program wrote it",
    "link": "a symbolic link, or no file",
    "name": "its path holds a backslash, a control character or what is no UTF-8",
    "too-large": "larger than a person's source file",
    "bad_encoding": "is no text in the encoding it declares, or in UTF-8",
    "excluded": "the repository's manifest excludes it",
    "syntax_error": "cannot be parsed",
    "test": "is a test",
    "decorator": "stands in a decorator",
    "docstring": "stands in a docstring",
    "few_tokens": "has fewer than four tokens",
    "header": "is the header of a class or function",
    "import": "is an import",
    "in_string": "the name stands only inside a string",
    "long_line": "is longer than a person's line",
    "near_empty": "what is asked for is nearly nothing",
    "in_sight": "its tokens stand elsewhere in the repository, in another layout: it could be copied",
    "import_in_sight": "its file still says what its masked import said",
    "older": "is older than the set asks for",
    "uncommitted": "its file is not as its history has it",
    "seen_before": "its tokens stood in an older version, in another layout",
    "verbatim": "the same line stands elsewhere in the repository: it could be copied",
    "abstract": "is abstract: there is nothing to write",
    "accessor": "is a property's setter or deleter",
    "blank_passed": "no test that runs it, or whose module does, notices an empty body",
    "body_elsewhere": "the same code is another function's body: it could be copied",
    "empty_body": "its body is empty",
    "fails_under_load": "the published code passes only while the machine is idle",
    "flaky": "its own tests pass sometimes",
    "not_covered": "no usable test runs a line of it, and no import of a test module does",
    "no_covering_test": "no usable test runs a line of it",
    "inherited_doc": "its Javadoc is inherited",
    "no_body": "is abstract, or of an interface: there is nothing to write",
    "overload": "is a typing overload",
    "private": "is private",
    "reference_failed": "the published code does not pass its own tests",
    "reference_has_no_tests": "its tests could not be run",
    "reference_timed_out": "the published code takes too long",
    "shares_line": "docstring and body stand on one line",
    "shares_name": "another function of its file has its name",
    "too_slow": "its tests take too long",
    "ambiguous": "several functions fit the record",
    "cursor_mismatch": "its cursor does not stand where the record says",
    "empty_target": "its answer is empty",
    "file_missing": "the repository has no such file",
    "no_manifest": "no repository stands for its project",
    "no_prompt": "the files hold no prompt of it",
    "no_repository": "its repository was not given",
    "no_task": "no task belongs to its prompt",
    "no_tests": "its repository's manifest says nothing of tests",
    "not_a_function": "its answer is no function",
    "other_docstring": "the function has another docstring than the record",
    "source_mismatch": "prompt and answer do not stand where the record says",
    "tests_unselectable": "its tests pass with the whole suite only, and cannot be run without it",
    "suite_failed": "its repository's tests cannot be run here",
    "unreachable": "no source of its repository could be reached",
    "unsupported_language": "its language is none that is supported",
}
"""Reason -> what it says of what was left out."""

DROP_HELP: Mapping[str, str] = {
    "what": "What was left out.",
    "reason": "As the set's manifest names it.",
    "meaning": "Why it was left out.",
    "count": "Their number, in all repositories.",
    "repositories": "How many repositories lost some.",
}


def drops(manifest: Manifest) -> list[Cells]:
    """Return what was left out, the most frequent reason of each stage first."""
    count: Counter[tuple[str, str]] = Counter()
    repos: Counter[tuple[str, str]] = Counter()
    for stage, reason, number in _counted(manifest):
        count[stage, reason] += number
        repos[stage, reason] += 1
    order = list(STAGES.values())
    return [
        {
            "what": stage,
            "reason": reason,
            "meaning": REASONS.get(reason, ""),
            "count": number,
            "repositories": repos[stage, reason] if stage != STAGES["unusable"] else None,
        }
        for (stage, reason), number in sorted(
            count.items(), key=lambda item: (order.index(item[0][0]), -item[1], item[0][1])
        )
    ]


def _counted(manifest: Manifest) -> Iterator[tuple[str, str, int]]:
    """Yield stage, reason and count, of each repository and of the set."""
    for entry in entries(manifest).values():
        for key in ("left_out", "skipped_as_targets", "drops", "tests_dropped"):
            # Records that an import could not use are counted once, for the set.
            if key == "drops" and isinstance(manifest.get("unusable"), Mapping):
                continue
            yield from _of(STAGES[key], entry.get(key))
        left_out = {name.removeprefix("left_out_"): n for name, n in entry.items() if name.startswith("left_out_")}
        yield from _of(STAGES["skipped_as_targets"], left_out)
    yield from _of(STAGES["unusable"], manifest.get("unusable"))


def _of(stage: str, counts: object) -> Iterator[tuple[str, str, int]]:
    if isinstance(counts, Mapping):
        for reason, number in counts.items():
            if isinstance(number, int) and number > 0:
                yield stage, str(reason), number
