"""`import_results`: a file of recorded predictions becomes stored runs whose origin is that file.

Everything is read and checked before anything is stored. A run's id is a digest that holds the file's, so that
the same file again is the same run; after an interrupt it stores what is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ctxbench.bench.formats.types import Table
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Language
from ctxbench.harness import imported
from ctxbench.harness.asking import AnsweredSample
from ctxbench.harness.attempt import Progress
from ctxbench.harness.imported.made import generation, made_of, remarks, spec_of, unscored
from ctxbench.harness.imported.matching import Labels, Matched, matched
from ctxbench.harness.runner import silent
from ctxbench.harness.runspec import RunSpec
from ctxbench.harness.scoring import SampleScorer
from ctxbench.harness.store import notes, verdicts
from ctxbench.harness.store.records import Finished, Imported
from ctxbench.harness.store.store import Store

_Scored = tuple[AnsweredSample, Finished]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
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
) -> list[Summary]:
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
    scored = [_scored(run, made_of(run, spec, source, store.finished(spec.id)), progress) for run, spec in prepared]
    return [_stored(store, run, spec, source, new) for (run, spec), new in zip(prepared, scored, strict=True)]


def _scored(run: Matched, made: Sequence[AnsweredSample], progress: Progress) -> list[_Scored]:
    """Return samples as they are stored, with scores where their answers are known."""
    if run.basis.references is None:
        return [(one, unscored(one)) for one in made]
    scorer = SampleScorer(run.basis.references)
    found: list[_Scored] = []
    with progress(f"score {run.generator}", len(made)) if made else silent("", 0) as tick:
        for one in made:
            found += [(one, finished) for finished in scorer.finish([one])]
            tick(1)
    return found


def _stored(store: Store, run: Matched, spec: RunSpec, source: Imported, new: Sequence[_Scored]) -> Summary:
    said = remarks(run, source)
    id_ = store.add_run(spec, run.basis.samples)
    notes.add_imported(store, id_, source)
    notes.add_remarks(store, id_, said)
    if new:
        attempt = store.start_attempt(id_, "imported")
        done, reason = 0, "interrupted"
        try:
            store.add_generations([generation(spec, source, one) for made, _ in new for one in made.completions])
            verdicts.add_all(store, [one.verdict for made, _ in new for one in made.completions if one.verdict])
            for _, one in new:
                done += store.add_finished(id_, spec.coder, one)
            reason = "done"
        finally:
            store.end_attempt(attempt, reason=reason, finished=done, missing=len(new) - done)
    return Summary(
        run=id_,
        samples=run.basis.name,
        strategy=run.strategy,
        generator=run.generator,
        n=run.n,
        planned=len(run.basis.samples),
        present=len(run.answers),
        new=len(new),
        remarks=said,
    )
