"""What `ctxbench results verify` found in a package, part by part; the content of ``verification.json``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from ctxbench.harness.submissions.records import Count, Digest, Id, Label, Name, Record, Text

_NEAR = 1e-9
"""Relative difference allowed between values of two machines, whose libraries add in different orders."""
_SHOWN = 300
"""Longest value in a difference."""
PartName: TypeAlias = Literal[
    "samples", "strategy", "prompts", "answers", "completions", "scores", "verdicts", "means", "description"
]


class PartState(StrEnum):
    """How far a part of a package was checked."""

    DERIVED = "re-derived"
    """Made again from the sample set, the strategy and the answers."""
    RESCORED = "rescored only"
    """Computed again from the completions, without the strategy."""
    TRUSTED = "trusted"
    """The author's word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueDifference(Record):
    """The first value of a part that is not the package's."""

    sample: Label
    """Empty if it is of the whole package."""
    what: Label
    expected: Text
    """The package's value."""
    got: Text
    """The value here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartCheck(Record):
    """What was checked of one part of a package."""

    name: PartName
    state: Annotated[PartState, Field(strict=False)]
    checked: Count
    """Number of values that were compared, out of `of`."""
    of: Count
    note: Text = ""
    """Why it was not checked further."""
    differing: Count = 0
    difference: ValueDifference | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageVerification(Record):
    """What `ctxbench results verify` found; also the content of ``verification.json``."""

    id: Id
    digest: Digest
    """`digest_of` the package: a verification of another package says nothing of this one."""
    ctxbench: Name
    samples: Count
    """Number of samples that were drawn."""
    of: Count
    parts: Annotated[tuple[PartCheck, ...], Field(max_length=20)]

    @property
    def equal(self) -> bool:
        """Whether nothing differs from what the package says."""
        return not any(part.differing for part in self.parts)


@dataclass(slots=True, kw_only=True)
class ComparedPart:
    """A part of a package while it is compared; its fields become those of `PartCheck`."""

    name: PartName
    of: int
    state: PartState = PartState.DERIVED
    note: str = ""
    checked: int = 0
    differing: int = 0
    difference: ValueDifference | None = None

    def compare(self, sample: str, what: str, expected: object, got: object, *, counts: bool = True) -> None:
        """Compare the package's value with the one made here; `counts` is false for what is not one of the `of`."""
        self.checked += counts
        if not same(expected, got):
            self.differing += 1
            texts = str(expected)[:_SHOWN], str(got)[:_SHOWN]
            self.difference = self.difference or ValueDifference(
                sample=sample, what=what, expected=texts[0], got=texts[1]
            )

    def trust(self, note: str) -> None:
        """Say that nobody can check the part here, and why."""
        self.state, self.note = PartState.TRUSTED, note

    def check(self) -> PartCheck:
        """Return how the comparison came out."""
        return PartCheck(**{name: getattr(self, name) for name in self.__slots__})


def same(expected: object, got: object) -> bool:
    """Return whether two values are equal, numbers but for the order in which a machine adds."""
    if isinstance(expected, dict) and isinstance(got, dict):
        return expected.keys() == got.keys() and all(same(expected[name], got[name]) for name in expected)
    if isinstance(expected, float) and isinstance(got, float | int):
        return abs(expected - got) <= _NEAR * max(1.0, abs(expected))
    return expected == got
