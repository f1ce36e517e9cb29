"""Import a file of recorded predictions as stored runs whose origin is that file.

Everything is read and checked before anything is stored. A run's id is a digest that holds the file's, so that
the same file again is the same run; after an interrupt it stores what is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ctxbench.bench.formats.types import Table
from ctxbench.bench.languages.base import Language
from ctxbench.bench.samples import SampleSet
from ctxbench.harness import imported
from ctxbench.harness.imported.conversion import generation, new_samples, remarks, spec_of, unscored
from ctxbench.harness.imported.matching import Labels, Matched, matched
from ctxbench.harness.run.attempt import Progress, silent
from ctxbench.harness.run.sample import AnsweredSample
from ctxbench.harness.run.scoring import SampleScorer
from ctxbench.harness.run.spec import RunSpec
from ctxbench.harness.store import notes, verdicts
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.write import Finished, Imported

_Scored = tuple[AnsweredSample, Finished]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSummary:
    """One run as it stands after an import."""

    run: str
    samples: str
    strategy: str
    generator: str
    n: int
    planned: int
    present: int
    """Samples that the file has."""
    new: int
    """Samples that this import stored; 0 if the same file was imported before."""
    remarks: tuple[str, ...]


def import_results(
    store: Store,
    table: Table,
    format_name: str,
    *,
    labels: Labels | None = None,
    sample_set: SampleSet | None = None,
    language: Language | None = None,
    progress: Progress = silent,
) -> list[ImportSummary]:
    """Store the predictions and verdicts of one file.

    Args:
        store: where to.
        table: the opened file.
        format_name: one of `imported.NAMES`.
        labels: strategy and generator; default: the file's, else ``recorded`` and the first part of the file's name.
        sample_set: what the ids belong to; may be None where the file tells the facts of its samples (CoderEval).
        language: whose samples are meant; None for all.
        progress: shows how far it is.

    Returns:
        A summary for each run: files of our own shape may hold several.

    Raises:
        InputFault: naming file, line, field and cure; then nothing is stored.
    """
    shape = imported.named(format_name)
    runs = matched(
        shape.read(table.rows),
        shape,
        file=table.source,
        stem=table.name.partition(".")[0] or table.name,
        labels=labels or Labels(),
        sample_set=sample_set,
        language=language,
    )
    source = Imported(format=format_name, source=table.source, sha256=table.digest)
    prepared = [(run, spec_of(run, source)) for run in runs]
    # Scored before anything is stored: what cannot be scored must leave nothing behind.
    scored = [_scored(run, new_samples(run, spec, source, store.finished(spec.id)), progress) for run, spec in prepared]
    return [_stored(store, run, spec, source, new) for (run, spec), new in zip(prepared, scored, strict=True)]


def _scored(run: Matched, completed: Sequence[AnsweredSample], progress: Progress) -> list[_Scored]:
    """Return samples as they are stored, with scores where their references are known."""
    if run.basis.references is None:
        return [(sample, unscored(sample)) for sample in completed]
    scorer = SampleScorer(run.basis.references)
    scored: list[_Scored] = []
    with progress(f"score {run.generator}", len(completed)) if completed else silent("", 0) as tick:
        for sample in completed:
            scored += [(sample, finished) for finished in scorer.finish([sample])]
            tick(1)
    return scored


def _stored(store: Store, run: Matched, spec: RunSpec, source: Imported, new: Sequence[_Scored]) -> ImportSummary:
    remark_texts = remarks(run, source)
    id_ = store.add_run(spec, run.basis.samples)
    notes.add_imported(store, id_, source)
    notes.add_remarks(store, id_, remark_texts)
    if new:
        attempt = store.start_attempt(id_, "imported")
        stored_count, reason = 0, "interrupted"
        try:
            store.add_generations(
                [generation(spec, source, completion) for sample, _ in new for completion in sample.completions]
            )
            verdicts.add_all(
                store,
                [completion.verdict for sample, _ in new for completion in sample.completions if completion.verdict],
            )
            for _, finished in new:
                stored_count += store.add_finished(id_, spec.coder, finished)
            reason = "done"
        finally:
            store.end_attempt(attempt, reason=reason, finished=stored_count, missing=len(new) - stored_count)
    return ImportSummary(
        run=id_,
        samples=run.basis.name,
        strategy=run.strategy,
        generator=run.generator,
        n=run.n,
        planned=len(run.basis.samples),
        present=len(run.answers),
        new=len(new),
        remarks=remark_texts,
    )
