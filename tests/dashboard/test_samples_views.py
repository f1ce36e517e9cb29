"""Differences, hidden characters, rows and filters of the Samples page, from plain values."""

import dataclasses
import html
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.bench.escaping import hidden, visible
from ctxbench.bench.samples import AnsweredTask
from ctxbench.bench.types import Place
from ctxbench.dashboard.views import samples as diff
from ctxbench.dashboard.views import samples as view
from ctxbench.harness.results import Status
from ctxbench.harness.store.details import BlockFacts, CompletionFacts, StoredCall
from ctxbench.harness.store.search import Facets, FoundSample, Measure
from tests.harness.store.making import make_verdict

HARMFUL = "<script>window.__hacked=1</script> **b** [l](http://x.example) ![i](http://x.example/i.png) $x$ :smile:"


class _Tags(HTMLParser):
    """A parser that collects the tags of a text and the text without them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.says = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.says += data


def row_texts(reference: str, completion: str) -> list[str]:
    """Return the texts of both rows, with the symbols for blanks replaced by blanks."""
    rows = re.findall(r"<code[^>]*>(.*?)</code>", diff.by_words(reference, completion), flags=re.S)
    says = [html.unescape(re.sub(r"<[^>]+>", "", row)) for row in rows]
    return [text.replace("·", " ").replace("→", "\t").replace("↵\n", "\n").replace("\xa0", "") for text in says]


@given(st.text(alphabet="ab( )\n\t.é", max_size=60), st.text(alphabet="ab( )\n\t.é", max_size=60))
def test_a_difference_contains_both_texts_completely(reference: str, completion: str) -> None:
    assert row_texts(reference, completion) == [reference, completion]
    assert bool(re.search("<del|<ins", diff.by_words(reference, completion))) == (reference != completion)
    hunks = re.split(r"^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@\n", diff.by_lines(reference, completion), flags=re.M)[1:]
    assert bool(hunks) == (reference != completion)
    for start_before, start_after, hunk in zip(hunks[::3], hunks[1::3], hunks[2::3], strict=True):
        for side, text, start in (("-", reference, start_before), ("+", completion, start_after)):
            shown = [line[1:] for line in hunk.split("\n")[:-1] if line[0] in f" {side}"]
            assert text.split("\n")[int(start) - 1 :][: len(shown)] == shown


def test_only_words_that_differ_are_marked() -> None:
    written = diff.by_words("tax(user.cart, rate)", "tax(cart, rate)")
    marked = "".join(re.findall(r"<del[^>]*>(.*?)</del>", written))
    assert marked == "user." and "<ins" not in written
    assert diff.equal(" x\n", "x") and not diff.equal("x", "y")
    assert diff.by_lines("a\nb", "a\nc") == "@@ -1,2 +1,2 @@\n a\n-b\n+c\n"


@given(st.text(max_size=80), st.text(max_size=80))
def test_differences_contain_only_their_own_markup(reference: str, completion: str) -> None:
    tags = _Tags(diff.by_words(reference + HARMFUL, HARMFUL + completion))
    assert tags.tags <= {"div", "span", "code", "del", "ins"}
    assert not set(tags.says) & {"\u202e", "\u200b", "\x1b"}


def test_differing_blanks_are_made_visible() -> None:
    text = html.unescape(re.sub(r"<[^>]+>", "", diff.by_words("a  b", "a\tb")))
    assert "a··b" in text and "a→b" in text
    assert "nbsp" in diff.by_words("", "x")


def test_long_texts_are_compared_only_up_to_a_limit() -> None:
    for reference, completion in (("a" * 200_000 + " b", "c " * 100_000), ("a" * 200_000, "b" * 200_000)):
        assert list(map(len, row_texts(reference, completion))) == [diff.LIMIT, diff.LIMIT]
    assert len(diff.by_lines("x\n" * 100_000, "y")) < 4 * diff.LIMIT


def test_hidden_characters_are_made_visible() -> None:
    text = "a\u202eb\u200bc\x1b[31m\0\x7f\u00a0\u2028\ufeff\ufe0f\u3164\ud800"
    assert visible(text) == (
        "a⟨U+202E⟩b⟨U+200B⟩c␛[31m␀␡⟨U+00A0⟩⟨U+2028⟩⟨U+FEFF⟩⟨U+FE0F⟩⟨U+3164⟩⟨U+D800⟩"
    )  # fmt: skip
    assert hidden(text) == 11 and hidden("plain\n\ttext é 漢 ") == 0
    assert visible("plain\n\ttext é 漢 😀") == "plain\n\ttext é 漢 😀"


@given(st.text())
def test_escaping_hidden_characters_twice_changes_nothing(text: str) -> None:
    assert visible(visible(text)) == visible(text)
    assert hidden(visible(text)) == 0


def facets(*measures: tuple[str, str]) -> Facets:
    return Facets(repos=(), levels=(), verdicts=(), flags=(), measures=measures)


def test_metrics_belong_to_the_profile_or_to_all_profiles() -> None:
    available = view.metrics(
        facets(
            ("context", "bits"), ("context", "x"), ("crosscodeeval", "es"), ("ctxbench", "es"), ("ctxbench", "pass")
        ),
        "crosscodeeval",
    )
    assert [metric.name for metric in available] == ["bits", "es", "pass@1"]
    bits, es, passes = available
    assert bits.measure == Measure(profile="context", metric="bits", worst=None, lower_is_better=True)
    assert es.measure == Measure(profile="crosscodeeval", metric="es", worst=0.0)
    assert (es.in_unit(27.0), passes.in_unit(0.5), bits.in_unit(None)) == (27.0, 50.0, None)
    assert passes.measure.metric == "pass" and passes.measure.worst == 0.0


@pytest.mark.parametrize(
    ("names", "generator", "expected"),
    [
        (("es", "pass"), "scripted", "pass@1"),
        (("em", "es"), "scripted", "es"),
        (("em", "es"), "incontext", "es"),
        (("em", "id_f1"), "scripted", "em"),
        (("id_f1",), "scripted", "id_f1"),
    ],
)
def test_the_default_metric_is_the_one_that_ranks(names: tuple[str, ...], generator: str, expected: str) -> None:
    metric = view.preferred(view.metrics(facets(*(("ctxbench", name) for name in names)), "ctxbench"), generator)
    assert metric is not None and metric.name == expected


def test_context_metrics_rank_if_the_generator_measures_them() -> None:
    available = view.metrics(facets(("context", "copyable_bits"), ("ctxbench", "es")), "ctxbench")
    gain, es = view.preferred(available, "incontext(x=1)"), view.preferred(available, "hf(model=m)")
    assert gain is not None and es is not None and (gain.name, es.name) == ("copyable_bits", "es")
    assert view.preferred((), "incontext") is None


def test_found_samples_become_rows_with_neighbours() -> None:
    [es] = view.metrics(facets(("ctxbench", "es")), "ctxbench")
    sample = FoundSample(
        ordinal=0, id="a", repo="r", path="p.py", line=3, level="l", status=Status.SCORED, value=0.25, other=1.0
    )
    assert view.sample_rows([sample], es, "a", compared=True) == [
        {
            "": "▸", "sample": "a", "repository": "r", "place": "p.py:4", "level": "l", "status": "scored",
            "A": 25.0, "B": 100.0, "A - B": -75.0,
        }
    ]  # fmt: skip
    missing = FoundSample(
        ordinal=0, id="b", repo="r", path="p", line=0, level="l", status=Status.INFRA_FAILED, value=None, other=1.0
    )
    assert view.sample_rows([missing], es, "a", compared=True)[0]["A - B"] is None
    assert list(view.sample_rows([missing], es, "a", compared=False)[0])[1:4] == ["A", "sample", "status"]
    assert [view.pages(total) for total in (0, 1, 25, 26)] == [1, 1, 1, 2]
    steps = [view.neighbours([sample, missing], opened) for opened in ("a", "b", "c")]
    assert steps == [(None, "b", 1), ("a", None, 2), (None, "a", 0)], "the first, from one that is not found"
    assert view.neighbours([], "a") == (None, None, 0)


def block_facts(**changes: Any) -> BlockFacts:
    fields: dict[str, Any] = {
        "kind": "similar",
        "places": (Place(path="a.py", start=0, end=2), Place(path="b.py", start=4, end=5)),
        "score": 0.123456,
        "tokens": 7,
        "state": "kept",
        "reason": "",
        "start": 0,
        "end": 9,
        "gain": None,
    }
    return BlockFacts(**{**fields, **changes})


def test_blocks_become_rows_and_labels() -> None:
    dropped = block_facts(state="dropped", reason="no room", start=None, end=None, score=None)
    first, second = view.block_rows([block_facts(), dropped])
    assert (first["block"], first["places"], first["score"]) == (1, "a.py:1-2, b.py:5-5", 0.123)
    assert (second["block"], second["tokens"], second["reason"], second["score"]) == (None, None, "no room", None)
    assert "gain" not in first
    assert view.block_rows([block_facts(gain=1.25)])[0]["gain"] == 1.2
    assert view.block_label(2, block_facts(gain=-3.0)) == (
        "2. similar · a.py:1-2, b.py:5-5 · score 0.123 · 7 tokens · kept · gain -3.0 bits"
    )


def call(**changes: Any) -> StoredCall:
    fields: dict[str, Any] = {
        "ordinal": 0, "role": "draft", "tokens_in": 10, "tokens_out": 2, "cached": 4, "price": 0.5, "seconds": 0.25,
        "finish": "stop",
    }  # fmt: skip
    return StoredCall(**{**fields, **changes})


def test_calls_are_summed_in_a_last_row() -> None:
    rows = view.call_rows([call(), call(ordinal=1, role="final", price=0.25)])
    assert [row["call"] for row in rows] == ["1", "2", "all"]
    assert (rows[2]["tokens in"], rows[2]["cached"], rows[2]["price"], rows[2]["seconds"]) == (20, 8, 0.75, 0.5)
    assert [getattr(rows[2][name], "text", "") for name in ("price", "seconds")] == ["$0.75", "0.5"]
    assert view.call_rows([call(), call(price=None)])[2]["price"] is None, "a sum of what nobody knows is not known"
    assert len(view.call_rows([call()])) == 1 and view.call_rows([]) == []
    assert [view.seconds(time) for time in (None, 0.0, 0.0002, 0.25, 123.4)] == [
        "-",
        "0",
        "<0.001",
        "0.25",
        "123",
    ]


def test_scores_of_runs_are_shown_side_by_side() -> None:
    def facts_of(**scores: float) -> CompletionFacts:
        kinds = {("ctxbench", name): value for name, value in scores.items()} | {("context", "bits"): 3.5}
        return CompletionFacts(idx=0, status=Status.SCORED, flags=(), scores=kinds, text="", raw="", judged=None)

    rows = view.score_rows([("A", facts_of(es=0.5, em=0.0)), ("B", facts_of(es=1.0)), ("C", None)], "ctxbench")
    assert rows == [
        {"metric": "em (%)", "A": 0.0, "B": None, "C": None},
        {"metric": "es (%)", "A": 50.0, "B": 100.0, "C": None},
        {"metric": "bits (bits)", "A": 3.5, "B": 3.5, "C": None},
    ]
    assert [getattr(row["A"], "text", "") for row in rows] == ["0.0", "50.0", "3.5"]


def test_a_verdict_states_its_costs() -> None:
    judged = make_verdict(verdict="FAILED", reason="1 of 3", peak_bytes=1 << 26)
    assert view.verdict(judged) == "FAILED (1 of 3) · 3 tests run · 0.25 s · 64 MiB at most · in docker"


def test_a_second_verdict_states_the_first_one() -> None:
    judged = make_verdict(verdict="PASSED", reason="")
    assert view.doubted(judged) == ""
    later = dataclasses.replace(judged, earlier="FAILED: late")
    assert view.doubted(later) == "first FAILED: late; then again while no other job ran"


def test_the_shown_prefix_ends_at_the_cursor() -> None:
    task = AnsweredTask(
        prefix="\n".join(map(str, range(40))), signature="", docstring="", target="", tests=(), original_import="",
        has_answer=True,
    )  # fmt: skip
    assert view.before_cursor(task).split("\n") == [*map(str, range(25, 39)), "39▏"]
    long = view.before_cursor(dataclasses.replace(task, prefix="a" * 100_000 + "b"))
    assert long.startswith("…a") and long.endswith("ab▏") and len(long) < 5_000
