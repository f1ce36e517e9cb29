"""Reference results: scores of the built-in strategies on a standard set, in files that ship with ctxbench.

The results are imported as runs of origin `reference`, so that you can compare your strategy after a single run. A file
contains scores, tokens and calls of every sample, but no prompts. Strategies cannot read the file (`harness.cells`),
because its numbers reveal answers. `python -m scripts.reference_results` writes it.

There is a file per kind of sample and model. The built-in model's file covers the whole set, without completions; a
published model's file covers some samples, with completions. A file is compressed JSON Lines: a header with one list
per field of the samples, then one line per run with lists in the same order.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from sqlalchemy import select

from ctxbench.bench import standard
from ctxbench.bench.code_tokens import NAME as TOKENIZER
from ctxbench.bench.concurrency import Progress, silent
from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.bench.files import sha256
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.spec import parse
from ctxbench.bench.types import Kind, Sample
from ctxbench.harness import metrics
from ctxbench.harness.cells.process import REFERENCE_FOLDER
from ctxbench.harness.generators.base import Sampling
from ctxbench.harness.generators.incontext import VERSION
from ctxbench.harness.imported import ImportSummary, add_records, sample_records, samples_of
from ctxbench.harness.imported.probes import probes_of
from ctxbench.harness.metrics import COPY_MODEL
from ctxbench.harness.results import Origin
from ctxbench.harness.run.spec import RunSpec, planned_samples
from ctxbench.harness.store import notes
from ctxbench.harness.store import schema as t
from ctxbench.harness.store.details import rows_of
from ctxbench.harness.store.runs import CONTEXT
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.write import Imported
from ctxbench.harness.submissions.records import (
    AnsweredRecord,
    AnswerRecord,
    AnswerStatus,
    CallRecord,
    SampleRecord,
    ScoreRecord,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceRun:
    """One strategy's results. Lists have one entry per sample, in the order of `ReferenceResults.samples`."""

    strategy: str
    strategy_version: str
    generator: str
    generator_version: str
    coder: str
    sampling: Mapping[str, Any]
    tokenizer: str
    code: str
    status: Sequence[AnswerStatus]
    context_tokens: Sequence[int]
    calls: Sequence[Sequence[tuple[str, int, int]]]
    """Model calls of each sample: the call's role, tokens read and tokens written."""
    scores: Mapping[str, Mapping[str, Sequence[float | None]]]
    """Each metric's values, one per sample, in the profile's own scale; by profile and then by metric."""
    texts: Sequence[str] = ()
    """Scored completions of a published model; empty for the built-in model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceResults:
    """The runs in one file over a standard set, or the part of them that covers the set's lite form."""

    name: str
    kind: Kind
    digest: str
    limit: int | None
    """Number of the set's samples that the runs cover; None for all."""
    source: Imported
    samples: tuple[Sample, ...]
    """The samples, without their texts."""
    days: Mapping[str, date]
    kinds: Mapping[str, Sequence[str]]
    """Kinds of names that each sample's target uses, as in `bench.types.Use`, by sample id."""
    probed: Mapping[str, Mapping[str, Any]]
    """Results of `probes_of` when the file was written, by name and then by language."""
    runs: tuple[ReferenceRun, ...]

    @property
    def model(self) -> str:
        """Value of the generator's argument `model`; without one, the generator's name."""
        generator = parse(self.runs[0].generator)
        return str(generator.arguments.get("model", generator.name))


def names() -> tuple[str, ...]:
    """Return the names of the standard sets with reference results, each followed by the name of its lite form."""
    return tuple(name for name in standard.names() if kinds(name))


def kinds(name: str) -> tuple[Kind, ...]:
    """Return the kinds of samples with reference results for a standard set."""
    return tuple(kind for kind in Kind if _file(name, kind).is_file())


def _file(name: str, kind: Kind) -> Path:
    return REFERENCE_FOLDER / f"{standard.whole_name(name)}-{kind}.jsonl.gz"


def models(name: str, kind: Kind = Kind.LINE) -> dict[str, ReferenceResults]:
    """Return published models' results over samples of one kind of a standard set, by the label in the file's name."""
    begin, end = f"{name}-{kind}-", ".jsonl.gz"
    paths = {path.name.removeprefix(begin).removesuffix(end): path for path in REFERENCE_FOLDER.glob(f"{begin}*{end}")}
    return {label: _results(paths[label], name, kind, lambda _: True) for label in sorted(paths)}


def load(name: str, kind: Kind = Kind.LINE) -> ReferenceResults:
    """Return the built-in model's results over a standard set; for a lite form, a part of the whole set's results.

    Raises:
        UnknownName: if the set has no reference results for this kind of sample.
    """
    having = tuple(other for other in standard.names() if kind in kinds(other))
    if name not in having:
        raise UnknownName("set with reference results", name, having)
    return _results(_file(name, kind), name, kind, standard.load(name).domains.__contains__)


def _results(path: Path, name: str, kind: Kind, has: Callable[[str], bool]) -> ReferenceResults:
    packed = path.read_bytes()
    header, *lines = map(json.loads, gzip.decompress(packed).decode().splitlines())
    columns = header["samples"]
    keep = [place for place, repo in enumerate(columns["repo"]) if has(repo)]
    rows = [{key: column[place] for key, column in columns.items()} for place in keep]
    samples, days = samples_of(map(_record, rows), kind)
    return ReferenceResults(
        name=name,
        kind=kind,
        digest=standard.load(name).digests[kind],
        limit=header.get("limit"),
        source=Imported(format=Origin.REFERENCE, source=name, sha256=sha256(packed)),
        samples=tuple(samples),
        days=days,
        kinds={row["id"]: row["kinds"] for row in rows},
        probed=header["probes"],
        runs=tuple(_run(line, keep) for line in lines),
    )


def _part(column: Sequence[Any], keep: Sequence[int]) -> list[Any]:
    return [column[place] for place in keep]


def _record(row: Mapping[str, Any]) -> SampleRecord:
    facts = {name: row[name] for name in ("id", "benchmark", "language", "repo", "path", "line", "column")}
    return SampleRecord(**facts, level=row["subkind"], day=row["day"] or None)


def _run(line: Mapping[str, Any], keep: Sequence[int]) -> ReferenceRun:
    scores = {
        profile: {metric: _part(column, keep) for metric, column in columns.items()}
        for profile, columns in line["scores"].items()
    }
    parts = {key: _part(line[key], keep) for key in ("status", "context_tokens", "calls", "texts") if key in line}
    return ReferenceRun(**{**line, **parts, "scores": scores})


def import_reference(
    store: Store,
    name: str,
    kind: Kind = Kind.LINE,
    *,
    sample_set: SampleSet | None = None,
    progress: Progress = silent,
) -> list[ImportSummary]:
    """Store the reference results of a standard set as runs; stored results stay unchanged.

    Raises:
        UnknownName: if the set has no reference results for this kind of sample.
        InputFault: if samples, tokenizer, metrics or copy model differ from those in use here; nothing is stored.
    """
    return store_files(
        store, [load(name, kind), *models(name, kind).values()], sample_set=sample_set, progress=progress
    )


def store_files(
    store: Store,
    files: Sequence[ReferenceResults],
    *,
    sample_set: SampleSet | None = None,
    progress: Progress = silent,
) -> list[ImportSummary]:
    """Store all runs of reference files over one standard set and kind of sample; see `import_reference`."""
    for results in files:
        _check(results, sample_set)
    set_name = standard.samples_name(files[0].name, files[0].kind) if sample_set is None else sample_set.name
    with progress("import", sum(len(results.runs) for results in files)) as tick:
        summaries = []
        for results in files:
            for run in results.runs:
                summaries.append(_stored(store, results, run, set_name))
                tick(1)
    return summaries


def _check(results: ReferenceResults, sample_set: SampleSet | None) -> None:
    where = f"--reference {results.name}"
    if sample_set is not None and sample_set.digest != results.digest:
        raise InputFault(
            f"the sample set {sample_set.name!r} contains other samples than the reference results",
            where=where,
            cure=f"build the set with `ctxbench samples build NAME --set {results.name} --kind {results.kind}` and "
            "give --samples NAME",
        )
    built_in = {"generator_version": VERSION, "coder": f"{COPY_MODEL} {VERSION}"}
    cure = f"install ctxbench {results.runs[0].code}, which measured them, or run the strategies yourself"
    for run in results.runs:
        current = {"tokenizer": TOKENIZER} | (built_in if run.generator == COPY_MODEL else {})
        for field, version in current.items():
            if getattr(run, field) != version:
                raise InputFault(
                    "the reference results were measured with another tokenizer or copy model: "
                    f"{getattr(run, field)}, but this version uses {version}",
                    where=where,
                    cure=cure,
                )
    if different := changed(results):
        raise InputFault(
            f"the reference results were scored with other versions of these metrics: {', '.join(different)}",
            where=where,
            cure=cure,
        )


def changed(results: ReferenceResults) -> list[str]:
    """Return the names of the probes (see `probes_of`) whose results have changed since the file was written."""
    now = probes_of(sorted({sample.language for sample in results.samples}))
    return [name for name in sorted(now.keys() | results.probed.keys()) if now.get(name) != results.probed.get(name)]


def _stored(store: Store, results: ReferenceResults, run: ReferenceRun, set_name: str) -> ImportSummary:
    spec = RunSpec(
        samples=set_name,
        samples_digest=results.digest,
        set_size=standard.load(results.name).size(results.kind),
        strategy=run.strategy,
        # The file's digest distinguishes the id from that of a user's run.
        strategy_version=f"{Origin.REFERENCE} {results.source.sha256[:12]} {run.strategy_version}",
        generator=run.generator,
        generator_version=run.generator_version,
        coder=run.coder,
        sampling=Sampling(**{**run.sampling, "stop": tuple(run.sampling["stop"])}),
        tokenizer=run.tokenizer,
        code=run.code,
        limit=results.limit,
    )
    id_ = store.add_run(spec, results.samples, results.days)
    notes.add_imported(store, id_, results.source)
    finished_ids = store.finished(id_)
    new = [place for place, sample in enumerate(results.samples) if sample.id not in finished_ids]
    add_records(
        store,
        spec,
        [_answered(results.samples[place].id, run, place) for place in new],
        [_scored(results.samples[place].id, run, place) for place in new],
    )
    return ImportSummary(
        run=id_,
        samples=set_name,
        strategy=run.strategy,
        generator=run.generator,
        n=1,
        planned=len(results.samples),
        new=len(new),
        remarks=(),
    )


def _answered(sample: str, run: ReferenceRun, place: int) -> AnsweredRecord:
    """Return the record of a sample's model calls. If the run has texts, the last call wrote the completion."""
    status, text = run.status[place], run.texts[place] if run.texts else ""
    calls = [
        CallRecord(role=role, prompt="", answer="", max_tokens=0, tokens_in=tokens_in, tokens_out=tokens_out)
        for role, tokens_in, tokens_out in run.calls[place]
    ]
    final = [calls.pop()] if run.texts else []
    return AnsweredRecord(
        sample=sample,
        status=status,
        prompt="",
        context_tokens=run.context_tokens[place],
        strategy_seconds=0.0,
        generator_seconds=0.0,
        calls=tuple(calls),
        completions=tuple(
            AnswerRecord(status=status, text=text, tokens_in=call.tokens_in, tokens_out=call.tokens_out)
            for call in final
        ),
    )


def _scored(sample: str, run: ReferenceRun, place: int) -> ScoreRecord:
    scores = {
        profile: {metric: column[place] for metric, column in columns.items()}
        for profile, columns in run.scores.items()
    }
    return ScoreRecord(sample=sample, scores=scores)


def write(
    name: str,
    sample_set: SampleSet,
    runs: Sequence[ReferenceRun],
    *,
    label: str = "",
    limit: int | None = None,
) -> Path:
    """Write complete runs over a standard set, or over `limit` of its samples, to a shipped file; return its path."""
    (kind,) = {sample.kind for sample in sample_set.samples}
    planned = planned_samples(sample_set.samples, limit)
    records = sample_records(sample_set, limit, None)
    names = ("id", "benchmark", "language", "repo", "path", "line", "column")
    samples: dict[str, list[Any]] = {name: [getattr(record, name) for record in records] for name in names}
    samples |= {"subkind": [record.level for record in records], "day": [record.day or "" for record in records]}
    samples["kinds"] = [sorted({use.kind for use in sample.uses}) for sample in planned]
    languages = sorted({sample.language for sample in planned})
    header: dict[str, Any] = {"samples": samples, "probes": probes_of(languages)}
    header |= {} if limit is None else {"limit": limit}
    lines = [header, *map(_line, runs)]
    text = "".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in lines)
    path = REFERENCE_FOLDER / f"{name}-{kind}-{label}.jsonl.gz" if label else _file(name, kind)
    # Without a time stamp, equal results produce equal bytes.
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    return path


def _line(run: ReferenceRun) -> dict[str, Any]:
    return {key: value for key, value in asdict(run).items() if key != "texts" or value}


def read(store: Store, id_: str, sample_set: SampleSet, limit: int | None = None) -> ReferenceRun:
    """Return a complete stored run with one list per field, in the samples' order."""
    samples = [sample.id for sample in planned_samples(sample_set.samples, limit)]
    rows = rows_of(store, id_)
    with store.reading() as connection:
        run = connection.execute(select(t.RUN).where(t.RUN.c.id == id_)).one()
    values = {sample: rows.scores[sample, 0] for sample in samples}
    columns = {
        profile: sorted({metric for of_sample in values.values() for metric in of_sample[profile]})
        for profile in (CONTEXT, *sorted(metrics.PROFILES))
    }
    return ReferenceRun(
        **{field: getattr(run, field) for field in _SPEC_FIELDS},
        sampling=json.loads(run.sampling),
        status=[rows.results[sample].status for sample in samples],
        context_tokens=[rows.results[sample].context_tokens for sample in samples],
        calls=[
            [(call.role, answer.tokens_in, answer.tokens_out) for call, answer in rows.calls[sample]]
            for sample in samples
        ],
        scores={
            profile: {metric: [values[sample][profile].get(metric) for sample in samples] for metric in names}
            for profile, names in columns.items()
        },
        texts=() if run.generator == COPY_MODEL else [rows.completions[sample][0][0].text for sample in samples],
    )


def gathered(newest: ReferenceRun, columns: Sequence[tuple[ReferenceRun, int]]) -> ReferenceRun:
    """Return `newest` with other results: `columns` has, for each sample, a run and the sample's index in that run."""
    return replace(
        newest,
        status=[run.status[place] for run, place in columns],
        context_tokens=[run.context_tokens[place] for run, place in columns],
        calls=[run.calls[place] for run, place in columns],
        scores={
            profile: {metric: [run.scores[profile][metric][place] for run, place in columns] for metric in of_profile}
            for profile, of_profile in newest.scores.items()
        },
        texts=[run.texts[place] for run, place in columns] if newest.texts else (),
    )


_SPEC_FIELDS = ("strategy", "strategy_version", "generator", "generator_version", "coder", "tokenizer", "code")
