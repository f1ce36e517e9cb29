import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxbench.bench import windows
from ctxbench.bench.code_tokens import tokenize
from ctxbench.bench.types import Place
from ctxbench.bench.windows import Target, WindowIndex, code_lines, index, split_lines
from tests.helpers.threads import together


def test_only_newlines_separate_lines() -> None:
    assert split_lines("") == [] and split_lines("\n") == [""] and split_lines("a\n\nb") == ["a", "", "b"]
    assert split_lines("a\x0cb\u2028c\n") == ["a\x0cb\u2028c"]  # str.splitlines would cut here


@given(st.text(st.sampled_from("ab\n\x0b\x0c\x1c\x85\u2028"), max_size=12))
def test_code_lines_map_to_lines_of_the_file(text: str) -> None:
    lines, rows = code_lines(text)
    assert lines == text.splitlines() and len(rows) == len(lines)
    of_file = split_lines(text)
    assert list(rows) == sorted(rows) and set(rows) == set(range(len(of_file)))
    assert all(line in of_file[row] for line, row in zip(lines, rows, strict=True))


def test_windows_split_at_form_feeds_but_places_count_file_lines() -> None:
    built = WindowIndex({"a.py": "a\n\x0c\nb\x1cc\nd\n"}, size=2, stride=1)
    assert built.texts == ("a", "a\n", "\n", "\nb", "b\nc", "c\nd")
    assert [(p.start, p.end) for (p,) in built.places] == [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (2, 4)]


# Few words and short files, so that equal scores and equal windows are frequent.
_LINES = st.lists(st.sampled_from(["a = b", "b = a", "import a", "", "  ", "c(a, b)", "zeta"]), max_size=12)
_FILES = st.dictionaries(st.sampled_from(["a.py", "b.py", "p/c.py", "p/d.py"]), _LINES, min_size=1)


def _plain(texts: dict[str, str], query: str, top: int, size: int, stride: int, target: Target | None) -> list[object]:
    """Compute the definition plainly: loop over sets, sort stably, and read from the end."""
    units: dict[str, list[Place]] = {}
    for path in sorted(texts):
        lines = split_lines(texts[path])
        for i in range(0, len(lines), stride):
            start, end = max(0, i - size // 2), min(len(lines), i + size - size // 2)
            units.setdefault("\n".join(lines[start:end]), []).append(Place(path=path, start=start, end=end))
    wanted = set(tokenize(query))
    rows = []
    for text, places in units.items():
        shown = places
        if target is not None:
            shown = [
                p
                for p in places
                if p.path != target.path
                or (p.end <= target.cursor_line and not any(p.start < e and s < p.end for s, e in target.masked))
            ]
            if all(p.path == target.path and p.end > target.context_start for p in shown):
                continue
        other = set(tokenize(text))
        score = len(wanted & other) / len(wanted | other) if wanted and other else 0.0
        rows.append((score, shown[0], text, tuple(shown)))
    rows.sort(key=lambda row: row[1])
    rows.sort(key=lambda row: row[0])
    return [(text, score, places) for score, _, text, places in rows[::-1][:top]] if wanted else []


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    files=_FILES,
    query=_LINES,
    top=st.integers(1, 8),
    shape=st.sampled_from([(20, 10), (4, 2), (3, 1), (1, 1)]),
    target=st.none()
    | st.builds(
        lambda path, start, more, masked: Target(
            path=path, context_start=start, cursor_line=start + more, masked=masked
        ),
        st.sampled_from(["a.py", "p/c.py"]),
        st.integers(0, 6),
        st.integers(0, 6),
        st.sampled_from([(), ((0, 1),), ((2, 4),)]),
    ),
)
def test_retrieval_equals_the_plain_loop_including_ties(
    files: dict[str, list[str]], query: list[str], top: int, shape: tuple[int, int], target: Target | None
) -> None:
    texts = {path: "\n".join(lines) for path, lines in files.items()}
    size, stride = shape
    built = WindowIndex(texts, size=size, stride=stride)
    scope = built.scope(target) if target else None
    hits = built.query("\n".join(query), top=top, scope=scope)
    assert [(h.text, h.score, h.places) for h in hits] == _plain(texts, "\n".join(query), top, size, stride, target)


def test_more_than_255_common_tokens_are_counted_correctly() -> None:
    words = " ".join(f"w{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(600))
    texts = {f"{n}.py": words for n in range(3)} | {"z.py": words + " zebra"}
    built = WindowIndex(texts)
    best = built.query(words, top=2)
    assert [hit.score for hit in best] == [1.0, len(set(tokenize(words))) / (len(set(tokenize(words))) + 1)]


@pytest.mark.parametrize(("query", "top"), [("", 5), ("x", 0)])
def test_empty_queries_and_empty_files_have_no_hits(query: str, top: int) -> None:
    assert WindowIndex({"a.py": "x = 1\n"}).query(query, top=top) == ()
    assert WindowIndex({"a.py": ""}).query("x", top=5) == ()
    assert WindowIndex({}).query("x", top=5) == ()


def test_hidden_places_do_not_affect_the_rank() -> None:
    """The window also occurs in the target after the cursor. This occurrence must not change its rank."""
    target = Target(path="a.py", context_start=0, cursor_line=0)
    shared = {"b.py": "one = 1\n", "c.py": "two = 1\n", "d.py": "end = 1\n"}
    without = WindowIndex({"a.py": "other\n", **shared})
    beside = WindowIndex({"a.py": "end = 1\n", **shared})
    ranks = [[h.text for h in i.query("= 1", top=9, scope=i.scope(target))] for i in (without, beside)]
    assert ranks[0] == ranks[1] == ["end = 1", "two = 1", "one = 1"]


def test_threads_build_an_index_once(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[int] = []
    real = WindowIndex.__init__

    def counted(self: WindowIndex, *arguments: object, **named: object) -> None:
        built.append(1)
        real(self, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(WindowIndex, "__init__", counted)
    monkeypatch.setattr(windows, "_INDICES", windows.SharedCache(windows._KEPT_INDICES))
    found: list[WindowIndex] = []
    together(8, lambda: found.append(index("d", {"a.py": "x\n" * 999})))
    assert len(built) == 1 and len({id(one) for one in found}) == 1
    for number in range(windows._KEPT_INDICES + 1):
        index(f"other {number}", {"a.py": "x\n"})
    assert index("d", {"a.py": "x\n"}) is not found[0]
