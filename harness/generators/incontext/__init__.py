"""The built-in generator: a deterministic language model that copies from its prompt.

It needs no weights to be fetched. Its rows on the leaderboard measure the context that it is
shown, not a model's skill.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxbench.harness.generators.registry import generator

if TYPE_CHECKING:
    from ctxbench.harness.generators.incontext.generator import InContext


@generator("incontext", machine=("workers",))
def incontext(*, workers: int = 0) -> InContext:
    """Learn from the prompt alone, on any machine; measures the context, not a model.

    Args:
        workers: processes to use, 0 for one a core.
    """
    # numpy is loaded when the generator is made, not when it is listed.
    from ctxbench.harness.generators.incontext.generator import InContext  # noqa: PLC0415

    return InContext(workers=workers)
