"""Keys and rows of stored verdicts. Pure."""

from __future__ import annotations

import json

from ctxbench.bench import records
from ctxbench.bench.files import sha256
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.testing.types import Judgement
from ctxbench.bench.types import Sample
from ctxbench.harness.store.write import StoredVerdict

RULES = "1"
"""Version of the rules by which outcomes become verdicts outside the sandbox; a new one judges everything again."""
OUTPUT_KEPT = 16_384
"""Characters of a job's output that are stored; its first and last half."""


def sample_digest(sample_set: SampleSet, sample: Sample) -> str:
    """Return a digest of a sample, its answer and tests, and how its repository's tests are run."""
    entry = sample_set.manifest["repositories"].get(sample.repo, {})
    parts = [
        records.from_sample(sample),
        records.from_reference(sample_set.references[sample.id]),
        {name: entry.get(name) for name in ("snapshot", "tests")},
    ]
    return sha256(json.dumps(parts, sort_keys=True))


def verdict_key(sample: str, text: str, image: str) -> str:
    """Return the key of a verdict from the sample's digest, the whole function and the image."""
    return sha256("\n".join((RULES, sample, sha256(text), image)))


def stored(key: str, content: str, text: str, image: str, sandbox: str, judgement: Judgement) -> StoredVerdict:
    """Return the row of a judgement, without the middle of a long output."""
    output = judgement.output
    if len(output) > OUTPUT_KEPT:
        half = OUTPUT_KEPT // 2
        output = f"{output[:half]}\n[… {len(output) - 2 * half} characters left out …]\n{output[-half:]}"
    return StoredVerdict(
        key=key,
        sample_digest=content,
        text_digest=sha256(text),
        image=image,
        sandbox=sandbox,
        verdict=str(judgement.verdict),
        reason=" ".join(judgement.reason.split()),
        tests_run=judgement.tests_run,
        output=output,
        seconds=judgement.seconds,
        peak_bytes=judgement.peak_bytes,
        flags=judgement.flags,
        earlier=" ".join(judgement.earlier.split()),
    )
