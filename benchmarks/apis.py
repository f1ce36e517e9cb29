"""The cost of making the API base, and of a query, by encoder.

Sources are the standard library's, so that anyone can run it. Summaries are the plain ones; a model's calls, one a
function, come on top. Times are CPU seconds of this process, which work beside it on the machine does not change much.
The InferCom paper's Table 6 was measured with other repositories, encoders and machines, a model's calls included: the
ratio is an orientation, no comparison.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.windows import LINES, library
from ctxbench.bench.apis.plain import summary
from ctxbench.bench.apis.units import units
from ctxbench.bench.errors import InputFault
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.repository import Repository, View, digest_of
from ctxbench.bench.retrieval import encoders
from ctxbench.bench.retrieval.retrieval import Retrieval
from ctxbench.bench.types import Cursor, Kind, Query

MORE = 10_000
QUERIES = 50
TABLE_6 = {"RepoFuse": (624.35, 3.46), "RepoCoder": (91.43, 3.90), "InferCom": (348.95, 4.23)}
"""Seconds a project, and a task with its model's calls."""


@dataclass(frozen=True, slots=True)
class Times:
    """CPU seconds."""

    construction: float
    """To make the API base: usage examples, summaries, all vectors."""
    query: float
    """Median of a task's two searches, by usage example and by summary."""


def main() -> None:
    """Print a table; encoders are given as arguments."""
    # As the command does: numpy, which comes with the first encoder, would wait for its threads at the cost of others.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    (texts, lines), (more, more_lines) = library(LINES), library(LINES + MORE)
    added = more_lines - lines
    records = sum(len(units(path, text, PYTHON, by="usage")) for path, text in texts.items())
    print(f"{lines} lines, {records} API records; {QUERIES} queries of two searches each; plain summaries")
    for spec in sys.argv[1:] or ("hashed", "minilm"):
        try:
            encoders.get(spec)
        except InputFault as fault:
            print(f"{spec:8} left out: {fault}")
            continue
        small, large = measure(spec, texts), measure(spec, more)
        per_more = (large.construction - small.construction) * MORE / added
        print(
            f"{spec:8} made in {small.construction:.2f} s, {per_more:.2f} s for {MORE} lines more; "
            f"{small.query * 1e3:.1f} ms a task, {(large.query - small.query) * 1e3:+.1f} ms with {added} lines more"
        )
        construction, inferred = TABLE_6["InferCom"]
        ratio = construction / small.construction
        print(f"{'':8} construction in Table 6: {construction} s a project ({ratio:.0f} times ours)")
        print(f"{'':8} inference in Table 6: {inferred} s a task, with three calls of a 6.7B model; ours without any")
    for method, (construction, inferred) in TABLE_6.items():
        print(f"Table 6  {method}: {construction} s construction a project, {inferred} s a task")


def measure(spec: str, texts: dict[str, str]) -> Times:
    """Time the first searches, which make everything, and then the others."""
    retrieval, digest = Retrieval(), digest_of(texts)
    # Reads its weights, and the first text, before the clock starts.
    encoders.get(spec).encode(["a"])
    queries = list(_queries(texts))
    began = time.process_time()
    _task(_view(retrieval, texts, digest), spec, "first", "first")
    construction = time.process_time() - began
    spent = []
    for line, draft in queries:
        repo = _view(retrieval, texts, digest)
        began = time.process_time()
        _task(repo, spec, line, summary(draft, PYTHON))
        spent.append(time.process_time() - began)
    return Times(construction, statistics.median(spent))


def _task(repo: Repository, spec: str, line: str, sentence: str) -> None:
    repo.search(line, unit="usage", ranker=spec, top=4)
    repo.search(sentence, unit="summary", ranker=spec, top=4)


def _view(retrieval: Retrieval, texts: dict[str, str], digest: str) -> Repository:
    query = Query(
        id="q",
        benchmark="b",
        language=PYTHON,
        kind=Kind.LINE,
        subkind="next-line",
        repo="stdlib",
        path="new/task.py",
        cursor=Cursor(line=1, column=0),
        prefix="import os\n",
    )
    return View(name="stdlib", language=PYTHON, texts=texts, digest=digest, query=query, retrieval=retrieval)


def _queries(texts: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield lines with a call, and the eight lines that begin with each, spread evenly over the files."""
    stretches = [
        (line.strip(), "\n".join(lines[row : row + 8]))
        for lines in (text.split("\n") for text in texts.values())
        for row, line in enumerate(lines)
        if "(" in line and "=" in line and not line.lstrip().startswith("#")
    ]
    yield from stretches[:: max(1, len(stretches) // QUERIES)][:QUERIES]


if __name__ == "__main__":
    main()
