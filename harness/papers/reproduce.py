"""Run the strategies of a paper's table and set our numbers beside it. No output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ctxbench.bench import samples as sets
from ctxbench.bench import spec as specs
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.home import Home
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Kind
from ctxbench.harness import quickstart
from ctxbench.harness.papers.own_results import PROFILE, OwnResult, ours
from ctxbench.harness.papers.presets import LEXICAL, encoders_of, with_encoder
from ctxbench.harness.papers.tables import PaperTable
from ctxbench.harness.run import runner
from ctxbench.harness.run.attempt import Progress, silent
from ctxbench.harness.run.runner import RunOptions
from ctxbench.harness.store.runs import run_tables
from ctxbench.harness.store.store import Store

DEFAULT_SAMPLES = {Kind.LINE: quickstart.SET, Kind.FUNCTION: quickstart.FUNCTION_SET}
"""The sample sets that are taken if none is named."""
PUBLISHED = ("completed",)
"""Columns that nothing here computes; a table of only these is shown, not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedTable:
    """A paper's table with our numbers beside it."""

    table: PaperTable
    generator: str
    encoder: str | None
    """The encoder that replaced the rows' encoders; None if each row has its own."""
    specs: Mapping[str, str]
    """Preset -> the spec that was run for it; external rows have none."""
    ours: Mapping[str, tuple[OwnResult, ...]]
    """Spec -> its results, one for each sample set and language."""

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of our samples, in the papers' order; all of the table's if nothing was run."""
        measured = {result.language for results in self.ours.values() for result in results}
        of_rows = [language for row in self.table.rows for language in row.languages]
        return tuple(language for language in dict.fromkeys(of_rows) if not measured or language in measured)


def specs_of(table: PaperTable, encoder: str | None) -> dict[str, str]:
    """Return preset -> the spec to run, the encoders replaced by `encoder` if one is given; BM25 stays BM25."""
    by_preset = {}
    for row in table.rows:
        if row.strategy and not set(table.columns) <= set(PUBLISHED):
            spec = specs.parse(row.strategy)
            by_preset[row.preset] = str(spec if encoder is None else with_encoder(spec, encoder, keep=LEXICAL))
    return by_preset


def check_encoders(strategies: Iterable[str]) -> None:
    """Refuse specs whose encoders this machine lacks, before anything runs.

    Raises:
        InputFault: with the way to do without.
    """
    from ctxbench.bench.retrieval import encoders  # noqa: PLC0415 - heavy, and needed only for a run

    for encoder in dict.fromkeys(name for spec in strategies for name in encoders_of(specs.parse(spec))):
        try:
            encoders.get(encoder)
        except InputFault as fault:
            raise InputFault(
                f"the encoder {encoder} of this table cannot be used here: {fault.what}",
                cure="give every row another encoder, for example --encoder minilm (or hashed, which needs nothing); "
                f"for its own: {fault.cure}",
            ) from None


def load_sets(home: Home, names: Sequence[str], kind: Kind) -> list[SampleSet]:
    """Return the sample sets, those of the quick start if none is named.

    Raises:
        InputFault: if a set is not there or holds other samples than the table is about.
    """
    names = tuple(dict.fromkeys(names)) or (DEFAULT_SAMPLES[kind],)
    if names == (DEFAULT_SAMPLES[kind],) and names[0] not in sets.names(home):
        raise InputFault(
            f"the sample set {names[0]!r} is not built yet",
            where=str(home.samples),
            cure="build it with `ctxbench quickstart`, or name your own with --samples",
        )
    sample_sets = [sets.load(home, name) for name in names]
    for sample_set in sample_sets:
        if any(sample.kind is not kind for sample in sample_set.samples):
            raise InputFault(
                f"the table is about {kind} samples, the sample set {sample_set.name!r} holds others",
                cure=f"name a set of {kind} samples with --samples (see `ctxbench samples list`)",
            )
    return sample_sets


def run(
    home: Home,
    store: Store,
    table: PaperTable,
    sample_sets: Sequence[SampleSet],
    *,
    generator: str,
    encoder: str | None = None,
    choices: RunOptions | None = None,
    progress: Progress = silent,
) -> tuple[ComparedTable, InputFault | MachineFault | None]:
    """Run every distinct strategy of a table's rows over the sample sets; what is stored is not run again.

    Rows that differ in the model only are one run.

    Returns:
        The table with our numbers, and the fault that left samples missing, if any are.

    Raises:
        InputFault: if an encoder is missing, or a strategy or generator cannot be run.
        MachineFault: if the disk is full or a process cannot be started; what was finished is kept.
    """
    by_preset = specs_of(table, encoder)
    strategies = tuple(dict.fromkeys(by_preset.values()))
    check_encoders(strategies)
    results: dict[str, list[OwnResult]] = {spec: [] for spec in strategies}
    summaries = []
    for sample_set in sample_sets if strategies else ():
        set_summaries = runner.run(
            home, store, sample_set, strategies=strategies, generator=generator, choices=choices, progress=progress
        )
        stored = run_tables(store, samples=sample_set.name, profile=PROFILE)
        for spec, summary in zip(strategies, set_summaries, strict=True):
            results[spec] += [ours(of, table) for of in stored if of.run.id == summary.run]
        summaries += set_summaries
    compared = ComparedTable(
        table=table,
        generator=generator,
        encoder=encoder,
        specs=by_preset,
        ours={spec: tuple(of) for spec, of in results.items()},
    )
    return compared, runner.fault_of(summaries)
