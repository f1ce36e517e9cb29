"""List candidates in a repository's files, join them with their tests, order them, and turn them into samples.

Pure, and the same for every language.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from posixpath import basename, dirname, normpath
from random import Random
from typing import Generic, Protocol, TypeVar

from ctxbench.bench.functions.choose import others, ranked, steady
from ctxbench.bench.functions.mining import Candidate, Level, Project, Search, Spot, TestRun
from ctxbench.bench.masking import is_hidden
from ctxbench.bench.types import Cursor, Kind, Reference, Sample, Use

_FOLDERS = frozenset({"test", "tests", "testdata"})
_FILE = re.compile(r"(test_.*|.*_tests?|tests?|conftest)\.py|(Test.+|.+(Tests?|TestCase|IT))\.java")
_NAMED_FOLDER = re.compile(r"(.+[_-])?(unit)?tests?([_-].+)?")
"""Other names of test folders; used only for folders that the manifest declares as tests."""
BENCHMARK = "ctxbench"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """A function of a file that may become a sample. Lines are 0-based, ends exclusive."""

    name: str
    """With its classes: ``Outer.Inner.method``; Java overloads have their parameter types added."""
    signature: str
    docstring: str
    start: int
    """Line of its declaration."""
    cursor: Cursor
    """Start of the body, after docstring or opening brace."""
    end: int
    tail: Cursor | None = None
    """End of the body, if the function continues after it (a closing brace). None: at `end`."""
    owners: tuple[str, ...]
    """Names of its classes, outermost first."""
    code: str
    """Its body without docstring, comments and layout: equal for equal code."""


D = TypeVar("D", bound=Declaration)
D_contra = TypeVar("D_contra", bound=Declaration, contravariant=True)


class Names(Protocol[D_contra]):
    """The meanings of the names in one file."""

    def needs(self, definition: D_contra) -> tuple[Level, tuple[Use, ...]]:
        """Return the level and the uses of a function's body."""
        ...


@dataclass(frozen=True, slots=True)
class Definitions(Generic[D]):
    """The functions of one file."""

    functions: int
    """Number of functions and methods, without those inside functions."""
    documented: int
    usable: tuple[D, ...]
    drops: Counter[str]
    """Reason -> number of documented functions that cannot become samples."""
    bodies: Counter[str]
    """Code of every body in the file -> number of occurrences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFunction(Generic[D]):
    """A function that becomes a candidate if tests cover it."""

    path: str
    definition: D
    level: Level
    uses: tuple[Use, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Static(Generic[D]):
    """The functions of a repository."""

    functions: tuple[ListedFunction[D], ...]
    """Sorted by path and line."""
    hidden: tuple[str, ...]
    counts: Mapping[str, int]
    drops: Counter[str]


def static(
    files: Mapping[str, Definitions[D]],
    names: Callable[[str], Names[D]],
    bodies: Mapping[str, int],
    elsewhere: Callable[[str, D], bool] = lambda *_: False,
    *,
    hidden: tuple[str, ...],
    left_out: Counter[str],
) -> Static[D]:
    """Return the functions of a repository whose body occurs nowhere else.

    Args:
        files: path -> the functions of each file to mine.
        names: returns the names of a file.
        bodies: code of every body in the repository -> number of occurrences.
        elsewhere: returns whether a function's body occurs in a file that cannot be parsed.
        hidden: the test files and folders.
        left_out: reason -> number of other files.
    """
    drops = sum((definitions.drops for definitions in files.values()), Counter[str]())
    functions: list[ListedFunction[D]] = []
    for path, definitions in sorted(files.items()):
        of_file = names(path)
        for definition in definitions.usable:
            if elsewhere(path, definition) or bodies[definition.code] > 1:
                drops["body_elsewhere"] += 1
                continue
            level, uses = of_file.needs(definition)
            functions.append(ListedFunction(path=path, definition=definition, level=level, uses=uses))
    counts = {
        "files": len(files) + left_out.total(),
        "source_files": len(files),
        **{f"left_out_{reason}": count for reason, count in sorted(left_out.items())},
        "functions": sum(definitions.functions for definitions in files.values()),
        "documented": sum(definitions.documented for definitions in files.values()),
    }
    return Static(functions=tuple(functions), hidden=hidden, counts=counts, drops=drops)


def uses_of(functions: Sequence[ListedFunction[D]]) -> Callable[[Spot], tuple[Use, ...]]:
    """Return a function that returns the names used by a function's body, empty for unknown functions."""
    uses_by_place = {(function.path, function.definition.name): function.uses for function in functions}
    return lambda spot: uses_by_place.get((spot.path, spot.name), ())


def candidate(
    function: ListedFunction[D],
    covering: Mapping[str, frozenset[int]],
    runs: Mapping[str, TestRun],
    *,
    importing: Collection[str] = (),
    tail: Cursor | None = None,
) -> Candidate | None:
    """Return the candidate; None if neither a usable test nor the import of its test module runs the function.

    Args:
        function: the function.
        covering: usable test -> lines of the function that it runs.
        runs: test -> results of its runs.
        importing: usable tests of modules whose import runs it.
        tail: end of the body, if the function continues after it.
    """
    if not covering and not importing:
        return None
    picked = ranked(steady(covering, runs) or dict.fromkeys(importing, frozenset()), runs)
    # Tests that read a clock are tried last.
    more = sorted(others(covering, importing, runs, picked), key=lambda test: runs[test].clock)
    definition = function.definition
    return Candidate(
        path=function.path,
        name=definition.name,
        signature=definition.signature,
        docstring=definition.docstring,
        start=definition.start,
        cursor=definition.cursor,
        end=definition.end,
        tail=tail,
        level=function.level,
        uses=function.uses,
        tests=picked,
        others=tuple(more),
        at_import=not covering,
        clocks=frozenset(test for test in (*picked, *more) if runs[test].clock),
        seconds=sum(runs[test].seconds for test in picked),
    )


def outcomes(states: Iterable[str]) -> dict[str, int]:
    """Return the number of tests in each state."""
    return {f"tests_{state}": count for state, count in sorted(Counter(states).items())}


def searched(
    static: Static[D],
    candidates: Sequence[Candidate],
    drops: Counter[str],
    outcomes: Mapping[str, int],
    failures: Mapping[str, str],
) -> Search:
    """Return the candidates of a repository, and counts of its functions and tests.

    Args:
        static: its functions, from syntax alone.
        candidates: the functions that usable tests run.
        drops: reason -> number of the other functions in `static`.
        outcomes: state -> number of its tests.
        failures: failed test -> last line of the reason; empty if unknown.
    """
    return Search(
        candidates=tuple(candidates),
        hidden=static.hidden,
        counts={**static.counts, **outcomes, "covered": len(candidates) + drops["too_slow"]},
        drops=dict(sorted((static.drops + drops).items())),
        failures=failures,
    )


def test_places(paths: Iterable[str], named: Iterable[str] = (), folders: Collection[str] = ()) -> tuple[str, ...]:
    """Return the test files and test folders (ending with ``/``) in `paths`, sorted, none inside another.

    Args:
        paths: every file, POSIX and relative to the repository.
        named: places that the manifest declares as tests, and files with tests. Such a folder counts only if its name
            is that of tests, since a project's tests may be among its sources.
        folders: folders that contain only tests, whatever their names.
    """
    places: set[str] = set()
    named = {normpath(place) for place in named}
    for path in paths:
        folder = _outermost(path, named, folders)
        if folder:
            places.add(folder)
        elif _FILE.fullmatch(basename(path)) or path in named:
            places.add(path)
    return tuple(sorted(place for place in places if not is_hidden(place, sorted(places - {place}))))


def _outermost(path: str, named: Collection[str], folders: Collection[str]) -> str:
    """Return the outermost test folder of a path, ending with ``/``, by the rules of `test_places`; empty if none."""
    parts = dirname(path).split("/")
    for number, part in enumerate(parts):
        folder, name = "/".join(parts[: number + 1]), part.lower()
        if name in _FOLDERS or folder in folders or (folder in named and _NAMED_FOLDER.fullmatch(name)):
            return f"{folder}/"
    return ""


def make(
    project: Project, search: Search, candidate: Candidate, lift: Callable[[list[str]], str]
) -> tuple[Sample, Reference]:
    """Return the sample of a candidate, with its answer.

    Args:
        project: the repository.
        search: its search; the test places in it are hidden.
        candidate: one of its candidates.
        lift: the language's function, see `bench.functions.mining.Miner`.
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
    """Return the hidden paths of a sample: the test places, and test files outside them.

    Only ids of pytest begin with a file. Those of JUnit name classes, which are in the test folders.
    """
    files = {test.partition("::")[0] for test in tests if "::" in test}
    return tuple(sorted({*places, *(file for file in files if not is_hidden(file, places))}))


def ordered(candidates: Iterable[Candidate], *, repo: str, seed: int) -> list[Candidate]:
    """Return the candidates in the order of trial; trying fewer yields a prefix of it.

    Levels take turns, and so do files inside a level, each in a fixed random order, so that neither a frequent level
    nor a large file dominates. Candidates that only imports run come last.
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
