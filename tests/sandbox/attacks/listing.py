"""The tables of docs/attacks.md, from the cases: `python -m tests.sandbox.attacks.listing` writes them."""

from __future__ import annotations

import re
from pathlib import Path

from tests.sandbox.attacks.cases import GROUPS
from tests.sandbox.attacks.more_forgeries import FORGERIES
from tests.sandbox.forgeries import flagged, table
from tests.sandbox.forgeries.forgery import BROKE, EARLY, FAILED, OPEN, TAMPERED

PAGE = Path(__file__).resolve().parents[3] / "docs" / "attacks.md"


def tables() -> str:
    """Return the lists of what is impossible, as Markdown."""
    parts = [_table(name, [(case.name, case.tries) for case in cases]) for name, cases in GROUPS.items()]
    parts.append(_table("A wrong function against a `Check`", [(one.name, one.tries) for one in FORGERIES]))
    return "\n".join(parts).rstrip("\n")


def _table(title: str, rows: list[tuple[str, str]]) -> str:
    lines = [f"### {title}", "", "| attack | tries to |", "|---|---|"]
    return "\n".join([*lines, *(f"| `{name}` | {tries} |" for name, tries in rows), ""])


def detected() -> str:
    """Return the list of forged verdicts that are found out, as Markdown."""
    found = {
        TAMPERED: "tests passed without the function's value, or what runs and reports them was changed",
        EARLY: "the reporting process did not hear the end",
        FAILED: "a test that is expected did not pass",
        BROKE: "tests could not be imported",
    }
    rows = [
        f"| `{forgery.name}` | {'; '.join(found.get(each, each) for each in forgery.says)} |"
        for forgery in (*table.FORGERIES, *table.SLOW)
        if forgery.says != (OPEN,)
    ]
    return "\n".join(["| forgery | what is found |", "|---|---|", *rows])


def marked() -> str:
    """Return the list of forgeries that pass with a flag, as Markdown."""
    classes = (
        ("a value that decides itself what it is equal to", flagged.COMPARES_ITSELF),
        ("code that looks up or changes what tests expect", flagged.REACHES),
    )
    rows = [f"| `{name}` | {kind} |" for kind, names in classes for name in names]
    return "\n".join(["| forgery | class |", "|---|---|", *rows])


def written(text: str) -> str:
    """Return a page with the tables put between its marks."""
    for name, tables_ in (("cases", tables()), ("detected", detected()), ("flagged", marked())):
        head, _, rest = text.partition(f"<!-- {name}: begin -->\n")
        _, _, tail = rest.partition(f"<!-- {name}: end -->\n")
        text = f"{head}<!-- {name}: begin -->\n\n{tables_}\n\n<!-- {name}: end -->\n{tail}"
    return text


def named(text: str, section: str) -> set[str]:
    """Return what a section's tables name in their first column."""
    found = re.search(rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    assert found, f"no section {section!r}"
    return set(re.findall(r"^\| `([^`]+)` \|", found[1], re.M))


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
