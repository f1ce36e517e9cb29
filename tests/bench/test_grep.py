import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.bench.grep import matching_lines, read_pattern
from ctxbench.bench.types import Kind
from ctxbench.strategies.tiny import PLANTED, TARGET, query_for, view_for

TEXTS = {"a.py": "def load(path):\n    return path\n\nclass Load:\n    a = b | c\n", "b.py": "load('x')\n"}


@pytest.mark.parametrize(
    ("pattern", "lines"),
    [
        ("load", ["a.py:1", "b.py:1"]),
        ("def load|class Load", ["a.py:1", "a.py:4"]),
        (r"load\(", ["a.py:1", "b.py:1"]),
        (r"^\s*return\s+path$", ["a.py:2"]),
        ("d.*path", ["a.py:1"]),
        ("path.*d", []),
        (r"b \| c", ["a.py:5"]),
        (r"\bLoad\b", ["a.py:4"]),
        ("nothing", []),
    ],
)
def test_a_pattern_can_contain_alternatives_and_gaps(pattern: str, lines: list[str]) -> None:
    hits = matching_lines(read_pattern(pattern), TEXTS)
    assert [f"{hit.place.path}:{hit.place.start + 1}" for hit in hits] == lines


@pytest.mark.parametrize("pattern", ["", "|", "load|", ".*", "^$", r"\s+|x"])
def test_a_pattern_without_text_is_refused(pattern: str) -> None:
    with pytest.raises(InputFault, match="contains no text"):
        read_pattern(pattern)


def test_patterns_with_exponential_backtracking_finish_quickly() -> None:
    texts = {"a.py": "a" * 200_000}
    assert list(matching_lines(read_pattern("a.*" * 100 + "b"), texts)) == []
    assert len(list(matching_lines(read_pattern("(a+)+$|" + "a.*" * 100 + "a"), texts))) == 1


@pytest.mark.parametrize("kind", list(Kind))
def test_a_view_searches_only_the_text_that_it_shows(kind: Kind) -> None:
    query = query_for(kind)
    view = view_for(query)
    assert view.grep(PLANTED[:5]) == ()
    [first, *_] = view.grep("store|def", top=1)
    assert (first.place.path, view.grep("store|def", top=1)) == ("shop/cart.py", (first,))
    for hit in view.grep("e", top=10_000):
        assert hit.text == view.read(hit.place.path).split("\n")[hit.place.start]
    assert TARGET in {hit.place.path for hit in view.grep("Paying")}
    with pytest.raises(InputFault, match="top=0"):
        view.grep("e", top=0)
