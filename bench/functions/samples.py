"""From candidates to samples, and the order in which they are tried. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random

from ctxbench.bench.functions.mining import Project, Search
from ctxbench.bench.functions.types import Candidate, Level
from ctxbench.bench.repository import is_hidden
from ctxbench.bench.types import Cursor, Kind, Reference, Sample

BENCHMARK = "ctxbench"


def make(
    project: Project, search: Search, candidate: Candidate, lift: Callable[[list[str]], str]
) -> tuple[Sample, Reference]:
    """Return the sample of a candidate, with its answer.

    Args:
        project: the repository.
        search: what was found in it; its test places are hidden.
        candidate: one of its candidates.
        lift: the language's, see `bench.functions.mining.Miner`.
    """
    lines = project.snapshot.texts[candidate.path].split("\n")
    line, column = candidate.cursor.line, candidate.cursor.column
    identity = f"{project.manifest.name}/{candidate.path}::{candidate.name}"
    sample = Sample(
        id=identity,
        benchmark=BENCHMARK,
        language=project.manifest.language,
        kind=Kind.FUNCTION,
        subkind=candidate.level.value,
        repo=project.manifest.name,
        path=candidate.path,
        cursor=candidate.cursor,
        prefix="".join(f"{text}\n" for text in lines[:line]) + lines[line][:column],
        suffix=_suffix(lines, candidate),
        uses=candidate.uses,
        name=candidate.name,
        signature=candidate.signature,
        docstring=candidate.docstring,
        span=(candidate.start, candidate.end),
        hidden=hidden_for(search.hidden, candidate.tests),
    )
    target = lift(lines[candidate.start : candidate.end]).rstrip("\n")
    tests = tuple(sorted(candidate.tests))
    clocks = tuple(test for test in tests if test in candidate.clocks)
    return sample, Reference(id=identity, target=target, tests=tests, clocks=clocks)


def _suffix(lines: Sequence[str], candidate: Candidate) -> str:
    tail = candidate.tail or Cursor(line=candidate.end, column=0)
    return "\n".join(lines[tail.line :])[tail.column :]


def hidden_for(places: Sequence[str], tests: Iterable[str]) -> tuple[str, ...]:
    """Return what is hidden of a sample: the test places, and the files of the tests that are in none of them.

    Only ids of pytest begin with a file; those of JUnit name classes, which lie in the test folders.
    """
    files = {test.partition("::")[0] for test in tests if "::" in test}
    return tuple(sorted({*places, *(file for file in files if not is_hidden(file, places))}))


def ordered(candidates: Iterable[Candidate], *, repo: str, seed: int) -> list[Candidate]:
    """Return the candidates in the order in which they are tried; trying fewer gives a beginning of it.

    Levels take turns, and inside a level files do, each in a random order that stays: so neither a
    frequent level nor a large file crowds out the others. Those that only imports run come last.
    """
    by_tests: list[Candidate] = []
    at_import: list[Candidate] = []
    for candidate in candidates:
        (at_import if candidate.at_import else by_tests).append(candidate)
    return [*_ordered(by_tests, repo, seed), *_ordered(at_import, repo, seed)]


def _ordered(candidates: Iterable[Candidate], repo: str, seed: int) -> list[Candidate]:
    levels: dict[Level, dict[str, list[Candidate]]] = {}
    for candidate in sorted(candidates, key=lambda function: (function.path, function.start)):
        levels.setdefault(candidate.level, {}).setdefault(candidate.path, []).append(candidate)
    queues = []
    for level in sorted(levels, key=list(Level).index):
        files = levels[level]
        names = sorted(files)
        _draw(seed, repo, level).shuffle(names)
        for name in names:
            _draw(seed, repo, level, name).shuffle(files[name])
        queues.append(_turns([files[name] for name in names]))
    return _turns(queues)


def _turns(queues: Sequence[Sequence[Candidate]]) -> list[Candidate]:
    rounds = max(map(len, queues), default=0)
    return [queue[turn] for turn in range(rounds) for queue in queues if turn < len(queue)]


def _draw(*key: str | int) -> Random:
    return Random("\0".join(map(str, key)))  # noqa: S311 - a sample, not a secret
