"""`ctxbench runs`: list the stored runs with progress, errors and repeat commands; name and delete them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from ctxbench.bench.home import Home
from ctxbench.harness.cli.options import db_option, format_option, home_option

if TYPE_CHECKING:
    from ctxbench.harness.frames import ResultFrame
    from ctxbench.harness.store import Store
    from ctxbench.harness.store.work import FaultGroup, RunWork

_COLUMNS = ("run", "state", "finished", "planned", "unjudged", "faults", "last start", "samples", "generator")
_SHOW = "show"


class _Runs(click.Group):
    """A group whose first word is optional: `ctxbench runs` lists, `ctxbench runs RUN` shows."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or args[0] not in (*self.commands, *ctx.help_option_names):
            args = [_SHOW, *args]
        return super().parse_args(ctx, args)


@click.group(cls=_Runs)
def runs() -> None:
    """List, show, name or delete stored runs.

    `ctxbench runs` lists the runs and `ctxbench runs RUN` shows one. RUN is an id, its beginning, or a name of the run.
    """


@runs.command(_SHOW)
@click.argument("run", required=False)
@click.option("--samples", metavar="NAME", help="Only runs over this sample set, including limited runs (NAME[:N]).")
@format_option("table", "json")
@home_option
@db_option
def show(*, run: str | None, samples: str | None, form: str, home: Home, db: str | None) -> None:
    """List the stored runs, the latest first; for a RUN, show its attempts, errors and command.

    The command repeats the run and does only what is missing. Nothing is written, so you can list runs while they are
    active. The word `show` is optional.
    """
    from ctxbench.harness.store.work import flags_of

    with _listed(home, db, run, samples) as (store, listed, options):
        if form == "json":
            records = [_record(work, _faults(store, work), flags_of(store, work.id), options) for work in listed]
            click.echo(json.dumps(records, indent=2, ensure_ascii=False))
        elif run is None:
            click.echo("\n".join(_table(listed)))
            click.echo("`ctxbench runs RUN` shows a run's attempts, errors, and the command to continue it", err=True)
        else:
            [work] = listed
            click.echo("\n".join(_details(work, _faults(store, work), flags_of(store, work.id), options)))


def frame(home: Home, db: str | None, samples: str | None, columns: str | Iterable[str]) -> ResultFrame:
    """Return the stored runs with their settings, one row each, the latest first.

    Args:
        samples: only runs over this sample set.
        columns: as for `ResultFrame.chosen`; by default the first 20.

    Raises:
        InputFault: if no run is stored, or the sample set or a column does not exist.
    """
    from ctxbench.harness.frames import ResultFrame

    with _listed(home, db, None, samples) as (_, listed, options):
        made = ResultFrame.of_records(_flat(work, options) for work in listed)
    return made.chosen(columns, list(made)[:20])


@contextmanager
def _listed(
    home: Home, db: str | None, run: str | None, samples: str | None
) -> Iterator[tuple[Store, list[RunWork], list[str]]]:
    from ctxbench.harness.query import NOTHING_CURE, NothingStored
    from ctxbench.harness.run.spec import place_options
    from ctxbench.harness.store.store import exists, open_reader
    from ctxbench.harness.store.work import run_works

    url = db or home.database
    if db is None and not exists(url):
        raise NothingStored("no runs are stored", where=str(home.root), cure=NOTHING_CURE)
    with open_reader(url) as store:
        stored = run_works(store, None if run is None else [_id(store, run)])
        if not stored:
            raise NothingStored("no runs are stored", where=store.where, cure=NOTHING_CURE)
        yield store, _of(stored, samples), place_options(home, url, store.where)


_RUN = click.argument("run")


@runs.command()
@_RUN
@click.argument("text")
@home_option
@db_option
def name(*, run: str, text: str, home: Home, db: str | None) -> None:
    """Name a RUN: TEXT then works in place of its id. An empty TEXT removes the name."""
    from ctxbench.harness.store.notes import add_name

    with _opened(home, db) as store:
        id_ = _id(store, run)
        add_name(store, id_, text)
    click.echo(f"{id_} is now named {text.strip()!r}" if text.strip() else f"{id_} no longer has a name")


@runs.command()
@click.argument("run", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@home_option
@db_option
def delete(*, run: tuple[str, ...], yes: bool, home: Home, db: str | None) -> None:
    """Delete each RUN permanently. Models' answers and verdicts stay, because other runs may use them too."""
    from ctxbench.bench.errors import InputFault
    from ctxbench.harness.store.tables import delete_run
    from ctxbench.harness.store.work import idle

    with _opened(home, db) as store:
        ids = list(dict.fromkeys(_id(store, prefix) for prefix in run))
        for work in idle(store, ids):
            click.echo(
                f"{work.id}  {_cell(work.choices.strategy)}  {work.finished} of {work.planned} samples", err=True
            )
        if not yes and not click.confirm("Delete permanently?", err=True):
            raise InputFault("nothing was deleted", cure="answer y, or give --yes")
        for id_ in ids:
            idle(store, [id_])  # a run may have started while the question was open
            click.echo(f"{id_} deleted: {delete_run(store, id_)} rows")


def _opened(home: Home, db: str | None) -> Store:
    from ctxbench.harness.query import NOTHING_CURE, NothingStored
    from ctxbench.harness.store import open_store
    from ctxbench.harness.store.store import exists

    url = db or home.database
    if db is None and not exists(url):
        raise NothingStored("no runs are stored", where=str(home.root), cure=NOTHING_CURE)
    return open_store(url, create=False)


def _id(store: Store, prefix: str) -> str:
    from ctxbench.harness.store.runs import find_run

    return str(find_run(store, prefix).id)


def _of(stored: list[RunWork], samples: str | None) -> list[RunWork]:
    from ctxbench.bench.errors import UnknownName
    from ctxbench.dashboard.views.runs import label

    matching = [work for work in stored if samples in (None, work.choices.samples, label(work))]
    if not matching:
        raise UnknownName("sample set of the stored runs", str(samples), set(map(label, stored)))
    return matching


def _faults(store: Store, work: RunWork) -> list[FaultGroup]:
    from ctxbench.harness.store.work import faults_of

    return faults_of(store, work.id) if any(attempt.faults for attempt in work.attempts) else []


def _table(works: Sequence[RunWork]) -> Iterator[str]:
    from ctxbench.dashboard.views.runs import row

    return _lines([row(work) for work in works], (*_COLUMNS, "strategy"))


def _lines(rows: Sequence[dict[str, object]], columns: Sequence[str]) -> Iterator[str]:
    cells = [[_cell(row[column]) for column in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    right = [any(isinstance(row[column], int) for row in rows) for column in columns]
    for line in (columns, *cells):
        padded = (
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(line, widths, right, strict=True)
        )
        yield "  ".join(padded).rstrip()


def _cell(value: object) -> str:
    from ctxbench.bench.escaping import visible

    return "" if value is None else visible(" ".join(str(value).split()))


def _details(
    work: RunWork, faults_of: Sequence[FaultGroup], flags: Mapping[str, int], options: Sequence[str]
) -> Iterator[str]:
    from ctxbench.bench.escaping import visible
    from ctxbench.dashboard.views import runs as view
    from ctxbench.harness.run.spec import judge_command

    yield f"{work.id}  {_cell(view.label(work))}  {_cell(work.choices.strategy)}  {_cell(view.generator(work))}"
    yield view.sentence(work)
    yield view.STATES[view.state(work)]
    yield from [f"name: {_cell(work.name)}"] if work.name else []
    yield from (f"remark: {_cell(remark)}" for remark in work.remarks)
    if flags:
        counted = ", ".join(f"{_cell(flag)} {samples}" for flag, samples in flags.items())
        yield f"samples with each flag, of {work.finished} finished: {counted}"
    named = {"samples": work.choices.samples_digest[:12], **work.choices.versions}
    versions = ", ".join(f"{name} {version}" for name, version in named.items())
    yield f"\nWith {versions}, this command completes the run; with other versions it starts a new run:"
    yield work.repeat_command(options)
    if work.unjudged:
        yield "\nThis command judges completions without a verdict:"
        yield judge_command(work.choices, work.id, options=options)
    if work.attempts:
        yield ""
        yield from _lines(view.attempt_rows(work.attempts), tuple(view.ATTEMPT_HELP))
    for fault in faults_of:
        some = _cell(", ".join(fault.samples[:3])) + (", …" if fault.count > len(fault.samples[:3]) else "")
        last = view.when(fault.started)
        yield f"\n{fault.kind} fault, {fault.count} times, last in the attempt of {last}: {_cell(fault.message)}"
        yield f"  samples: {some}"
        yield from (f"  {line}" for line in visible(fault.detail).splitlines())


def _flat(work: RunWork, options: Sequence[str]) -> dict[str, Any]:
    from ctxbench.dashboard.views.runs import row

    record, shown = _record(work, (), {}, options), row(work)
    last = work.attempts[-1] if work.attempts else None
    parts = {f"{key}_{name}": value for key in ("sampling", "versions") for name, value in record[key].items()}
    return {
        **{key: record[key] for key in ("run", "name", "state", "finished", "planned")},
        "model_failed": shown["model-failed"],
        **{key: shown[key] for key in ("unjudged", "faults", "samples", "generator", "strategy", "origin")},
        "last_began": None if last is None else datetime.fromtimestamp(last.started, UTC),
        **{key: record[key] for key in ("n", "seed", "limit", "after", "samples_digest", "command")},
        **{key: "; ".join(map(str, record[key])) for key in ("languages", "remarks")},
        "judge": record["judge"],
        **{key: "; ".join(map(str, value)) if isinstance(value, list) else value for key, value in parts.items()},
    }


def _record(
    work: RunWork, faults_of: Sequence[FaultGroup], flags: Mapping[str, int], options: Sequence[str]
) -> dict[str, Any]:
    """Return the stored data of a run. Times are seconds since 1970."""
    from dataclasses import asdict

    from ctxbench.dashboard.views.runs import state
    from ctxbench.harness.run.spec import judge_command, sampling_key

    choices = work.choices
    return {
        "run": work.id,
        "name": work.name,
        "state": state(work),
        "planned": work.planned,
        "finished": work.finished,
        "statuses": dict(work.statuses),
        "unjudged": work.unjudged,
        "samples": choices.samples,
        "samples_digest": choices.samples_digest,
        "limit": choices.limit,
        "after": None if choices.after is None else choices.after.isoformat(),
        "languages": list(work.languages),
        "strategy": choices.strategy,
        "generator": choices.generator,
        "n": choices.n,
        "seed": choices.seed,
        "sampling": json.loads(sampling_key(choices.sampling)),
        "versions": choices.versions,
        "origin": str(work.origin),
        "remarks": list(work.remarks),
        "flags": dict(flags),
        "command": work.repeat_command(options),
        "judge": judge_command(choices, work.id, options=options) if work.unjudged else None,
        "attempts": [
            {
                "began": attempt.started,
                "ended": attempt.ended,
                "end": attempt.reason,
                "finished": attempt.finished,
                "missing": attempt.missing,
                "faults": attempt.faults,
                "load": None if attempt.load is None else asdict(attempt.load),
                "isolation": attempt.isolation,
            }
            for attempt in work.attempts
        ],
        "faults": [
            {
                "kind": fault.kind,
                "message": fault.message,
                "count": fault.count,
                "attempt_began": fault.started,
                "samples": list(fault.samples),
                "detail": fault.detail,
            }
            for fault in faults_of
        ],
    }
