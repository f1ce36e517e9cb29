"""`ctxbench decide`: test whether strategies help a model more than a baseline does, on one repository."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.bench.home import Home
from ctxbench.harness.cli.options import (
    Finite,
    columns,
    db_option,
    format_option,
    home_option,
    run_workers_option,
    sandbox_choice,
    seed_option,
    strategy_seconds_option,
)
from ctxbench.harness.cli.samples import since_option
from ctxbench.harness.cli.terminal import EndAt, progress, remarks, say, time_limit

if TYPE_CHECKING:
    from ctxbench.bench.concurrency import Progress
    from ctxbench.bench.repositories.git import Since
    from ctxbench.bench.repositories.manifest import RepoManifest
    from ctxbench.bench.samples import SampleSet
    from ctxbench.harness.cells import StrategyCard
    from ctxbench.harness.decision import DecisionReport
    from ctxbench.harness.run.runner import Runs
    from ctxbench.harness.time_budget import StoredPlan, TimeBudget

_SAMPLES = 200
_LONGEST = 160
_COLUMNS = ("difference", "p", "verdict", "context_tokens", "seconds")
_PROTOCOL = "ctxbench(draw=text)"


def _budget(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    from ctxbench.harness.time_budget import read_time

    if value is None:
        return None
    seconds = read_time(value)
    if seconds is None:
        raise click.BadParameter(f"{value!r} is not a time; write 90s, 10m or 1h", ctx, param)
    return seconds


@click.command()
@click.argument("strategies", nargs=-1, required=True, metavar="A B...")
@click.option(
    "--repo",
    "ref",
    required=True,
    metavar="SOURCE",
    help="The repository: the path of a folder or an archive, git+URL@COMMIT, pypi:NAME==VERSION, debian:NAME, or the "
    "path of a manifest, FILE.toml.",
)
@click.option(
    "--generator",
    default="none",
    show_default=True,
    metavar="SPEC",
    help="The model that completes the code (see `ctxbench generator list`); none: compare retrieval alone.",
)
@click.option(
    "--kind",
    type=click.Choice(["line", "function"]),
    default="line",
    show_default=True,
    help="What to complete; functions need repository tests that run on this machine.",
)
@click.option("--limit", type=click.IntRange(1, 100_000), metavar="N", help=f"Draw N samples; default: {_SAMPLES}.")
@click.option(
    "--budget",
    metavar="TIME",
    callback=_budget,
    help="Draw as many samples as fit into TIME (90s, 10m, 1h). The command times a few samples first, and stores "
    "how many fit.",
)
@since_option
@click.option("--metric", metavar="METRIC", help="The metric that decides; default: the board's ranking metric.")
@click.option(
    "--max-cost",
    type=Finite(min=0, min_open=True),
    metavar="DOLLARS",
    help="Start no more samples once the new answers cost this much (see docs/board.md#costs).",
)
@run_workers_option
@strategy_seconds_option
@sandbox_choice("Where engines and tests run.")
@seed_option("Random seed for drawing samples, for strategies and for decoding.")
@format_option("table", "json")
@home_option
@db_option
def decide(
    *,
    strategies: tuple[str, ...],
    ref: str,
    generator: str,
    kind: str,
    limit: int | None,
    budget: float | None,
    since: Since | None,
    metric: str | None,
    form: str,
    home: Home,
    db: str | None,
    **choices: Any,
) -> int:
    """Test whether a strategy helps on your repository: are B, C, … better than A, by how much, at what cost?

    A, B, … are strategies, with or without engines, as for `ctxbench run --strategy`. All samples are from this
    repository, and the answer applies only to it. Run the same command again to continue; on a later commit, the
    command asks the model only about changed samples. Exit code: 0 if at least one is better than A, 10 if that is not
    shown, 11 if all are worse; 1 and 2 are errors.
    """
    from ctxbench.bench.spec import expand
    from ctxbench.harness.decision import Prospect, answer_of
    from ctxbench.harness.papers.presets import spec_of
    from ctxbench.harness.run.runner import card_of, fault_of, open_runs, run_cards
    from ctxbench.harness.run.spec import RunOptions
    from ctxbench.harness.store import open_store
    from ctxbench.harness.time_budget import MOST, StoredPlan, TimeBudget

    specs = [spec_of(spec) for text in strategies for spec in expand(text)]
    _check_kind(kind, since=since, budget=budget, limit=limit)
    asks_model = _check_metric(generator, metric, kind)
    _check_strategies(home, specs, asks_model=asks_model)
    time_budget = TimeBudget(seconds=budget, began=time.monotonic(), strategies=len(specs), asks_model=asks_model)
    with time_limit() as end_at:
        if budget:
            end_at(time_budget.pilot_end, time_budget.too_slow)
        manifest = _manifest(ref, kind, home, choices["sandbox"])
        plan = StoredPlan(home, (manifest.name, str(budget), generator, str(choices["seed"]), *specs))
        count = min(filter(None, (limit, plan.count() if budget else None)), default=MOST if budget else _SAMPLES)
        sample_set = _built(manifest, kind, home, since, count, choices)
        with (
            open_store(db or home.database) as store,
            remarks(),
            open_runs(home, store, sample_set, generator, RunOptions(**choices)) as opened,
        ):
            cards = [card_of(spec, opened.resources.cells) for spec in specs]
            opened.check(cards)
            runs = _within(opened, home, cards, time_budget, plan, end_at) if budget else opened
            prospect = Prospect.of(runs.planned, runs.resources.batcher.spec, metric, pairs=len(cards) - 1)
            say(str(prospect))
            summaries = run_cards(runs, cards, progress=time_budget.counting(progress))
            if (fault := fault_of(summaries)) is not None:
                raise fault
            seconds = time.monotonic() - time_budget.began
            answer = answer_of(
                home, store, runs.sample_set, summaries, metric=metric, prospect=prospect, seconds=seconds
            )
            click.echo(answer.json() if form == "json" else _text(answer), nl=False)
    return int(answer.decision)


def _check_metric(generator: str, metric: str | None, kind: str) -> bool:
    """Check that the generator exists and that its runs have the metric. Return whether it writes completions."""
    from ctxbench.bench.spec import parse
    from ctxbench.harness.decision import WITHOUT_MODEL
    from ctxbench.harness.generators import base
    from ctxbench.harness.metrics import COPYABLE, DEFAULT, GAIN, RETRIEVAL, common_metric, metrics
    from ctxbench.harness.results import only_copies

    spec = base.canonical(generator)
    asks = parse(spec).name != WITHOUT_MODEL
    measured, other = (COPYABLE, GAIN) if only_copies(spec) else (GAIN, COPYABLE)
    if asks and metric == other:
        raise InputFault(f"{generator} does not measure {other}", cure=f"use --metric {measured}")
    if metric is not None and metric.startswith("pass@") and kind != "function":
        raise InputFault(f"{metric} needs functions", cure="use --kind function, or another --metric")
    declared = (*metrics(DEFAULT), measured) if asks else ()
    if metric is not None and metric not in declared and (not asks or common_metric(metric) is None):
        names = (*declared, *(retrieval.name for retrieval in RETRIEVAL))
        if metric not in names:
            raise UnknownName("metric" if asks else "metric without a model", metric, names)
    return asks


def _check_kind(kind: str, *, since: Since | None, budget: float | None, limit: int | None) -> None:
    if limit and budget:
        raise click.UsageError("--limit and --budget both set the number of samples; give one of them")
    if kind == "function" and (since or budget):
        name = "--since" if since else "--budget"
        raise click.UsageError(f"{name} is for --kind line; for functions, leave it out; --limit works for both kinds")


def _check_strategies(home: Home, specs: Sequence[str], *, asks_model: bool) -> None:
    """Check that the strategies exist and differ, and that A and at least one other strategy are not controls.

    Warn if nothing can be decided, because no model is asked and A retrieves nothing.
    """
    from ctxbench.bench.engines import recipe
    from ctxbench.harness.cells import open_registrations
    from ctxbench.harness.leaderboard.selection import BASELINE
    from ctxbench.strategies.registry import CONTROLS

    if len(specs) < 2:
        raise click.UsageError("fewer than two strategies are given; give the baseline first, then those to compare")
    controls = [spec for spec in specs if spec in CONTROLS]
    if specs[0] in controls or len(controls) == len(specs) - 1:
        cure = "name at least two strategies that are not controls, one of them first"
        raise InputFault(f"{controls[0]} is a control, whose differences from strategies are not tested", cure=cure)
    with open_registrations([home.root]) as registrations:
        bound = [registrations.bound(spec) for spec in specs if spec not in CONTROLS]
    for engine in [engine for strategy in bound for engine in strategy.engines]:
        recipe.read(engine)
    names = [*controls, *(str(strategy.spec) for strategy in bound)]
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise InputFault(f"{twice} is given twice", cure="name each strategy once")
    if not asks_model and specs[0] == BASELINE:
        say(f"{BASELINE} retrieves nothing, so no strategy can be shown to be better; name a model with --generator")


def _manifest(ref: str, kind: str, home: Home, sandbox: str | None) -> RepoManifest:
    """Load or guess a repository's manifest. Its tests run only if `kind` needs them."""
    from ctxbench.bench.adoption import adopt
    from ctxbench.bench.repositories.manifest import load
    from ctxbench.harness.cli.repo import workbench

    if ref.endswith(".toml") and Path(ref).is_file():
        return load(ref)
    _keep_out(home, Path(ref))
    if kind == "line":
        return adopt.draft_of(ref, home, say)
    # `beside` is off: tests need not run in both back ends, since the manifest is only for this machine.
    here = replace(workbench(sandbox, home), beside=lambda: None)
    adoption = adopt.adopt(ref, home, home.root / "decide", here, force=True, report=say)
    if adoption.manifest.tests is None:
        why = adoption.trial.fault if adoption.trial is not None and adoption.trial.fault else "no test runs"
        cure = "leave --kind out, because lines need no tests, or give a manifest with [tests] (docs/repository.md)"
        raise InputFault(
            f"the tests cannot judge functions on this machine: {why}", where=adoption.manifest.name, cure=cure
        )
    return adoption.manifest


def _keep_out(home: Home, folder: Path) -> None:
    """Make git ignore a home folder inside the repository, so that the working tree stays clean."""
    from ctxbench.bench.files import write_atomic

    rules = home.root / ".gitignore"
    if home.root.is_relative_to(folder.expanduser().resolve()) and not rules.exists():
        home.root.mkdir(parents=True, exist_ok=True)
        write_atomic(rules, "*\n")


def _built(
    manifest: RepoManifest, kind: str, home: Home, since: Since | None, count: int, choices: Mapping[str, Any]
) -> SampleSet:
    from ctxbench.harness.cli import samples
    from ctxbench.harness.leaderboard.pairs import LEAST_FILES

    options = {"per_repo": count, "seed": choices["seed"], "workers": os.cpu_count() or 1, "force": True}
    name = _set_name(manifest, kind, home, since, count, choices["seed"])
    if kind == "function":
        return samples.build_functions([manifest], home, name, choices["sandbox"], **options)
    sample_set = samples.build_lines([manifest], home, name, since, _PROTOCOL, **options)
    if (files := len({sample.path for sample in sample_set.samples})) < LEAST_FILES:
        places = f"the samples are in {files} files, but a test needs {LEAST_FILES}"
        say(f"{manifest.name}: no difference can be significant: {places}")
    return sample_set


def _set_name(manifest: RepoManifest, kind: str, home: Home, since: Since | None, count: int, seed: int) -> str:
    """Return the name of a set. It contains the commit or a content digest, and the options that choose the samples."""
    from ctxbench.bench.repositories.checkout import fetch

    choices = [*["functions"] * (kind == "function"), *[f"since-{since}"[:18]] * (since is not None)]
    parts = [fetch(manifest, home, report=say).key[-10:], *choices, *[f"seed{seed}"] * bool(seed), f"limit{count}"]
    # A repository's name may be longer than a set's.
    return f"decide-{manifest.name}"[: 79 - len("-".join(parts))] + "-" + "-".join(parts)


def _within(
    runs: Runs,
    home: Home,
    cards: Sequence[StrategyCard],
    time_budget: TimeBudget,
    plan: StoredPlan,
    end_at: EndAt,
) -> Runs:
    """Limit the runs to the samples that fit into the time, and set the time limit of the command."""
    if plan.count() is None:
        runs = _fitted(home, runs, cards, time_budget)
        plan.keep(len(runs.planned))
    time_budget.start(time.monotonic(), len(runs.planned))
    end_at(time_budget.end, time_budget.unfinished)
    return runs


def _fitted(home: Home, runs: Runs, cards: Sequence[StrategyCard], time_budget: TimeBudget) -> Runs:
    """Time a few samples, and return the runs over as many samples as fit."""
    from ctxbench.bench.lines.build import beginning
    from ctxbench.harness.time_budget import PILOT, WARM

    whole = runs.sample_set
    time_budget.start(time.monotonic(), WARM + PILOT)
    for count in (WARM, PILOT):
        part = replace(runs, choices=replace(runs.choices, limit=count), planned=whole.samples[:count])
        seconds = _pilot(part, cards, time_budget.counting(progress))
    count = time_budget.planned(time.monotonic(), seconds, most=len(whole.samples))
    named = ", ".join(f"{card.spec} {of:.2g} s" for card, of in zip(cards, seconds, strict=True))
    say(f"seconds per sample: {named}; {count} samples take about {count * sum(seconds):.0f} s")
    named_whole = replace(whole, name=f"{whole.name.rpartition('limit')[0]}limit{count}")
    planned_set = beginning(home, named_whole, count)
    return replace(runs, sample_set=planned_set, planned=planned_set.samples)


def _pilot(runs: Runs, cards: Sequence[StrategyCard], shown: Progress) -> list[float]:
    """Return each strategy's seconds per sample. Deletes the timed runs but keeps the model's answers.

    A stored answer takes no time here. It counts with the seconds that the model took to write it.
    """
    from ctxbench.harness.run.runner import fault_of
    from ctxbench.harness.store.tables import delete_run

    seconds, summaries = [], []
    for card in cards:
        began = time.monotonic()
        try:
            summaries.append(runs.attempt(card, 0, runs.planned).run(shown))
        finally:
            delete_run(runs.store, runs.spec(card, 0).id)
        taken = time.monotonic() - began
        if (costs := summaries[-1].costs) is not None:
            taken = max(taken, costs.generator_seconds / runs.resources.batcher.lanes)
        seconds.append(taken / len(runs.planned))
    if (fault := fault_of(summaries)) is not None:
        raise fault
    return seconds


def _text(answer: DecisionReport) -> str:
    from ctxbench.harness.leaderboard.notes import has_prices, warnings
    from ctxbench.harness.leaderboard.render import WIDTH, printed, rich_table
    from ctxbench.harness.leaderboard.sections import screen_table

    group = answer.group
    headings = [group.metric, *_COLUMNS, *["price"] * has_prices(group)]
    lines = [answer.sentence, answer.claim, ""]
    lines += [printed([rich_table(screen_table(group, headings), WIDTH)], width=WIDTH)]
    lines += [*(f"- {line}" for line in warnings(group)), *[""] * bool(warnings(group))]
    for sample in answer.largest_differences:
        texts = {"reference": sample.reference, **sample.answers}
        rows = [(f"  {name}", text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…") for name, text in texts.items()]
        lines += [f"{sample.place}  {group.metric} {sample.difference:+.1f}", *columns(rows), ""]
    lines += columns([(name, cost) for name, cost in answer.costs.items()])
    lines.append(f"{answer.seconds:.0f} s in total; exit code {int(answer.decision)}")
    return "".join(f"{line.rstrip()}\n" for line in "\n".join(lines).split("\n"))
