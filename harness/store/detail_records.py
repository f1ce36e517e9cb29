"""Records of one sample of a run, read back: its prompt in pieces, its model calls, its completions. Frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ctxbench.bench.types import Place
from ctxbench.harness.results import Status

Kinds = Mapping[tuple[str, str], float | None]
"""(profile, metric) -> value in the profile's own scale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPiece:
    """A block of the final prompt, or one that was left out of it."""

    kind: str
    places: tuple[Place, ...]
    score: float | None
    tokens: int
    state: str
    """``kept``, ``cut`` or ``dropped``."""
    reason: str
    start: int | None
    """Characters of the prompt, [start, end); None for what was left out."""
    end: int | None
    gain: float | None
    """In bits, where `ctxbench diagnose` has priced it; of several coders the run's own, else the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCall:
    """A question to the model; its texts are read by `call_texts`."""

    ordinal: int
    role: str
    tokens_in: int
    tokens_out: int
    cached: int
    price: float | None
    """US dollars; None where nobody knows."""
    seconds: float
    finish: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionVerdict:
    """What the tests said of a completion; their output is read by `completion_texts`."""

    verdict: str
    reason: str
    tests_run: int
    seconds: float
    peak_bytes: int
    image: str
    sandbox: str
    flags: tuple[str, ...] = ()
    """What its text reaches for: names in `bench.testing.types.FLAGS`."""
    earlier: str = ""
    """What the tests said before, if they were run once more at once, beside no other job."""
    verdicts: tuple[str, ...] = ()
    """All verdicts on its text, the first one first; more than one where it was judged again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionFacts:
    """A completion without its text."""

    idx: int
    status: Status
    flags: tuple[str, ...]
    scores: Kinds
    judged: CompletionVerdict | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """One sample of one run. Of a sample that is missing there are no prompt, blocks, calls and completions."""

    run: str
    sample: str
    set_digest: str
    language: str
    kind: str
    level: str
    repo: str
    path: str
    line: int
    """Of the cursor, 0-based, as is `column`."""
    column: int
    status: Status
    marks: tuple[tuple[str, str], ...]
    """(mark, reason): why it is excluded."""
    faults: tuple[str, ...]
    """What the machine or the strategy said when the sample was tried, the last one last."""
    imported: bool
    """Whether it was made elsewhere: then nobody knows its prompt, its calls and its time."""
    flags: tuple[str, ...]
    context_tokens: int | None
    strategy_seconds: float | None
    generator_seconds: float | None
    prompt: str | None
    pieces: tuple[StoredPiece, ...]
    calls: tuple[StoredCall, ...]
    completions: tuple[CompletionFacts, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionTexts:
    """The texts of one completion."""

    text: str
    raw: str
    """As the model gave it."""
    output: str
    """Of its tests; empty if there were none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTexts:
    """The texts of one model call."""

    prompt: str
    answer: str
