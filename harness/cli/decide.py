"""`ctxbench decide`: test whether a context engine helps a model more than another one, on one repository."""

from __future__ import annotations

import json
import os
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from ctxbench.harness.cli.terminal import progress, remarks, say

if TYPE_CHECKING:
    from ctxbench.bench.repositories.git import Since
    from ctxbench.bench.repositories.manifest import RepoManifest
    from ctxbench.bench.samples import SampleSet
    from ctxbench.harness.cells import StrategyCard
    from ctxbench.harness.decision import DecisionReport
    from ctxbench.harness.run.runner import Runs

_SAMPLES = 200
"""Number of samples without `--limit` and `--budget`."""
_MOST = 1000
"""Most samples with `--budget`."""
_FEWEST = 20
_SIZES = (*range(_FEWEST, 100, 10), *range(100, 300, 25), *range(300, _MOST + 1, 50))
"""Numbers of samples with `--budget`. They are few, so that a budget gives the same samples on the next commit."""
_WARM, _PILOT = 2, 16
"""Numbers of samples that warm up the model and the engines, and that are timed."""
_MARGIN = 0.85
"""Share of the time left after the pilot that is planned, as samples vary in their time."""
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_COLUMNS = ("difference", "p", "verdict", "context_tokens", "seconds")
_PROTOCOL = "ctxbench(draw=text)"


def _budget(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """Return the seconds of a time such as ``90s``, ``10m`` or ``1.5h``."""
    if value is None:
        return None
    match = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?)([smh])", value.strip())
    if match is None or not float(match[1]):
        raise click.BadParameter(f"{value!r} is not a time; write 90s, 10m or 1h", ctx, param)
    return float(match[1]) * _SECONDS[match[2]]


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
    help="The model that completes (see `ctxbench generator list`); none: no model, retrieval alone is compared.",
)
@click.option(
    "--kind",
    type=click.Choice(["line", "function"]),
    default="line",
    show_default=True,
    help="What to complete; functions need tests of the repository that run here.",
)
@click.option("--limit", type=click.IntRange(1, 100_000), metavar="N", help=f"Draw N samples; default: {_SAMPLES}.")
@click.option(
    "--budget",
    metavar="TIME",
    callback=_budget,
    help="Draw as many samples as the command can do in TIME (90s, 10m, 1h): a few are timed first, and the number is "
    "kept.",
)
@since_option
@click.option("--metric", metavar="METRIC", help="What decides; default: the one that ranks on a board.")
@click.option(
    "--max-cost",
    type=Finite(min=0, min_open=True),
    metavar="DOLLARS",
    help="Begin no more samples once the new answers cost so much (see docs/board.md#costs).",
)
@run_workers_option
@strategy_seconds_option
@sandbox_choice("Where engines live and tests run.")
@seed_option("Seed of the draw, of strategies and of decoding.")
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
    """Say whether a strategy helps on your repository: are B, C, … better than A, by how much, at which cost?

    A, B, … are strategies as `ctxbench run --strategy` takes them, engines among them. Samples are drawn from the one
    repository, and the answer holds for it alone. The same command goes on where it stopped, and on a later commit asks
    the model only about what changed. Exit code: 0 if one is better than A, 10 if that is not shown, 11 if all are
    worse; 1 and 2 are errors.
    """
    from ctxbench.bench.spec import expand
    from ctxbench.harness.decision import answer_of
    from ctxbench.harness.papers.presets import spec_of
    from ctxbench.harness.run.runner import card_of, fault_of, open_runs, run_cards
    from ctxbench.harness.run.spec import RunOptions
    from ctxbench.harness.store import open_store

    began = time.monotonic()
    specs = [spec_of(spec) for text in strategies for spec in expand(text)]
    if len(specs) < 2:
        raise click.UsageError("Give two strategies or more: A, and those to compare with it.")
    _check_kind(kind, since=since, budget=budget)
    _check_metric(metric)
    manifest = _manifest(ref, kind, home, choices["sandbox"])
    planned = _Planned(home, (manifest.name, str(budget), generator, str(choices["seed"]), *specs)) if budget else None
    count = min(filter(None, (limit, planned.count() if planned else None)), default=_MOST if planned else _SAMPLES)
    sample_set = _built(manifest, kind, home, since, count, choices)
    with (
        open_store(db or home.database) as store,
        remarks(),
        open_runs(home, store, sample_set, generator, RunOptions(**choices)) as opened,
    ):
        runs = opened
        cards = [card_of(spec, runs.resources.cells) for spec in specs]
        _check_cards(cards)
        runs.check(cards)
        if planned is not None and budget is not None and planned.count() is None:
            runs = _fitted(home, runs, cards, began + budget, planned)
        say(_prospect(runs, metric, len(cards) - 1))
        summaries = run_cards(runs, cards, progress=progress)
        if (fault := fault_of(summaries)) is not None:
            raise fault
        seconds = time.monotonic() - began
        answer = answer_of(home, store, runs.sample_set, summaries, metric=metric, seconds=seconds)
        click.echo(answer.json() if form == "json" else _text(answer), nl=False)
    return int(answer.decision)


def _check_metric(metric: str | None) -> None:
    """Refuse an unknown metric before anything runs."""
    from ctxbench.harness.metrics import DEFAULT, common_metric, metrics

    if metric is not None and metric not in metrics(DEFAULT) and common_metric(metric) is None:
        raise UnknownName("metric", metric, metrics(DEFAULT))


def _check_kind(kind: str, *, since: Since | None, budget: float | None) -> None:
    if kind == "function" and (since or budget):
        name = "--since" if since else "--budget"
        raise click.UsageError(f"{name} is for --kind line; for functions give --limit")


def _check_cards(cards: Sequence[StrategyCard]) -> None:
    """Refuse strategies that no test can compare: one given twice, or controls as the first or as all others."""
    from ctxbench.strategies.registry import CONTROLS

    controls = [card.spec for card in cards if card.spec in CONTROLS]
    if cards[0].spec in controls or len(controls) == len(cards) - 1:
        cure = "put a strategy first, and name another one beside the controls"
        raise InputFault(f"{controls[0]} is a control, made with the answers: no test compares it", cure=cure)
    specs = [card.spec for card in cards]
    twice = next((spec for place, spec in enumerate(specs) if spec in specs[:place]), None)
    if twice is not None:
        raise InputFault(f"{twice} is given twice", cure="name each strategy once")


def _manifest(ref: str, kind: str, home: Home, sandbox: str | None) -> RepoManifest:
    """Load or guess a repository's manifest; its tests run only if they are needed.

    Raises:
        InputFault: if there is no such source, or if tests are needed and none passes here.
        MachineFault: if the source cannot be reached.
    """
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
        why = adoption.trial.fault if adoption.trial is not None and adoption.trial.fault else "it has none that run"
        cure = "leave --kind out: lines need no tests; or give a manifest with [tests] (docs/repository.md)"
        raise InputFault(f"its tests judge no function here: {why}", where=adoption.manifest.name, cure=cure)
    return adoption.manifest


def _keep_out(home: Home, folder: Path) -> None:
    """Let git ignore a home inside the repository, so that a clone stays equal to its commit."""
    from ctxbench.bench.files import write_atomic

    rules = home.root / ".gitignore"
    if home.root.is_relative_to(folder.expanduser().resolve()) and not rules.exists():
        home.root.mkdir(parents=True, exist_ok=True)
        write_atomic(rules, "*\n")


def _built(
    manifest: RepoManifest, kind: str, home: Home, since: Since | None, count: int, choices: Mapping[str, Any]
) -> SampleSet:
    from ctxbench.harness.cli import samples

    options = {"per_repo": count, "seed": choices["seed"], "workers": os.cpu_count() or 1, "force": True}
    # A repository's name may be longer than a set's.
    name = f"decide-{manifest.name}"[:80]
    if kind == "function":
        return samples.build_functions([manifest], home, name, choices["sandbox"], **options)
    return samples.build_lines([manifest], home, name, since, _PROTOCOL, **options)


@dataclass(frozen=True, slots=True)
class _Planned:
    """The number of samples chosen for a budget, stored so that the same command draws the same samples."""

    home: Home
    key: tuple[str, ...]

    @property
    def _file(self) -> Path:
        from ctxbench.bench.files import sha256

        return self.home.cache / "decide" / f"{sha256(json.dumps(self.key))[:16]}.txt"

    def count(self) -> int | None:
        """Return the stored number; None without one."""
        try:
            text = self._file.read_text(encoding="ascii")
        except (OSError, ValueError):
            return None
        return int(text) if text.isdigit() and int(text) in range(1, _MOST + 1) else None

    def keep(self, count: int) -> None:
        from ctxbench.bench.files import write_atomic

        self._file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(self._file, str(count))


def _fitted(home: Home, runs: Runs, cards: Sequence[StrategyCard], end: float, planned: _Planned) -> Runs:
    """Time a few samples, and return the runs over as many samples as fit until `end`.

    Raises:
        InputFault: if the time is too short for the smallest number, or a timed sample fails.
    """
    whole = runs.sample_set
    seconds = _pilot(home, runs, cards, whole, _WARM)
    if time.monotonic() < end:
        seconds = _pilot(home, runs, cards, whole, _PILOT)
    time_left = (end - time.monotonic()) * _MARGIN
    per_sample = sum(seconds)
    count = fitting(time_left, per_sample, most=len(whole.samples))
    if not count:
        fewest = min(_FEWEST, len(whole.samples))
        needed = (fewest * per_sample / _MARGIN - (end - time.monotonic())) / 60
        raise InputFault(
            f"{fewest} samples take about {fewest * per_sample:.0f} s, and {max(0.0, time_left):.0f} s are left",
            where="--budget",
            cure=f"give about {max(1, round(needed + 0.5))}m more, or --limit N",
        )
    named = ", ".join(f"{card.spec} {of:.2g} s" for card, of in zip(cards, seconds, strict=True))
    say(f"a sample takes: {named}; {count} samples take about {count * per_sample:.0f} s")
    planned.keep(count)
    return _over(home, runs, whole, count)


def fitting(seconds: float, per_sample: float, *, most: int) -> int:
    """Return how many samples fit in some seconds: `most`, or a smaller planned size; 0 if not even the fewest.

    Args:
        seconds: seconds for all samples.
        per_sample: seconds per sample, for all strategies together.
        most: number of samples available.
    """
    sizes = [size for size in _SIZES if size < most and size * per_sample <= seconds]
    return most if most * per_sample <= seconds else max(sizes, default=0)


def _pilot(home: Home, runs: Runs, cards: Sequence[StrategyCard], whole: SampleSet, count: int) -> list[float]:
    """Run the first samples and return each strategy's seconds per sample; delete the runs, but keep the answers."""
    from ctxbench.harness.run.runner import fault_of
    from ctxbench.harness.store.tables import delete_run

    part = _over(home, runs, whole, count)
    seconds, summaries = [], []
    for card in cards:
        began = time.monotonic()
        summaries.append(part.attempt(card, 0, part.planned).go(progress))
        seconds.append((time.monotonic() - began) / len(part.planned))
    fault = fault_of(summaries)
    for summary in summaries:
        delete_run(runs.store, summary.run)
    if fault is not None:
        raise fault
    return seconds


def _over(home: Home, runs: Runs, whole: SampleSet, count: int) -> Runs:
    """Return the runs over the first samples of a set, as a set of the same name."""
    from ctxbench.bench.lines.build import beginning

    part = beginning(home, whole, count)
    return replace(runs, sample_set=part, planned=part.samples)


def _prospect(runs: Runs, metric: str | None, pairs: int) -> str:
    """Return the samples of a run and, if the metric's variances are known, the difference that it could show."""
    from ctxbench.harness.leaderboard import scales
    from ctxbench.harness.leaderboard.power import WITHIN_ONE, detectable
    from ctxbench.harness.metrics import COPYABLE
    from ctxbench.harness.results import only_copies

    sizes = Counter(sample.path for sample in runs.planned)
    drawn = f"{len(runs.planned)} samples of {len(sizes)} files"
    metric = metric or (COPYABLE if only_copies(runs.resources.batcher.spec) else "es")
    if metric not in WITHIN_ONE or any(sample.tested for sample in runs.planned):
        return drawn
    least = detectable(list(sizes.values()), WITHIN_ONE[metric], pairs=pairs)
    if least is None:
        return f"{drawn}: too few files for a test"
    return f"{drawn}: a difference of about {scales.amount(least)} in {metric} would be shown in four of five cases"


def _text(answer: DecisionReport) -> str:
    from ctxbench.harness.leaderboard.notes import priced, warnings
    from ctxbench.harness.leaderboard.render import WIDTH, printed, rich_table
    from ctxbench.harness.leaderboard.sections import screen_table

    group = answer.group
    headings = [group.metric, *_COLUMNS, *["price"] * priced(group)]
    lines = [answer.sentence, answer.claim, ""]
    lines += [printed([rich_table(screen_table(group, headings), WIDTH)], width=WIDTH)]
    lines += [*(f"- {line}" for line in warnings(group)), *[""] * bool(warnings(group))]
    for sample in answer.largest_differences:
        rows = [("  reference", sample.reference), *((f"  {name}", text) for name, text in sample.answers.items())]
        lines += [f"{sample.place}  {group.metric} {sample.difference:+.1f}", *columns(rows), ""]
    lines += columns([(name, cost) for name, cost in answer.costs.items()])
    lines.append(f"{answer.seconds:.0f} s in all; exit code {int(answer.decision)}")
    return "".join(f"{line.rstrip()}\n" for line in "\n".join(lines).split("\n"))
