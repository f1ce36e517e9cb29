"""`ResultFrame`: a table as columns of plain values, for notebooks and files, without a library of data frames."""

from __future__ import annotations

import csv
import html
import importlib
import io
import json
import string
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import write_atomic
from ctxbench.harness.results import COSTS, RunTable

if TYPE_CHECKING:
    from ctxbench.bench.samples import SampleSet
    from ctxbench.harness.run.attempt import RunSummary

_ROWS_SHOWN = 20
"""Of a frame that a notebook displays."""
_FORMULA = tuple("=+-@＝＋－＠")
"""What begins a formula in a spreadsheet, in full width too, whatever blanks and invisible characters precede it."""
_UNSEEN = f"{string.whitespace}\0\xa0\u200b\u200c\u200d\u2060\ufeff"


class ResultFrame(dict[str, tuple[Any, ...]]):
    """Columns by name, a value a row; None where there is none.

    A dictionary, so that ``pandas.DataFrame(frame)`` and ``polars.DataFrame(frame)`` take it as it is; libraries that
    speak Arrow take it by ``__arrow_c_stream__``, which needs pyarrow.
    """

    def __init__(self, columns: Mapping[str, Iterable[Any]], *, markdown: str = "") -> None:
        """Take the columns; a notebook shows `markdown` in place of the first rows, if there is any.

        Raises:
            ValueError: if the columns are not of one length.
        """
        super().__init__({name: tuple(values) for name, values in columns.items()})
        if len({len(values) for values in self.values()}) > 1:
            raise ValueError("the columns of a frame must be of one length")
        self._markdown = markdown

    @classmethod
    def of_records(cls, records: Iterable[Mapping[str, Any]], *, markdown: str = "") -> ResultFrame:
        """Return records as columns, in the order in which keys first come; what a record lacks is None."""
        rows = list(records)
        names = dict.fromkeys(name for row in rows for name in row)
        return cls({name: [row.get(name) for row in rows] for name in names}, markdown=markdown)

    @property
    def height(self) -> int:
        """The number of rows."""
        return len(next(iter(self.values()), ()))

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the rows, each as column -> value."""
        return (dict(zip(self, row, strict=True)) for row in zip(*self.values(), strict=True))

    def to_csv(self) -> str:
        """Return it as CSV with a header; None is an empty field.

        A text that a spreadsheet would run as a formula has an apostrophe before it: strategies, models and files of
        others name what stands in a cell.
        """
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(map(_inert, self))
        writer.writerows(map(_inert, row) for row in zip(*self.values(), strict=True))
        return text.getvalue()

    def to_jsonl(self) -> str:
        """Return it as JSON Lines, a record a row."""
        return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in self.records())

    def write_parquet(self, path: Path) -> None:
        """Write it as a Parquet file, whole or not at all.

        Raises:
            InputFault: if pyarrow is not installed, or the file cannot be written.
        """
        out = _library("pyarrow").BufferOutputStream()
        _library("pyarrow.parquet").write_table(self._arrow(), out)
        write_atomic(path, out.getvalue().to_pybytes())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return it as a capsule of Arrow's stream (the Arrow PyCapsule interface)."""
        return self._arrow().__arrow_c_stream__(requested_schema)

    def _arrow(self) -> Any:
        return _library("pyarrow").table({name: list(values) for name, values in self.items()})

    def __repr__(self) -> str:
        """Return the board's text, or how large it is and what its columns are."""
        return self._markdown or f"Frame of {self.height} rows: {', '.join(self)}"

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """Return what a notebook shows."""
        if self._markdown:
            return {"text/markdown": self._markdown}
        return {"text/html": self._html()}

    def _html(self) -> str:
        head = _line("th", self)
        rows = [_line("td", row) for row in zip(*(values[:_ROWS_SHOWN] for values in self.values()), strict=True)]
        more = f"<p>the first {_ROWS_SHOWN} of {self.height:,} rows</p>" if self.height > _ROWS_SHOWN else ""
        return f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>{more}"


def _inert(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    # Programs also end a row at a carriage return, for which Python's writer puts no quotes.
    text = cell.replace("\r", " ")
    return f"'{text}" if text.lstrip(_UNSEEN).startswith(_FORMULA) else text


def _line(tag: str, cells: Iterable[Any]) -> str:
    return f"<tr>{''.join(f'<{tag}>{_as_html(cell)}</{tag}>' for cell in cells)}</tr>"


def _as_html(cell: Any) -> str:
    """Return a cell as HTML; a model's text and a strategy's name are data, never markup."""
    return "" if cell is None else html.escape(f"{cell:.6g}" if isinstance(cell, float) else str(cell))


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InputFault(
            "Arrow and Parquet need pyarrow", cure="pip install 'ctxbench[parquet]', or take CSV"
        ) from error


def of_runs(tables: Iterable[RunTable]) -> ResultFrame:
    """Return stored runs sample by sample: what each is, its status, its metrics in the profile's scale, its costs."""
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
    """Return what became of runs, a row a strategy."""
    return ResultFrame.of_records(
        {
            "run": summary.run,
            "strategy": summary.strategy,
            "scored": summary.scored,
            "model_failed": summary.model_failed,
            "missing": summary.missing,
            "new": summary.new,
            "unjudged": summary.unjudged,
        }
        for summary in summaries
    )


def of_sets(sample_sets: Iterable[SampleSet]) -> ResultFrame:
    """Return sample sets, a row each."""
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
    """Return the samples of a set with their answers: where each stands, what it asks for, what it uses."""
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
