"""The printed result tables of the papers `ICL` and `INFERCOM`, from a file that `scripts/paper_tables.py` writes."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any

from ctxbench.bench.errors import UnknownName
from ctxbench.bench.types import Kind

ICL, INFERCOM = "ICL-strategies paper", "InferCom paper"
LEVELS = ("class", "file", "project")
ORIGINS = {
    "measured_by_paper": "measured",
    "rerun_by_paper_authors": "rerun",
    "quoted_from_CoderEval": "quoted from CoderEval",
    "quoted_from_CoCoGen": "quoted from CoCoGen",
}
STATUSES = {
    "not_reported": "not reported",
    "out_of_memory": "out of memory",
    "missing_in_available_copy": "not in our copy of the paper",
}
_FUNCTION, _LINE = ("tokens", *LEVELS, "avg"), ("em", "es", "id_em", "id_f1")
SUMMARISER = "Llama3-8B-Instruct"
"""Model that writes all summaries in the InferCom paper."""
_SUMMARISED = ("lc.infercom", "aim(")


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperRow:
    """A row of a paper's table, with its printed numbers."""

    preset: str
    table: str
    row: int
    benchmark: str
    method: str
    model: str
    origin: str
    strategy: str = ""
    """Strategy spec that reproduces the row; empty if ctxbench does not include the method."""
    encoder: str = ""
    """Encoder that the paper names; empty if it names none."""
    printed: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Printed numbers, by language and column. The language ``both`` is the mean of both languages."""
    missing: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Reasons for missing numbers (keys of `STATUSES`), by language and column."""
    flags: Mapping[str, str] = field(default_factory=dict)
    """Reasons why printed numbers are doubtful, by ``language.column``."""
    remarks: tuple[str, ...] = ()
    inferred_n: int | None = None
    """Number of tasks, derived from the numbers because the paper does not print it."""

    @property
    def summariser(self) -> str:
        """Model that wrote the strategy's summaries in the paper; empty without summaries."""
        return SUMMARISER if self.strategy.startswith(_SUMMARISED) else ""

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages with printed or missing numbers; excludes ``both``."""
        return tuple(name for name in ("python", "java") if name in self.printed or name in self.missing)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadlineGain:
    """A mean improvement that a paper states in its text, over all benchmarks, models and languages of a table."""

    name: str
    over: Mapping[str, tuple[str, ...]]
    """Baselines of each method, by method. In each column, the method is compared with its best baseline."""
    stated: Mapping[str, float]
    """Improvement in points, by column, as printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperTable:
    """A paper's result table."""

    name: str
    paper: str
    title: str
    kind: Kind
    columns: tuple[str, ...]
    headlines: tuple[HeadlineGain, ...] = ()
    rows: tuple[PaperRow, ...] = ()


_HOSTS = ("InFile", "RepoFuse", "RepoCoder")
_BEST = HeadlineGain(name="Ours over the best baseline", over={"Ours": _HOSTS}, stated={"em": 5.91, "id_em": 6.26})
_FSR = HeadlineGain(name="+FSR over Base", over={"+FSR": ("Base",)}, stated={"em": 2.41, "id_em": 2.39})
_UER = HeadlineGain(name="+UER over Base", over={"+UER": ("Base",)}, stated={"em": 5.65, "id_em": 5.88})
_WITH_AIM = {f"{host}+AIM": (host,) for host in _HOSTS}
_AIM = HeadlineGain(name="AIM over its host", over=_WITH_AIM, stated={"em": 7.77, "id_em": 8.5})


def _table(paper: str, title: str, columns: tuple[str, ...], *headlines: HeadlineGain) -> PaperTable:
    prefix, kind = ("icl", Kind.FUNCTION) if paper == ICL else ("infercom", Kind.LINE)
    name = f"{prefix}-{title.lower().replace(' ', '')}"
    return PaperTable(name=name, paper=paper, title=title, kind=kind, columns=columns, headlines=headlines)


_TABLES = (
    _table(ICL, "Table 1", _FUNCTION),
    _table(ICL, "Table 2", _FUNCTION),
    _table(ICL, "Table 3", _FUNCTION[1:]),
    _table(ICL, "Table 4", _FUNCTION[1:]),
    _table(INFERCOM, "Table 3", _LINE, _BEST),
    _table(INFERCOM, "Table 4", _LINE, _FSR, _UER),
    _table(INFERCOM, "Table 5", _LINE, _AIM),
    _table(INFERCOM, "Table 6", ("construction", "inference")),
    _table(INFERCOM, "Section 6.4", ("completed",)),
)
BENCHMARKS = {
    "CoderEval": "CoderEval (class 55, file 68, project 23 tasks in Python; 100, 1, 44 in Java)",
    "ProjBench": "ProjBench (2000 tasks per language)",
    "CrossCodeEval": "CrossCodeEval (2665 tasks in Python, 2139 in Java)",
    "sota_test": "sota_test (50 tasks of five repositories, among 70 tasks that its authors released)",
}
NAMES = tuple(table.name for table in _TABLES)


@functools.cache
def rows() -> tuple[PaperRow, ...]:
    """Return the rows of all tables, in the order of the papers."""
    text = files("ctxbench.harness").joinpath("paper_tables.json").read_text(encoding="utf-8")
    return tuple(_row(record) for record in json.loads(text))


def _row(record: Mapping[str, Any]) -> PaperRow:
    return PaperRow(**{**record, "remarks": tuple(record.get("remarks", ()))})


def paper_of(row: PaperRow) -> str:
    """Return the name of the paper that prints a row."""
    return next(listed.paper for listed in _TABLES if listed.name == row.table)


def table(name: str) -> PaperTable:
    """Return the table of this name, with its rows.

    Raises:
        UnknownName: if the table does not exist.
    """
    for listed in _TABLES:
        if listed.name == name:
            return replace(listed, rows=tuple(row for row in rows() if row.table == name))
    raise UnknownName("table", name, NAMES)
