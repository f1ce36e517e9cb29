"""Minimal rows to put into a store."""

from typing import Any

from ctxbench.bench.types import Sample
from ctxbench.harness.generators.base import Sampling
from ctxbench.harness.results import Status
from ctxbench.harness.run.spec import RunSpec
from ctxbench.harness.store import Store
from ctxbench.harness.store.write import (
    Finished,
    StoredBits,
    StoredBlock,
    StoredCompletion,
    StoredGeneration,
    StoredVerdict,
)
from tests.helpers.samples import make_sample


def make_spec(**changes: Any) -> RunSpec:
    fields: dict[str, Any] = {
        "samples": "demo",
        "samples_digest": "d" * 64,
        "strategy": "lc.infile",
        "strategy_version": "1",
        "generator": "scripted",
        "generator_version": "1",
        "coder": "",
        "sampling": Sampling(),
        "tokenizer": "t",
        "code": "0",
    }
    return RunSpec(**{**fields, **changes})


def make_samples(count: int, repo: str = "demo") -> tuple[Sample, ...]:
    return tuple(make_sample(id=f"{repo}/{n}", repo=repo) for n in range(count))


def make_generation(**changes: Any) -> StoredGeneration:
    fields: dict[str, Any] = {
        "id": "g",
        "generator": "scripted",
        "version": "1",
        "prompt_digest": "p",
        "prompt": "x = ",
        "sampling": "{}",
        "idx": 0,
        "text": "1",
        "finish": "stop",
        "tokens_in": 2,
        "tokens_out": 1,
        "seconds": 0.5,
    }
    return StoredGeneration(**{**fields, **changes})


def make_finished(sample: str, **changes: Any) -> Finished:
    fields: dict[str, Any] = {
        "sample_id": sample,
        "status": Status.SCORED,
        "prompt_digest": "p",
        "prompt": "x = ",
        "context_tokens": 2,
        "flags": (),
        "strategy_seconds": 0.25,
        "generator_seconds": 0.5,
        "calls": (("final", "g"),),
        "blocks": (
            StoredBlock(
                kind="infile", places="[]", score=None, tokens=2, state="kept", reason="", char_start=0, char_end=4
            ),
        ),
        "completions": (
            StoredCompletion(
                generation_id="g",
                status=Status.SCORED,
                text="1",
                flags=(),
                scores={("ctxbench", "em"): 1.0, ("crosscodeeval", "em"): 0.0, ("context", "bits"): 3.0},
            ),
        ),
        "bits": (StoredBits(language="python", prompt_digest="p", prompt="x = ", target_digest="t", bits=3.0),),
    }
    return Finished(**{**fields, **changes})


def fill(store: Store) -> None:
    """Add runs whose order and means could differ between databases."""
    for strategy in ("b", "A", "a.x", "a_x", "B"):
        run = store.add_run(make_spec(strategy=strategy, n=3), (*make_samples(3), *make_samples(2, "Ünï/code")))
        store.add_generations([make_generation()])
        for sample, values in (("demo/2", (0.1, 0.2, 0.3)), ("Ünï/code/0", (None, 1e16, 1.0)), ("demo/0", (None,) * 3)):
            made = tuple(
                StoredCompletion(
                    generation_id="g",
                    status=Status.SCORED,
                    text="1",
                    flags=("truncated",),
                    scores={("ctxbench", "em"): value, ("ctxbench", "es"): float("nan")},
                )
                for value in values
            )
            store.add_finished(run, "c", make_finished(sample, completions=made))


def make_verdict(**changes: Any) -> StoredVerdict:
    """Return a verdict."""
    fields: dict[str, Any] = {
        "key": "k" * 64,
        "sample_digest": "s" * 64,
        "text_digest": "t" * 64,
        "image": "docker sha256:1",
        "sandbox": "docker",
        "verdict": "PASSED",
        "reason": "",
        "tests_run": 3,
        "output": "",
        "seconds": 0.25,
        "peak_bytes": 1 << 40,
    }
    return StoredVerdict(**{**fields, **changes})
