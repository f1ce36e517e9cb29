"""Candidates: listed from a repository's text, joined with the tests that cover them, ordered, and made samples. Pure.

The same for every language.
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
"""What a folder of tests is called too; taken for one only where the manifest says that tests are in it."""
BENCHMARK = "ctxbench"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """A function of a file that may be asked for. Lines are 0-based, ends exclusive."""

    name: str
    """With the classes around it: ``Outer.Inner.method``; overloads of Java have their parameter types added."""
    signature: str
    docstring: str
    start: int
    """Line of its declaration."""
    cursor: Cursor
    """Where the body begins: behind docstring or opening brace."""
    end: int
    tail: Cursor | None = None
    """Where the body ends, if something of the function follows it: a closing brace. None: at `end`."""
    owners: tuple[str, ...]
    """Names of the classes around it, outermost first."""
    code: str
    """Its body without docstring, comments and layout: equal for equal code."""


D = TypeVar("D", bound=Declaration)
D_contra = TypeVar("D_contra", bound=Declaration, contravariant=True)


class Names(Protocol[D_contra]):
    """What the names of one file mean."""

    def needs(self, definition: D_contra) -> tuple[Level, tuple[Use, ...]]:
        """Return what a function's body needs."""
        ...


@dataclass(frozen=True, slots=True)
class Definitions(Generic[D]):
    """What one file holds."""

    functions: int
    """Functions and methods, those inside functions left out."""
    documented: int
    usable: tuple[D, ...]
    drops: Counter[str]
    """Reason -> documented functions that cannot be asked for."""
    bodies: Counter[str]
    """Code of every body in the file -> how often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFunction(Generic[D]):
    """A function that may become a candidate if tests cover it."""

    path: str
    definition: D
    level: Level
    uses: tuple[Use, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Static(Generic[D]):
    """The functions of a repository."""

    functions: tuple[ListedFunction[D], ...]
    """By path and line."""
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
    """Return the functions of a repository, those whose body stands nowhere else.

    Args:
        files: path -> what the file holds, of those whose functions may be asked for.
        names: gives the names of a file.
        bodies: code of every body in the repository -> how often it is there.
        elsewhere: says whether the body of a file's function stands in a file that cannot be parsed.
        hidden: the test places.
        left_out: reason -> other files.
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
    """Return what gives the names that a function's body needs: none for one that is not known."""
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
    """Return the candidate, None if no usable test runs it, and no import of a test module does.

    Args:
        function: the function.
        covering: usable test -> what of the function it runs.
        runs: what is known of each test.
        importing: usable tests of modules whose import runs it.
        tail: where the body ends, if something of the function follows it.
    """
    if not covering and not importing:
        return None
    picked = ranked(steady(covering, runs) or dict.fromkeys(importing, frozenset()), runs)
    # Those that read a clock are tried last.
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
    """Return how many tests came to each state."""
    return {f"tests_{state}": count for state, count in sorted(Counter(states).items())}


def searched(
    static: Static[D],
    candidates: Sequence[Candidate],
    drops: Counter[str],
    outcomes: Mapping[str, int],
    failures: Mapping[str, str],
) -> Search:
    """Return what came of a repository: the candidates, and how many functions and tests there are of each kind.

    Args:
        static: its functions, as far as syntax tells.
        candidates: those that usable tests run.
        drops: reason -> the others that syntax had left.
        outcomes: what became of its tests.
        failures: test that failed -> the last line of why; empty where that is not known.
    """
    return Search(
        candidates=tuple(candidates),
        hidden=static.hidden,
        counts={**static.counts, **outcomes, "covered": len(candidates) + drops["too_slow"]},
        drops=dict(sorted((static.drops + drops).items())),
        failures=failures,
    )


def test_places(paths: Iterable[str], named: Iterable[str] = (), folders: Collection[str] = ()) -> tuple[str, ...]:
    """Return the test files and test folders (ended by ``/``) among `paths`, sorted, none inside another.

    Args:
        paths: every file, POSIX and relative to the repository.
        named: where the manifest says that tests are, and files that hold some. A folder is taken for a test place
            only if it is called so, for a project's tests may lie among its sources.
        folders: these hold nothing but tests, whatever they are called.
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
    """Return the outermost test folder of a path, ended by ``/``, as `test_places` knows it; empty if it is in none."""
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
