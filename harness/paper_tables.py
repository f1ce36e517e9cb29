"""The papers' result tables as frozen data: the strategy of each row, and the numbers as printed.

The numbers are in ``paper_tables.json``, one row a line, written by ``scripts/paper_tables.py``; none is computed.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any

from ctxbench.bench.errors import UnknownName
from ctxbench.bench.types import Kind

ICL, INFERCOM = "ICL-strategies paper", "InferCom paper"
UNSTATED = "unstated"
"""The language of rows of which the paper does not say it."""
LEVELS = ("class", "file", "project")
"""The levels of the function tables, in CoderEval's short names."""
ORIGINS = {
    "measured_by_paper": "measured",
    "rerun_by_paper_authors": "rerun",
    "quoted_from_CoderEval": "quoted from CoderEval",
    "quoted_from_CoCoGen": "quoted from CoCoGen",
}
"""Whose number a paper prints -> in words: its own method's, another's that it ran again, or another paper's."""
STATUSES = {
    "not_reported": "not reported",
    "out_of_memory": "out of memory",
    "missing_in_available_copy": "not in our copy of the paper",
}
"""Why a number is missing -> in words."""
_FUNCTION, _LINE = ("tokens", *LEVELS, "avg"), ("em", "es", "id_em", "id_f1")
SUMMARISER = "Llama3-8B-Instruct"
"""The summariser of the InferCom paper, beside every model that completes."""
_SUMMARISED = ("lc.infercom", "aim(")


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperRow:
    """One row of a table; its preset is its name."""

    preset: str
    table: str
    row: int
    benchmark: str
    method: str
    """As printed."""
    model: str
    origin: str
    """Whose number it is: a key of `ORIGINS`."""
    strategy: str = ""
    """The spec that computes it here; empty for an external row, which nothing here computes."""
    encoder: str = ""
    """The encoder that the paper names; empty if it names none."""
    printed: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Language -> column -> number; the language is ``both`` for an average of two, ``unstated`` if not said."""
    missing: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Language -> column -> why no number is printed: a key of `STATUSES`."""
    flags: Mapping[str, str] = field(default_factory=dict)
    """``language.column`` -> what is doubtful about that number, in words."""
    remarks: tuple[str, ...] = ()
    """Remarks on the whole row."""
    inferred_n: int | None = None
    """The number of tasks that its numbers fit; the paper prints none."""

    @property
    def summariser(self) -> str:
        """The model that writes the summaries of the row's strategy in the paper; empty if nothing is summarised."""
        return SUMMARISER if self.strategy.startswith(_SUMMARISED) else ""

    @property
    def doubtful(self) -> frozenset[str]:
        """Return ``language.column`` of numbers that cannot be right as printed."""
        return frozenset(self.flags)

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages it has numbers for, or lacks them; their mean is none."""
        return tuple(
            language
            for language in ("python", "java", UNSTATED)
            if language in self.printed or language in self.missing
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperTable:
    """One table of a paper."""

    name: str
    """How `ctxbench reproduce` calls it."""
    paper: str
    title: str
    kind: Kind
    columns: tuple[str, ...]
    """Of each language."""
    rows: tuple[PaperRow, ...] = ()


_TABLES = (
    PaperTable(name="icl-table1", paper=ICL, title="Table 1", kind=Kind.FUNCTION, columns=_FUNCTION),
    PaperTable(name="icl-table2", paper=ICL, title="Table 2", kind=Kind.FUNCTION, columns=_FUNCTION),
    PaperTable(name="icl-table3", paper=ICL, title="Table 3", kind=Kind.FUNCTION, columns=_FUNCTION[1:]),
    PaperTable(name="icl-table4", paper=ICL, title="Table 4", kind=Kind.FUNCTION, columns=_FUNCTION[1:]),
    PaperTable(name="infercom-table3", paper=INFERCOM, title="Table 3", kind=Kind.LINE, columns=_LINE),
    PaperTable(name="infercom-table4", paper=INFERCOM, title="Table 4", kind=Kind.LINE, columns=_LINE),
    PaperTable(name="infercom-table5", paper=INFERCOM, title="Table 5", kind=Kind.LINE, columns=_LINE),
    PaperTable(
        name="infercom-table6", paper=INFERCOM, title="Table 6", kind=Kind.LINE, columns=("construction", "inference")
    ),
    PaperTable(name="infercom-section6.4", paper=INFERCOM, title="Section 6.4", kind=Kind.LINE, columns=("completed",)),
)
BENCHMARKS = {
    "CoderEval": "CoderEval (class 55, file 68, project 23 tasks in Python; 100, 1, 44 in Java)",
    "ProjBench": "ProjBench (2000 tasks a language)",
    "CrossCodeEval": "CrossCodeEval (2665 tasks in Python, 2139 in Java)",
    "50 tasks": "50 tasks of five repositories",
}
"""The papers' benchmarks, with their sizes."""
NAMES = tuple(table.name for table in _TABLES)


def is_shown(language: str, languages: Collection[str]) -> bool:
    """Say whether our samples of a language belong to these; rows of which the paper says none stand beside any."""
    return language in languages or UNSTATED in languages


@functools.cache
def rows() -> tuple[PaperRow, ...]:
    """Return the rows of every table, in the papers' order."""
    text = files("ctxbench.harness").joinpath("paper_tables.json").read_text(encoding="utf-8")
    return tuple(_row(record) for record in json.loads(text))


def _row(record: Mapping[str, Any]) -> PaperRow:
    return PaperRow(**{**record, "remarks": tuple(record.get("remarks", ()))})


def paper_of(row: PaperRow) -> str:
    """Return the paper that prints a row."""
    return next(listed.paper for listed in _TABLES if listed.name == row.table)


def table(name: str) -> PaperTable:
    """Return a table with its rows.

    Raises:
        UnknownName: if there is none of that name.
    """
    for listed in _TABLES:
        if listed.name == name:
            return replace(listed, rows=tuple(row for row in rows() if row.table == name))
    raise UnknownName("table", name, NAMES)
