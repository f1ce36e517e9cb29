"""Processor seconds of a sample with each context engine, beside `lc.repocoder`; engines live in bubblewrap boxes.

`python -m benchmarks.context_engines HOME [SAMPLES [ENGINE...]]` as root: a control group counts the boxes' time as
well. A model that answers at once is asked; everything is measured, as in any run.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.engine import Meter
from ctxbench.bench import samples as sets
from ctxbench.bench.home import Home
from ctxbench.harness.run.runner import run
from ctxbench.harness.run.spec import RunOptions
from ctxbench.harness.store import open_store

REFERENCE, AIM = "lc.repocoder", 3.0


def main() -> None:
    """Print a line an engine."""
    home = Home(Path(sys.argv[1]))
    name, *engines = sys.argv[2:] or ["ctxbench-2-lite"]
    sample_set, meter = sets.load(home, name), Meter()
    count = len(sample_set.samples)
    print(f"{count} samples of {name}; processor seconds a sample of {meter.what}")
    options = RunOptions(sandbox="bubblewrap")
    seconds: dict[str, float] = {}
    for strategy in (REFERENCE, "lc.infile", *(f"engine({engine})" for engine in engines or ("ripgrep",))):
        with tempfile.TemporaryDirectory() as folder, open_store(f"sqlite:///{folder}/results.db") as store:
            began = meter.read()
            run(home, store, sample_set, strategies=[strategy], generator="scripted", choices=options)
            seconds[strategy] = (meter.read() - began) / count
        ratio = seconds[strategy] / seconds[REFERENCE]
        print(f"{strategy:20} {seconds[strategy]:.3f} s, {ratio:.2f} times {REFERENCE} (aim {AIM})", flush=True)


if __name__ == "__main__":
    main()
