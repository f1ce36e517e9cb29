"""Search results do not depend on hidden text: snapshots that differ only in hidden text have equal results."""

import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxbench.bench import languages
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.python import PYTHON as PYTHON_LANGUAGE
from ctxbench.bench.repository import View
from ctxbench.bench.retrieval.retrieval import Retrieval
from ctxbench.bench.types import Cursor, Kind
from tests.helpers.samples import make_sample
from tests.helpers.views import make_view

UNITS = ("function", "chunk(lines=2)", "mini-block(lines=3)", "words(count=4)", "usage", "summary")
RANKERS = ("bm25", "jaccard", "hashed(width=16)")
PLANTED = "zq_planted_answer"

PYTHON = {
    "lines": [
        "def alpha(beta, gamma):",
        "    def inner(x):",
        "        return x",
        "    return beta_gamma(alpha)",
        "class Delta:",
        "    def eps(self):",
        '        """Adds beta to gamma."""',
        "        self.gamma = 1",
        "@alpha",
        "# beta of gamma",
        "x = alpha(",
        "    beta)",
        '"""',
        "",
        "    ",
    ],
    "head": 'def target(beta):\n    """Does gamma."""\n',
    "foot": "",
}
JAVA = {
    "lines": [
        "class Alpha {",
        "interface Delta {",
        "  void beta(int gamma) {",
        "    this.gamma = alpha(beta);",
        "  }",
        "}",
        "/** Adds beta. */",
        "/*",
        "*/",
        "@Gamma",
        "// beta of gamma",
        "int gamma = 1;",
        "  int size();",
        "",
        '  "',
    ],
    "head": "class Target {\n  /** Does gamma. */\n  int target(int beta) {",
    "foot": "}\n",
}


def _lines(language: Language, most: int = 9) -> st.SearchStrategy[str]:
    pool = (PYTHON if language == PYTHON_LANGUAGE else JAVA)["lines"]
    # Hidden and shown text share words. Otherwise a leak through word counts would not show.
    return st.lists(st.sampled_from([*pool, PLANTED]), max_size=most).map(
        lambda lines: "".join(f"{x}\n" for x in lines)
    )


@st.composite
def _cases(draw: st.DrawFn) -> tuple[Any, list[dict[str, str]], tuple[tuple[int, int], ...], str]:
    """Draw a sample, two snapshots that differ only in hidden text, the masked lines, and a text to search for."""
    language = draw(st.sampled_from(languages.every()))
    lines, suffix = _lines(language), None
    before, masked = draw(lines), draw(st.sampled_from([(), ((0, 1),)]))
    prefix, kind = before, Kind.LINE
    if draw(st.booleans()):
        pool = PYTHON if language == PYTHON_LANGUAGE else JAVA
        prefix, kind = before + str(pool["head"]), Kind.FUNCTION
        suffix = str(pool["foot"]) + draw(lines)
    else:
        prefix += draw(st.sampled_from(["", "  ", "    gamma = ", "class ", "def "]))
    row, column = prefix.count("\n"), len(prefix.rpartition("\n")[2])
    shown = prefix.split("\n")
    for start, end in masked:
        shown[start : min(end, row)] = [""] * (min(end, row) - start)
    target = draw(st.sampled_from(["a", "m", "z"])) + language.suffix
    sample = make_sample(
        language=language,
        kind=kind,
        path=target,
        prefix="\n".join(shown),
        suffix=suffix,
        cursor=Cursor(line=row, column=column),
        context_start=draw(st.integers(0, row)),
        hidden=("tests/",),
    )
    shared = {f"{name}{language.suffix}": draw(lines) for name in ("b", "n")}
    snapshots = []
    for _ in range(2):
        wholes = prefix.split("\n")
        for start, end in masked:
            for masked_row in range(start, min(end, row)):
                wholes[masked_row] = draw(st.sampled_from(["import gamma", PLANTED]))
        hidden = draw(lines)
        whole = "\n".join(wholes) + (f"\n{hidden}" if column and kind is Kind.FUNCTION else hidden) + (suffix or "")
        texts = {**shared, target: whole, f"tests/t{language.suffix}": draw(lines)}
        snapshots.append({path: texts[path] for path in sorted(texts)})
    return sample, snapshots, masked, draw(lines)


def _view(sample: Any, texts: dict[str, str], masked: Any, retrieval: Retrieval) -> View:
    return make_view(sample.query(), texts, masked=masked, hidden=sample.hidden, retrieval=retrieval)


def _found(view: View, text: str) -> list[Any]:
    return [
        view.search(text, unit=unit, ranker=ranker, top=top)
        for unit, ranker, top in itertools.product(UNITS, RANKERS, (2, 99))
    ]


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(_cases())
def test_snapshots_that_differ_only_in_hidden_text_have_equal_hits(case: Any) -> None:
    sample, snapshots, masked, text = case
    retrieval = Retrieval()  # shared by both: data cached from one must not reach the other
    one, other = (_view(sample, texts, masked, retrieval) for texts in snapshots)
    assert one.read(sample.path) == other.read(sample.path)
    for looked_for in (text, "gamma alpha beta", PLANTED):
        found = _found(one, looked_for)
        assert found == _found(other, looked_for)
        for hit in itertools.chain.from_iterable(found):
            if hit.place.path == sample.path:
                shown = one.read(sample.path).split("\n")[hit.place.start : hit.place.end]
                assert shown or not hit.text
                assert PLANTED not in hit.text + hit.matched + hit.name or any(PLANTED in line for line in shown)


PYTHON_WHOLE = f'''\
from shop import load


def quote(user):
    """Say the price."""
    return load(user)


def pay(user):
    """Take the money."""
    total = {PLANTED}(user)
    return {PLANTED}.receipt(total)


def {PLANTED}_later(user):
    """Where {PLANTED} is."""
    return load(user)
'''
JAVA_WHOLE = f"""\
class Shop {{
    /** Says the price. */
    int quote(User user) {{
        return load(user);
    }}

    /** Takes the money. */
    int pay(User user) {{
        int total = {PLANTED}(user);
        return {PLANTED}.receipt(total);
    }}

    /** Where {PLANTED} is. */
    int {PLANTED}_later(User user) {{
        return load(user);
    }}
}}
"""


@pytest.mark.parametrize("language", languages.every())
@pytest.mark.parametrize("kind", list(Kind))
def test_no_unit_and_no_ranker_finds_the_answer(language: Language, kind: Kind) -> None:
    whole, place = (
        (PYTHON_WHOLE, "    total = ") if language == PYTHON_LANGUAGE else (JAVA_WHOLE, "        int total = ")
    )
    at = whole.index(place)
    suffix = None
    if kind is Kind.LINE:
        prefix = whole[: at + len(place)]
    else:
        prefix = whole[:at] if language == PYTHON_LANGUAGE else whole[: at - 1]
        end = whole.index("(total)") + len("(total)\n" if language == PYTHON_LANGUAGE else "(total);\n    ")
        suffix = whole[end:].replace(PLANTED, "shown")
        whole = whole[:end] + suffix
    target = "shop" + language.suffix
    sample = make_sample(
        language=language,
        kind=kind,
        path=target,
        prefix=prefix,
        suffix=suffix,
        cursor=Cursor(line=prefix.count("\n"), column=len(prefix.rpartition("\n")[2])),
        context_start=prefix.count("\n"),
    )
    other = {"b" + language.suffix: "x = load(user)\n" if language == PYTHON_LANGUAGE else "class B { int b() { } }\n"}
    view = _view(sample, {**other, target: whole}, (), Retrieval())
    names = set()
    for unit, ranker in itertools.product(UNITS, RANKERS):
        for text in (PLANTED, f"total = {PLANTED}(user)", "pay", whole, f"where {PLANTED} is"):
            for hit in view.search(text, unit=unit, ranker=ranker, top=99):
                assert PLANTED not in hit.text + hit.name + hit.matched
                names.add(hit.name.rpartition(".")[2])
    assert "quote" in names and "pay" not in names and ("shown_later" in names) == (kind is Kind.FUNCTION)
