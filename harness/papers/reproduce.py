"""A table of a paper, run here: which strategies it needs, and what they did, ready to be shown. No output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ctxbench.bench import samples as sets
from ctxbench.bench import spec as specs
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.home import Home
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Kind
from ctxbench.harness import quickstart, runner
from ctxbench.harness.attempt import Progress
from ctxbench.harness.papers.beside import PROFILE, Ours, ours
from ctxbench.harness.papers.presets import LEXICAL, encoders_of, with_encoder
from ctxbench.harness.papers.tables import Table
from ctxbench.harness.runner import RunOptions
from ctxbench.harness.store import queries
from ctxbench.harness.store.store import Store

DEFAULT_SAMPLES = {Kind.LINE: quickstart.SET, Kind.FUNCTION: quickstart.FUNCTION_SET}
"""The sample sets that are taken if none is named."""
PUBLISHED = ("completed",)
"""Columns that nothing here computes; a table of only these is shown, not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """A paper's table with our numbers beside it."""

    table: Table
    generator: str
    encoder: str | None
    """What took the place of the rows' encoders; None if each row has its own."""
    specs: Mapping[str, str]
    """Preset -> the spec that was run for it; external rows have none."""
    ours: Mapping[str, tuple[Ours, ...]]
    """Spec -> what it did: one a sample set and language."""

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of our samples, in the papers' order; all of the table's if nothing was run."""
        here = {one.language for found in self.ours.values() for one in found}
        of_rows = [language for row in self.table.rows for language in row.languages]
        return tuple(one for one in dict.fromkeys(of_rows) if not here or one in here)


def specs_of(table: Table, encoder: str | None) -> dict[str, str]:
    """Return preset -> the spec to run, the encoders replaced by `encoder` if one is given; BM25 stays BM25."""
    found = {}
    for row in table.rows:
        if row.strategy and not set(table.columns) <= set(PUBLISHED):
            spec = specs.parse(row.strategy)
            found[row.preset] = str(spec if encoder is None else with_encoder(spec, encoder, keep=LEXICAL))
    return found


def check_encoders(wanted: Iterable[str]) -> None:
    """Refuse specs whose encoders this machine lacks, before anything runs.

    Raises:
        InputFault: with the way to do without.
    """
    from ctxbench.bench.retrieval import encoders  # noqa: PLC0415 - heavy, and needed only for a run

    for encoder in dict.fromkeys(one for spec in wanted for one in encoders_of(specs.parse(spec))):
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
    found = [sets.load(home, name) for name in names]
    for one in found:
        if any(sample.kind is not kind for sample in one.samples):
            raise InputFault(
                f"the table is about {kind} samples, the sample set {one.name!r} holds others",
                cure=f"name a set of {kind} samples with --samples (see `ctxbench samples list`)",
            )
    return found


def run(
    home: Home,
    store: Store,
    table: Table,
    chosen: Sequence[SampleSet],
    *,
    generator: str,
    encoder: str | None = None,
    choices: RunOptions | None = None,
    progress: Progress = runner.silent,
) -> tuple[Beside, InputFault | MachineFault | None]:
    """Run every distinct strategy of a table's rows over the sample sets; what is stored is not run again.

    Rows that differ in the model only are one run.

    Returns:
        The table with our numbers, and the fault that left samples missing, if any are.

    Raises:
        InputFault: if an encoder is missing, or a strategy or generator cannot be run.
        MachineFault: if the disk is full or a process cannot be started; what was finished is kept.
    """
    by_preset = specs_of(table, encoder)
    wanted = tuple(dict.fromkeys(by_preset.values()))
    check_encoders(wanted)
    found: dict[str, list[Ours]] = {spec: [] for spec in wanted}
    summaries = []
    for one in chosen if wanted else ():
        made = runner.run(home, store, one, strategies=wanted, generator=generator, choices=choices, progress=progress)
        stored = queries.run_tables(store, samples=one.name, profile=PROFILE)
        for spec, summary in zip(wanted, made, strict=True):
            found[spec] += [ours(of, table) for of in stored if of.run.id == summary.run]
        summaries += made
    beside = Beside(
        table=table,
        generator=generator,
        encoder=encoder,
        specs=by_preset,
        ours={spec: tuple(of) for spec, of in found.items()},
    )
    return beside, runner.fault_of(summaries)
