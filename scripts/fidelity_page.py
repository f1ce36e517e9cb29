"""Write docs/fidelity.md, strategies beside what the papers ran: ``python -m scripts.fidelity_page``."""

from __future__ import annotations

from pathlib import Path

from ctxbench.harness.papers.presets import Fidelity, PaperDifference, methods, names_in, presets

PAGE = Path(__file__).resolve().parents[1] / "docs" / "fidelity.md"
_HEAD = """\
# Beside the papers

Every strategy that a [preset](presets.md) runs, beside what its paper ran: where it is defined, which program was
released, what is equal and what is not. `ctxbench reproduce` states the same differences above its table. What a run
has of its own (samples, model, encoder, summariser, hygiene) stands there too.

What is called equal was compared with the papers' figures and listings and with the released code, and is held by
tests. A difference with a switch (a parameter of the strategy, or an option of the command) can be taken away, and what
that comes to is given: paired differences on `ctxbench-1-lite` with `incontext`, 95% intervals over repositories,
Python (12 repositories) and Java (6). One without a switch stays, and was not measured unless a count is given.
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
        *([("comes to", "<br>".join(method.measured))] if method.measured else []),
    ]
    differs = "".join(
        f"| {difference.what} | {_code(difference.switch)} | {_comes_to(difference)} |\n"
        for difference in method.differs
    )
    names = ", ".join(f"`{name}`" for name in (method.title, *method.also))
    facts = "".join(f"| {name} | {text} |\n" for name, text in rows)
    return f"## {names}\n\n| | |\n|---|---|\n{facts}\n| differs | switch | comes to |\n|---|---|---|\n{differs}"


def _code(switch: str) -> str:
    return f"`{switch}`" if switch else "none"


def _comes_to(difference: PaperDifference) -> str:
    return "<br>".join(difference.comes_to) or "not measured"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
