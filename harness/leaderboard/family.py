"""Pairs that are tested together: what the test decides, what it could decide, and the sentences that say so. Pure.

Terminal, pages, report and LaTeX take what they say of a test from here, so that no two sentences contradict each
other: where no difference can be significant none is called visible, and none is said to lead.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ctxbench.harness.leaderboard import numbers, signflip
from ctxbench.harness.leaderboard.pairs import Difference


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """What the test says of the pairs that were corrected for each other."""

    pairs: int
    """Those that were tested: the others have no common sample."""
    repositories: int
    """The most that a pair has."""
    smallest_p: float
    """The smallest p-value that the test can reach with these repositories."""
    significant: int
    """Pairs that are told apart at 5%."""
    visible: float | None
    """The smallest difference that these pairs could show: their median; None if none could show any."""
    nearest: tuple[str, str] | None
    """The pair, not told apart, that the fewest more repositories would tell apart; None if that cannot be said."""
    needed: int | None
    """About how many repositories that takes."""

    @property
    def decidable(self) -> bool:
        """Whether any difference could be significant."""
        return self.pairs > 0 and self.smallest_p <= signflip.ALPHA

    def verdict(self) -> str:
        """Say how many pairs are told apart, and what more would need; empty where nothing was tested."""
        if not self.pairs:
            return ""
        if not self.decidable:
            return (
                f"No difference can be significant here: with {count_of(self.repositories)} the smallest possible p "
                f"is {numbers.p_value(self.smallest_p)}; {signflip.LEAST} repositories are the fewest that can show one"
                f"{self._more()}."
            )
        pairs = "1 pair" if self.pairs == 1 else f"{self.pairs} pairs"
        if self.significant == self.pairs:
            return f"Told apart: {'the pair' if self.pairs == 1 else f'all {pairs}'}."
        if self.significant:
            return f"Told apart: {self.significant} of {pairs}{self._more()}."
        return f"Nothing is told apart: no difference is significant{self._more()}."

    def _more(self) -> str:
        if self.nearest is None:
            return ""
        this, other = self.nearest
        return f"; to tell {this} from {other} would take about {self.needed} repositories like these"

    def sight(self, unit: str) -> str:
        """Say which difference would be seen; empty where none would, or it cannot be said."""
        if self.visible is None:
            return ""
        median = "; the median over the pairs" if self.pairs > 1 else ""
        least = numbers.value(self.visible, self.visible)
        difference = f"A difference of {least} {unit}"
        return f"{difference} would be significant in about four of five such boards (80% power{median})."


def family(differences: Iterable[tuple[tuple[str, str], Difference]], *, repositories: int = 0) -> Family:
    """Sum up differences that were corrected together.

    Args:
        differences: the names of two rows, and the difference of these.
        repositories: how many there are where no pair was tested.
    """
    tested = [(names, difference) for names, difference in differences if difference.p_adjusted is not None]
    most = max((difference.repositories for _, difference in tested), default=repositories)
    visible = [difference.visible for _, difference in tested if difference.visible is not None]
    needed = [(difference.needed, names) for names, difference in tested if difference.needed is not None]
    fewest, nearest = min(needed, key=lambda item: item[0], default=(None, None))
    return Family(
        pairs=len(tested),
        repositories=most,
        smallest_p=signflip.smallest_p(most),
        significant=sum(difference.significant for _, difference in tested),
        visible=statistics.median(visible) if visible else None,
        nearest=nearest,
        needed=fewest,
    )


def pair_verdict(difference: Difference, unit: str) -> str:
    """Say what the test could and could not show of one pair, as the end of a sentence; empty if it was not tested."""
    if difference.p_adjusted is None or difference.significant:
        return ""
    needed = "" if difference.needed is None else f"about {difference.needed} repositories like these would show it"
    if not difference.decidable:
        return (
            f"no difference of {count_of(difference.repositories)} can be significant at 5%; "
            f"{needed or f'{signflip.LEAST} are the fewest that can show one'}"
        )
    if not difference.wins and not difference.losses:
        return "both have the same value at every sample"
    least = "" if difference.visible is None else numbers.value(difference.visible, difference.visible)
    sight = f"one of {least} {unit} would be in about four of five cases" if least else ""
    return "; ".join(filter(None, ["this difference is not significant", sight, needed]))


def listed(names: Sequence[str]) -> str:
    """Return names as a person lists them: a, b and c."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def count_of(repositories: int) -> str:
    """Return a number of repositories in words."""
    return "1 repository" if repositories == 1 else f"{repositories} repositories"
