"""Records of a benchmark's files that could not be used: counted by reason, the first ones reported one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from ctxbench.bench.formats.types import Unusable

Report = Callable[[str], None]

_MOST_LINES = 10
"""How many with the same reason are reported one by one."""


class LeftOut:
    """The account of the records that are left out."""

    def __init__(self, report: Report) -> None:
        """Start an empty account; `report` gets a line at a time."""
        self.counts: Counter[str] = Counter()
        self._report = report

    def add(self, item: Unusable) -> None:
        """Count a record, and report it unless many with its reason were reported already."""
        self.counts[item.reason] += 1
        if self.counts[item.reason] <= _MOST_LINES:
            detail = f" ({item.detail})" if item.detail else ""
            self._report(f"{item.where}: {item.id} left out: {item.reason}{detail}")

    def end(self) -> None:
        """Report how many were not reported one by one."""
        for reason, count in sorted(self.counts.items()):
            if count > _MOST_LINES:
                self._report(f"… and {count - _MOST_LINES} more left out: {reason}")


def listed(counts: Mapping[str, int]) -> str:
    """Return counts by reason in one line."""
    return ", ".join(f"{reason} {count}" for reason, count in sorted(counts.items()))
