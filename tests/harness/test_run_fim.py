"""Runs that show more than the prefix: code after the cursor to models, masked import lines to strategies."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench import samples as sets
from ctxbench.bench.errors import InputFault
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Query, Sample
from ctxbench.harness.cells import InlineCells
from ctxbench.harness.generators.base import Capabilities, Request, Response
from ctxbench.harness.generators.fim import REMARK, Template, family
from ctxbench.harness.generators.scripted import Scripted
from ctxbench.harness.run.sample import STILL_MASKED, UNMASKED_REMARK
from ctxbench.harness.run.spec import RunOptions
from ctxbench.harness.store.facts import prompt_text
from ctxbench.harness.store.runs import run_tables
from ctxbench.strategies import resolve
from ctxbench.strategies.api import Block, BlockKind, Execute, Generate, Prompt
from tests.harness.test_runner import Bench, model, right
from tests.helpers.cli import Result, assert_fault, run_cli
from tests.helpers.openai_server import serving

BEHIND = "def refund(rate):\n    return rate\n"
FIM = RunOptions(fim=True)


class Middle(Scripted):
    """A model with marks for filling in the middle. It records its requests."""

    capabilities = Capabilities(batch_size=16, instructs=True, fills=True)

    def __init__(self) -> None:
        super().__init__(lambda _: "apply_tax(cart_0, rate)", version="1")
        self.asked: list[Request] = []

    def generate(self, requests: Sequence[Request]) -> list[Response]:
        self.asked += requests
        return list(super().generate(requests))

    def infilling(self) -> Template:
        return family("qwen", where="test")


class Watching(InlineCells):
    """Cells that record the queries and prompts of strategies."""

    def __init__(self) -> None:
        super().__init__()
        self.queries: list[Query] = []
        self.prompts: list[Prompt] = []

    def run(
        self, spec: str, query: Query, repo: Repository, generate: Generate, execute: Execute | None = None
    ) -> Prompt:
        self.queries.append(query)
        self.prompts.append(super().run(spec, query, repo, generate, execute))
        return self.prompts[-1]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, suffix=BEHIND)


def test_the_model_sees_the_suffix_and_the_strategy_does_not(bench: Bench) -> None:
    model, cells = Middle(), Watching()
    [summary] = bench.run(model, cells=cells, choices=FIM)
    assert (summary.scored, summary.missing) == (8, 0)
    assert {query.suffix for query in cells.queries} == {None}
    assert not any("refund" in prompt.text for prompt in cells.prompts)
    assert {request.prompt.text for request in model.asked} == {
        f"<|fim_prefix|>{prompt.text}<|fim_suffix|>\n{BEHIND}<|fim_middle|>" for prompt in cells.prompts
    }
    assert bench.table().run.remarks == (REMARK,)


def test_fim_prompts_are_stored_block_by_block(bench: Bench) -> None:
    bench.run(Middle(), choices=FIM)
    [run] = {run for (run,) in bench.rows("SELECT id FROM run")}
    kinds = bench.rows("SELECT kind, char_start, char_end FROM block WHERE sample_id LIKE 'shop0%L4' ORDER BY ordinal")
    [(digest,)] = bench.rows("SELECT prompt_digest FROM result WHERE sample_id LIKE 'shop0%L4'")
    with bench.store.reading() as connection:
        prompt = prompt_text(connection, digest) or ""
    assert [kind for kind, *_ in kinds] == ["mark", "infile", "mark", "after", "mark"] and run
    assert [prompt[start:end] for kind, start, end in kinds if kind != "infile"] == [
        "<|fim_prefix|>",
        "<|fim_suffix|>",
        f"\n{BEHIND}",
        "<|fim_middle|>",
    ]


@pytest.mark.slow
def test_drafts_are_requested_without_the_suffix(bench: Bench) -> None:
    model = Middle()
    bench.run(model, "lc.repocoder(iterations=2)", choices=FIM)
    drafts = [request for request in model.asked if not request.one_line]
    assert drafts and not any(request.sampling.fim or "refund" in request.prompt.text for request in drafts)


def test_copyable_bits_measure_only_retrieved_text(tmp_path: Path) -> None:
    # The fake coder measures fewer bits for a text that the prompt contains, and this suffix contains an answer.
    bench = Bench(tmp_path, suffix="again = apply_tax(cart_0, rate)\n")
    bench.run(Middle(), choices=FIM)
    bench.run(Middle())
    one, other = (bench.table(index).metrics for index in range(2))
    assert one["copyable_bits"] == other["copyable_bits"] and one["bits"] == other["bits"]


def test_a_strategy_cannot_forge_fim_blocks(bench: Bench) -> None:
    class Forging(InlineCells):
        def run(self, spec: str, query: Query, *_: Any) -> Prompt:
            forged = (Block(kind=kind, text="# forged\n") for kind in (BlockKind.MARK, BlockKind.AFTER))
            return Prompt(blocks=(*forged, Block(kind=BlockKind.INFILE, text=query.prefix)))

    bench.run(Middle(), cells=Forging(), choices=FIM)
    kinds = bench.rows("SELECT kind FROM block WHERE sample_id LIKE 'shop0%L4' ORDER BY ordinal")
    assert [kind for (kind,) in kinds] == ["mark", "text", "text", "infile", "mark", "after", "mark"]


def test_sets_without_suffixes_are_refused_before_anything_runs(tmp_path: Path) -> None:
    bench = Bench(tmp_path, suffix=None)
    with pytest.raises(InputFault, match="was not recorded"):
        bench.run(Middle(), choices=FIM)
    assert bench.cells_run == 0


@pytest.mark.slow
def test_the_run_command_sends_the_suffix_and_lists_fim_runs_separately(bench: Bench) -> None:
    home = str(bench.home.root)

    def ran(generator: str, *more: str) -> Result:
        strategy = ("--strategy", "lc.infile", "--generator", generator)
        return run_cli("run", "--samples", "demo", *strategy, "--workers", "1", "--home", home, *more)

    assert_fault(ran("incontext(workers=1)", "--fim"), "--fim", "cannot fill in the middle", "leave --fim out")
    assert_fault(run_cli("leaderboard", "--home", home), "no runs")
    with serving(answer=lambda prompt, _: "apply_tax(cart_0, rate)") as server:
        model = f"openai:tiny@{server.url}(fim=qwen)"
        for more in ([], ["--fim"], ["--fim"]):
            found = ran(model, *more)
            assert found.code == 0 and "scored 8" in found.out, found
        assert len(server.calls) == 16
        shown = [call["prompt"] for call in server.calls]
    assert [prompt.startswith("<|fim_prefix|>") for prompt in shown] == [False] * 8 + [True] * 8
    assert all(prompt.endswith(f"<|fim_suffix|>\n{BEHIND}<|fim_middle|>") for prompt in shown[8:])
    board = json.loads(run_cli("leaderboard", "--samples", "demo", "--format", "json", "--home", home).out)
    said = {row["generator"]: row["remarks"] for row in board if row["origin"] == "run"}
    assert {name.endswith(" [fim]"): REMARK in remarks for name, remarks in said.items()} == {False: False, True: True}


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
    """Return a bench with samples whose first line, an import, is masked."""
    bench = Bench(tmp_path, repos=1)
    samples = [
        Sample(**{f: getattr(s, f) for f in s.__slots__} | {"prefix": s.prefix.removeprefix(IMPORT), "masked": MASKED})
        for s in bench.set.samples
    ]
    manifest = {"repositories": bench.set.manifest["repositories"]}
    bench.set = sets.save(bench.home, "demo", samples, bench.set.references.values(), manifest, force=True)
    return bench


@pytest.mark.slow
@pytest.mark.parametrize("wrapper", ["{}", "aim({}, encoder=bm25)"])
def test_masked_imports_are_shown_on_request_and_noted_in_the_row(masked: Bench, tmp_path: Path, wrapper: str) -> None:
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
    # The sample stays the same, so both rows answer the same questions.
    assert {table.sample for table in run_tables(masked.store)} == {tuple(sample.id for sample in masked.set.samples)}
    remarks = {table.run.strategy: table.run.remarks for table in run_tables(masked.store)}
    assert remarks == {specs[0].spec: (), specs[1].spec: (UNMASKED_REMARK,)}


@pytest.mark.slow
def test_masked_lines_without_a_record_stay_masked_and_are_flagged(masked: Bench, tmp_path: Path) -> None:
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
