"""Measure a set of 10,000 samples, as the page Benchmark does on its first visit, beside reading its files alone.

The reference reads both files and parses every record, and does nothing with them. The samples are lines of the
standard library, each with all of its file up to there, in the order in which chance drew them.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from benchmarks.windows import library
from ctxbench.bench import anatomy
from ctxbench.bench import samples as sets
from ctxbench.bench.code_tokens import count
from ctxbench.bench.home import Home
from ctxbench.bench.types import Cursor, Reference, Sample
from tests.helpers.samples import make_sample

SAMPLES = 10_000
T = TypeVar("T")


def drawn() -> tuple[list[Sample], list[Reference]]:
    """Return samples and answers."""
    texts, _ = library()
    places = [(path, at) for path, text in texts.items() for at, line in enumerate(text.split("\n")) if line.strip()]
    samples, references = [], []
    for path, at in random.Random(3).sample(places, SAMPLES):
        lines = texts[path].split("\n")
        column = len(lines[at]) - len(lines[at].lstrip())
        prefix = "\n".join([*lines[:at], lines[at][:column]])
        sample = make_sample(id=f"lib/{path}#L{at}", path=path, cursor=Cursor(line=at, column=column), prefix=prefix)
        samples.append(sample)
        references.append(Reference(id=sample.id, target=lines[at][column:]))
    return samples, references


def parsed(place: Path) -> int:
    """Read both files of a set and parse every record; return how many there are."""
    records = 0
    for name in (sets.SAMPLES, sets.REFERENCES):
        with (place / name).open("rb") as handle:
            records += sum(bool(json.loads(line)) for line in handle)
    return records


def timed(does: Callable[[], T]) -> tuple[float, T]:
    """Return the processor seconds that something takes, and what it returns."""
    began = time.process_time()
    outcome = does()
    return time.process_time() - began, outcome


def main() -> None:
    samples, references = drawn()
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        sample_set = sets.save(home, "large", samples, references, {"repositories": {}})
        place = sets.folder(home, "large")
        size = (place / sets.SAMPLES).stat().st_size / 1e6
        alone, _ = timed(lambda: parsed(place))
        spent, measures = timed(lambda: anatomy.measure(home, "large"))
    whole, expected = timed(lambda: [count(sample.prefix) for sample in sample_set.samples])
    if [sample.prefix_tokens for sample in measures] != expected:
        raise SystemExit("tokens counted in stretches differ from those counted whole")
    print(f"{SAMPLES} samples, {size:.0f} MB: measured in {spent:.2f} processor seconds")
    print(f"beside reading and parsing alone ({alone:.2f} s): {spent / alone:.1f} times")
    print(f"beside counting the tokens of each prefix whole ({whole:.2f} s): {spent / whole:.2f} times")


if __name__ == "__main__":
    main()
