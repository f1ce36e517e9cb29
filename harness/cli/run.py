"""`ctxbench run`: run strategies over a sample set with a generator, or continue an earlier call."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ctxbench.bench.home import Home
from ctxbench.harness.cli.options import (
    Finite,
    after_option,
    check_ks,
    db_option,
    engine_options,
    home_option,
    k_option,
    limit_option,
    measure_option,
    repeat_option,
    run_workers_option,
    samples_option,
    sandbox_choice,
    seed_option,
    share_option,
    strategy_seconds_option,
    summariser_options,
    tokenizer_option,
)
from ctxbench.harness.cli.terminal import progress, remarks, say
from ctxbench.harness.metrics import MOST_K

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ctxbench.bench.samples import SampleSet
    from ctxbench.harness.generators.base import Sampling
    from ctxbench.harness.run.attempt import RunSummary
    from ctxbench.harness.run.cluster import Cluster
    from ctxbench.harness.run.scheduling import Share
    from ctxbench.harness.run.spec import RunOptions


@click.command()
@samples_option
@click.option(
    "--strategy",
    "strategies",
    multiple=True,
    required=True,
    metavar="SPEC",
    help="A strategy as name(key=value, …), a preset or a control; repeatable, also with "
    "braces, name(key={1,2}) (see `ctxbench strategy list`).",
)
@click.option(
    "--generator",
    required=True,
    metavar="SPEC",
    help="The model: incontext, openai:MODEL@URL, hf:FOLDER, vllm:FOLDER or name(key=value, …) "
    "(see `ctxbench generator list`). With none, strategies only retrieve and no model answers.",
)
@summariser_options
@tokenizer_option
@limit_option
@after_option("Use only samples whose code is dated after DATE (see docs/fidelity.md).")
@click.option(
    "--n", type=click.IntRange(1, MOST_K), metavar="N", help="Completions per sample; default: the largest K, or 1."
)
@k_option
@click.option(
    "--temperature",
    type=Finite(min=0),
    metavar="T",
    help="Decoding temperature; default: 0, or 0.8 for several completions of a function.",
)
@click.option(
    "--top-p",
    type=Finite(min=0, max=1, min_open=True),
    metavar="P",
    help="Top-p of decoding; default: 1, or 0.95 for several completions of a function.",
)
@sandbox_choice("Where function tests run; none: only store completions, for `ctxbench exec --run`.", "none")
@click.option(
    "--fim",
    is_flag=True,
    help="Fill in the middle: show the model the code after the cursor too, with the model's special tokens. "
    "Lines only; strategies do not see that code. Default: only the text before the cursor, as in the papers.",
)
@run_workers_option
@strategy_seconds_option
@measure_option(
    "What to compute per sample: scores alone, or also gain, diagnostics or published profiles; repeatable. "
    "`ctxbench rescore` adds the rest later, with equal numbers. Default: all.",
    more=("scores",),
)
@click.option(
    "--max-cost",
    type=Finite(min=0, min_open=True),
    metavar="DOLLARS",
    help="Start no more samples once this command's new answers cost this much; needs the model's rate (see "
    "docs/board.md#costs).",
)
@seed_option("Random seed for strategies and decoding.")
@repeat_option
@share_option("the samples")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="With --shard: folder for the shards; default: shards in the home folder.",
)
@engine_options
@home_option
@db_option
def run(
    *,
    samples: str,
    strategies: tuple[str, ...],
    generator: str,
    n: int | None,
    ks: tuple[int, ...],
    share: Share | None,
    out: Path | None,
    engine: str,
    address: str | None,
    home: Home,
    db: str | None,
    **choices: Any,
) -> Sequence[RunSummary]:
    """Run strategies over a sample set with a generator, and store every result.

    Prints a line per strategy: run id, strategy, samples scored, failed by the model, and missing; for functions also
    pass@k, over samples whose completions all have verdicts. Run the command again to do only what is missing; the exit
    code is 1 while something is missing. With --shard, only a part of the samples runs, and the line is for that part;
    the calls for all parts, on any machines, form one run. With --engine ray, the nodes of a cluster do the work.
    """
    from ctxbench.bench import samples as sets
    from ctxbench.bench.spec import expand
    from ctxbench.harness.papers.presets import spec_of
    from ctxbench.harness.run.runner import run as run_strategies
    from ctxbench.harness.run.spec import RunOptions, decoding
    from ctxbench.harness.store import open_store
    from ctxbench.harness.store.shard_store import open_share

    sample_set = sets.load(home, samples)
    functions = any(sample.tested for sample in sample_set.samples)
    n = n or max(ks, default=1)
    check_ks(ks, n, functions=functions, samples=samples)
    _check_together(share, out, engine, max_cost=choices["max_cost"])
    strategies = tuple(spec_of(spec) for text in strategies for spec in expand(text))
    options = RunOptions(n=n, **choices)
    if n > 1:
        _say_decoding(decoding(options, sample_set.samples), n)
    opened = open_share(share, out or home.shards, sample_set, url=db) if share else open_store(db or home.database)
    with opened as store, _cluster(engine, address, home, sample_set, generator, options) as cluster, remarks():
        summaries = run_strategies(
            home,
            store,
            sample_set,
            strategies=strategies,
            generator=generator,
            choices=options,
            progress=progress,
            report=partial(_say, ks=ks or (1,), n=n, repeat=options.repeat),
            share=share,
            cluster=cluster,
        )
    _conclude(summaries, samples)
    return summaries


def _check_together(
    share: Share | None,
    out: Path | None,
    engine: str,
    *,
    max_cost: float | None,
) -> None:
    if engine == "ray" and share:
        raise click.UsageError("--engine ray takes no --shard; leave one of them out")
    if engine == "ray" and max_cost is not None:
        raise click.UsageError(
            "--engine ray takes no --max-cost, as nodes do not share their costs; leave one of them out"
        )
    if out and not share:
        raise click.UsageError("--out needs --shard; other results go into the database")


def _cluster(
    engine: str, address: str | None, home: Home, sample_set: SampleSet, generator: str, options: RunOptions
) -> AbstractContextManager[Cluster | None]:
    from contextlib import nullcontext

    if engine == "local":
        return nullcontext()
    from ctxbench.harness.run.cluster import open_cluster

    return open_cluster(address, home, sample_set, generator, options, say)


def _say_decoding(sampling: Sampling, n: int) -> None:
    click.echo(f"{n} completions per sample, temperature {sampling.temperature:g}, top-p {sampling.top_p:g}", err=True)


def _conclude(summaries: Sequence[RunSummary], samples: str) -> None:
    from ctxbench.harness.run.runner import fault_of

    if summaries and summaries[-1].remark:
        click.echo(summaries[-1].remark, err=True)
    for summary in summaries:
        if summary.unjudged and not summary.judges:
            click.echo(f"no tests were run; run `ctxbench exec --samples {samples} --run {summary.run}`", err=True)
    fault = fault_of(summaries)
    if fault is not None:
        raise fault


def _say(summary: RunSummary, *, ks: Sequence[int], n: int, repeat: int) -> None:
    from ctxbench.harness.metrics import mean_pass_at_k

    line = (
        f"{summary.run}  {summary.strategy}  scored {summary.scored}  "
        f"model-failed {summary.model_failed}  missing {summary.missing}"
    )
    if summary.unjudged:
        line += f"  unjudged {summary.unjudged}"
    if summary.passes:
        line += "".join(f"  pass@{k} {100 * mean_pass_at_k(n, summary.passes, k):.1f}%" for k in ks)
    if repeat > 1:
        line += f"  seed {summary.seed}"
    click.echo(line)
    if summary.costs is not None:
        click.echo(f"{summary.strategy}: {summary.costs}", err=True)
    if summary.repeats:
        click.echo(
            f"{summary.strategy}: the seeds {summary.seed - 1} and {summary.seed} gave equal prompts and "
            "completions, so repetition adds nothing; at temperature 0 no more seeds are run",
            err=True,
        )
    if summary.all_equal:
        click.echo(
            f"{summary.strategy}: the {n} completions of each sample are equal, so one is enough; "
            "the generator does not sample, or its temperature is 0",
            err=True,
        )
