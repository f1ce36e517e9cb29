"""Records handed to the store: one finished sample with its completions, verdicts and faults. Frozen data, no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ctxbench.harness.results import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredGeneration:
    """One answer of a generator, under the key of everything that decided it."""

    id: str
    generator: str
    version: str
    prompt_digest: str
    prompt: str
    sampling: str
    idx: int
    text: str
    finish: str
    tokens_in: int
    tokens_out: int
    seconds: float
    cached: int = 0
    """How many of `tokens_in` the service had at hand."""
    price: float | None = None
    """US dollars, as of when it was asked; None where nobody knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBits:
    """What a target costs after a prompt."""

    language: str
    prompt_digest: str
    prompt: str
    target_digest: str
    bits: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBlock:
    """A stretch of the final prompt, or one that was left out of it."""

    kind: str
    places: str
    """JSON: a list of [path, start, end]."""
    score: float | None
    tokens: int
    state: str
    """``kept``, ``cut`` or ``dropped``."""
    reason: str
    char_start: int | None
    char_end: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredVerdict:
    """What the tests said of one text, under the key of everything that decided it."""

    key: str
    sample_digest: str
    text_digest: str
    image: str
    sandbox: str
    """Name of the back end."""
    verdict: str
    """Never ``BROKEN``: that is no verdict to use again."""
    reason: str
    tests_run: int
    output: str
    seconds: float
    peak_bytes: int
    flags: tuple[str, ...] = ()
    """Names in `bench.testing.types.FLAGS`: what the text reaches for. They change no score."""
    earlier: str = ""
    """What the tests said before, if they were run once more at once, with no other job beside them; else empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCompletion:
    """One completion and its scores."""

    generation_id: str
    status: Status
    text: str
    flags: tuple[str, ...]
    scores: Mapping[tuple[str, str], float | None]
    """(profile, metric) -> value in the profile's own scale."""
    verdict: str | None = None
    """Key of the stored verdict; None for lines, for an empty completion, and for what nobody judged yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """Everything about one sample of a run; stored whole or not at all."""

    sample_id: str
    status: Status
    prompt_digest: str
    prompt: str
    context_tokens: int
    flags: tuple[str, ...]
    strategy_seconds: float
    """Time the strategy worked, its waiting for the model left out."""
    generator_seconds: float
    calls: tuple[tuple[str, str], ...]
    """(role, generation id) in order, the final one last."""
    blocks: tuple[StoredBlock, ...]
    completions: tuple[StoredCompletion, ...]
    bits: tuple[StoredBits, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredConstruction:
    """How long one thing took that a repository is searched by, made once for many samples."""

    repo: str
    stage: str
    """What was made, e.g. ``units function()`` or ``index bm25 of function()``."""
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFault:
    """Why a sample is missing."""

    sample_id: str
    kind: str
    """``machine`` or ``strategy``."""
    message: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A sample of a set that no score is to rest on."""

    sample_id: str
    mark: str
    """``broken`` (its own answer fails its tests) or ``vacuous`` (an empty body passes them)."""
    reason: str = ""
    image: str = ""
    """What its tests were run in, when it was found out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The file that a run was imported from."""

    format: str
    source: str
    """The path as given."""
    sha256: str
