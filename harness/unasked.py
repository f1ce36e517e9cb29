"""Answers that no model gave, stored like the others under a name that no generator has."""

from __future__ import annotations

from ctxbench.bench.files import sha256
from ctxbench.harness.batcher import Answer
from ctxbench.harness.generators.base import Response
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.write import StoredGeneration
from ctxbench.strategies.api import Prompt


def keep(store: Store, name: str, prompt: Prompt, text: str) -> Answer:
    """Store a text as the answer to a prompt that no model was asked.

    Args:
        store: where answers are kept.
        name: stored in place of a generator: a control, or why no model was asked.
        prompt: the prompt.
        text: the answer.
    """
    id_ = sha256(f"unasked\0{name}\0{prompt.digest}\0{text}")
    stored = StoredGeneration(
        id=id_,
        generator=name,
        version="",
        prompt_digest=prompt.digest,
        prompt=prompt.text,
        sampling="{}",
        idx=0,
        text=text,
        finish="stop",
        tokens_in=0,
        tokens_out=0,
        seconds=0.0,
        price=0.0,
    )
    store.add_generations([stored])
    return Answer(id_, Response(text=text, finish="stop", tokens_in=0, tokens_out=0, seconds=0.0))
