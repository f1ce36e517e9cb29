"""What could not be used of a benchmark's files: counted by reason, and told one by one while they are few."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from ctxbench.bench.formats.types import Unusable

Report = Callable[[str], None]

_TOLD = 10
"""How many of one reason are told one by one."""


class LeftOut:
    """The account of what is left out."""

    def __init__(self, report: Report) -> None:
        """Begin with nothing."""
        self.counts: Counter[str] = Counter()
        self._report = report

    def add(self, item: Unusable) -> None:
        """Count one, and tell it if few of its reason were told."""
        self.counts[item.reason] += 1
        if self.counts[item.reason] <= _TOLD:
            detail = f" ({item.detail})" if item.detail else ""
            self._report(f"{item.where}: {item.id} left out: {item.reason}{detail}")

    def end(self) -> None:
        """Tell how many were not told one by one."""
        for reason, count in sorted(self.counts.items()):
            if count > _TOLD:
                self._report(f"… and {count - _TOLD} more left out: {reason}")


def listed(counts: Mapping[str, int]) -> str:
    """Return counts by reason in one line."""
    return ", ".join(f"{reason} {count}" for reason, count in sorted(counts.items()))
