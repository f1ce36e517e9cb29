"""Cursors, leak filters and seeded draws."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ctxbench.bench.formats.hygiene import VerbatimIndex
from ctxbench.bench.languages.outline import Span
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.languages.syntax import Source
from ctxbench.bench.lines.candidates import Cut, LineCandidate, cut, fault, ordered, read_protocol
from ctxbench.bench.types import NEXT_LINE, SINGLE_LINE


def candidate(text: str = "value = price(cart, 1)", *, path: str = "a.py", line: int = 3) -> LineCandidate:
    tokens = ((0, 5), (6, 7), (8, 13), (13, 14), (14, 18), (18, 19), (20, 21), (21, 22))
    return LineCandidate(
        path=path, line=line, text=text, tokens=tokens, column=8, uses=(), masked=(), hidden=frozenset(), shared=False
    )


def test_both_kinds_of_cuts_are_equally_frequent() -> None:
    made = [cut(candidate(line=line), repo="demo", seed=0) for line in range(1000)]
    single = [each for each in made if each.subkind == SINGLE_LINE]
    assert 450 < len(single) < 550
    assert {each.column for each in single} == {0, 6, 8}, "before each token up to the internal name"
    assert all(each.target == each.candidate.text[each.column :] for each in made)
    assert all(each.column == 0 for each in made if each.subkind == NEXT_LINE)


VALUES = {
    "await": ("agent = await Manus.create()", "Manus", "Manus.create()"),
    "return": ("    return Failure(error=1)", "Failure", "Failure(error=1)"),
    "an argument's sign": (
        "await self.client.create(config=Settings())",
        "Settings",
        "self.client.create(config=Settings())",
    ),
    "a bracket": ("images = [load(image) for image in images]", "load", "[load(image) for image in images]"),
    "an argument's line": ("    config=Settings(1),", "Settings", "Settings(1),"),
    "no value": ("  load(image[0], mode=1)", "load", "load(image[0], mode=1)"),
    "a name before the sign": ("self.model: Model = Model(1)", "Model", "Model = Model(1)"),
    "after a bracket that closes": ("    ), value = price(1)", "price", "price(1)"),
}


VALUE = read_protocol("projbench(cursor=value)")


def leaves(text: str) -> tuple[Span, ...]:
    return Source(text, PYTHON).tokens([0])[1][0]


@pytest.mark.parametrize(("text", "name", "target"), VALUES.values(), ids=VALUES)
def test_a_value_cursor_is_placed_before_the_value(text: str, name: str, target: str) -> None:
    line = replace(candidate(text), tokens=leaves(text), column=text.index(name))
    made = [cut(line, repo="demo", seed=seed, protocol=VALUE) for seed in range(20)]
    assert {(each.subkind, each.target) for each in made} == {(SINGLE_LINE, target), (NEXT_LINE, text)}


def test_cursors_of_the_released_records_are_before_values(shared: Path) -> None:
    released = (shared / "projbench" / "released_first24.jsonl").read_text(encoding="utf-8").splitlines()
    records = [record for record in map(json.loads, released) if record["metadata"]["col_no"] > 0]
    for record in records:
        text = record["prompt"].rpartition("\n")[2] + record["metadata"]["ground_truth"].rstrip()
        tokens = leaves(text)
        line = replace(candidate(text), tokens=tokens, column=tokens[-1][0])
        drawn = {cut(line, repo="demo", seed=seed, protocol=VALUE).column for seed in range(20)}
        assert drawn == {0, record["metadata"]["col_no"]}, text
    assert len(records) == 12


def test_a_cut_depends_only_on_seed_repository_and_position() -> None:
    lines = [candidate(line=line) for line in range(50)]
    made = [cut(each, repo="demo", seed=1) for each in lines]
    assert made == [cut(each, repo="demo", seed=1) for each in lines]
    assert made != [cut(each, repo="demo", seed=2) for each in lines]
    assert made != [cut(each, repo="other", seed=1) for each in lines]


def test_draws_by_text_keep_their_order_when_lines_are_added() -> None:
    protocol = read_protocol("ctxbench(draw=text)")

    def drawn(new: int) -> list[tuple[str, str, int]]:
        texts = [(path, f"value = price(cart, {n})", n + new) for path in "abc" for n in range(-new, 20)]
        lines = [candidate(text, path=path, line=line) for path, text, line in texts]
        cuts = [cut(line, repo="demo", seed=0, protocol=protocol) for line in lines]
        order = ordered(cuts, repo="demo", seed=0, protocol=protocol)
        return [(line_cut.candidate.path, line_cut.candidate.text, line_cut.column) for line_cut in order]

    before, after = drawn(0), drawn(1)
    # Files take turns, so only lines of the same file keep their relative order.
    for path in "abc":
        assert [line for line in after if line[0] == path and line in before] == [
            line for line in before if line[0] == path
        ]
    assert len(set(before[:30]) & set(after[:30])) > 25


PRICE = "value = price(cart, 1)"
FAULTS = {
    "fine": (PRICE, SINGLE_LINE, 8, "other = 2", ""),
    "elsewhere in the repository": ("x = f(a)", NEXT_LINE, 0, "    x = f(a)  ", "verbatim"),
    "rest of another line": (PRICE, SINGLE_LINE, 8, "return price(cart, 1)", ""),
    "rest, but a whole line is asked for": (PRICE, NEXT_LINE, 0, "return price(cart, 1)", ""),
    "whole line that ends another": (PRICE, NEXT_LINE, 0, f"int {PRICE}", ""),
    "brackets only": (PRICE, SINGLE_LINE, 21, "", "near_empty"),
    "one token": ("value = price", SINGLE_LINE, 8, "", "near_empty"),
}


@pytest.mark.parametrize(("text", "subkind", "column", "other", "expected"), FAULTS.values(), ids=FAULTS)
def test_leaks_and_empty_targets_are_detected(text: str, subkind: str, column: int, other: str, expected: str) -> None:
    tokens = tuple(span for span in candidate().tokens if span[1] <= len(text))
    line = replace(candidate(text), path="a", line=0, tokens=tokens)
    made = Cut(candidate=line, subkind=subkind, column=column, target=text[column:])
    assert fault(made, VerbatimIndex({"a": f"{text}\n{other}"})) == expected


@pytest.mark.parametrize(
    ("own", "other", "expected"),
    [
        ("value = price(cart, 1)", "x = a.price(cart, 1)  # so", "verbatim"),
        ("value = price(cart, 1)", "under_price(cart, 1)", "verbatim"),
        ("value = price(cart, 1)", "price(\ncart, 1)", ""),
        ("value = price(cart, 1)\nprice(cart, 1)", "price(cart, 11)", ""),
        ("value = price(cart, 1)", "price (cart, 1)", ""),
    ],
)
def test_projbench_searches_other_files_for_the_target(own: str, other: str, expected: str) -> None:
    line = candidate()
    made = Cut(candidate=line, subkind=SINGLE_LINE, column=8, target=line.text[8:])
    assert fault(made, VerbatimIndex({"a.py": own, "b.py": other}), read_protocol("projbench")) == expected


def test_repeated_line_ends_are_indexed_unless_they_are_short() -> None:
    index = VerbatimIndex({"a": "a = Cart()\nb = Cart()\nvalue = price(cart, 1)\nreturn price(cart, 1)\n"})
    assert index.rest_repeated("price(cart, 1)")
    assert not index.rest_repeated("value = price(cart, 1)")
    assert not index.rest_repeated("Cart()")
    assert not index.repeated("a = Cart()")
