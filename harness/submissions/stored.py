"""Packages and stored runs: `packed` builds a package of a run's repetitions, `add` stores a package as runs."""

from __future__ import annotations

import json
import re
import socket
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from importlib.metadata import entry_points, version
from pathlib import Path
from typing import Any

from sqlalchemy import select

from ctxbench.bench import spec as specs
from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import read_text, write_atomic
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Kind
from ctxbench.harness.cells import open_cells
from ctxbench.harness.generators import base
from ctxbench.harness.generators.base import Sampling
from ctxbench.harness.imported import add_records, sample_records, samples_of
from ctxbench.harness.imported.probes import metrics_digest
from ctxbench.harness.leaderboard import board
from ctxbench.harness.results import Origin
from ctxbench.harness.run.runner import card_of
from ctxbench.harness.run.sample import FINAL
from ctxbench.harness.run.spec import RunSpec
from ctxbench.harness.store import notes
from ctxbench.harness.store import schema as t
from ctxbench.harness.store.details import RunRows, rows_of
from ctxbench.harness.store.runs import run_tables
from ctxbench.harness.store.store import Store, open_store
from ctxbench.harness.store.work import RunWork
from ctxbench.harness.store.write import (
    Imported,
    Mark,
    read_flags,
)
from ctxbench.harness.submissions import records as form
from ctxbench.harness.submissions.format import sealed
from ctxbench.strategies.registry import CONTROLS, DISTRIBUTION

_PATH = re.compile(r"(?<![\w:/.])~?/(?:[^/(),='\"]+/)*(?=[^/\s(),='\"])")
_ADDRESS = re.compile(r"http://[^/\s(),='\"]+")


def packed(
    store: Store, runs: Sequence[RunWork], sample_set: SampleSet, *, title: str = "", **words: Any
) -> form.Submission:
    """Return the package of a run, or of its repetitions with other seeds. Equal runs produce equal packages.

    Args:
        store: the store that contains the runs.
        runs: the runs to pack; every sample must have a result.
        sample_set: the runs' samples.
        title: title of the package; empty for the names of the strategy and the model.
        words: the manifest's authors, license and supersedes.

    Raises:
        InputFault: if the runs differ in more than the seed, are incomplete or imported, or the strategy's file is not
            the one that was run.
    """
    runs = sorted(runs, key=lambda run: run.choices.seed)
    _check(runs)
    first, choices, versions = runs[0], runs[0].choices, runs[0].choices.versions
    after = None if choices.after is None else choices.after.isoformat()
    day = datetime.fromtimestamp(max(attempt.started for run in runs for attempt in run.attempts), UTC).date()
    strategy, sources = _strategy(first)
    samples = sample_records(sample_set, choices.limit, after, notes.marks_of(store, sample_set.digest))
    completions, scores, cost = _contents(store, [run.id for run in runs], [sample.id for sample in samples])
    loads = sorted({str(attempt.load) for run in runs for attempt in run.attempts if attempt.load})
    manifest = form.Manifest(
        format=form.FORMAT,
        id="0" * 12,
        title=title or f"{strategy.spec} with {public(choices.generator)}",
        date=day.isoformat(),
        **words,
        set=form.SetPart(
            name=choices.samples,
            digest=sample_set.digest,
            kind="function" if sample_set.samples[0].kind is Kind.FUNCTION else "line",
            protocol=str(sample_set.manifest.get("protocol", "ctxbench")),
            samples=len(samples),
            limit=choices.limit,
            after=after,
        ),
        model=_model_part(store, first, day),
        strategy=strategy,
        sampling=_sampling_part(runs),
        versions=form.VersionsPart(
            ctxbench=versions["ctxbench"],
            metrics=metrics_digest(sorted({sample.language for sample in samples})),
            tokenizer=versions["tokenizer"],
            coder=versions.get("coder", ""),
        ),
        cost=replace(cost, machine=public("; ".join(loads))[:500]),
        files={},
    )
    submission = form.Submission(
        manifest=manifest, samples=samples, completions=completions, scores=scores, sources=sources
    )
    return sealed(replace(submission, manifest=replace(manifest, mean=means(submission))))


def _model_part(store: Store, run: RunWork, day: date) -> form.ModelPart:
    choices, capabilities = run.choices, base.resolve(run.choices.generator).capabilities
    with store.reading() as connection:
        summarised = connection.execute(
            select(t.SUMMARISED_FACT.c.run).where(t.SUMMARISED_FACT.c.run == t.run_number(run.id)).limit(1)
        ).first()
    return form.ModelPart(
        spec=public(choices.generator),
        version=choices.versions.get("generator", ""),
        service_date=day.isoformat() if capabilities.service else None,
        instructs=capabilities.instructs,
        tools=capabilities.tools,
        summaries=bool(summarised) or bool(choices.summariser),
    )


def _sampling_part(runs: Sequence[RunWork]) -> form.SamplingPart:
    choices = runs[0].choices
    return form.SamplingPart(
        **{name: getattr(choices.sampling, name) for name in ("max_tokens", "temperature", "top_p")},
        stop=choices.sampling.stop,
        fim=choices.sampling.fim,
        completions=choices.n,
        seeds=tuple(run.choices.seed for run in runs),
    )


def _check(runs: Sequence[RunWork]) -> None:
    first = runs[0]
    for run in runs:
        if run.origin is not Origin.RUN:
            raise InputFault(f"the run {run.id} was imported, not run here", cure="pack a run of your own")
        if run.planned != run.finished or run.unjudged:
            raise InputFault(
                f"{run.planned - run.finished} samples and {run.unjudged} verdicts of the run {run.id} are missing",
                cure="run the same `ctxbench run` again",
            )
        mine, others = (
            replace(choices, seed=0, sampling=replace(choices.sampling, seed=0))
            for choices in (run.choices, first.choices)
        )
        if mine != others or run.sandbox != first.sandbox:
            raise InputFault(
                f"the runs {first.id} and {run.id} differ in more than the seed", cure="pack each run in its own folder"
            )
    if len({run.choices.seed for run in runs}) < len(runs):
        raise InputFault("a run is given twice", cure="name each run once")


def public(text: str) -> str:
    """Remove folders from the paths in a text; replace ``http://`` hosts and this machine's name by ``local``."""
    plain = _ADDRESS.sub("http://local", _PATH.sub("", text))
    host = socket.gethostname()
    return plain.replace(host, "local") if len(host) > 3 and host != "localhost" else plain


def _strategy(run: RunWork) -> tuple[form.StrategyPart, dict[str, str]]:
    """Return the strategy of a run, and its source if it is one file."""
    spec, strategy_version = run.choices.strategy, run.choices.strategy_version
    parsed, label = specs.parse(spec), public(spec)
    path, at, _ = parsed.name.rpartition("@")
    part = form.StrategyPart(spec=label, version=strategy_version, source="file")
    if not at:
        return (_origin(part, parsed.name) if label == spec else replace(part, spec=_unfiled(label))), {}
    file = Path(path).expanduser()
    part, sources = replace(part, spec=label, file=file.name), {file.name: read_text(file)}
    if str(replace(parsed, name=parsed.name[len(path) :])) not in label:
        # The spec also names an engine or a wrapped strategy in a file, which a package does not contain.
        return replace(part, spec=_unfiled(label), file=None), {}
    with tempfile.TemporaryDirectory() as folder, open_cells([], 1) as cells:
        if card_of(placed(part, sources, Path(folder)), cells).version != strategy_version:
            raise InputFault(
                "the strategy file changed since the run, or it imports files beside it",
                where=str(file),
                cure="put the whole strategy into one file, and run the strategy again",
            )
    return part, sources


def _unfiled(spec: str) -> str:
    """Return a spec without the characters and endings that could name a file."""
    return re.sub(r"[@/\\]", " ", re.sub(r"\.(py|toml)\b", "", spec))


def _origin(part: form.StrategyPart, name: str) -> form.StrategyPart:
    points = entry_points(group="ctxbench.strategies", name=name)
    dist = next((point.dist for point in points if point.dist is not None), None)
    if name in CONTROLS or dist is None or dist.name == DISTRIBUTION:
        return replace(part, source="built-in", package=f"{DISTRIBUTION}=={version(DISTRIBUTION)}")
    return replace(part, source="package", package=f"{dist.name}=={dist.version}")


def placed(strategy: form.StrategyPart, sources: Mapping[str, str], folder: Path) -> str:
    """Write a strategy's source, if it has one, into a folder that cells can read; return the spec that runs it."""
    if strategy.file is None:
        return strategy.spec
    folder.chmod(0o755)
    write_atomic(folder / strategy.file, sources[strategy.file])
    return f"{folder}/{strategy.spec}"


def _contents(
    store: Store, runs: Sequence[str], samples: Sequence[str]
) -> tuple[tuple[form.AnsweredRecord, ...], tuple[form.ScoreRecord, ...], form.CostPart]:
    """Return the runs' lines of ``completions.jsonl`` and ``scores.jsonl``, and their total cost."""
    completions: list[form.AnsweredRecord] = []
    scores: list[form.ScoreRecord] = []
    prices: list[float | None] = []
    for repetition, run in enumerate(runs):
        rows = rows_of(store, run)
        for sample in samples:
            completions.append(completion_of(rows, sample, repetition))
            scores += _lines(rows, sample, repetition)
        prices += [row.price for row in rows.answers.values()]
    priced = [price for price in prices if price is not None]
    answers: list[form.AnswerUsage] = [call for record in completions for call in (*record.calls, *record.completions)]
    cost = form.CostPart(
        strategy_seconds=round(sum(record.strategy_seconds for record in completions), 3),
        generator_seconds=round(sum(record.generator_seconds for record in completions), 3),
        tokens_in=sum(answer.tokens_in for answer in answers),
        tokens_out=sum(answer.tokens_out for answer in answers),
        price=round(sum(priced), 6) if priced and len(priced) == len(prices) else None,
    )
    return tuple(completions), tuple(scores), cost


def completion_of(rows: RunRows, sample: str, repetition: int) -> form.AnsweredRecord:
    """Return a sample's record for ``completions.jsonl``, from the stored rows of its run."""
    result = rows.results[sample]
    return form.AnsweredRecord(
        sample=sample,
        repetition=repetition,
        status=result.status,
        prompt=result.prompt_digest,
        context_tokens=result.context_tokens,
        flags=read_flags(result.flags),
        strategy_seconds=round(result.strategy_seconds, 6),
        generator_seconds=round(result.generator_seconds, 6),
        calls=tuple(
            form.CallRecord(
                role=row.role,
                prompt=answer.prompt_digest,
                answer=answer.text,
                max_tokens=json.loads(answer.sampling).get("max_tokens", 0),
                **_usage(answer),
            )
            for row, answer in rows.calls[sample]
            if row.role != FINAL
        ),
        completions=tuple(
            form.AnswerRecord(
                status=row.status,
                text=row.text,
                answer=answer.text if answer.text != row.text else None,
                **_usage(answer),
            )
            for row, answer in rows.completions[sample]
        ),
    )


def _lines(rows: RunRows, sample: str, repetition: int) -> Iterator[form.ScoreRecord]:
    """Yield the lines of a sample in ``scores.jsonl``."""
    for idx in range(max(1, len(rows.completions[sample]))):
        yield form.ScoreRecord(
            sample=sample,
            repetition=repetition,
            completion=idx,
            scores={profile: dict(values) for profile, values in rows.scores[sample, idx].items()},
            verdict=rows.verdicts.get((sample, idx)),
        )


def _usage(answer: Any) -> dict[str, Any]:
    usage = {name: getattr(answer, name) for name in ("finish", "tokens_in", "tokens_out")}
    return usage | {"seconds": round(answer.seconds, 6)}


def means(submission: form.Submission) -> tuple[form.MeanPart, ...]:
    """Return the means of a package's scores, as the board computes them."""
    with tempfile.TemporaryDirectory() as folder, open_store(f"sqlite:///{folder}/means.db") as store:
        add(store, submission)
        groups = board(run_tables(store), by_level=False).groups
    return tuple(
        form.MeanPart(language=group.language, metric=metric, mean=mean.mean, low=mean.low, high=mean.high)
        for group in groups
        for row in group.rows
        for metric, mean in sorted(row.metrics.items())
        if mean.mean is not None
    )


def add(store: Store, submission: form.Submission, *, scored: bool = True, imported: bool = True) -> list[str]:
    """Store a package as runs, one per repetition; return their ids. Stored packages are not stored again.

    Args:
        store: receives the runs.
        submission: a package that `format.read` has checked.
        scored: whether its scores and verdicts are stored too.
        imported: whether the runs count as imported; boards show no costs of imported runs.
    """
    manifest = submission.manifest
    samples, days = samples_of(submission.samples, Kind(manifest.set.kind))
    marks = [Mark(sample_id=record.id, mark=mark) for record in submission.samples for mark in record.marks]
    notes.add_marks(store, manifest.set.digest, marks)
    ids = []
    for repetition, seed in enumerate(manifest.sampling.seeds):
        spec = _spec(manifest, seed)
        ids.append(store.add_run(spec, samples, days))
        if imported:
            source = Imported(format="package", source=manifest.id, sha256=form.digest_of(manifest))
            notes.add_imported(store, spec.id, source)
        add_records(
            store,
            spec,
            [record for record in submission.completions if record.repetition == repetition],
            [line for line in submission.scores if scored and line.repetition == repetition],
        )
    return ids


def _spec(manifest: form.Manifest, seed: int) -> RunSpec:
    sampling, versions = manifest.sampling, manifest.versions
    after = manifest.set.after
    return RunSpec(
        samples=manifest.set.name,
        samples_digest=manifest.set.digest,
        limit=manifest.set.limit,
        after=date.fromisoformat(after) if after else None,
        strategy=manifest.strategy.spec,
        # The package's id makes the run differ from a run of the user.
        strategy_version=f"package {manifest.id} {manifest.strategy.version}",
        generator=manifest.model.spec,
        generator_version=manifest.model.version,
        coder=versions.coder,
        sampling=Sampling(
            max_tokens=sampling.max_tokens,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            seed=seed,
            stop=sampling.stop,
            fim=sampling.fim,
        ),
        n=sampling.completions,
        seed=seed,
        tokenizer=versions.tokenizer,
        code=versions.ctxbench,
    )
