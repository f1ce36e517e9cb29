"""`ResultFrame`: a result table as columns, with export to CSV, JSON Lines, Parquet and pandas."""

from __future__ import annotations

import csv
import importlib
import io
import json
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.bench.files import write_atomic
from ctxbench.harness.results import COSTS, RunTable

if TYPE_CHECKING:
    from ctxbench.bench.samples import SampleSet
    from ctxbench.harness.imported import ImportSummary
    from ctxbench.harness.run.attempt import RunSummary

_FORMULA = tuple("=+-@＝＋－＠")
"""Characters that start a spreadsheet formula, even after invisible characters."""
_UNSEEN = f"{string.whitespace}\0\xa0\u200b\u200c\u200d\u2060\ufeff"


class ResultFrame(dict[str, tuple[Any, ...]]):
    """A table: a dictionary from column name to values, one per row; None if unknown. `attrs` describe the table."""

    def __init__(self, columns: Mapping[str, Iterable[Any]], attrs: Mapping[str, str] | None = None) -> None:
        super().__init__({name: tuple(values) for name, values in columns.items()})
        self.attrs = dict(attrs or {})

    @classmethod
    def of_records(cls, records: Iterable[Mapping[str, Any]], attrs: Mapping[str, str] | None = None) -> ResultFrame:
        """Create a frame from one record per row. Columns are in order of first appearance; missing values are None."""
        rows = list(records)
        names = dict.fromkeys(name for row in rows for name in row)
        return cls({name: [row.get(name) for row in rows] for name in names}, attrs)

    @property
    def height(self) -> int:
        """Number of rows."""
        return len(next(iter(self.values()), ()))

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield each row as a dictionary from column to value."""
        return (dict(zip(self, row, strict=True)) for row in zip(*self.values(), strict=True))

    def to_csv(self) -> str:
        """Return the table as CSV with a header; None is an empty field.

        A text that a spreadsheet would run as a formula gets a leading apostrophe, because a strategy or a model may
        have written the text.
        """
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(map(_inert, self))
        writer.writerows(map(_inert, row) for row in zip(*self.values(), strict=True))
        return text.getvalue()

    def to_jsonl(self) -> str:
        """Return the table as JSON Lines, one record per row."""
        return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in self.records())

    def write_parquet(self, path: Path) -> None:
        """Write the table to a Parquet file.

        Raises:
            InputFault: if pyarrow is not installed, or the file cannot be written.
        """
        out = _library("pyarrow").BufferOutputStream()
        _library("pyarrow.parquet").write_table(self._arrow(), out)
        write_atomic(path, out.getvalue().to_pybytes())

    def chosen(self, names: str | Iterable[str], usual: Iterable[str]) -> ResultFrame:
        """Return a frame with some of the columns.

        Args:
            names: column names, as a list or separated by commas. ``all`` selects every column.
            usual: columns that are selected if `names` is empty.

        Raises:
            InputFault: if `names` is not a list of columns, or a column does not exist.
        """
        try:
            given = [str(name).strip() for name in (names.split(",") if isinstance(names, str) else names)]
        except TypeError:
            raise InputFault(f"{names!r} is not a list of columns", cure="give a list of names, or 'all'") from None
        listed = [name for name in given if name] or [name for name in usual if name in self]
        if "all" in listed:
            return self
        for name in listed:
            if name not in self:
                raise UnknownName("column here", name, self)
        return ResultFrame({name: self[name] for name in listed}, self.attrs)

    def to_user(self) -> Any:
        """Return a pandas ``DataFrame``, an Arrow table if pandas is missing, or this frame if pyarrow is missing too.

        The data frame's `attrs`, or the Arrow schema's metadata, contain this frame's `attrs`.
        """
        try:
            pandas = importlib.import_module("pandas")
        except ImportError:
            try:
                return self._arrow().replace_schema_metadata(self.attrs)
            except InputFault:
                return self
        frame = pandas.DataFrame({name: pandas.Series(cells, dtype=_dtype(cells)) for name, cells in self.items()})
        frame.attrs.update(self.attrs)
        return frame

    def _arrow(self) -> Any:
        return _library("pyarrow").table({name: list(values) for name, values in self.items()})

    def __repr__(self) -> str:
        return f"Frame of {self.height} rows: {', '.join(self)}"


def _dtype(values: Sequence[Any]) -> str | None:
    """Return the pandas type that keeps integers and booleans in a column with gaps; None for pandas' default."""
    kinds = {type(value) for value in values}
    if type(None) not in kinds:
        return None
    by_kind = {frozenset[type](): "float64", frozenset({int}): "Int64", frozenset({bool}): "boolean"}
    return by_kind.get(frozenset(kinds - {type(None)}))


def _inert(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    # Some programs end a row at a carriage return, which Python's writer does not quote.
    text = cell.replace("\r", " ")
    return f"'{text}" if text.lstrip(_UNSEEN).startswith(_FORMULA) else text


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InputFault(
            "Arrow and Parquet need pyarrow, which is missing", cure="pip install 'ctxbench[parquet]', or use CSV"
        ) from error


def of_runs(tables: Iterable[RunTable]) -> ResultFrame:
    """Return one row per sample of stored runs: run, status, metrics in their profile's scale, and costs."""
    return ResultFrame.of_records(record for table in tables for record in _results(table))


def _results(table: RunTable) -> Iterator[dict[str, Any]]:
    run, rows = table.run, range(len(table.sample))
    unknown = (None,) * len(rows)
    about = {
        "run": run.id,
        "samples": run.samples,
        "language": str(run.language),
        "strategy": run.strategy,
        "generator": run.generator,
        "origin": str(run.origin),
        "profile": run.profile,
    }
    columns: dict[str, tuple[Any, ...]] = {
        "sample": table.sample,
        "repository": table.repo,
        "level": table.level,
        "dated": table.dated or unknown,
        "status": tuple(map(str, table.status)),
        "mark": tuple(mark or None for mark in table.mark) or unknown,
        **table.metrics,
        "context_tokens": table.context_tokens,
        "calls": table.calls,
        "seconds": table.seconds,
        **{name: table.costs.get(name) or unknown for name in COSTS},
    }
    return ({**about, **{name: column[row] for name, column in columns.items()}} for row in rows)


def of_summaries(summaries: Iterable[RunSummary]) -> ResultFrame:
    """Return the summaries of runs, one row per run."""
    return _of_fields(summaries, "run", "strategy", "scored", "model_failed", "missing", "new", "unjudged")


def of_imports(summaries: Iterable[ImportSummary]) -> ResultFrame:
    """Return the summaries of imports, one row per imported run."""
    return _of_fields(summaries, "run", "samples", "strategy", "generator", "n", "planned", "new")


def _of_fields(values: Iterable[object], *names: str) -> ResultFrame:
    return ResultFrame.of_records({name: getattr(value, name) for name in names} for value in values)


def of_sets(sample_sets: Iterable[SampleSet]) -> ResultFrame:
    """Return each sample set's name, numbers of samples and repositories, and digest, one row per set."""
    return ResultFrame.of_records(
        {
            "name": sample_set.name,
            "samples": len(sample_set.samples),
            "repositories": len(sample_set.manifest["repositories"]),
            "digest": sample_set.digest,
        }
        for sample_set in sample_sets
    )


def of_samples(sample_set: SampleSet) -> ResultFrame:
    """Return the samples of a set, one row each, with location, kind, names used and reference."""
    return ResultFrame.of_records(
        {
            "sample": sample.id,
            "benchmark": sample.benchmark,
            "repository": sample.repo,
            "language": str(sample.language),
            "kind": str(sample.kind),
            "level": sample.subkind,
            "path": sample.path,
            "line": sample.cursor.line + 1,
            "uses": ", ".join(use.name for use in sample.uses),
            "import_masked": bool(sample.masked),
            "tests": len(sample_set.references[sample.id].tests),
            "reference": sample_set.references[sample.id].target,
        }
        for sample in sample_set.samples
    )
