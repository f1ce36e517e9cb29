"""Some lines of a file, with their line numbers in it. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ctxbench.bench.types import Place
from ctxbench.bench.windows import split_lines


@dataclass(frozen=True, slots=True)
class FileLines:
    """Some lines of one file, in order."""

    lines: tuple[str, ...]
    numbers: tuple[int, ...]
    """The number of each line in the file as the view shows it; 0-based, rising."""

    @classmethod
    def whole(cls, text: str) -> FileLines:
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
        stretches: list[Place] = []
        for number in self.numbers:
            if stretches and stretches[-1].end == number:
                stretches[-1] = Place(path=path, start=stretches[-1].start, end=number + 1)
            else:
                stretches.append(Place(path=path, start=number, end=number + 1))
        return tuple(stretches)

    def without(self, numbers: Collection[int]) -> FileLines:
        """Return the lines that have none of these numbers."""
        return self._at([at for at, number in enumerate(self.numbers) if number not in numbers])

    def stripped(self) -> FileLines:
        """Return it with runs of blank lines made one, and none at its ends."""
        positions: list[int] = []
        for at, line in enumerate(self.lines):
            if line.strip() or (positions and self.lines[positions[-1]].strip()):
                positions.append(at)
        if positions and not self.lines[positions[-1]].strip():
            positions.pop()
        return self._at(positions)

    def _at(self, positions: list[int]) -> FileLines:
        return FileLines(tuple(self.lines[at] for at in positions), tuple(self.numbers[at] for at in positions))
