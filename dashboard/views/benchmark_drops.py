"""What was left out of a sample set, with counts and reasons. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from ctxbench.dashboard.views.benchmark import Cells, Manifest, entries

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
    "no_human_label": "nobody labelled it",
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
