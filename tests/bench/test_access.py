from __future__ import annotations

import pytest

from ctxbench.bench.access import Access, AccessLedger
from ctxbench.bench.types import Kind, Place
from ctxbench.strategies.tiny import query_for, view_for

VIEW = view_for(query_for(Kind.LINE))


def place(path: str, start: int, end: int) -> Place:
    return Place(path=path, start=start, end=end)


def test_answers_are_those_of_any_view_and_each_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = AccessLedger()
    noted = view_for(query_for(Kind.LINE))
    monkeypatch.setattr(noted, "_ledger", ledger)
    assert (noted.name, noted.language, noted.files()) == (VIEW.name, VIEW.language, VIEW.files())
    assert noted.similarity("a", ["b"], ranker="bm25") == VIEW.similarity("a", ["b"], ranker="bm25")
    # Names and texts of its own are not looked at.
    assert ledger.access == Access()
    read = noted.read("shop/cart.py")
    windows = noted.similar_windows("cart = store.load(user_id)", top=3, size=5, stride=2)
    hits = noted.search("load the cart", ranker="bm25", top=2)
    lines = noted.grep("def apply")
    places = noted.engine("ripgrep").search("load", top=1)
    assert (read, windows) == (
        VIEW.read("shop/cart.py"),
        VIEW.similar_windows("cart = store.load(user_id)", top=3, size=5, stride=2),
    )
    assert (hits, lines) == (VIEW.search("load the cart", ranker="bm25", top=2), VIEW.grep("def apply"))
    access = ledger.access
    texts = [read, *(hit.text for hit in (*windows, *hits, *lines, *places))]
    assert (access.opened, access.searches, access.characters) == (1, 4, sum(map(len, texts)))
    found = {place.path for hit in windows for place in hit.places} | {
        hit.place.path for hit in (*hits, *lines, *places)
    }
    assert set(access.files) == {"shop/cart.py", *found}


def test_places_are_sorted_and_what_touches_is_one() -> None:
    ledger = AccessLedger()
    ledger.search([("", [place("b", 5, 9), place("a", 1, 3)]), ("", [place("b", 9, 12), place("b", 20, 21)])])
    ledger.search([("", [place("b", 0, 2), place("b", 6, 7)])])
    assert ledger.access.places == (place("a", 1, 3), place("b", 0, 2), place("b", 5, 12), place("b", 20, 21))
    ledger.open("b", "x\n" * 30)
    assert ledger.access.places == (place("a", 1, 3), place("b", 0, 30))


def test_a_file_that_was_read_has_its_own_lines_an_empty_one_none() -> None:
    ledger = AccessLedger()
    for path, text in (("ends.py", "x = 1\n"), ("open.py", "x = 1\ny = 2"), ("empty.py", "")):
        ledger.open(path, text)
    assert ledger.access.places == (place("empty.py", 0, 0), place("ends.py", 0, 1), place("open.py", 0, 2))
    # It counts for the shares, as ever.
    assert ledger.access.files == ("empty.py", "ends.py", "open.py")
