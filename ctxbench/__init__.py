"""ctxbench for Python: ``ctxbench.run(…)``, ``ctxbench.board(…)``, and the names that a strategy's author needs.

The functions are for notebooks and scripts; each does what the command of its name does and returns a `ResultFrame`,
which ``pandas.DataFrame`` and ``polars.DataFrame`` take as it is. The five folders beside this file are links to those
of the same names at the top of the repository. Nothing is imported before it is needed: strategies import this too.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

if TYPE_CHECKING:
    from datetime import date

    from ctxbench.bench.home import Home
    from ctxbench.harness.frames import ResultFrame
    from ctxbench.strategies import *  # noqa: F403 - what it exports is what authors need

_FUNCTIONS = ("board", "compare", "run", "samples", "scores")
_ROOMS = frozenset(("bench", "harness", "sandbox", "strategies", "dashboard"))


def samples(name: str | None = None, *, home: str | Path | None = None) -> ResultFrame:
    """Return the sample sets of a home folder, or the samples of one of them with their answers: a row each.

    Args:
        name: of a set; None for the list of all.
        home: the home folder; None for CTXBENCH_HOME, else ``.ctxbench`` in the working directory.

    Raises:
        CtxbenchError: if there is no such set, or its files are wrong.
    """
    from ctxbench.bench import samples as sets
    from ctxbench.harness import frames

    place = _home(home)
    if name is not None:
        return frames.of_samples(sets.load(place, name))
    return frames.of_sets(sets.load(place, set_name) for set_name in sets.names(place))


def run(
    samples: str,
    strategies: str | Sequence[str],
    generator: str,
    *,
    home: str | Path | None = None,
    db: str | None = None,
    limit: int | None = None,
    after: date | str | None = None,
    n: int = 1,
    seed: int = 0,
    temperature: float | None = None,
    top_p: float | None = None,
    fim: bool = False,
    sandbox: str | None = None,
    workers: int | None = None,
    strategy_seconds: float = 60.0,
) -> ResultFrame:
    """Run strategies over a sample set and store every result; what is stored already is not run again.

    Args:
        samples: name of the sample set.
        strategies: a spec or several, as ``--strategy`` takes them: ``lc.repocoder``, ``mine.py@mine(limit={3,5})``.
        generator: spec of the model, such as ``incontext`` or ``openai:MODEL@URL``.
        home: the home folder, as in `samples`.
        db: SQLAlchemy URL of the results; None for CTXBENCH_DB, else the home's own database.
        limit: take so many samples, from the repositories in turn.
        after: take only samples dated after that day.
        n: completions a sample.
        seed: of strategies and decoding.
        temperature: of decoding; None for 0, and 0.8 for several completions of a function.
        top_p: of decoding, above 0 and at most 1; None for 1, and 0.95 for several completions of a function.
        fim: show the model what follows the cursor as well.
        sandbox: ``docker``, ``bubblewrap`` or ``none``: what runs the tests of functions; None for what is here.
        workers: strategies and tests at work at once; None for one a core.
        strategy_seconds: processor time of a strategy for one sample, in seconds.

    Returns:
        A row a strategy: run, strategy, and how many samples were scored, failed by the model, and are missing.

    Raises:
        CtxbenchError: if a spec is wrong, or samples are missing at the end; the same call goes on with them.
    """
    from ctxbench.bench import samples as sets
    from ctxbench.bench.errors import InputFault
    from ctxbench.bench.spec import expand
    from ctxbench.harness import frames
    from ctxbench.harness.cli.terminal import progress
    from ctxbench.harness.papers.presets import spec_of
    from ctxbench.harness.run.runner import fault_of
    from ctxbench.harness.run.runner import run as run_strategies
    from ctxbench.harness.run.spec import RunOptions
    from ctxbench.harness.store import open_store

    place = _home(home)
    specs = [strategies] if isinstance(strategies, str) else strategies
    if not specs:
        raise InputFault("no strategy is given", cure="name one, such as lc.infile (see `ctxbench strategy list`)")
    choices = RunOptions(
        limit=None if limit is None else _whole("limit", limit),
        after=_day(after),
        n=_whole("n", n),
        seed=_whole("seed", seed),
        workers=None if workers is None else _whole("workers", workers),
        temperature=temperature,
        top_p=top_p,
        sandbox=sandbox,
        strategy_seconds=strategy_seconds,
        fim=fim,
    )
    with open_store(_database(db) or place.database) as store:
        summaries = run_strategies(
            place,
            store,
            sets.load(place, samples),
            strategies=[spec_of(spec) for text in specs for spec in expand(text)],
            generator=generator,
            choices=choices,
            progress=progress,
        )
    fault = fault_of(summaries)
    if fault is not None:
        raise fault
    return frames.of_summaries(summaries)


def scores(
    samples: str | None = None,
    *,
    home: str | Path | None = None,
    db: str | None = None,
    profile: str = "ctxbench",
    k: Sequence[int] = (),
    marked: Literal["exclude", "include"] = "exclude",
    strict: bool = False,
    after: date | str | None = None,
    prices: str | Path | None = None,
    generator: str | None = None,
) -> ResultFrame:
    """Return every sample of the stored runs with its status, scores and costs: a row each.

    Args:
        samples: only runs over this sample set.
        home: the home folder, as in `samples`.
        db: SQLAlchemy URL of the results, as in `run`.
        profile: the metric profile; values are in its own scale.
        k: add pass@k for these k.
        marked: what is done with samples marked as broken or vacuous.
        strict: count completions that passed and are not plain as failed.
        after: only samples dated after that day.
        prices: a file of rates to price the stored tokens by.
        generator: only runs by this generator: its spec, its name, or its model's.

    Raises:
        CtxbenchError: if nothing fits.
    """
    from ctxbench.harness import frames
    from ctxbench.harness.query import RunQuery

    chosen = {"samples": samples, "profile": profile, "marked": marked, "strict": strict, "generator": generator}
    query = RunQuery(**_runs(home, db, k=k, after=after, prices=prices, **chosen))
    return frames.of_runs(query.tables())


def board(
    samples: str | None = None,
    *,
    metric: str | None = None,
    baseline: str | None = None,
    home: str | Path | None = None,
    db: str | None = None,
    profile: str = "ctxbench",
    k: Sequence[int] = (),
    marked: Literal["exclude", "include"] = "exclude",
    strict: bool = False,
    after: date | str | None = None,
    prices: str | Path | None = None,
    by_level: bool | None = None,
    published: Literal["auto", "all", "none"] = "none",
    seed: int = 0,
    generator: str | None = None,
    all_pairs: bool = False,
) -> ResultFrame:
    """Return the leaderboard of the stored runs: a row a method, as ``ctxbench leaderboard --format csv`` has it.

    A notebook shows it as the board's own tables, with their notes.

    Args:
        samples: only runs over this sample set.
        metric: what ranks; None for ``pass@1`` of functions, ``context_gain`` for ``incontext``, else ``es``.
        baseline: the strategy that differences refer to; None for ``lc.infile``.
        home: the home folder, as in `samples`.
        db: SQLAlchemy URL of the results, as in `run`.
        profile: the metric profile.
        k: add pass@k for these k.
        marked: what is done with samples marked as broken or vacuous.
        strict: count completions that passed and are not plain as failed.
        after: only samples dated after that day.
        prices: a file of rates to price the stored tokens by.
        by_level: add a ranking for each level; None: for CoderEval only.
        published: rows of the papers' tables below.
        seed: decides drawn permutations and bootstrap samples.
        generator: only runs by this generator: its spec, its name, or its model's.
        all_pairs: test every pair of rows, and not each of your own against the baseline.

    Raises:
        CtxbenchError: if nothing fits.
    """
    from ctxbench.harness.frames import ResultFrame
    from ctxbench.harness.leaderboard.render import flat_records, markdown
    from ctxbench.harness.query import BoardQuery

    chosen = {"samples": samples, "profile": profile, "marked": marked, "strict": strict, "generator": generator}
    ranked = BoardQuery(
        **_runs(home, db, k=k, after=after, prices=prices, **chosen),
        metric=metric,
        baseline=baseline,
        by_level=by_level,
        all_pairs=all_pairs,
        published=published,
        seed=seed,
    ).board()
    return ResultFrame.of_records(flat_records(ranked), markdown=markdown(ranked))


def compare(
    *runs: str,
    metric: str | None = None,
    home: str | Path | None = None,
    db: str | None = None,
    profile: str = "ctxbench",
    seed: int = 0,
) -> ResultFrame:
    """Return the differences of runs to the first one, as ``ctxbench compare`` has them: a row a pair and metric.

    Args:
        runs: two or more: ids or their beginnings, names, or strategies, of which the newest whole run is taken.
        metric: only this one; None for all that the runs share.
        home: the home folder, as in `samples`.
        db: SQLAlchemy URL of the results, as in `run`.
        profile: the metric profile.
        seed: decides drawn permutations and bootstrap samples.

    Raises:
        CtxbenchError: if there is no such run, or the runs cannot be compared.
    """
    from ctxbench.bench.errors import InputFault
    from ctxbench.harness.frames import ResultFrame
    from ctxbench.harness.leaderboard.render import flat_comparison
    from ctxbench.harness.query import RunQuery

    if not runs:
        raise InputFault("no run is named", cure="name two or more, such as lc.infile and lc.repocoder")
    query = RunQuery(home=_home(home), db=_database(db), profile=profile)
    return ResultFrame.of_records(flat_comparison(query.compared(runs, metric=metric, seed=seed)[0]))


def _runs(
    home: str | Path | None,
    db: str | None,
    *,
    k: Sequence[int],
    after: date | str | None,
    prices: str | Path | None,
    **choices: Any,
) -> dict[str, Any]:
    """Return the fields of a `RunQuery`."""
    days_and_files = {"after": _day(after), "prices": Path(prices) if prices else None}
    return {"home": _home(home), "db": _database(db), "ks": tuple(k), **days_and_files, **choices}


def _home(home: str | Path | None) -> Home:
    from ctxbench.bench.home import Home

    return Home.of(home or os.environ.get("CTXBENCH_HOME") or ".ctxbench")


def _database(db: str | None) -> str | None:
    return db or os.environ.get("CTXBENCH_DB")


def _whole(name: str, number: SupportsIndex) -> int:
    """Return a number as an id spells it; a notebook's may be numpy's."""
    from ctxbench.bench.errors import InputFault

    try:
        return int(operator.index(number))
    except TypeError:
        raise InputFault(f"{name} is {number!r}", cure="give a whole number") from None


def _day(day: date | str | None) -> date | None:
    from ctxbench.bench.dates import read_date
    from ctxbench.bench.errors import InputFault

    try:
        return read_date(day) if isinstance(day, str) else day
    except ValueError as error:
        raise InputFault(str(error), cure="write it as 2024-06-01") from error


def __getattr__(name: str) -> Any:
    """Return a name of `ctxbench.strategies`, imported when it is first asked for."""
    if name not in _ROOMS and (not name.startswith("_") or name == "__all__"):
        from ctxbench import strategies

        if name == "__all__":
            return [*_FUNCTIONS, *strategies.__all__]
        if name in strategies.__all__:
            return getattr(strategies, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return what a user needs: the functions, and the names for authors of strategies."""
    return sorted(__getattr__("__all__"))
