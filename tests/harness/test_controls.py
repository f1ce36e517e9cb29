"""Controls: the reference gets full scores, an empty answer gets none, and a context that knows the answer is best."""

import statistics
from collections.abc import Sequence
from pathlib import Path

import pytest

from ctxbench.bench.concurrency import silent
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Kind, Query, StoredContext, StoredSnippet, Use
from ctxbench.harness.cells import InlineCells
from ctxbench.harness.leaderboard import board
from ctxbench.harness.results import Status
from ctxbench.harness.run.controls import oracle_prompt, stored_prompt
from ctxbench.harness.run.runner import card_of
from ctxbench.harness.run.sample import OVERFLOW
from ctxbench.harness.run.stored import RunDiagnosis, diagnose
from ctxbench.harness.store.runs import find_run, run_tables
from ctxbench.strategies.api import Block, BlockKind, Prompt
from ctxbench.strategies.registry import CONTROLS, is_control
from tests.harness import test_run_functions, test_runner
from tests.harness.test_runner import Bench, model
from tests.helpers.samples import make_reference, make_sample
from tests.helpers.views import make_view

TAX = """class Rates:
    def __init__(self, land):
        pass
    def low(self):
        pass
    def high(self):
        pass
"""


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_gold_gets_full_scores_and_blank_gets_none(bench: Bench) -> None:
    asked = model(lambda _: "wrong")
    gold, blank = bench.run(asked, "gold", "blank")
    assert asked.batches == [] and bench.cells_run == 0, "neither the model nor a cell is asked"
    assert (gold.scored, blank.model_failed, gold.missing, blank.missing) == (8, 8, 0, 0)
    tables = {table.run.strategy: table for table in run_tables(bench.store)}
    for metric in ("em", "es", "id_f1"):
        assert set(tables["gold"].metrics[metric]) == {1.0} and set(tables["blank"].metrics[metric]) == {0.0}
    assert set(tables["gold"].metrics["hallucinated"]) == {0.0}, "what the project has is not made up"
    assert "hallucinated" not in tables["blank"].metrics and set(tables["blank"].metrics["made_up_names"]) == {0.0}
    assert set(tables["blank"].status) == {Status.MODEL_FAILED}


def test_gold_passes_every_test_and_blank_none(tmp_path: Path) -> None:
    bench = test_run_functions.Bench(tmp_path)
    for name, share in (("gold", 1.0), ("blank", 0.0)):
        summary = bench.run(test_run_functions.model(), strategies=(name,))
        assert summary.missing == 0
        [table] = [one for one in run_tables(bench.store) if one.run.strategy == name]
        assert table.metrics["pass@1"] == (share,) * 6


@pytest.mark.slow
def test_a_context_chosen_with_the_answer_has_the_most_copyable_bits(bench: Bench) -> None:
    bench.run(model(), "oracle-context", "lc.repocoder", "lc.infile")
    mean = {
        t.run.strategy: statistics.fmean(v or 0 for v in t.metrics["copyable_bits"]) for t in run_tables(bench.store)
    }
    assert mean["oracle-context"] >= mean["lc.repocoder"] > mean["lc.infile"] == 0


def test_the_oracle_context_shows_windows_and_signatures_that_the_answer_needs() -> None:
    texts = {
        "shop/checkout.py": "\n\ndef pay(user):\n    total = Rates(user).low()\n",
        "shop/tax.py": TAX,
        "shop/use.py": "def cost(user):\n    return Rates(user).low() + 1\n",
    }
    sample = make_sample(uses=(Use(name="Rates", module="shop.tax", kind="class"),))
    query = sample.query()
    view = make_view(query, texts)
    prompt = oracle_prompt(query, view, sample, make_reference(target="Rates(user).low()"))
    similar = [block for block in prompt.blocks if block.kind is BlockKind.SIMILAR]
    apis = [block for block in prompt.blocks if block.kind is BlockKind.API]
    assert similar[-1].places[0].path == "shop/use.py"
    assert [block.places[0].start for block in apis] == [1, 3], "the constructor and the method, not the other one"
    assert "def low(self)" in apis[1].text and prompt.text.endswith(sample.prefix)
    assert "total = Rates" not in prompt.text, "the answer itself stays hidden"


def test_the_signature_of_an_import_with_an_alias_is_found() -> None:
    texts = {"shop/checkout.py": "", "shop/tax.py": f"def floor(rate):\n    return rate\n{TAX}"}
    uses = (Use(name="least", module="shop.tax", kind="function"), Use(name="R", module="shop.tax", kind="class"))
    sample = make_sample(prefix="from shop.tax import floor as least\n\n\ntotal = ", uses=uses)
    reference = make_reference(target="least(R(land).high())", original_import="from shop.tax import Rates as R\n")
    prompt = oracle_prompt(sample.query(), make_view(sample.query(), texts), sample, reference)
    [floor, rates, high] = [block for block in prompt.blocks if block.kind is BlockKind.API]
    assert "def floor(rate)" in floor.text and "def __init__" in rates.text and "def high" in high.text


@pytest.mark.parametrize(
    ("module", "language", "found"),
    [
        ("shop.tax", PYTHON, ["src/shop/tax.py"]),
        ("shop", PYTHON, ["src/shop/__init__.py"]),
        ("other.tax", PYTHON, []),
        ("", PYTHON, []),
        ("com.shop.Rules.Kind", JAVA, ["java/com/shop/Rules.java"]),
        ("com.shop.Other", JAVA, []),
    ],
)
def test_the_defining_files_of_a_module_are_found(module: str, language: Language, found: list[str]) -> None:
    files = ("java/com/shop/Rules.java", "src/shop/__init__.py", "src/shop/tax.py", "src/shopping/tax2.py")
    assert language.defining_files(module, tuple(f for f in files if f.endswith(language.suffix))) == found


def test_only_a_control_shows_contexts_retrieved_with_the_answer(bench: Bench) -> None:
    oracle = StoredContext(name="oracle_bm25", snippets=(StoredSnippet(path="a.py", text="x = 1"),), oracle=True)
    first = StoredContext(name="rg1_bm25", snippets=(StoredSnippet(path="b.py", text="y = 2"),))
    sample = make_sample(stored=(first, oracle))
    prompt = stored_prompt(sample.query(), sample)
    assert "# x = 1" in prompt.text and "y = 2" not in prompt.text and prompt.text.endswith(sample.prefix)
    assert prompt.flags == ()
    [summary] = bench.run(model(), "oracle-stored")
    assert (summary.scored, summary.missing, bench.cells_run) == (8, 0, 0)
    bare = make_sample(stored=(first,))
    assert stored_prompt(bare.query(), bare).flags == ("no_stored_context",)


def test_names_of_controls_take_no_parameters() -> None:
    cells = InlineCells()
    assert [card_of(name, cells).kinds for name in CONTROLS] == [frozenset(Kind)] * 4
    assert card_of("lc.infile", cells).spec == "lc.infile"
    with pytest.raises(InputFault, match="has no parameters"):
        card_of("gold(x=1)", cells)
    assert [is_control(one) for one in ("gold", "golden", "control.x(a=1)", "/a/b.py@oracle.x", "lc.infile")] == [
        True, False, True, True, False,
    ]  # fmt: skip


def test_blocks_are_measured_once_and_read_back(bench: Bench) -> None:
    [summary] = bench.run(model(), "lc.repocoder(iterations=1)")
    run = find_run(bench.store, summary.run[:6])
    made = [
        diagnose(bench.home, bench.store, run, limit=3, progress=silent, resolve=lambda _: test_runner.Coder())
        for _ in range(4)
    ]
    assert [(one.new, one.over_limit) for one in made] == [(3, 5), (3, 2), (2, 0), (0, 0)]
    blocks = made[-1].blocks
    assert set(blocks) == {sample.id for sample in bench.set.samples} and made[-1].unmeasurable == 0
    [table] = run_tables(bench.store)
    for id_, worth in zip(table.sample, table.metrics["block_gain"], strict=True):
        assert worth == pytest.approx(statistics.fmean(one.bits for one in blocks[id_]))
    assert board([table]).rows[0].metrics["block_gain"].mean is not None


class OddCoder(test_runner.Coder):
    """A coder that cannot measure texts containing `bad`; an empty `bad` means all texts."""

    def __init__(self, bad: str) -> None:
        super().__init__()
        self.bad = bad

    def bits(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> list[float]:
        if any(self.bad in text for text in texts):
            raise MachineFault("it answers oddly", cure="mend it")
        return super().bits(prompts, texts, language)


@pytest.mark.slow
def test_a_sample_whose_blocks_cannot_be_measured_does_not_stop_others(bench: Bench) -> None:
    [summary] = bench.run(model(), "lc.repocoder(iterations=1)")
    run = find_run(bench.store, summary.run)

    def priced(bad: str, limit: int | None = None) -> RunDiagnosis:
        return diagnose(bench.home, bench.store, run, limit=limit, progress=silent, resolve=lambda _: OddCoder(bad))

    with pytest.raises(MachineFault, match="oddly"):
        priced("")
    [target, *_] = [bench.set.references[id_].target for id_ in sorted(bench.set.references)]
    bad = sorted(id_ for id_, reference in bench.set.references.items() if reference.target == target)
    part = priced(target, limit=1)
    assert (part.new, part.over_limit, [*part.faults]) == (1, 6, bad[:1]), "the limit is of what can be priced"
    rest = priced(target)
    assert (rest.new, rest.over_limit, sorted(rest.faults), len(rest.blocks)) == (5, 0, bad, 6)
    assert priced("no such text").new == len(bad) == 2


class Overflowing(InlineCells):
    """A strategy whose prompt is too long and must not be cut."""

    def run(self, spec: str, query: Query, repo: Repository, *rest: object) -> Prompt:
        return Prompt(blocks=(Block(kind=BlockKind.TEXT, text="too long"),), flags=(OVERFLOW,))


def test_an_overlong_prompt_that_must_not_be_cut_is_not_sent(bench: Bench) -> None:
    asked = model()
    [summary] = bench.run(asked, cells=Overflowing())
    assert asked.batches == [] and (summary.model_failed, summary.missing) == (8, 0)
    assert bench.rows("SELECT DISTINCT flags FROM result") == [(f'["{OVERFLOW}"]',)]
    assert bench.rows("SELECT DISTINCT generator, text FROM generation") == [(OVERFLOW, "")]
