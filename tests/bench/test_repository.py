from typing import Any

import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.masking import unmasked
from ctxbench.bench.repositories.snapshot import Snapshot
from ctxbench.bench.repository import Access, AccessLedger, Repository, view
from ctxbench.bench.types import Cursor, Kind, Place
from ctxbench.strategies.tiny import query_for, view_for
from tests.helpers.samples import make_sample

TARGET = "shop/checkout.py"
WHOLE = "from shop.store import load\nimport os\n\ndef pay(user):\n    total = load(user).total\n    return total\n"
BESIDE = "from shop.store import load\n\n\ndef quote(user):\n    return load(user).total\n"
CURSOR = Cursor(line=4, column=12)
PREFIX = "\nimport os\n\ndef pay(user):\n    total = "
MASKED = ((0, 1),)


def snapshot(**changes: Any) -> Snapshot:
    texts = {"shop/beside.py": BESIDE, TARGET: WHOLE, "shop/store.py": "def load(user):\n    return user.cart\n"}
    fields: dict[str, Any] = {"name": "demo", "language": PYTHON, "digest": "x", "texts": texts, "dropped": {}}
    return Snapshot(**{**fields, **changes})


def checkout_view(masked: tuple[tuple[int, int], ...] = MASKED, whole: str = WHOLE, **changes: Any) -> Repository:
    fields = {"prefix": PREFIX, "cursor": CURSOR, **changes}
    texts = {**snapshot().texts, TARGET: whole}
    return view(snapshot(texts=texts, digest=whole), make_sample(**fields).query(), masked)


def test_the_target_file_ends_at_the_cursor_with_masked_lines_blank() -> None:
    repo = checkout_view()
    assert repo.read(TARGET) == PREFIX
    assert repo.read("shop/beside.py") == BESIDE
    assert repo.files() == ("shop/beside.py", TARGET, "shop/store.py")
    assert (repo.name, repo.language) == ("demo", PYTHON)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "shop",
        "./" + TARGET,
        "/" + TARGET,
        "shop/../" + TARGET,
        "../demo/" + TARGET,
        "shop//checkout.py",
        "SHOP/checkout.py",
        TARGET + " ",
        TARGET + "\0",
        "shop\\checkout.py",
        "/etc/passwd",
        b"shop/checkout.py",
        None,
        ["shop/store.py"],
    ],
)
def test_an_unknown_path_is_refused(path: Any) -> None:
    with pytest.raises(InputFault, match=r"take a path from repo\.files\(\)"):
        checkout_view().read(path)


@pytest.mark.parametrize(
    "whole",
    [
        "# a newer version has a line more\n" + WHOLE,
        WHOLE.replace("import os\n", ""),
        "short\n",
        "",
        WHOLE.replace("pay", "settle"),
    ],
)
def test_a_changed_target_file_shows_only_the_stored_prefix(whole: str) -> None:
    """In a changed file the cursor's position is unknown, so a cut there could include the answer."""
    repo = checkout_view(whole=whole, context_start=4)
    assert repo.read(TARGET) == PREFIX
    assert all(place.path != TARGET for hit in repo.similar_windows(WHOLE, size=2, stride=1) for place in hit.places)


def test_a_target_outside_the_snapshot_shows_the_stored_prefix() -> None:
    repo = checkout_view(path="shop/generated.py")
    assert repo.read("shop/generated.py") == PREFIX
    assert "shop/generated.py" in repo.files()


def test_an_imported_sample_with_a_partial_prefix_sees_the_whole_prefix() -> None:
    assert checkout_view(prefix="def pay(user):\n    total = ", context_start=3).read(TARGET) == PREFIX


def test_windows_of_the_target_file_end_before_the_shown_context() -> None:
    everything = checkout_view(context_start=4).similar_windows(WHOLE, top=99, size=1, stride=1)
    here = {place for hit in everything for place in hit.places if place.path == TARGET}
    assert {place.start for place in here} == {1, 2, 3}  # line 0 is masked; lines 4 and 5 are not before the cursor
    assert not any("total = load" in hit.text or "return total" in hit.text for hit in everything)
    assert [hit for hit in checkout_view().similar_windows(WHOLE, top=99) if hit.places[0].path == TARGET] == []


@pytest.mark.parametrize(
    ("changes", "before", "starts"),
    [
        ({}, 0, {2}),  # other files also contain a blank line
        ({}, 2, {1, 2}),
        ({}, 99, {1, 2, 3}),  # the masked line and all lines from the cursor on are excluded
        ({"context_start": 2}, 4, {1, 2}),  # the stored start of the context applies
        ({"whole": "another version\n"}, 4, set()),
    ],
)
def test_lines_above_the_shown_context_can_be_found(changes: dict[str, Any], before: int, starts: set[int]) -> None:
    hits = checkout_view(**changes).similar_windows(WHOLE, top=99, size=1, stride=1, before=before)
    assert {place.start for hit in hits for place in hit.places if place.path == TARGET} == starts
    assert not any("total = load" in hit.text or "return total" in hit.text for hit in hits)


def test_a_masked_line_is_found_only_in_other_files() -> None:
    hits = checkout_view(context_start=4).similar_windows("from shop.store import load", top=1, size=1, stride=1)
    assert hits[0].text == "from shop.store import load"
    assert [place.path for place in hits[0].places] == ["shop/beside.py"]


@pytest.mark.parametrize(
    "numbers",
    [
        {"top": 0},
        {"top": 10_001},
        {"top": True},
        {"size": 0},
        {"stride": 0},
        {"size": 1.5},
        {"stride": "10"},
        {"before": -1},
    ],
)
def test_numbers_out_of_range_are_refused(numbers: dict[str, Any]) -> None:
    with pytest.raises(InputFault, match="give a whole number from [01] to"):
        checkout_view().similar_windows("x", **numbers)


def test_a_sample_of_another_repository_is_refused() -> None:
    with pytest.raises(InputFault, match="build the sample set again"):
        view(snapshot(), make_sample(repo="other").query())
    with pytest.raises(InputFault, match="build the sample set again"):
        view(snapshot(language=JAVA), make_sample().query())


FUNCTION = {
    "kind": Kind.FUNCTION,
    "prefix": "from shop.store import load\nimport os\n\ndef pay(user):\n",
    "suffix": "def refund(user):\n    return -pay(user)\n",
    "cursor": Cursor(line=4, column=0),
}


def test_a_function_view_shows_the_file_without_the_body() -> None:
    repo = checkout_view(masked=(), whole=WHOLE + FUNCTION["suffix"], **FUNCTION)
    assert repo.read(TARGET) == FUNCTION["prefix"] + FUNCTION["suffix"]
    found = repo.similar_windows("total load user", top=99, size=2, stride=1)
    assert all("total = load(user)" not in hit.text for hit in found)


def test_a_cursor_after_the_indentation_leaves_no_trailing_spaces() -> None:
    there = {"prefix": FUNCTION["prefix"] + "    ", "cursor": Cursor(line=4, column=4)}
    repo = checkout_view(masked=(), whole=WHOLE + FUNCTION["suffix"], **{**FUNCTION, **there})
    assert repo.read(TARGET) == FUNCTION["prefix"] + FUNCTION["suffix"]


def test_a_function_view_of_a_changed_file_shows_the_stored_texts() -> None:
    repo = checkout_view(masked=(), whole=WHOLE + "# another end\n", **FUNCTION)
    assert repo.read(TARGET) == FUNCTION["prefix"] + FUNCTION["suffix"]


def test_a_line_view_shows_nothing_after_the_cursor() -> None:
    assert checkout_view(suffix="def refund(user):\n").read(TARGET) == PREFIX


def test_hidden_files_are_absent_from_files_and_windows() -> None:
    texts = {**snapshot().texts, "tests/test_pay.py": "assert pay(user) == 3\n", "tests_of_mine.py": "pay(user)\n"}
    query = make_sample(prefix=PREFIX, cursor=CURSOR).query()
    repo = view(snapshot(texts=texts), query, MASKED, ("tests/", "shop/store.py"))
    assert repo.files() == ("shop/beside.py", TARGET, "tests_of_mine.py")
    hits = repo.similar_windows("assert pay(user) == 3 def load", top=99)
    assert {place.path for hit in hits for place in hit.places} <= {"shop/beside.py", "tests_of_mine.py"}
    with pytest.raises(InputFault, match="no source file"):
        repo.read("tests/test_pay.py")
    # A sample of the same repository that hides nothing still has its own index.
    open_view = view(snapshot(texts=texts), query, MASKED)
    assert any(hit.places[0].path == "tests/test_pay.py" for hit in open_view.similar_windows("assert pay", top=9))


def test_the_target_file_is_never_hidden() -> None:
    query = make_sample(prefix=PREFIX, cursor=CURSOR).query()
    assert view(snapshot(), query, MASKED, ("shop/",)).files() == (TARGET,)


def test_a_target_among_hidden_files_is_hidden_from_other_samples() -> None:
    """These views hide the same folder but contain different files, so they must not share an index."""
    texts = {"a.py": "x = 1\n", "tests/one.py": "zq_one = 1\n", "tests/two.py": "zq_two = 1\n"}
    for path, other in (("tests/one.py", "zq_two"), ("tests/two.py", "zq_one")):
        query = make_sample(path=path, prefix="", cursor=Cursor(line=0, column=0)).query()
        repo = view(snapshot(texts=texts, digest="spared"), query, (), ("tests/",))
        found = [hit.text for hit in repo.similar_windows(other, top=99)]
        found += [hit.text for hit in repo.search(other, unit="chunk", ranker="bm25", top=99)]
        assert found == ["x = 1", "x = 1"]


def test_an_unmasked_sample_shows_its_masked_lines() -> None:
    sample = make_sample(prefix=PREFIX, cursor=CURSOR, path=TARGET, masked=MASKED)
    shown = unmasked(sample, snapshot())
    assert shown.prefix == "from shop.store import load" + PREFIX and shown.masked == ()
    assert view(snapshot(), shown.query()).read(TARGET) == shown.prefix
    stored_late = make_sample(prefix="def pay(user):\n    total = ", cursor=CURSOR, path=TARGET, masked=MASKED)
    assert unmasked(stored_late, snapshot()).prefix == stored_late.prefix


def test_samples_without_masked_or_known_lines_stay_unchanged() -> None:
    plain = make_sample(prefix="from shop.store import load" + PREFIX, cursor=CURSOR, path=TARGET)
    assert unmasked(plain, snapshot()) is plain
    masked = make_sample(prefix=PREFIX, cursor=CURSOR, path=TARGET, masked=MASKED)
    for texts in ({}, {TARGET: "# a newer version has a line more\n" + WHOLE}):
        assert unmasked(masked, snapshot(texts=texts)) is masked


VIEW = view_for(query_for(Kind.LINE))


def place(path: str, start: int, end: int) -> Place:
    return Place(path=path, start=start, end=end)


def test_a_view_with_a_ledger_returns_equal_results_and_records_them(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = AccessLedger()
    noted = view_for(query_for(Kind.LINE))
    monkeypatch.setattr(noted, "_ledger", ledger)
    assert (noted.name, noted.language, noted.files()) == (VIEW.name, VIEW.language, VIEW.files())
    assert noted.similarity("a", ["b"], ranker="bm25") == VIEW.similarity("a", ["b"], ranker="bm25")
    # The ledger does not record names, file lists or texts that the strategy passes.
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


def test_places_are_sorted_and_adjacent_places_are_merged() -> None:
    ledger = AccessLedger()
    ledger.search([("", [place("b", 5, 9), place("a", 1, 3)]), ("", [place("b", 9, 12), place("b", 20, 21)])])
    ledger.search([("", [place("b", 0, 2), place("b", 6, 7)])])
    assert ledger.access.places == (place("a", 1, 3), place("b", 0, 2), place("b", 5, 12), place("b", 20, 21))
    ledger.open("b", "x\n" * 30)
    assert ledger.access.places == (place("a", 1, 3), place("b", 0, 30))


def test_a_read_file_counts_with_all_its_lines() -> None:
    ledger = AccessLedger()
    for path, text in (("ends.py", "x = 1\n"), ("open.py", "x = 1\ny = 2"), ("empty.py", "")):
        ledger.open(path, text)
    assert ledger.access.places == (place("empty.py", 0, 0), place("ends.py", 0, 1), place("open.py", 0, 2))
    # The empty file still counts as a file.
    assert ledger.access.files == ("empty.py", "ends.py", "open.py")
