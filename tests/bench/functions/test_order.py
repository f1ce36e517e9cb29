"""The order in which candidates are tried, and versions that are resolved once."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ctxbench.bench.functions.candidates import ordered
from ctxbench.bench.functions.mining import Candidate, Level
from ctxbench.bench.functions.python import locked
from ctxbench.bench.home import Home
from ctxbench.bench.types import Cursor


def candidate(level: Level, path: str, start: int) -> Candidate:
    return Candidate(
        path=path,
        name=f"f{start}",
        signature="def f():",
        docstring="Do.",
        start=start,
        cursor=Cursor(line=start + 2, column=0),
        end=start + 3,
        level=level,
        tests=("t",),
        seconds=0.0,
    )


MANY = [candidate(Level.FILE, "big.py", start) for start in range(50)]
FEW = [candidate(Level.SLIB, "a.py", 0), candidate(Level.FILE, "small.py", 0), candidate(Level.PROJECT, "a.py", 9)]


def test_levels_and_files_take_turns() -> None:
    first = ordered([*MANY, *FEW], repo="demo", seed=0)[:4]
    assert Counter(each.level for each in first) == {Level.SLIB: 1, Level.FILE: 2, Level.PROJECT: 1}
    assert {each.path for each in first if each.level is Level.FILE} == {"big.py", "small.py"}


def test_the_order_depends_on_seed_and_names_only() -> None:
    one = ordered([*MANY, *FEW], repo="demo", seed=0)
    assert ordered([*reversed(FEW), *reversed(MANY)], repo="demo", seed=0) == one
    assert ordered([*MANY, *FEW], repo="demo", seed=1) != one
    assert ordered([*MANY, *FEW], repo="other", seed=0) != one
    assert sorted(map(str, one)) == sorted(map(str, [*MANY, *FEW]))


def test_versions_are_resolved_once_in_a_home(tmp_path: Path) -> None:
    asked: list[Sequence[str]] = []

    def lock(requirements: Sequence[str], project: str) -> tuple[str, ...]:
        asked.append(requirements)
        return "b==2", f"a=={len(asked)}"

    home = Home(tmp_path)
    assert locked(["a", "b"], "p==1", home, lock) == ("a==1", "b==2")
    assert locked(["b", "a"], "p==1", home, lock) == ("a==1", "b==2"), "nothing was resolved again"
    assert locked(["a", "b"], "p==2", home, lock) == ("a==2", "b==2")
    for kept in (tmp_path / "cache" / "locks").iterdir():
        kept.write_text("[1, ")
    assert locked(["a", "b"], "p==1", home, lock) == ("a==3", "b==2"), "a torn file is made again"
