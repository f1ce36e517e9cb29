"""Tables of the README in this folder, from the cases: `python -m tests.sandbox.attacks.listing` writes them."""

import re
from pathlib import Path

from ctxbench.bench.judging.python.plain import RepositoryWords, remarks
from tests.sandbox.attacks.case import CASES
from tests.sandbox.forgeries import shop
from tests.sandbox.forgeries.forgery import FORGERIES, SLOW, Forgery

PAGE = Path(__file__).with_name("README.md")


def tables() -> str:
    """Return the lists of contained attacks, as Markdown."""
    parts = [_table(name, [(case.name, case.tries) for case in cases]) for name, cases in CASES.items()]
    return "\n".join(parts).rstrip("\n")


def _table(title: str, rows: list[tuple[str, str]]) -> str:
    lines = [f"### {title}", "", "| attack | tries to |", "|---|---|"]
    return "\n".join([*lines, *(f"| `{name}` | {tries} |" for name, tries in rows), ""])


def remarked() -> str:
    """Return the list of forged verdicts with the first remark on each, as Markdown."""
    rows = [f"| `{forgery.name}` | {_remark(forgery)} |" for forgery in (*FORGERIES, *SLOW)]
    return "\n".join(["| forgery | remark |", "|---|---|", *rows])


def _remark(forgery: Forgery) -> str:
    repository, source = RepositoryWords.of(shop.TREE), shop.TREE[shop.PATH]
    found = remarks(repository, source, forgery.target, forgery.text, shop.TARGETS[forgery.target])
    return found[0].reason.replace("|", "\\|") if found else "none: it fails, or runs out of time"


def written(text: str) -> str:
    """Return a page with the tables inserted between its marks."""
    for name, tables_ in (("cases", tables()), ("remarked", remarked())):
        head, _, rest = text.partition(f"<!-- {name}: begin -->\n")
        _, _, tail = rest.partition(f"<!-- {name}: end -->\n")
        text = f"{head}<!-- {name}: begin -->\n\n{tables_}\n\n<!-- {name}: end -->\n{tail}"
    return text


def named(text: str, section: str) -> set[str]:
    """Return the names in the first column of a section's tables."""
    found = re.search(rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    assert found, f"no section {section!r}"
    return set(re.findall(r"^\| `([^`]+)` \|", found[1], re.M))


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
