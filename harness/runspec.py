"""`RunSpec`: every choice that decides a run's numbers, in one frozen record whose digest is the run's id."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any

from ctxbench.bench.files import sha256
from ctxbench.harness.generators.base import Sampling


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """All choices of a run. Two runs with equal specs have equal ids and are one run, continued."""

    samples: str
    """Name of the sample set."""
    samples_digest: str
    limit: int | None = None
    """How many samples were chosen of the set; None for all."""
    strategy: str
    """Canonical spec."""
    strategy_version: str
    """Digest of the files that define it."""
    generator: str
    """Canonical spec."""
    generator_version: str
    coder: str
    """The coder that measured context gain: spec and version; empty if none did."""
    sampling: Sampling
    n: int = 1
    """Completions a sample."""
    seed: int = 0
    tokenizer: str
    """The tokenizer that budgets are counted with."""
    code: str
    """Version of ctxbench."""

    @property
    def id(self) -> str:
        """Twelve hexadecimal digits of a digest over every field."""
        fields = {**dataclasses.asdict(self), "sampling": _fields(self.sampling)}
        return sha256(json.dumps(fields, sort_keys=True))[:12]


def sampling_key(sampling: Sampling) -> str:
    """Return the decoding parameters as text, equal for equal parameters."""
    return json.dumps(_fields(sampling), sort_keys=True)


def _fields(sampling: Sampling) -> dict[str, Any]:
    """Return the parameters by name, without `fim` if it is off: keys from before it existed stay as they were."""
    fields = dataclasses.asdict(sampling)
    if not fields["fim"]:
        del fields["fim"]
    return fields
