"""The Compare page: runs beside a baseline, and the parts of their difference. Layout only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from ctxbench.dashboard import choices, data, show, url
from ctxbench.dashboard.views import compare as view
from ctxbench.dashboard.views import compare_solved as drawing
from ctxbench.harness.leaderboard.compare import Compared, Solved, compare, solved
from ctxbench.harness.leaderboard.repetitions import pooled
from ctxbench.harness.results import RunTable

HELP: Mapping[str, str] = {
    "difference": "Mean of this run minus the baseline, on the samples that both completed.",
    "95% interval": "95% interval of the difference.",
    "over": "What the interval generalises to: more repositories like these, or only more samples of these.",
    "p": "Sign-flip permutation test over repositories, corrected for the runs shown. Controls are not tested.",
    "better": "Samples at which this run is better than the baseline.",
    "equal": "Samples at which both have the same value.",
    "worse": "Samples at which this run is worse than the baseline.",
    "common": "Samples that both completed: only these are compared.",
    "repositories": "Repositories that these samples are from: the test's units.",
    "baseline": "Mean of the baseline on the samples that both completed.",
    "this run": "Mean of the run that is taken apart, on the samples that both completed.",
    "strategy": "The method that gathers what the model is shown.",
    "samples": "Samples that both completed.",
    "completed": "Samples that count: scored, or failed by the model, which counts as the worst value.",
    "model failed": "Samples at which the model gave nothing usable: they count as the worst value.",
    "not in the run": "Samples that another of these runs was to do and this one was not.",
    "why": "unscored: the machine failed, the next run does it again; excluded: marked as broken or vacuous.",
    "solved": "Samples with the best possible value, of those that all of the runs completed.",
    "only this one": "Samples that this run solves and no other of those shown.",
    "letter": "Stands for the run in the drawing.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    samples: str
    metric: str
    tables: list[RunTable]
    """The first is the baseline."""

    @property
    def names(self) -> dict[str, str]:
        """Return a run's id -> what it is called on this page."""
        runs = [table.run for table in self.tables]
        return dict(zip((run.id for run in runs), view.labels(runs), strict=True))


def page() -> None:
    """Show two runs or more of one sample set and language beside each other."""
    choice = _choose()
    if choice is None:
        show.no_scores()
        return
    tables, names = choice.tables, choice.names
    if len(tables) < 2:
        show.empty(
            "A comparison needs two runs of one sample set in one language; choose them above, or make another run.",
            "ctxbench run --samples NAME --strategy SPEC --generator SPEC",
        )
        return
    # A fault here (another build of the set, a metric that one run lacks) is one line on the page.
    compared = compare(tables, metric=choice.metric)
    _differences(compared, names)
    detailed = compared[0]
    if len(compared) > 1:
        detailed = url.choose(
            "In detail",
            compared,
            name="detail",
            label_of=lambda pair: names[pair.this.id],
            key_of=lambda pair: pair.this.id,
            help="Which difference to the baseline is taken apart below.",
        )
    _parts(detailed, names)
    _who_solves(choice)
    _missing(tables, names)


def _choose() -> _Choice | None:
    set_column, language_column, profile_column, metric_column, after_column = st.columns(5)
    samples = choices.sample_set(set_column)
    language = choices.language(samples, language_column)
    profile = choices.profile(profile_column)
    every = pooled(data.tables(samples.samples, language, profile=profile, after=choices.after(after_column)))
    metrics = view.metrics(every)
    if not metrics:
        return None
    metric = url.choose("Metric", metrics, name="metric", help=show.HELP["metric"], where=metric_column)
    stored = {table.run.generator for table in every}
    generators = [generator for generator in samples.generators if generator in stored]
    chosen_generators: list[str] = []
    if len(generators) > 1:
        chosen_generators = url.choose_many(
            "Generators",
            generators,
            name="generator",
            help="Only runs of these models can be chosen below; none: of all.",
        )
    among = [table for table in every if not chosen_generators or table.run.generator in chosen_generators] or every
    several = len({table.run.generator for table in among}) > 1
    # Unasked, runs of one model stand beside each other: then the strategy alone makes the difference.
    usual = [table for table in among if table.run.generator == (chosen_generators or generators)[0]] or among

    def spelled(table: RunTable) -> str:
        return view.spelled(table, generator=several)

    baseline_column, others_column = st.columns([1, 2])
    first = url.choose(
        "Baseline",
        among,
        name="first",
        default=view.usual_baseline(usual),
        label_of=spelled,
        key_of=lambda table: table.run.id,
        help="The run that every other one is compared with.",
        where=baseline_column,
    )
    others = [table for table in among if table.run.id != first.run.id]
    runs = url.choose_many(
        "Compared with it",
        others,
        name="runs",
        default=view.usual_others(others, first, metric),
        label_of=spelled,
        key_of=lambda table: table.run.id,
        help="Runs over the same build of the set, in this language and profile, of any generator: others cannot be "
        "paired by sample. p-values are corrected for as many as are shown.",
        most=view.MOST_RUNS - 1,
        where=others_column,
    )
    return _Choice(samples=samples.samples, metric=metric, tables=[first, *runs])


def _differences(compared: Sequence[Compared], names: Mapping[str, str]) -> None:
    pair = compared[0]
    st.subheader("Difference", anchor=False)
    show.note(
        f"{pair.metric} ({pair.unit}) minus that of the baseline {names[pair.other.id]}, paired by sample; "
        f"bars are 95% intervals."
    )
    show.chart(view.difference_chart(compared, names), key="difference")
    show.frame(view.difference_rows(compared, names), help=HELP, key="differences")
    show.notes(view.remarks(compared, names))


def _parts(pair: Compared, names: Mapping[str, str]) -> None:
    st.subheader("Where it comes from", anchor=False)
    show.note(f"{names[pair.this.id]} (round, blue) and the baseline {names[pair.other.id]} (diamond, orange).")
    if not pair.repositories:
        show.note("The two share no completed sample.")
        return
    st.markdown("**By repository**")
    if len(pair.repositories) > view.MOST_BARS:
        show.note(f"Drawn: the {view.MOST_BARS} repositories of {len(pair.repositories)} that differ most.")
    show.chart(view.repository_chart(pair), key="repositories")
    where = st.columns(3)[0]
    rows = choices.ordered(view.repository_rows(pair), name="repositories", usual="largest gain first", where=where)
    show.frame(rows, help=HELP, key="by-repository")
    st.markdown("**By level**")
    show.chart(view.level_chart(pair), key="levels")
    show.frame(view.level_rows(pair), help=HELP, key="by-level")
    show.note("Levels are described, not tested: each has its interval and no p-value.")


def _who_solves(choice: _Choice) -> None:
    tables, metric, names = choice.tables, choice.metric, choice.names
    st.subheader("Which samples only some solve", anchor=False)
    outcome = solved(tables, metric)
    if outcome is None:
        show.note(
            f"{metric} is not right or wrong here, so nothing is solved or not: choose em, or pass@1 of runs with one "
            "completion a sample."
        )
        return
    if not outcome.n:
        show.note("There is no sample that all of these runs completed.")
        return
    chart_column, table_column = st.columns(2)
    with chart_column:
        show.chart(drawing.venn(outcome) if outcome.count < 4 else drawing.upset(outcome), key="solved")
    with table_column:
        show.frame(drawing.run_rows(outcome, [names[table.run.id] for table in tables]), help=HELP, key="who-solves")
        show.notes(drawing.remarks(outcome))
    _region(outcome, choice)


def _region(outcome: Solved, choice: _Choice) -> None:
    """List the samples of the region that the reader chooses."""
    region = url.choose(
        "Samples solved by",
        outcome.regions,
        name="region",
        default=next((candidate for candidate in outcome.regions if len(candidate.runs) == 1), None),
        label_of=lambda region: drawing.region_name(region, outcome.count),
        key_of=drawing.region_key,
        help="Choose a part of the drawing to list its samples.",
    )
    tables = choice.tables
    repos = dict(zip(tables[0].sample, tables[0].repo, strict=True))
    solving = tables[region.runs[0] if region.runs else 0].run
    # Beside a run that solves it, one that does not says more than another that does.
    others = [table.run.id for at, table in enumerate(tables) if at not in region.runs and table.run.id != solving.id]
    same = {
        "samples": choice.samples,
        "language": solving.language,
        "profile": solving.profile,
        "metric": choice.metric,
    }
    rows = [
        {
            "open": url.link("samples", **same, run=solving.id, other=others[:1], sample=sample),
            "sample": sample,
            "repository": repos[sample],
        }
        for sample in region.samples
    ]
    opened = st.column_config.LinkColumn(display_text="open", help="What the model saw and wrote.")
    show.frame(rows, help={"sample": "Its id in the sample set."}, key="region", open=opened)


def _missing(tables: Sequence[RunTable], names: Mapping[str, str]) -> None:
    st.subheader("What is missing", anchor=False)
    show.frame(view.count_rows(tables, names), help=HELP, key="counts")
    rows = view.missing_rows(tables, names)
    if not rows:
        show.note("These runs completed the same samples.")
        return
    show.note(f"{len(rows)} samples are completed by some of these runs and not by others; no pair of both has them.")
    show.frame(rows, help=HELP, key="missing")
