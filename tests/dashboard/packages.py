"""Minimal packages of results for tests of the public board."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ctxbench.harness.submissions import format as files
from ctxbench.harness.submissions import records as form

REPOS = "abcdefgh"
SCORES = (0.2, 0.9, 0.4, 0.7)


def make_package(
    spec: str = "lc.infile",
    *,
    gain: float = 0.0,
    text: str = "x = 1",
    repos: Sequence[str] = REPOS,
    scores: dict[str, float] | None = None,
    profile: str = "ctxbench",
    sources: dict[str, str] | None = None,
    **changes: Any,
) -> form.Submission:
    """Return a package of 32 line samples in 8 repositories, with some fields of its manifest changed.

    Args:
        spec: the strategy's spec.
        gain: the amount added to the edit similarity of every sample.
        text: the beginning of every completion.
        repos: the repositories, with four samples each.
        scores: additional scores of every sample, under `profile`.
        profile: the profile of `scores`.
        sources: the strategy's source code, by file.
        changes: changed fields of the manifest. A dictionary changes fields of a part.
    """
    samples = tuple(
        form.SampleRecord(
            id=f"{repo}/m.py#L{n}C4",
            benchmark="ctxbench",
            language="python",
            level="single-line",
            repo=repo,
            path="m.py",
            line=n,
            column=4,
        )
        for repo in repos
        for n in range(4)
    )
    manifest = form.Manifest(
        format=form.FORMAT,
        id="0" * 12,
        title=f"{spec} by the copy model",
        authors=("Ada Example",),
        license="CC0-1.0",
        date="2026-11-01",
        set=form.SetPart(name="demo", digest="d" * 64, kind="line", samples=len(samples)),
        model=form.ModelPart(spec="hf(model=tiny)", version="sha256 1234"),
        strategy=form.StrategyPart(spec=spec, version="1", source="built-in", package="ctxbench==0.2.0"),
        sampling=form.SamplingPart(max_tokens=64, temperature=0.0, top_p=1.0, completions=1, seeds=(0,)),
        versions=form.VersionsPart(ctxbench="0.2.0", metrics="e" * 64, tokenizer="code", coder=""),
        cost=form.CostPart(strategy_seconds=1.0, generator_seconds=2.0, tokens_in=100, tokens_out=10),
        files={},
    )
    for name, value in changes.items():
        inner = replace(getattr(manifest, name), **value) if isinstance(value, dict) else value
        manifest = replace(manifest, **{name: inner})
    asked = [(sample.id, at) for at in range(len(manifest.sampling.seeds)) for sample in samples]
    completions = tuple(
        form.AnsweredRecord(
            sample=sample,
            repetition=at,
            status="scored",
            prompt="a" * 64,
            context_tokens=100,
            strategy_seconds=0.1,
            generator_seconds=0.2,
            completions=(form.AnswerRecord(status="scored", text=f"{text}  # {sample}"),),
        )
        for sample, at in asked
    )

    def values(place: int) -> dict[str, dict[str, float | None]]:
        es = min(1.0, max(0.0, SCORES[place % 4] + gain * (1 + 0.1 * (place % 3))))
        own: dict[str, dict[str, float | None]] = {"ctxbench": {"es": es, "em": 0.0}}
        own.setdefault(profile, {}).update(scores or {})
        return own

    records = tuple(
        form.ScoreRecord(sample=sample, repetition=at, scores=values(place)) for place, (sample, at) in enumerate(asked)
    )
    return files.sealed(
        form.Submission(
            manifest=manifest, samples=samples, completions=completions, scores=records, sources=sources or {}
        )
    )


def scored(package: form.Submission, repetition: int) -> list[float | None]:
    return [record.scores["ctxbench"]["es"] for record in package.scores if record.repetition == repetition]


def write(folder: Path, *packages: form.Submission) -> Path:
    for package in packages:
        files.write(folder / package.manifest.id, package)
    return folder
