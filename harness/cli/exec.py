"""`ctxbench exec`: run the tests of function samples on completions from a file, or on stored ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ctxbench.bench.home import Home
from ctxbench.harness.cli.options import db_option, home_option, sandbox_name

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from ctxbench.bench.errors import MachineFault
    from ctxbench.bench.samples import SampleSet
    from ctxbench.harness.run.execution import Executor
    from ctxbench.harness.run.stored import VerdictRow
    from ctxbench.harness.store import Store

    Work = Callable[[Executor], Generator[VerdictRow]]


@click.command(name="exec")
@click.option("--samples", required=True, metavar="NAME", help="The sample set (see `ctxbench samples list`).")
@click.option(
    "--completions",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="JSON Lines: sample, text (the whole function), and if wanted index, strategy, generator.",
)
@click.option("--run", "run", metavar="RUN", help="Judge what this stored run lacks instead; its id or its beginning.")
@click.option(
    "--anew", is_flag=True, help="With --run: delete the verdicts on its completions first, and judge all of them."
)
@click.option(
    "--sandbox",
    metavar="[docker|bubblewrap]",
    callback=sandbox_name(),
    help="What runs the tests; default: docker where an engine answers, else bubblewrap.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Write the verdicts here when all are known, instead of to stdout one by one.",
)
@click.option("--workers", type=click.IntRange(min=1), metavar="W", help="Tests that run at once; default: one a core.")
@home_option
@db_option
def execute(
    *,
    samples: str,
    file: Path | None,
    run: str | None,
    anew: bool,
    sandbox: str | None,
    out: Path | None,
    workers: int | None,
    home: Home,
    db: str | None,
) -> None:
    """Run the tests of function samples on completions, in a sandbox.

    Writes a line for each, in their order: sample, index, verdict (PASSED, FAILED, TIMED_OUT, NO_TESTS, BROKEN),
    reason, tests_run, seconds, peak_bytes, flags; and earlier, what the tests said at first, where only tests that
    read a clock failed and all ran once more with no other job beside them. Verdicts are kept in the database: the
    same command again, also after an interrupt, runs only what has none. BROKEN is the machine's fault, and ends with
    exit code 1.

    With --anew the verdicts on the run's completions are deleted, and all of them are judged. Other runs with
    equal completions lose these verdicts too: `ctxbench exec --run` gives them the new ones.
    """
    import os
    from functools import partial

    from ctxbench.bench import samples as sets
    from ctxbench.harness.run.execution import open_executor
    from ctxbench.harness.run.stored import judge_file, read
    from ctxbench.harness.store import open_store

    if (file is None) == (run is None):
        raise click.UsageError("give either --completions or --run")
    if anew and run is None:
        raise click.UsageError("--anew is for --run")
    sample_set = sets.load(home, samples)
    completions = read(file, sample_set) if file is not None else []
    with open_store(db or home.database) as store:
        total = len(completions)
        work: Work = partial(judge_file, completions_of_file=completions)
        if run is not None:
            total, work = _of_run(store, sample_set, run, anew=anew)
        faults = []
        if total:
            width = workers or os.cpu_count() or 1
            with open_executor(width, home=home, store=store, sample_set=sample_set, sandbox=sandbox) as executor:
                faults = _write(work(executor), total, out)
        else:
            click.echo("nothing to judge", err=True)
    if faults:
        _fail(faults, f"run the same command again{', without --anew' * anew}; it does only what is missing")


def _of_run(store: Store, sample_set: SampleSet, id_prefix: str, *, anew: bool) -> tuple[int, Work]:
    from ctxbench.harness.run.stored import judge_run
    from ctxbench.harness.store import verdicts
    from ctxbench.harness.store.runs import check_set, find_run
    from ctxbench.harness.store.tables import delete_verdicts
    from ctxbench.harness.store.work import idle

    stored = find_run(store, id_prefix)
    check_set(stored.id, stored.samples_digest, sample_set)
    run = stored.id
    lacking = verdicts.unjudged(store, run)
    if not anew:
        return len(lacking), lambda executor: judge_run(store, executor, sample_set, run, lacking)
    idle(store, [run])

    def judge_all(executor: Executor) -> Generator[VerdictRow]:
        # Only now: where no tests can run, the verdicts stay.
        delete_verdicts(store, run)
        return judge_run(store, executor, sample_set, run, verdicts.unjudged(store, run))

    return len(lacking) + len(verdicts.judged(store, run)), judge_all


def _write(rows: Generator[VerdictRow], total: int, out: Path | None) -> list[MachineFault]:
    """Write a line for each completion; return the faults of those without a verdict."""
    from collections import Counter
    from contextlib import closing

    from ctxbench.bench.files import dump_line, write_atomic
    from ctxbench.harness.cli.progress import progress

    lines: list[str] = []
    faults: list[MachineFault] = []
    counts: Counter[str] = Counter()
    # Closed here: an interrupted attempt must be recorded while the database is open.
    with progress("tests", total) as tick, closing(rows):
        for row in rows:
            lines.append(dump_line(row.record))
            counts[row.record["verdict"]] += 1
            faults += [row.fault] if row.fault is not None else []
            if out is None:
                click.echo(lines[-1], nl=False)
            tick(1)
    if out is not None:
        write_atomic(out, "".join(lines))
    summary = "  ".join(f"{verdict} {count}" for verdict, count in sorted(counts.items()))
    click.echo(summary, err=True)
    return faults


def _fail(faults: list[MachineFault], cure: str) -> None:
    from ctxbench.bench.errors import MachineFault

    verdicts = "1 verdict is" if len(faults) == 1 else f"{len(faults)} verdicts are"
    raise MachineFault(f"{verdicts} missing; the first: {faults[0]}", cure=cure)
