"""The README lists exactly the attacks that the tests try."""

from tests.sandbox.attacks.case import CASES
from tests.sandbox.attacks.listing import PAGE, named, written
from tests.sandbox.forgeries.forgery import FORGERIES, SLOW


def test_the_readme_lists_exactly_the_tested_attacks():
    text = PAGE.read_text()
    assert text == written(text), "run `python -m tests.sandbox.attacks.listing`"
    cases = {case.name for cases in CASES.values() for case in cases}
    assert named(text, "Impossible") == cases


def test_the_readme_has_a_remark_on_every_forgery():
    every = {forgery.name for forgery in (*FORGERIES, *SLOW)}
    assert named(PAGE.read_text(), "Remarked on") == every


def test_every_open_attack_has_a_reason():
    rows = [line for line in PAGE.read_text().partition("## Open\n")[2].splitlines() if line.startswith("| `")]
    assert len(rows) >= 8
    assert all(len(row.split("|")[2].split()) >= 6 for row in rows)
