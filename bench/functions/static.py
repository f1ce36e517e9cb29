"""What the text of a repository says of its functions, before anything is run: the same for every language. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from ctxbench.bench.functions.choose import TestRun, others, ranked, steady
from ctxbench.bench.functions.mining import Search, Spot
from ctxbench.bench.functions.types import Candidate, Level
from ctxbench.bench.types import Cursor, Use


class Declared(Protocol):
    """A function of a file that may be asked for. Lines are 0-based, ends exclusive."""

    @property
    def name(self) -> str:
        """Within its file."""
        ...

    @property
    def signature(self) -> str:
        """Its declaration."""
        ...

    @property
    def docstring(self) -> str:
        """What it is to do."""
        ...

    @property
    def start(self) -> int:
        """Line of its declaration."""
        ...

    @property
    def cursor(self) -> Cursor:
        """Where the body begins."""
        ...

    @property
    def end(self) -> int:
        """Line after its last."""
        ...

    @property
    def code(self) -> str:
        """Its body without layout: equal for equal code."""
        ...


D = TypeVar("D", bound=Declared)
D_contra = TypeVar("D_contra", bound=Declared, contravariant=True)


class Names(Protocol[D_contra]):
    """What the names of one file mean."""

    def needs(self, definition: D_contra) -> tuple[Level, tuple[Use, ...]]:
        """Return what a function's body needs."""
        ...


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


def unique(
    usable: Mapping[str, Sequence[D]], names: Callable[[str], Names[D]], bodies: Mapping[str, int], drops: Counter[str]
) -> tuple[ListedFunction[D], ...]:
    """Return the functions whose body stands nowhere else, by path and line.

    Args:
        usable: path -> functions of the file that could be asked for.
        names: gives the names of a file.
        bodies: code of every body in the repository -> how often it is there.
        drops: counts those that are left out.
    """
    functions: list[ListedFunction[D]] = []
    for path, definitions in sorted(usable.items()):
        of_file = names(path)
        for definition in definitions:
            if bodies[definition.code] > 1:
                drops["body_elsewhere"] += 1
                continue
            level, uses = of_file.needs(definition)
            functions.append(ListedFunction(path=path, definition=definition, level=level, uses=uses))
    return tuple(functions)


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


def searched(
    static: Static[D], candidates: Sequence[Candidate], drops: Counter[str], outcomes: Mapping[str, int]
) -> Search:
    """Return what came of a repository: the candidates, and how many functions and tests there are of each kind.

    Args:
        static: its functions, as far as syntax tells.
        candidates: those that usable tests run.
        drops: reason -> the others that syntax had left.
        outcomes: what became of its tests.
    """
    return Search(
        candidates=tuple(candidates),
        hidden=static.hidden,
        counts={**static.counts, **outcomes, "covered": len(candidates) + drops["too_slow"]},
        drops=dict(sorted((static.drops + drops).items())),
    )
