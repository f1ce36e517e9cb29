"""Finds a repository's candidates (functions that tests run), orders them, and builds samples from candidates."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from posixpath import basename, dirname, normpath
from random import Random
from typing import Generic, Protocol, TypeVar

from ctxbench.bench.functions.choose import SLOW_TOGETHER, further_tests, ranked, steady, usable
from ctxbench.bench.functions.mining import Candidate, Level, Project, Search, Spot, TestRun
from ctxbench.bench.masking import is_hidden
from ctxbench.bench.types import Cursor, Kind, Reference, Sample, Use

_FOLDERS = frozenset({"test", "tests", "testdata"})
_FILE = re.compile(r"(test_.*|.*_tests?|tests?|conftest)\.py|(Test.+|.+(Tests?|TestCase|IT))\.java")
_NAMED_FOLDER = re.compile(r"(.+[_-])?(unit)?tests?([_-].+)?")
BENCHMARK = "ctxbench"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """A function that may become a sample. Lines are 0-based, and ends are exclusive."""

    name: str
    """Name with classes: ``Outer.Inner.method``. Java overloads include parameter types."""
    signature: str
    docstring: str
    start: int
    cursor: Cursor
    """Start of the body, after the docstring or opening brace."""
    end: int
    tail: Cursor | None = None
    """End of the body, before a closing brace; None if the body ends at `end`."""
    owners: tuple[str, ...]
    """Enclosing classes, outermost first."""
    code: str
    """Body without docstring, comments or layout, for comparisons with other bodies."""


D = TypeVar("D", bound=Declaration)
D_contra = TypeVar("D_contra", bound=Declaration, contravariant=True)


class Names(Protocol[D_contra]):
    """A lookup of the level of each function in a file, and of the project names that the function uses."""

    def needs(self, definition: D_contra) -> tuple[Level, tuple[Use, ...]]:
        """Return a function's level, and the project names that its body uses."""
        ...


@dataclass(frozen=True, slots=True)
class Definitions(Generic[D]):
    """A file's functions that may become samples, and counts of all functions in the file."""

    functions: int
    """Number of functions and methods, without nested functions."""
    documented: int
    usable: tuple[D, ...]
    drops: Counter[str]
    bodies: Counter[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFunction(Generic[D]):
    """A function that becomes a candidate if usable tests run it."""

    path: str
    definition: D
    level: Level
    uses: tuple[Use, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Static(Generic[D]):
    """A repository's usable functions, its test files and folders, and counts, as listed before any test runs."""

    functions: tuple[ListedFunction[D], ...]
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
    """List a repository's usable functions whose bodies occur only once, and count the dropped ones.

    Args:
        files: each file's functions, by path.
        names: returns the `Names` of a file, given its path.
        bodies: how often each body occurs in the repository, by the body's code.
        elsewhere: returns whether a function's body also occurs in a file that cannot be parsed.
        hidden: test files and folders.
        left_out: number of files that are left out, by reason.
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
    """Return a lookup from a function's place to the project names that the function uses; none if it is not listed."""
    uses_by_place = {(function.path, function.definition.name): function.uses for function in functions}
    return lambda spot: uses_by_place.get((spot.path, spot.name), ())


def candidates(
    functions: Sequence[ListedFunction[D]],
    runs: Mapping[str, TestRun],
    covering: Callable[[ListedFunction[D]], Mapping[str, frozenset[int]]],
    importing: Callable[[ListedFunction[D]], Collection[str]] = lambda _: (),
    uncovered: Callable[[Collection[str]], str] = lambda _: "not_covered",
) -> tuple[list[Candidate], Counter[str]]:
    """Return the functions whose selected tests take at most `SLOW_TOGETHER` seconds, and count the others by reason.

    `covering` returns the lines or blocks of a function that each test runs, and `importing` the tests in modules whose
    import runs the function. `uncovered` takes the tests that run it but do not pass, and returns a drop reason.
    """
    found: list[Candidate] = []
    drops: Counter[str] = Counter()
    for function in functions:
        covered = covering(function)
        ran = {test: lines for test, lines in covered.items() if runs[test].passed}
        imported = [test for test in importing(function) if runs[test].passed]
        if not ran and not imported:
            drops[uncovered(covered)] += 1
            continue
        usable_ran = {test: lines for test, lines in ran.items() if usable(runs[test])}
        result = _candidate(function, usable_ran, [test for test in imported if usable(runs[test])], runs)
        if result is None or result.seconds > SLOW_TOGETHER:
            drops["too_slow"] += 1
        else:
            found.append(result)
    return found, drops


def _candidate(
    function: ListedFunction[D],
    covering: Mapping[str, frozenset[int]],
    importing: Sequence[str],
    runs: Mapping[str, TestRun],
) -> Candidate | None:
    if not covering and not importing:
        return None
    picked = ranked(steady(covering, runs) or dict.fromkeys(importing, frozenset()), runs)
    # Tests that read a clock are tried last.
    more = sorted(further_tests(covering, importing, runs, picked), key=lambda test: runs[test].clock)
    definition = function.definition
    return Candidate(
        path=function.path,
        name=definition.name,
        signature=definition.signature,
        docstring=definition.docstring,
        start=definition.start,
        cursor=definition.cursor,
        end=definition.end,
        tail=definition.tail,
        level=function.level,
        uses=function.uses,
        tests=picked,
        others=tuple(more),
        at_import=not covering,
        clocks=frozenset(test for test in (*picked, *more) if runs[test].clock),
        seconds=sum(runs[test].seconds for test in picked),
    )


def outcomes(states: Iterable[str]) -> dict[str, int]:
    """Return the number of tests in each state, with keys such as ``tests_passed``."""
    return {f"tests_{state}": count for state, count in sorted(Counter(states).items())}


def combine_search(
    static: Static[D],
    candidates: Sequence[Candidate],
    drops: Counter[str],
    outcomes: Mapping[str, int],
    failures: Mapping[str, str],
) -> Search:
    """Combine a repository's candidates with the counts of its functions and tests."""
    return Search(
        candidates=tuple(candidates),
        hidden=static.hidden,
        counts={**static.counts, **outcomes, "covered": len(candidates) + drops["too_slow"]},
        drops=dict(sorted((static.drops + drops).items())),
        failures=failures,
    )


def test_places(paths: Iterable[str], named: Iterable[str] = (), folders: Collection[str] = ()) -> tuple[str, ...]:
    """Return the test folders (with a final ``/``) that contain some of `paths`, and other test files, sorted.

    Args:
        named: test places in the manifest, and files with tests. A folder counts only if it is named like a test
            folder, because tests may be beside sources.
        folders: folders that contain only tests.
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
    parts = dirname(path).split("/")
    for number, part in enumerate(parts):
        folder, name = "/".join(parts[: number + 1]), part.lower()
        if name in _FOLDERS or folder in folders or (folder in named and _NAMED_FOLDER.fullmatch(name)):
            return f"{folder}/"
    return ""


def make(
    project: Project, search: Search, candidate: Candidate, lift: Callable[[list[str]], str]
) -> tuple[Sample, Reference]:
    """Build a sample and its reference from a candidate. `lift` is the language's `Miner.lift`."""
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
    """Return the paths to hide from strategies: the test places, and the files of a sample's pytest tests."""
    files = {test.partition("::")[0] for test in tests if "::" in test}
    return tuple(sorted({*places, *(file for file in files if not is_hidden(file, places))}))


def ordered(candidates: Iterable[Candidate], *, repo: str, seed: int) -> list[Candidate]:
    """Return the candidates in the order in which to try them. The order depends on `repo` and `seed`.

    Levels take turns. Within a level, shuffled files take turns. Functions that run only on import come last.
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
