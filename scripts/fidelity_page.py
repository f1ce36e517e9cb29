"""Write docs/fidelity.md, strategies beside what the papers ran: ``python -m scripts.fidelity_page``."""

from __future__ import annotations

from pathlib import Path

from ctxbench.harness.papers.fidelity import Fidelity, methods, names_in
from ctxbench.harness.papers.presets import presets

PAGE = Path(__file__).resolve().parents[1] / "docs" / "fidelity.md"
_HEAD = """\
# Beside the papers

Every strategy that a [preset](presets.md) runs, beside what its paper ran: where it is defined, which program was
released, what is equal and what is not. `ctxbench reproduce` states the same differences above its table. What a run
has of its own (samples, model, encoder, summariser, hygiene) stands there too.

What is called equal was compared with the papers' figures and listings and with the released code, and is held by
tests. What a difference comes to is given where it has a switch: paired differences on `ctxbench-1-lite` with
`incontext`, 95% intervals over repositories, Python (12 repositories) and Java (6).
"""


def page() -> str:
    """Return the page."""
    return "\n".join([_HEAD, *(_section(method) for method in methods())])


def _section(method: Fidelity) -> str:
    tables = [row.table for row in presets().values() if any(map(method.covers, names_in(row.strategy)))]
    rows = [
        ("paper", method.paper),
        ("presets of", ", ".join(f"`{name}`" for name in dict.fromkeys(tables))),
        ("program", method.program or "none was released"),
        ("equal", method.equal),
        ("differs", "<br>".join([*([method.budgets] if method.budgets else []), *method.differs])),
        *([("comes to", "<br>".join(method.measured))] if method.measured else []),
    ]
    names = ", ".join(f"`{name}`" for name in (method.title, *method.also))
    return f"## {names}\n\n| | |\n|---|---|\n" + "".join(f"| {name} | {text} |\n" for name, text in rows)


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
