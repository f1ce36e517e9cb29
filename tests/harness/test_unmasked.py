"""Strategies that are shown the import lines that samples mask: what they get, and what their rows say."""

import shutil
from pathlib import Path

import pytest

from ctxbench.bench import samples as sets
from ctxbench.bench.types import Sample
from ctxbench.harness.generators.base import Request
from ctxbench.harness.run.sample import STILL_MASKED, UNMASKED_REMARK
from ctxbench.harness.store.runs import run_tables
from ctxbench.strategies import Prompt, resolve
from tests.harness.test_runner import Bench, model, right

pytestmark = pytest.mark.slow

IMPORT = "from shop.tax import apply_tax"
MASKED = ((0, 1),)
STRATEGY = """
from ctxbench.strategies import Block, BlockKind, Prompt, Query, Repository, Unmasked, strategy

@strategy("curious")
def curious(query: Query, repo: Repository, *, imports: Unmasked = False) -> Prompt:
    assert repo.read(query.path) == query.prefix
    return Prompt(blocks=(Block(kind=BlockKind.INFILE, text=query.prefix),))
"""


@pytest.fixture
def masked(tmp_path: Path) -> Bench:
    """Samples whose first line, an import, is masked."""
    bench = Bench(tmp_path, repos=1)
    samples = [
        Sample(**{f: getattr(s, f) for f in s.__slots__} | {"prefix": s.prefix.removeprefix(IMPORT), "masked": MASKED})
        for s in bench.set.samples
    ]
    manifest = {"repositories": bench.set.manifest["repositories"]}
    bench.set = sets.save(bench.home, "demo", samples, bench.set.references.values(), manifest, force=True)
    return bench


@pytest.mark.parametrize("wrapper", ["{}", "aim({}, encoder=bm25)"])
def test_the_strategy_that_asks_for_it_sees_the_import_and_its_row_says_so(
    masked: Bench, tmp_path: Path, wrapper: str
) -> None:
    file = tmp_path / "curious.py"
    file.write_text(STRATEGY)
    specs = [resolve(wrapper.format(f"{file}@curious{switch}")) for switch in ("", "(imports=on)")]
    assert [spec.unmasked for spec in specs] == [False, True]
    prompts: dict[str, list[str]] = {}
    for spec in specs:
        asked = prompts.setdefault(spec.spec, [])

        def answer(request: Request, asked: list[str] = asked) -> str:
            asked.append(request.prompt.text)
            return right(request)

        [summary] = masked.run(model(answer), spec.spec)
        assert (summary.scored, summary.faults) == (4, ())
    hidden, shown = prompts.values()
    assert not any(IMPORT in text for text in hidden) and all(f"{IMPORT}\n\n\ndef pay" in text for text in shown)
    # The sample stays the same: what is asked for is what every other row is asked for.
    assert {table.sample for table in run_tables(masked.store)} == {tuple(sample.id for sample in masked.set.samples)}
    remarks = {table.run.strategy: table.run.remarks for table in run_tables(masked.store)}
    assert remarks == {specs[0].spec: (), specs[1].spec: (UNMASKED_REMARK,)}


def test_lines_that_nobody_recorded_stay_masked_and_are_flagged(masked: Bench, tmp_path: Path) -> None:
    file = tmp_path / "curious.py"
    file.write_text(STRATEGY)
    shutil.rmtree(masked.home.repos)
    manifest = {"repositories": {}}
    masked.set = sets.save(
        masked.home, "demo", masked.set.samples, masked.set.references.values(), manifest, force=True
    )
    asked: list[Prompt] = []

    def answer(request: Request) -> str:
        asked.append(request.prompt)
        return right(request)

    masked.run(model(answer), f"{file}@curious(imports=on)")
    assert len(asked) == 4 and all(STILL_MASKED in prompt.flags and IMPORT not in prompt.text for prompt in asked)
