"""The tables of docs/attacks.md, from the cases: `python -m tests.sandbox.attacks.listing` writes them."""

from __future__ import annotations

import re
from pathlib import Path

from tests.sandbox.attacks.cases import GROUPS
from tests.sandbox.attacks.more_forgeries import FORGERIES

PAGE = Path(__file__).resolve().parents[3] / "docs" / "attacks.md"
_BEGIN, _END = "<!-- cases: begin -->\n", "<!-- cases: end -->\n"


def tables() -> str:
    """Return the lists of what is impossible, as Markdown."""
    parts = [_table(name, [(case.name, case.tries) for case in cases]) for name, cases in GROUPS.items()]
    parts.append(_table("A wrong function against a `Check`", [(one.name, one.tries) for one in FORGERIES]))
    return "\n".join(parts)


def _table(title: str, rows: list[tuple[str, str]]) -> str:
    lines = [f"### {title}", "", "| attack | tries to |", "|---|---|"]
    return "\n".join([*lines, *(f"| `{name}` | {tries} |" for name, tries in rows), ""])


def written(text: str) -> str:
    """Return a page with the tables put between its marks."""
    head, _, rest = text.partition(_BEGIN)
    _, _, tail = rest.partition(_END)
    return f"{head}{_BEGIN}\n{tables()}\n{_END}{tail}"


def named(text: str, section: str) -> set[str]:
    """Return what a section's tables name in their first column."""
    found = re.search(rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    assert found, f"no section {section!r}"
    return set(re.findall(r"^\| `([^`]+)` \|", found[1], re.M))


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
