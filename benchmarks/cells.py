"""The cost of running a strategy in a cell beside that of calling it here: time and processor time a sample."""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path

from ctxbench.bench.types import Kind
from ctxbench.harness.cells import Cells, InlineCells, open_cells
from ctxbench.strategies.tiny import query_for, view_for
from tests.helpers.models import Model

SAMPLES = 100
SPEC = "lc.repocoder"


def main() -> None:
    inline = _measure(InlineCells())
    print(f"{SPEC}, {SAMPLES} samples, called in this process: {inline * 1e3:.2f} ms a sample")
    with tempfile.TemporaryDirectory() as hidden:
        before = _children()
        began = time.perf_counter()
        with open_cells([Path(hidden)], 2) as cells:
            cells.card("lc.infile")
            start_up = time.perf_counter() - began
            own_seconds = time.process_time()
            per_sample = _measure(cells)
            own_seconds = time.process_time() - own_seconds
            how = ", ".join(f"{key} {value}" for key, value in cells.describe().items())
        spent = (_children() - before + own_seconds) / SAMPLES
    print(f"in cells ({how}): {per_sample * 1e3:.2f} ms a sample, at most {spent * 1e3:.2f} ms of processor time")
    print(f"the fork server was ready after {start_up * 1e3:.0f} ms")


def _measure(cells: Cells) -> float:
    query = query_for(Kind.LINE)
    view = view_for(query)
    model = Model(lambda *_: "apply_tax(cart.total, rate)")
    cells.run(SPEC, query, view, model)
    began = time.perf_counter()
    for _ in range(SAMPLES):
        cells.run(SPEC, query, view, model)
    return (time.perf_counter() - began) / SAMPLES


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
