"""`ctxbench score`, `rescore` and `exec`: score and judge completions in files or stored runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ctxbench.bench import languages
from ctxbench.bench.home import Home
from ctxbench.harness.cli.options import (
    db_option,
    home_option,
    measure_option,
    samples_option,
    sandbox_option,
    workers_option,
)
from ctxbench.harness.cli.terminal import progress
from ctxbench.harness.results import Measurement, left_out

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence

    from ctxbench.bench.errors import MachineFault
    from ctxbench.bench.samples import SampleSet
    from ctxbench.harness.metrics import Values
    from ctxbench.harness.run.execution import Executor
    from ctxbench.harness.run.stored import VerdictRow
    from ctxbench.harness.store import Store

    Work = Callable[[Executor], Generator[VerdictRow]]


_ALL = "all"
_COLUMNS = ("em", "es", "id_em", "id_f1")
_FIELDS = ("id", "prompt", "prediction", "ground_truth")
_SHOWN_FAULTS = 5


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--profile",
    default="ctxbench",
    show_default=True,
    metavar="NAME",
    help="Metric profile: ctxbench (corrected), crosscodeeval, repocoder, infercom, rlcoder_repoeval, "
    "context_collection (equal to the published code), or all, to compare them.",
)
@click.option(
    "--language",
    required=True,
    type=click.Choice(languages.names()),
    help="Language of the completions.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    help="File for the scores of each line; default: stdout.",
)
@workers_option("Scoring processes to run at once.")
def score(file: Path, profile: str, language: str, out: Path | None, workers: int) -> None:
    """Score the completions in FILE (JSON Lines: id, prompt, prediction, ground_truth).

    Writes a line per completion, in the order of FILE: its id and metrics, in the profile's own scale. The means go to
    stderr. `prompt` is the file before the cursor, without a strategy's context. --profile all prints a table of all
    profiles, in percent.
    """
    from ctxbench.bench.files import dump_line, write_atomic
    from ctxbench.harness.metrics import PROFILES, load, metrics

    names = PROFILES if profile == _ALL else (load(profile).name,)
    records = _read(file)
    scored = {name: _score(records, name, language, workers) for name in names}
    lines = (
        dump_line({"id": record["id"], **_line({name: rows[at] for name, rows in scored.items()}, profile)})
        for at, record in enumerate(records)
    )
    if out is not None:
        write_atomic(out, "".join(lines))
    elif profile != _ALL:
        click.echo("".join(lines), nl=False)
    table = _table(scored)
    if profile == _ALL:
        click.echo(table)
    else:
        unit = "in percent" if set(_COLUMNS) & set(metrics(profile)) else "in the unit of the heading"
        click.echo(f"means {unit}, as the profile's own code prints them\n{table}", err=True)
    for note in _notes(scored):
        click.echo(note, err=True)


def _read(file: Path) -> list[dict[str, Any]]:
    from ctxbench.bench.errors import InputFault
    from ctxbench.bench.files import read_lines

    records: list[dict[str, Any]] = []
    faults: list[str] = []
    line_of_id: dict[str, int] = {}
    for number, line in read_lines(file):
        if not line.strip():
            continue
        record, wrong = _parse(line, file, number)
        key = record.get("id")
        if not wrong and key in line_of_id:
            wrong = [f"id {key!r} is also on line {line_of_id[key]}"]
        if isinstance(key, str):
            line_of_id.setdefault(key, number)
        faults += [f"{file}:{number}: {fault}" for fault in wrong]
        records.append(record)
    if faults:
        more = f" (and {len(faults) - _SHOWN_FAULTS} more)" if len(faults) > _SHOWN_FAULTS else ""
        cure = f"write each line as a JSON object with strings in {', '.join(_FIELDS)}, and with a unique id"
        raise InputFault(", ".join(faults[:_SHOWN_FAULTS]) + more, cure=f"{cure}; nothing was scored")
    if not records:
        raise InputFault(
            "the file contains no completion", where=str(file), cure=f"write lines with {', '.join(_FIELDS)}"
        )
    return records


def _parse(line: str, file: Path, number: int) -> tuple[dict[str, Any], list[str]]:
    from ctxbench.bench.errors import InputFault
    from ctxbench.bench.files import json_object, parse_json

    try:
        record = json_object(parse_json(line.rstrip("\r\n"), str(file), number), "")
    except InputFault as fault:
        return {}, [fault.what]
    faults = [f"field {name!r} is missing" for name in _FIELDS if name not in record]
    faults += [f"field {name!r} is not text" for name in _FIELDS if not isinstance(record.get(name, ""), str)]
    if not faults and not record["id"].isprintable():
        faults.append("field 'id' contains unprintable characters")
    return record, faults


def _score(records: Sequence[Mapping[str, str]], name: str, language: str, workers: int) -> list[Values]:
    from ctxbench.harness.metrics import Case, score_many

    cases = [
        Case(
            language=language,
            prompt=record["prompt"],
            prediction=record["prediction"],
            ground_truth=record["ground_truth"],
        )
        for record in records
    ]
    with progress(f"score {name}", len(cases)) as tick:
        return score_many(cases, name, workers, report=tick)


def _line(by_profile: Mapping[str, Values], profile: str) -> dict[str, Any]:
    scores = {
        name: {metric: _number(value) for metric, value in values.items() if value is not None}
        for name, values in by_profile.items()
    }
    return dict(scores) if profile == _ALL else dict(scores[profile])


def _number(value: float) -> float | int:
    return int(value) if value.is_integer() else value


def _table(scored: Mapping[str, Sequence[Values]]) -> str:
    from ctxbench.harness.metrics import aggregate

    columns = _columns(scored)
    rows: list[tuple[str, ...]] = [("profile", "n", *columns.values())]
    for name, values in scored.items():
        means = aggregate(name, values)
        cells = (f"{means[metric]:.2f}" if metric in means else "-" for metric in columns)
        rows.append((name, str(len(values)), *cells))
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    )


def _columns(scored: Mapping[str, Sequence[Values]]) -> dict[str, str]:
    from ctxbench.harness.metrics import info

    columns: dict[str, str] = {}
    for profile, values in scored.items():
        for metric in _COLUMNS if set(_COLUMNS) & values[0].keys() else values[0]:
            unit = "%" if metric in _COLUMNS else info(profile, metric).unit
            columns[metric] = metric if unit in ("%", metric) else f"{metric} {unit}"
    return columns


def _notes(scored: Mapping[str, Sequence[Values]]) -> list[str]:
    counts = {name: sum(1 for row in rows if row.get("es", 0.0) is None) for name, rows in scored.items()}
    return [
        f"{name}: {count} of {len(scored[name])} completions have a blank target, for which edit similarity is "
        "undefined; the means of em and es exclude them, because the official code fails on them"
        for name, count in counts.items()
        if count
    ]


@click.command()
@click.option("--profile", metavar="NAME", help="Only this metric profile; default: all installed profiles.")
@measure_option("Add only this measurement to runs that left it out; repeatable; default: all.")
@home_option
@db_option
def rescore(*, profile: str | None, measure: frozenset[Measurement], home: Home, db: str | None) -> None:
    """Score stored completions under the metric profiles they lack, and add what their runs did not measure.

    No model writes a completion, and no stored score changes. Needs the runs' sample sets, for the references.
    After an interrupt, run the same command again to continue.
    """
    from ctxbench.bench import samples as sets
    from ctxbench.bench.errors import InputFault, UnknownName
    from ctxbench.harness.metrics import PROFILES
    from ctxbench.harness.results import Origin
    from ctxbench.harness.run.scoring import unmeasured_fault
    from ctxbench.harness.store import open_store
    from ctxbench.harness.store.runs import SET_BACK, check_set
    from ctxbench.harness.store.work import run_works

    if profile is not None and profile not in PROFILES:
        raise UnknownName("metric profile", profile, PROFILES)
    unread: dict[str, InputFault] = {}
    unmeasured: dict[str, MachineFault] = {}
    total = 0
    with open_store(db or home.database, create=False) as store:
        for run in sorted(run_works(store), key=lambda run: (run.choices.samples, run.choices.strategy, run.id)):
            if not run.finished or run.origin is Origin.REFERENCE:
                # The run has no completions, so its samples are not needed.
                continue
            try:
                sample_set = sets.load(home, run.choices.samples)
                check_set(run.id, run.choices.samples_digest, sample_set, cure=SET_BACK)
                for what, scored, faults in _rescored(home, store, run.id, sample_set, profile, measure):
                    total += scored
                    unmeasured |= {f"{sample} of {run.id}": fault for sample, fault in faults.items()}
                    click.echo(f"{run.id}  {run.choices.strategy}  {what}  scored {scored}")
            except InputFault as fault:
                # Continue with the other runs.
                unread[run.id] = fault
    if not total and not unread and not unmeasured:
        click.echo("nothing to score: the stored completions already have these metrics, where they are defined")
    if unread:
        first = next(iter(unread.values()))
        raise InputFault(
            f"cannot rescore {', '.join([*unread, *unmeasured])}; the first fault: {first.what}",
            where=first.where,
            cure=f"{first.cure}; then run the same command again",
        )
    if unmeasured:
        raise unmeasured_fault(unmeasured)


def _rescored(
    home: Home, store: Store, run_id: str, sample_set: SampleSet, profile: str | None, measure: Collection[Measurement]
) -> Iterator[tuple[str, int, Mapping[str, MachineFault]]]:
    from ctxbench.harness.metrics import PROFILES
    from ctxbench.harness.run.stored import measure as measure_stored
    from ctxbench.harness.run.stored import rescore as score_stored
    from ctxbench.harness.store.notes import remarks
    from ctxbench.harness.store.runs import find_run

    names = PROFILES if profile is None else (profile,)
    for name in names if profile is not None or Measurement.PROFILES in measure else ():
        if scored := score_stored(store, run_id, sample_set, name, progress=progress):
            yield name, scored, {}
    with store.reading() as connection:
        left = left_out(remarks(connection, [run_id])[run_id])
    for kind in (Measurement.GAIN, Measurement.DIAGNOSTICS) if profile is None else ():
        if kind not in left or kind not in measure:
            continue
        run = find_run(store, run_id)
        scored, faults = measure_stored(home, store, run, sample_set, kind, progress=progress)
        if scored or faults:
            yield kind, scored, faults


@click.command(name="exec")
@samples_option
@click.option(
    "--completions",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Completions as JSON Lines: sample, text (the whole function), and optionally index, strategy, generator.",
)
@click.option(
    "--run",
    "run",
    metavar="RUN",
    help="Judge the completions of this stored run that have no verdict; RUN is a run id or its beginning.",
)
@click.option(
    "--anew", is_flag=True, help="With --run: delete the run's verdicts first, then judge all its completions."
)
@sandbox_option
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="File for the verdicts, written at the end; default: stdout, one by one.",
)
@workers_option("Tests to run at once.")
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
    workers: int,
    home: Home,
    db: str | None,
) -> None:
    """Run the tests of function samples on completions, in a sandbox.

    Writes a line per completion, in the order of the file or run: sample, index, verdict (PASSED, FAILED, TIMED_OUT,
    NO_TESTS, BROKEN), reason, tests_run, seconds, peak_bytes, flags. If only tests that read a clock fail, all tests
    run once more with no other job beside them, and `earlier` is the first result. Verdicts are stored in the database:
    run the command again, also after an interrupt, to judge only what is missing. BROKEN is a fault of the machine,
    with exit code 1.

    With --anew, the verdicts on the run's completions are deleted, and all are judged. Other runs with equal
    completions lose these verdicts too; `ctxbench exec --run` adds the new ones.
    """
    from functools import partial

    from ctxbench.bench import samples as sets
    from ctxbench.harness.run.execution import open_executor
    from ctxbench.harness.run.stored import judge_file, read
    from ctxbench.harness.store import open_store

    if (file is None) == (run is None):
        raise click.UsageError("--completions and --run are both given or both missing; give one of them")
    if anew and run is None:
        raise click.UsageError("--anew needs --run")
    sample_set = sets.load(home, samples)
    completions = read(file, sample_set) if file is not None else []
    with open_store(db or home.database) as store:
        total = len(completions)
        work: Work = partial(judge_file, completions_of_file=completions)
        if run is not None:
            total, work = _verdicts_of_run(store, sample_set, run, anew=anew)
        faults = []
        if total:
            with open_executor(workers, home=home, store=store, sample_set=sample_set, sandbox=sandbox) as executor:
                faults = _write_verdicts(work(executor), total, out)
        else:
            click.echo("nothing to judge", err=True)
    if faults:
        _fail_unjudged(faults, f"run the same command again{', without --anew' * anew}; it does only what is missing")


def _verdicts_of_run(store: Store, sample_set: SampleSet, id_prefix: str, *, anew: bool) -> tuple[int, Work]:
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
        # Delete verdicts only after the sandbox has opened.
        delete_verdicts(store, run)
        return judge_run(store, executor, sample_set, run, verdicts.unjudged(store, run))

    return len(lacking) + len(verdicts.judged(store, run)), judge_all


def _write_verdicts(rows: Generator[VerdictRow], total: int, out: Path | None) -> list[MachineFault]:
    from collections import Counter
    from contextlib import closing

    from ctxbench.bench.files import dump_line, write_atomic

    lines: list[str] = []
    faults: list[MachineFault] = []
    counts: Counter[str] = Counter()
    # `closing` records an interrupted attempt while the database is still open.
    with progress("tests", total) as tick, closing(rows):
        for row in rows:
            lines.append(dump_line(row.record))
            counts[row.record["verdict"]] += 1
            faults += [row.fault] if row.fault is not None else []
            if out is None:
                click.echo(lines[-1], nl=False)
            tick(1, row.fault is not None)
    if out is not None:
        write_atomic(out, "".join(lines))
    summary = "  ".join(f"{verdict} {count}" for verdict, count in sorted(counts.items()))
    click.echo(summary, err=True)
    return faults


def _fail_unjudged(faults: list[MachineFault], cure: str) -> None:
    from ctxbench.bench.errors import MachineFault

    verdicts = "1 verdict is" if len(faults) == 1 else f"{len(faults)} verdicts are"
    raise MachineFault(f"{verdicts} missing; the first fault: {faults[0]}", cure=cure)
