"""The README says what the tests say: no attack is listed that is not tried, none is tried that is not listed."""

from tests.sandbox.attacks.case import CASES
from tests.sandbox.attacks.listing import PAGE, named, written
from tests.sandbox.forgeries.forgery import FORGERIES, SLOW


def test_what_is_impossible_is_what_is_tried():
    text = PAGE.read_text()
    assert text == written(text), "run `python -m tests.sandbox.attacks.listing`"
    cases = {case.name for cases in CASES.values() for case in cases}
    assert named(text, "Impossible") == cases


def test_every_forgery_in_a_test_run_is_remarked_on():
    every = {forgery.name for forgery in (*FORGERIES, *SLOW)}
    assert named(PAGE.read_text(), "Remarked on") == every


def test_what_is_open_has_its_reason():
    rows = [line for line in PAGE.read_text().partition("## Open\n")[2].splitlines() if line.startswith("| `")]
    assert len(rows) >= 8
    assert all(len(row.split("|")[2].split()) >= 6 for row in rows)
