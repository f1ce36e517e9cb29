"""The Compare page: differences of runs from a baseline, in total and by repository or file, level and sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from ctxbench.dashboard import choices, data, show
from ctxbench.dashboard.views import compare as view
from ctxbench.dashboard.views import metrics
from ctxbench.harness.leaderboard.compare import Compared, compare
from ctxbench.harness.leaderboard.repetitions import pooled
from ctxbench.harness.results import RunTable

HELP: Mapping[str, str] = {
    "difference": "This run minus the baseline.",
    "difference [95%]": "Mean of this run minus the baseline, with its interval, over the samples that both "
    "runs completed.",
    "over": "Scope of the interval: other repositories like these, or only more samples of the same repositories.",
    "p": "p-value of a sign-flip permutation test over repositories, or over files of a single repository, corrected "
    "for the runs shown.",
    "better": "Samples on which this run is better than the baseline.",
    "equal": "Samples on which both runs have the same value.",
    "worse": "Samples on which this run is worse than the baseline.",
    "common": "Samples that both runs completed; only these are compared.",
    "repositories": "Repositories of the compared samples: the units of the test.",
    "files": "Files of the compared samples: the units of the test, because there is only one repository.",
    "baseline": "Mean of the baseline over the samples that both runs completed.",
    "this run": "Mean of the compared run over the samples that both runs completed.",
    "samples": "Samples that both runs completed.",
    "sample": "Id in the sample set.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    samples: str
    metric: str
    tables: list[RunTable]
    """One table per run, the baseline first."""


def page() -> None:
    """Show how runs of a sample set and language differ: result, table with drawn intervals, choices, details."""
    top, where = st.container(), show.choices()
    with where:
        choice = _choose()
    if choice is None:
        with top:
            show.no_scores()
        return
    tables, runs = choice.tables, [table.run for table in choice.tables]
    names = dict(zip((run.id for run in runs), view.labels(runs), strict=True))
    if len(tables) < 2:
        with top:
            show.empty(
                "A comparison needs two runs over the same sample set, in the same language; choose them below, or "
                "start one.",
                "ctxbench run --samples NAME --strategy SPEC --generator SPEC",
            )
        return
    # A fault (another build of the set, a metric that a run lacks) is displayed as one line.
    compared = compare(tables, metric=choice.metric)
    with top:
        show.answer(view.headline(compared, names), choice.samples, tables[0].run.language, tables[0].run.generator)
        show.tables([view.difference_table(compared, names, HELP)])
        show.notes(view.remarks(compared, names))
    detailed = compared[0]
    if len(compared) > 1:
        detailed = choices.choose(
            "In detail",
            compared,
            name="detail",
            label_of=lambda pair: names[pair.this.id],
            key_of=lambda pair: pair.this.id,
            help="The difference from the baseline that the tables below show in detail.",
        )
    by_unit, by_level, by_sample = st.tabs([f"By {detailed.difference.unit.noun}", "By level", "Sample by sample"])
    with by_unit:
        show.note(f"Differences of {names[detailed.this.id]} from the baseline {names[detailed.other.id]}.")
        show.frame(view.unit_rows(detailed), help=HELP, key="by-unit")
    with by_level:
        show.frame(view.level_rows(detailed), help=HELP, key="by-level")
        show.note("Levels are not tested: each has an interval but no p-value.")
    with by_sample:
        _by_sample(detailed, choice)


def _choose() -> _Choice | None:
    set_column, language_column, profile_column, metric_column, after_column = st.columns(5)
    samples = choices.sample_set(set_column)
    language = choices.language(samples, language_column)
    profile = choices.profile(profile_column)
    every = pooled(data.tables(samples.samples, language, profile=profile, after=choices.newer_than(after_column)))
    names = metrics(every)
    if not names:
        return None
    metric = choices.choose("Metric", names, name="metric", help=show.HELP["metric"], where=metric_column)
    stored = {table.run.generator for table in every}
    generators = [generator for generator in samples.generators if generator in stored]
    chosen_generators: list[str] = []
    if len(generators) > 1:
        chosen_generators = choices.choose_many(
            "Generators",
            generators,
            name="generator",
            help="Only runs of these models can be chosen below; if empty, runs of all models.",
        )
    among = [table for table in every if not chosen_generators or table.run.generator in chosen_generators] or every
    several = len({table.run.generator for table in among}) > 1
    # By default compare runs of one model, so that only the strategy differs.
    usual = [table for table in among if table.run.generator == (chosen_generators or generators)[0]] or among

    def spelled(table: RunTable) -> str:
        return view.spelled(table, generator=several)

    baseline_column, others_column = st.columns([1, 2])
    first = choices.choose(
        "Baseline",
        among,
        name="first",
        default=view.usual_baseline(usual),
        label_of=spelled,
        key_of=lambda table: table.run.id,
        help="The run that the others are compared with.",
        where=baseline_column,
    )
    others = [table for table in among if table.run.id != first.run.id]
    runs = choices.choose_many(
        "Compared runs",
        others,
        name="runs",
        default=view.usual_others(others, first, metric),
        label_of=spelled,
        key_of=lambda table: table.run.id,
        help="Runs over the same build of the set, in this language and profile, by any generator; other runs "
        "cannot be "
        "paired by sample. p-values are corrected for the number of runs shown.",
        most=view.MOST_RUNS - 1,
        where=others_column,
    )
    return _Choice(samples=samples.samples, metric=metric, tables=[first, *runs])


def _by_sample(pair: Compared, choice: _Choice) -> None:
    shared = {"samples": choice.samples, "language": pair.this.language, "profile": pair.this.profile}
    shared |= {"metric": choice.metric, "run": pair.this.id, "other": pair.other.id}

    def address(sample: str) -> str:
        return choices.link("samples", **shared, sample=sample)

    rows = view.sample_rows(pair, address)
    if not rows:
        show.note("Both runs have the same value on every sample.")
        return
    opened = st.column_config.LinkColumn(display_text="open", help="Open the sample: what the model saw and wrote.")
    show.frame(rows, help=HELP, key="by-sample", open=opened)
    if len(rows) == view.MOST_ROWS:
        show.note(f"The table shows the {view.MOST_ROWS} samples that differ most.")
