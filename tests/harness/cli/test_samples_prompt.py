"""``ctxbench samples prompt``: the bytes that a run shows the model, and where they come from."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text

from ctxbench.bench.home import Home
from ctxbench.harness.store import open_store
from ctxbench.harness.store.facts import prompt_texts
from tests.helpers.cli import assert_fault, run_cli
from tests.helpers.openai_server import serving
from tests.helpers.sets import make_set


@pytest.fixture
def home(tmp_path: Path, inline_cells: None) -> Home:
    home = Home(tmp_path / "home")
    make_set(home, per_repo=2)
    return home


def stored_prompts(home: Home) -> dict[str, str]:
    with open_store(home.database) as store, store.reading() as connection:
        rows = connection.execute(text("SELECT sample_id, prompt_digest FROM result")).all()
        texts = dict(prompt_texts(connection, [digest for _, digest in rows]))
    return {sample: texts[digest] for sample, digest in rows}


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["lc.infile", "lc.repocoder", "lc.infercom(encoder=bm25)"])
def test_it_is_the_prompt_of_the_run(home: Home, strategy: str) -> None:
    place = ("--home", str(home.root))
    with serving(answer=lambda *_: "apply_tax(cart_1, rate)") as server:
        words = ("--strategy", strategy, "--generator", f"openai:tiny@{server.url}", *place)
        printed = {
            sample: run_cli("samples", "prompt", "demo", sample, *words)
            for sample in run_cli("samples", "show", "demo", "--ids", *place).out.split()
        }
        drafts = len(server.calls)
        assert run_cli("run", "--samples", "demo", *words).code == 0
        assert len(server.calls) == drafts + len(printed), "drafts are taken from the store"
    assert stored_prompts(home) == {sample: result.out for sample, result in printed.items()}


@pytest.mark.slow
def test_origins_say_where_each_block_comes_from(home: Home) -> None:
    words = ("samples", "prompt", "demo", "shop0/shop/pay.py#L4", "--strategy", "lc.repocoder")
    words = (*words, "--home", str(home.root))
    exact, origins = run_cli(*words).out, run_cli(*words, "--origins").out
    parts = origins.split("=== ")[1:]
    heads, blocks = [part.partition("\n")[0] for part in parts], [part.partition("\n")[2] for part in parts]
    similar = [(head, block) for head, block in zip(heads, blocks, strict=True) if head.startswith("similar ")]
    assert similar and all(", score " in head and " tokens" in head for head, _ in similar)
    for head, block in similar:
        path, _, lines = head.removeprefix("similar ").partition(",")[0].rpartition(":")
        start, end = map(int, lines.split("-"))
        whole = (home.repos / "shop0" / "1" / path).read_text().split("\n")
        assert next(line for line in whole[start - 1 : end] if line) in block
    whole = "".join(block for head, block in zip(heads, blocks, strict=True) if "left out" not in head)
    assert whole.startswith(exact.rstrip("\n"))


def test_faults(home: Home) -> None:
    words = ("samples", "prompt", "demo")
    end = ("--home", str(home.root))
    assert_fault(run_cli(*words, "shop0/shop/pay.py#L5x", "--strategy", "lc.infile", *end), "did you mean")
    known = "shop0/shop/pay.py#L4"
    assert_fault(run_cli(*words, known, "--strategy", "lc.infilo", *end), "did you mean lc.infile")
    assert_fault(run_cli(*words, known, "--strategy", "icl.rag", *end), "takes function samples")
    assert_fault(run_cli(*words, known, "--strategy", "gold", *end), "gold is a control")
