"""Gains of blocks are appended once, read by sample, and part of the run's columns."""

import pytest

from ctxbench.harness.store import Store
from ctxbench.harness.store.details import prompts_of
from ctxbench.harness.store.runs import run_tables
from ctxbench.harness.store.scores import Gain, add_gains, gains_of
from ctxbench.harness.store.write import StoredBlock
from tests.harness.store.making import make_finished, make_generation, make_samples, make_spec

_TEXT = "# a\n# b\nx = "


def block(kind: str, start: int | None, end: int | None) -> StoredBlock:
    state = "dropped" if start is None else "kept"
    return StoredBlock(
        kind=kind, places="[]", score=None, tokens=2, state=state, reason="", char_start=start, char_end=end
    )


def add_run(store: Store, coder: str = "c 1") -> str:
    """Store two samples: one with two retrieved blocks and a dropped block, and one with only the target file."""
    run = store.add_run(make_spec(coder=coder), make_samples(2))
    store.add_generations([make_generation()])
    blocks = (block("similar", 0, 4), block("api", 4, 8), block("infile", 8, 12), block("similar", None, None))
    store.add_finished(run, coder, make_finished("demo/1", blocks=blocks, prompt=_TEXT, prompt_digest="q", bits=()))
    store.add_finished(run, coder, make_finished("demo/0"))
    return run


def test_prompts_are_rebuilt_from_their_blocks(store: Store) -> None:
    prompts = prompts_of(store, add_run(store))
    assert list(prompts) == ["demo/0", "demo/1"], "in the order of the plan"
    prompt = prompts["demo/1"]
    assert prompt.text == _TEXT
    assert [(str(one.kind), one.text) for one in prompt.blocks] == [
        ("similar", "# a\n"), ("api", "# b\n"), ("infile", "x = "),
    ]  # fmt: skip


def test_gains_are_stored_once(store: Store) -> None:
    run = add_run(store)
    assert add_gains(store, run, "demo/1", "c 1", {0: 3.0, 1: -1.0})
    assert not add_gains(store, run, "demo/1", "c 1", {0: 9.0, 1: 9.0}), "the first ones stay"
    assert not add_gains(store, run, "demo/0", "c 1", {})
    assert gains_of(store, run, "c 1").keys() == {"demo/1"} and not gains_of(store, run, "c 2")
    assert gains_of(store, run, "c 1") == {"demo/1": [Gain("similar", 3.0), Gain("api", -1.0)]}
    with pytest.raises(Exception, match="(?i)foreign key"):
        add_gains(store, run, "demo/0", "c 1", {7: 1.0})


def test_the_mean_gain_is_a_column_of_the_run(store: Store) -> None:
    run = add_run(store)
    assert "block_gain" not in run_tables(store)[0].metrics
    add_gains(store, run, "demo/1", "c 0", {0: 50.0})
    add_gains(store, run, "demo/1", "c 1", {0: 3.0, 1: -1.0})
    add_gains(store, run, "demo/1", "c 2", {0: 70.0})
    assert run_tables(store)[0].metrics["block_gain"] == (None, 1.0), "those of the run's own coder"
