"""What a set's manifest remarks is kept with every run over it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxbench.bench import samples as sets
from tests.harness.test_runner import Bench, model


@pytest.mark.slow
def test_the_sets_remarks_go_with_its_runs(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    said = ["Hygiene was off: test copies of the answers were shown.", "Another."]
    manifest = {"repositories": bench.set.manifest["repositories"], "remarks": said}
    bench.set = sets.save(bench.home, "demo", bench.set.samples, bench.set.references.values(), manifest, force=True)
    for _ in range(2):
        bench.run(model(), "lc.infile", "lc.repocoder")
    assert [bench.table(index).run.remarks for index in range(2)] == [tuple(said)] * 2


def test_a_set_without_remarks_adds_none(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.run(model())
    assert bench.table().run.remarks == () and bench.table().run.benchmark == "ctxbench"
