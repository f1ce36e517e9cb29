"""`Pricer`: a coder that measures what references cost, and the fault of what it cannot price."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass

from ctxbench.bench.errors import MachineFault
from ctxbench.bench.languages.base import Language
from ctxbench.harness.generators.base import Generator, TooLong
from ctxbench.strategies.api import Block, BlockKind, Prompt

_SMALL = Prompt(blocks=(Block(kind=BlockKind.INFILE, text="total = "),)), "1"
"""A prompt and a text that any coder can price."""


_MOST_NAMED = 5


def unpriced(faults: Mapping[str, MachineFault]) -> MachineFault:
    """Return the one-line fault for what could not be priced, by its name, while other things could."""
    names = [*list(faults)[:_MOST_NAMED], *([f"{len(faults) - _MOST_NAMED} more"] if len(faults) > _MOST_NAMED else [])]
    first = next(iter(faults.values()))
    return MachineFault(f"not priced: {', '.join(names)}; the first: {first.what}", where=first.where, cure=first.cure)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pricer:
    """A coder that measures the cost of a reference after a prompt."""

    name: str
    """Its spec and version, the key of its measurements."""
    coder: Generator
    aside: Executor | None = None
    """Where it works while the model writes; None if it is the model."""

    def wake(self, language: Language) -> None:
        """Start a coder that starts slowly; a fault shows when it is asked."""
        if self.aside is not None and self.coder.knows(language):
            self.aside.submit(self.coder.wake, language)

    def works(self, languages: Iterable[Language], after: MachineFault) -> bool:
        """Return whether it can price other texts after a fault: whether it prices a small one in any language."""
        return isinstance(after, TooLong) or any(map(self._prices_small, languages))

    def _prices_small(self, language: Language) -> bool:
        prompt, text = _SMALL
        with contextlib.suppress(MachineFault):
            return self.coder.knows(language) and len(self.coder.bits([prompt], [text], language)) == 1
        return False
