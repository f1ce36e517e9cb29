"""Lines of a file of which some were taken out, with the numbers that they have in it. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ctxbench.bench.types import Place
from ctxbench.bench.windows import split_lines


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Some lines of one file, in order."""

    lines: tuple[str, ...]
    numbers: tuple[int, ...]
    """The number of each line in the file as the view shows it; 0-based, rising."""

    @classmethod
    def whole(cls, text: str) -> Excerpt:
        """Return all lines of a text."""
        lines = split_lines(text) if text else []
        return cls(tuple(lines), tuple(range(len(lines))))

    @property
    def text(self) -> str:
        """The lines, joined; no newline at the end."""
        return "\n".join(self.lines)

    @property
    def blank(self) -> bool:
        """Whether there is nothing to read in it."""
        return not any(line.strip() for line in self.lines)

    def places(self, path: str) -> tuple[Place, ...]:
        """Return the stretches of consecutive lines that it is made of."""
        found: list[Place] = []
        for number in self.numbers:
            if found and found[-1].end == number:
                found[-1] = Place(path=path, start=found[-1].start, end=number + 1)
            else:
                found.append(Place(path=path, start=number, end=number + 1))
        return tuple(found)

    def without(self, numbers: Collection[int]) -> Excerpt:
        """Return the lines that have none of these numbers."""
        return self._kept([at for at, number in enumerate(self.numbers) if number not in numbers])

    def stripped(self) -> Excerpt:
        """Return it with runs of blank lines made one, and none at its ends."""
        kept: list[int] = []
        for at, line in enumerate(self.lines):
            if line.strip() or (kept and self.lines[kept[-1]].strip()):
                kept.append(at)
        if kept and not self.lines[kept[-1]].strip():
            kept.pop()
        return self._kept(kept)

    def _kept(self, kept: list[int]) -> Excerpt:
        return Excerpt(tuple(self.lines[at] for at in kept), tuple(self.numbers[at] for at in kept))
