"""Extending an index for each target file, compared with building a new index per file.

`python -m benchmarks.indexing HOME [ENGINE …]`: HOME has `ctxbench-2-lite` and its repositories. Both indices are
queried, and their places compared. PAUSE=0.5 is a model's seconds per sample. As root, a control group counts processor
time, which is accurate on a busy machine too.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.engine import Meter
from ctxbench.bench import samples as sets
from ctxbench.bench.engines.box import EngineBox, blank_out, masked_lines, tree_of_file
from ctxbench.bench.engines.boxes import Engines
from ctxbench.bench.engines.recipe import read
from ctxbench.bench.engines.types import places
from ctxbench.bench.home import Home
from ctxbench.bench.repositories.snapshot import Snapshot
from ctxbench.bench.types import Sample
from ctxbench.sandbox.registry import open_sandbox
from ctxbench.sandbox.types import Sandbox

SET = "ctxbench-2-lite"
ENGINES = ("ripgrep", "tantivy", "ctags", "repomap", "jedi", "docs/engines/mcp-grep.toml")
REPOSITORIES, FILES, TOP = 2, 12, 20
PAUSE = float(os.environ.get("PAUSE", "0.5"))

Answers = dict[str, list[Any]]


def main() -> None:
    home = Home(Path(sys.argv[1]))
    sample_set, sandbox, meter = sets.load(home, SET), open_sandbox("bubblewrap", home.cache / "sandbox"), Meter()
    repositories = random.Random(1).sample(sorted({sample.repo for sample in sample_set.samples}), REPOSITORIES)
    snapshots, drawn = sets.snapshots(home, sample_set, repositories), []
    for repo in repositories:
        paths = sorted({sample.path for sample in sample_set.samples if sample.repo == repo})
        kept = random.Random(1).sample(paths, min(FILES, len(paths)))
        drawn += [sample for sample in sample_set.samples if sample.repo == repo and sample.path in kept]
    print(f"{len(drawn)} samples of {', '.join(repositories)}, a pause of {PAUSE:g} s after each; seconds per sample:")
    for spec in sys.argv[2:] or ENGINES:
        with Engines(lambda: sandbox) as engines:
            engines.prepare([spec], sample_set.samples)
            runs = (_whole(spec, sandbox, drawn, snapshots), _based(spec, engines, drawn, snapshots))
            (before, old, old_used), (after, new, new_used) = [_timed(run, meter) for run in runs]
        same = sum(before[sample.id] == after[sample.id] for sample in drawn)
        waits = f"waits {old:.3f} -> {new:.3f} ({new / old:.2f})"
        used = f"processor {old_used:.3f} -> {new_used:.3f} ({new_used / old_used:.2f})"
        print(f"{spec:30} {waits}  {used}  same places {same} of {len(drawn)}", flush=True)


def _timed(run: Iterable[tuple[str, list[Any], float]], meter: Meter) -> tuple[Answers, float, float]:
    """Return the places of each sample, and per sample the seconds waited and the processor seconds of its index."""
    answers: Answers = {}
    began, waited = meter.read(), 0.0
    for sample, located, seconds in run:
        answers[sample], waited = located, waited + seconds
        time.sleep(PAUSE)
    return answers, waited / len(answers), (meter.read() - began) / len(answers)


def _whole(
    spec: str, sandbox: Sandbox, samples: Sequence[Sample], snapshots: Mapping[str, Snapshot]
) -> Iterable[tuple[str, list[Any], float]]:
    recipe = read(spec)
    for path in dict.fromkeys((sample.repo, sample.path) for sample in samples):
        own = [sample for sample in samples if (sample.repo, sample.path) == path]
        box, seconds = None, 0.0
        for sample in own:
            if box is None:
                began = time.perf_counter()
                box = EngineBox(recipe, tree_of_file(snapshots[sample.repo], own), sandbox)
                seconds = time.perf_counter() - began
            text = blank_out(sample.prefix, masked_lines(snapshots[sample.repo], own))
            answer = box.search(text, sample, TOP)
            yield sample.id, places(answer, box.lines, sample.path, sample.cursor.line, TOP, spec), seconds
            seconds = 0.0
        if box is not None:
            box.end()


def _based(
    spec: str, engines: Engines, samples: Sequence[Sample], snapshots: Mapping[str, Snapshot]
) -> Iterable[tuple[str, list[Any], float]]:
    for sample in engines.ordered(samples, 1):
        with engines.turn(sample, snapshots[sample.repo]) as session:
            located = list(session.search(spec, sample.prefix, TOP))
            [use] = session.uses
            yield sample.id, located, use.index_seconds


if __name__ == "__main__":
    main()
