"""Runs a paper's table, or reads stored runs, and puts ctxbench's numbers beside the printed numbers."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ctxbench.bench import quickstart
from ctxbench.bench import samples as sets
from ctxbench.bench import spec as specs
from ctxbench.bench.concurrency import Progress, silent
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.home import Home
from ctxbench.bench.retrieval.retrieval import LEXICAL, encoder_of, lexical_of
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Kind, project_of
from ctxbench.harness.generators.base import Generator, canonical, resolve, settings_of
from ctxbench.harness.generators.local import AUTO, is_chat
from ctxbench.harness.leaderboard.repetitions import pooled
from ctxbench.harness.leaderboard.scales import Scale, at_level, completed, repositories, restrict, scale_of, values
from ctxbench.harness.leaderboard.stats import estimate
from ctxbench.harness.paper_tables import LEVELS, HeadlineGain, PaperTable
from ctxbench.harness.papers.presets import encoders_of, with_encoder
from ctxbench.harness.results import RunTable, Status
from ctxbench.harness.run import runner
from ctxbench.harness.run.attempt import RunSummary
from ctxbench.harness.run.spec import RunOptions
from ctxbench.harness.store.runs import run_tables
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.work import ConstructionTime, construction_times
from ctxbench.strategies import registry

DEFAULT_SAMPLES = {Kind.LINE: quickstart.SET, Kind.FUNCTION: quickstart.FUNCTION_SET}
PROFILE = "infercom"
"""Metric profile of the line tables: the scorer released with InferCom."""
_LEVEL = {level: f"{level}_runnable" for level in LEVELS}
_RIGHT_OR_WRONG = ("pass@1", "em")


def _options(choices: RunOptions) -> frozenset[str]:
    chosen = {
        "--tokenizer": choices.tokenizer,
        "--summary-template": choices.summary_templates,
        "--summarise-tests": choices.summarise_tests or not choices.summariser,
    }
    return frozenset(option for option, value in chosen.items() if value)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedTable:
    """A paper's table, together with ctxbench's own results for its rows."""

    table: PaperTable
    generators: tuple[str, ...]
    encoder: str | None
    """Encoder that replaces the rows' encoders, except BM25 and Jaccard; None if each row keeps its own encoder."""
    specs: Mapping[str, str]
    ours: Mapping[str, tuple[OwnResult, ...]]
    """ctxbench's results, by strategy spec: for each strategy, one per sample set, generator and language."""
    summariser: str = ""
    """Spec of the generator that wrote all summaries; empty if each of `generators` wrote its own."""
    continuing: tuple[str, ...] = ()
    options: frozenset[str] = frozenset()
    """Command options in effect, such as ``--tokenizer``, that remove differences from the paper."""
    solved: tuple[SolvedBy, ...] = ()
    left_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Specs of the strategies that were not run on a sample set because of its languages, by the set's name."""
    stored: bool = False
    """Whether the numbers come from stored runs, on the samples shared by all runs of a set, generator and language."""

    @property
    def languages(self) -> tuple[str, ...]:
        """The table's languages that have results, in the paper's order; all its languages if there are no results."""
        measured = {result.language for results in self.ours.values() for result in results}
        of_rows = dict.fromkeys(language for row in self.table.rows for language in row.languages)
        return tuple(language for language in of_rows if not measured or language in measured)


def specs_of(table: PaperTable, encoder: str | None) -> dict[str, str]:
    """Return the spec to run, by preset. `encoder` replaces all encoders but BM25 and Jaccard; None keeps them."""
    by_preset = {}
    for row in table.rows:
        if row.strategy:
            spec = specs.parse(row.strategy)
            by_preset[row.preset] = str(spec if encoder is None else with_encoder(spec, encoder, keep=LEXICAL))
    return by_preset


def check_encoders(strategies: Iterable[str], replacement: str | None = None) -> None:
    """Check before a run that this machine has the strategies' encoders, and the user's `replacement`, if any.

    Raises:
        InputFault: if an encoder is unknown or missing; the message names alternatives.
    """
    if replacement is not None and lexical_of(replacement) is None:
        encoder_of(replacement)
    for encoder in dict.fromkeys(name for spec in strategies for name in encoders_of(specs.parse(spec))):
        try:
            encoder_of(encoder)
        except InputFault as fault:
            raise InputFault(
                f"this table needs the encoder {encoder}: {fault.what}",
                cure="give every row another encoder, such as --encoder minilm (or hashed or bm25, which need no "
                f"download); to use {encoder}: {fault.cure}",
            ) from None


def load_sets(home: Home, names: Sequence[str], kind: Kind) -> list[SampleSet]:
    """Return the named sample sets, or the quick start's set of this kind if `names` is empty.

    Raises:
        InputFault: if a set does not exist, or contains samples of another kind than `kind`.
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
                f"the table needs {kind} samples, but the sample set {sample_set.name!r} contains others",
                cure=f"name a set of {kind} samples with --samples (see `ctxbench samples list`)",
            )
    return sample_sets


def run(
    home: Home,
    store: Store,
    table: PaperTable,
    sample_sets: Sequence[SampleSet],
    *,
    generators: Sequence[str],
    encoder: str | None = None,
    choices: RunOptions | None = None,
    progress: Progress = silent,
) -> tuple[ComparedTable, InputFault | MachineFault | None]:
    """Run each distinct strategy of a table over the sample sets that it accepts. Stored results are reused.

    Rows that differ only in the paper's model share the runs of their strategy.

    Returns:
        The table with ctxbench's numbers, and the fault that left samples or verdicts missing, or None.

    Raises:
        InputFault: if an encoder is missing, or a strategy or generator cannot be run.
        MachineFault: if the disk is full or a process cannot start; finished samples are stored.
    """
    by_preset = specs_of(table, encoder)
    strategies = tuple(dict.fromkeys(by_preset.values()))
    check_encoders(strategies, encoder)
    models = _models(generators)
    results: dict[str, list[OwnResult]] = {spec: [] for spec in strategies}
    summaries: list[RunSummary] = []
    regions: list[SolvedBy] = []
    left_out = {sample_set.name: not_taken(strategies, sample_set) for sample_set in sample_sets}
    for sample_set, generator in itertools.product(sample_sets, models):
        taken = [spec for spec in strategies if spec not in left_out[sample_set.name]]
        of_set = runner.run(
            home, store, sample_set, strategies=taken, generator=generator, choices=choices, progress=progress
        )
        stored = run_tables(store, samples=sample_set.name, profile=PROFILE)
        tables: list[RunTable] = []
        # The first repetition contains every strategy, in order.
        for spec, first in zip(taken, of_set, strict=False):
            runs = {summary.run for summary in of_set if summary.strategy == first.strategy}
            own = pooled([stored_table for stored_table in stored if stored_table.run.id in runs])
            times = construction_times(store, runs)
            results[spec] += [own_result(of_language, table, times) for of_language in own]
            tables += own
        regions += solved_by(tables)
        summaries += of_set
    compared = ComparedTable(
        table=table,
        generators=tuple(models),
        encoder=encoder,
        specs=by_preset,
        ours={spec: tuple(of) for spec, of in results.items()},
        summariser=choices.summariser if choices else "",
        continuing=tuple(spec for spec, model in models.items() if not model.capabilities.instructs),
        options=_options(choices) if choices else frozenset(),
        solved=tuple(regions),
        left_out={name: specs for name, specs in left_out.items() if specs},
    )
    return compared, runner.fault_of(summaries)


def stored(
    store: Store, table: PaperTable, names: Sequence[str], *, generators: Sequence[str], encoder: str | None = None
) -> ComparedTable:
    """Compare stored runs, including imported reference results, with a paper's table.

    For each set, generator and language, only the largest run of each strategy is used. These runs are compared on the
    samples that they share.

    Args:
        names: sample sets; empty for the quick start's set.
        generators: specs of the runs' generators.
        encoder: encoder that replaces the rows' encoders, as in `specs_of`; None if each row keeps its own encoder.

    Raises:
        InputFault: if a generator's spec is invalid, or no matching run is stored.
    """
    by_preset = specs_of(table, encoder)
    models = tuple(dict.fromkeys(map(canonical, generators)))
    spec_by_strategy = {registry.resolve(spec).spec: spec for spec in by_preset.values()}
    ours: dict[str, list[OwnResult]] = {spec: [] for spec in by_preset.values()}
    regions: list[SolvedBy] = []
    for name in tuple(dict.fromkeys(names)) or (DEFAULT_SAMPLES[table.kind],):
        runs = [own for own in run_tables(store, samples=name, profile=PROFILE) if own.run.strategy in spec_by_strategy]
        for generator, language in itertools.product(models, dict.fromkeys(own.run.language for own in runs)):
            candidates = [own for own in runs if (own.run.generator, own.run.language) == (generator, language)]
            largest = {own.run.strategy: own for own in sorted(candidates, key=lambda own: len(own.sample))}
            shared = set.intersection(*(set(own.sample) for own in largest.values())) if largest else set()
            rows = [restrict(own, shared) for own in largest.values()]
            for row in rows if shared else ():
                ours[spec_by_strategy[row.run.strategy]].append(own_result(row, table))
            regions += solved_by(rows)
    if not any(ours.values()):
        with_it = f" with --encoder {encoder}" if encoder else ""
        raise InputFault(
            f"no run of {table.name} by {' or '.join(models)}{with_it} is stored",
            cure="see `ctxbench runs`; import shipped results with `ctxbench results import --reference ctxbench-2`"
            " (or ctxbench-2-lite) and give --encoder bm25; or leave out --stored",
        )
    return ComparedTable(
        table=table,
        generators=models,
        encoder=encoder,
        specs=by_preset,
        ours={spec: tuple(of) for spec, of in ours.items()},
        continuing=tuple(model for model in models if not instructs(model)),
        solved=tuple(regions),
        stored=True,
    )


def instructs(generator: str) -> bool:
    """Return whether a generator follows instructions. If it cannot be used on this machine, its spec decides.

    Raises:
        InputFault: if the generator cannot be used on this machine, and its spec names no model.
    """
    try:
        return resolve(generator).capabilities.instructs
    except InputFault:
        settings = settings_of(generator)
        if "model" not in settings:
            raise
        return is_chat(settings.get("chat", AUTO), settings["model"])


def _models(generators: Sequence[str]) -> dict[str, Generator]:
    models = {generator: resolve(generator) for generator in generators}
    for model in models.values():
        _ = model.version
    return models


def not_taken(strategies: Iterable[str], sample_set: SampleSet) -> tuple[str, ...]:
    """Return the specs of the strategies that do not accept every language of a sample set."""
    languages = {str(sample.language) for sample in sample_set.samples}
    accepted = {spec: registry.resolve(spec).languages for spec in strategies}
    return tuple(spec for spec, names in accepted.items() if names and not languages <= names)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnNumber:
    """A number that ctxbench measured for a column of a paper's table, from `n` values."""

    mean: float
    n: int
    low: float | None = None
    """Lower bound of the 95% interval; None without an interval."""
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnResult:
    """ctxbench's numbers for one strategy and generator, on the samples of one set in one language."""

    run: str
    samples: str
    language: str
    strategy: str
    generator: str
    counts: Mapping[str, int]
    missing: int
    """Number of samples without a result, for example because the machine failed. No other number includes them."""
    cells: Mapping[str, OwnNumber]
    remarks: tuple[str, ...] = ()
    """Sentences that boards print about the run, such as limits of its numbers."""


def own_result(run: RunTable, table: PaperTable, built: Iterable[ConstructionTime] = ()) -> OwnResult:
    """Return a run's numbers for the columns of a paper's table. `built` contains the run's construction times."""
    cells = _functions(run) if table.kind is Kind.FUNCTION else _lines(run)
    repos = set(run.repo)
    if construction := mean_construction_seconds(stage for stage in built if project_of(stage.repo) in repos):
        cells["construction"] = construction
    return OwnResult(
        run=run.run.id,
        samples=run.run.samples,
        language=run.run.language,
        strategy=run.run.strategy,
        generator=run.run.generator,
        counts=dict(Counter(run.level[index] for index in completed(run))),
        missing=sum(status is Status.INFRA_FAILED for status in run.status),
        cells={column: cells[column] for column in table.columns if column in cells},
        remarks=run.run.remarks,
    )


def mean_construction_seconds(built: Iterable[ConstructionTime]) -> OwnNumber | None:
    """Return the mean over repositories of seconds per attempt to make one searchable; None if `built` is empty."""
    attempts: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for stage in built:
        attempts[stage.repo][stage.attempt] += stage.seconds
    return _mean([math.fsum(of_repo.values()) / len(of_repo) for of_repo in attempts.values()])


def overall(results: Sequence[OwnResult]) -> float | None:
    """Return the mean of the two languages' values in the column ``avg``; None if one is missing."""
    averages = [result.cells["avg"].mean for result in results if "avg" in result.cells]
    return math.fsum(averages) / 2 if len(averages) == 2 else None


def _functions(run: RunTable) -> dict[str, OwnNumber]:
    cells: dict[str, OwnNumber] = {}
    for level, name in _LEVEL.items():
        cell = _estimated(at_level(run, name), "pass@1", scale_of(run.run.profile, "pass@1"))
        cells |= {level: cell} if cell else {}
    levels = [cells[level] for level in LEVELS if level in cells]
    if len(levels) == len(LEVELS):
        mean = math.fsum(cell.mean for cell in levels) / len(levels)
        cells["avg"] = OwnNumber(mean=mean, n=sum(cell.n for cell in levels))
    tokens = _mean([run.context_tokens[i] for i in completed(run) if run.level[i] in _LEVEL.values()])
    return cells | ({"tokens": tokens} if tokens else {})


def _lines(run: RunTable) -> dict[str, OwnNumber]:
    cells: dict[str, OwnNumber] = {}
    for metric in ("em", "es", "id_em", "id_f1"):
        cell = _estimated(run, metric, scale_of(PROFILE, metric))
        cells |= {metric: cell} if cell else {}
    if "em" in cells:
        cells["completed"] = OwnNumber(mean=round(cells["em"].mean * cells["em"].n / 100, 6), n=cells["em"].n)
    seconds = _mean([run.seconds[i] for i in completed(run)])
    return cells | ({"inference": seconds} if seconds else {})


def _estimated(run: RunTable, metric: str, scale: Scale) -> OwnNumber | None:
    by_sample, repos = values(run, metric, scale), repositories(run)
    places = [repos[sample] for sample in by_sample]
    estimated = estimate(list(by_sample.values()), places, bounds=scale.bounds)
    if estimated.mean is None:
        return None
    return OwnNumber(mean=estimated.mean, n=estimated.n, low=estimated.low, high=estimated.high)


def _mean(numbers: Sequence[float | None]) -> OwnNumber | None:
    present = [value for value in numbers if value is not None]
    return OwnNumber(mean=math.fsum(present) / len(present), n=len(present)) if present else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Average:
    """A method's mean gain over its baselines: stated in a paper, or computed from the paper's or ctxbench's rows."""

    name: str
    whose: str
    n: int
    cells: Mapping[str, float]
    """Mean gain in points, by column. A column is omitted if one of the averaged settings lacks it."""


def averages(compared: ComparedTable, languages: Sequence[str]) -> Iterator[Average]:
    """Yield each gain in the paper's text: as stated, from the paper's rows, and from ctxbench's results.

    Only ctxbench's results in `languages` count. If the paper prints only some rows of a gain, also yield the mean gain
    that the other rows must have.
    """
    theirs: dict[tuple[str, ...], Mapping[str, float]] = {}
    ours: dict[tuple[str, ...], Mapping[str, float]] = {}
    for row in compared.table.rows:
        theirs |= {(row.method, row.benchmark, row.model, language): cells for language, cells in row.printed.items()}
        for own in compared.ours.get(compared.specs.get(row.preset, ""), ()):
            if own.language in languages:
                # Ignore the runs' limits: stored rows cover the samples that all runs share.
                setting = (own.samples.partition("[")[0], own.generator, own.language)
                ours[row.method, *setting] = {column: cell.mean for column, cell in own.cells.items()}
    for headline in compared.table.headlines:
        name, their_gains, our_gains = headline.name, list(_gains(headline, theirs)), list(_gains(headline, ours))
        rows = _average(name, "paper", their_gains)
        n, lacking = len(their_gains), len(their_gains) - rows.n
        yield Average(name=name, whose="paper: stated in its text", n=n, cells=headline.stated)
        yield rows
        if lacking:
            rest = {at: (mean * n - rows.cells[at] * rows.n) / lacking for at, mean in headline.stated.items()}
            yield Average(name=name, whose=f"paper: the other {lacking}, if its text is right", n=lacking, cells=rest)
        if our_gains:
            yield _average(name, "ours", our_gains)


def _gains(headline: HeadlineGain, cells: Mapping[tuple[str, ...], Mapping[str, float]]) -> Iterator[dict[str, float]]:
    """Yield the gain in points, by column, for each setting and method; empty if a row is missing."""
    for setting in dict.fromkeys(key[1:] for key in cells):
        for method, baselines in headline.over.items():
            gaining, *others = (cells.get((name, *setting), {}) for name in (method, *baselines))
            shared = set(gaining).intersection(*others)
            yield {column: gaining[column] - max(other[column] for other in others) for column in shared}


def _average(name: str, whose: str, gains: Sequence[Mapping[str, float]]) -> Average:
    rows = [gain for gain in gains if gain]
    columns = set(rows[0]).intersection(*rows) if rows else set()
    means = {column: math.fsum(row[column] for row in rows) / len(rows) for column in columns}
    return Average(name=name, whose=f"{whose}: {len(rows)} of {len(gains)} settings", n=len(rows), cells=means)


@dataclass(frozen=True, slots=True, kw_only=True)
class SolvedBy:
    """The samples of a set that each strategy solves, among those in one language that all strategies completed."""

    samples: str
    language: str
    generator: str
    metric: str
    strategies: tuple[str, ...]
    n: int
    regions: Mapping[tuple[str, ...], tuple[str, ...]]
    """Ids of the samples that exactly the strategies in the key solve, by key, the longest list first."""

    @property
    def title(self) -> str:
        """Caption with the sample set, language, generator and metric."""
        return f"tasks solved by each strategy: {self.samples}, {self.language}, {self.generator}, by {self.metric}"


def solved_by(tables: Sequence[RunTable]) -> Iterator[SolvedBy]:
    """Yield the samples that each strategy solves, by language; none for one strategy or partly solved samples."""
    for language in dict.fromkeys(table.run.language for table in tables):
        of_language = {table.run.strategy: table for table in tables if table.run.language == language}
        metric = next((name for name in _RIGHT_OR_WRONG if all(name in of.metrics for of in of_language.values())), "")
        if not metric or len(of_language) < 2:
            continue
        run = next(iter(of_language.values())).run
        scale = scale_of(run.profile, metric)
        columns = {strategy: values(table, metric, scale) for strategy, table in of_language.items()}
        common = sorted(set.intersection(*map(set, columns.values())))
        if common and {column[sample] for column in columns.values() for sample in common} <= set(scale.range or ()):
            yield SolvedBy(
                samples=run.samples,
                language=language,
                generator=run.generator,
                metric=metric,
                strategies=tuple(columns),
                n=len(common),
                regions=_regions(columns, common),
            )


def _regions(
    columns: Mapping[str, Mapping[str, float]], common: Sequence[str]
) -> dict[tuple[str, ...], tuple[str, ...]]:
    samples: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for sample in common:
        samples[tuple(strategy for strategy, column in columns.items() if column[sample])].append(sample)
    place = {strategy: number for number, strategy in enumerate(columns)}
    order = sorted(samples, key=lambda region: (-len(samples[region]), len(region), [place[name] for name in region]))
    return {region: tuple(samples[region]) for region in order}
