"""ctxbench in Python: ``ctxbench.run(…)``, ``ctxbench.board(…)``, and the names for authors of strategies.

The functions are for notebooks and scripts. Each function does the work of a command, accepts its main options, and
returns a pandas ``DataFrame`` (``pip install 'ctxbench[pandas]'``). Without pandas, functions return an
Arrow table; without pyarrow too, they return a dictionary of columns. Errors are `CtxbenchError`s with the messages of
the command line. The five folders beside this file are links to the folders of the same names at the top of the
repository. Modules are imported when they are first needed, because strategies import this package too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from datetime import date

    from pandas import DataFrame

    from ctxbench.bench.errors import CtxbenchError as CtxbenchError
    from ctxbench.bench.errors import InputFault as InputFault
    from ctxbench.bench.errors import MachineFault as MachineFault
    from ctxbench.bench.errors import UnknownName as UnknownName
    from ctxbench.harness.query import BoardQuery
    from ctxbench.strategies import *  # noqa: F403 - what it exports is what authors need

_FUNCTIONS = ("board", "build", "compare", "import_results", "run", "runs", "samples", "scores")
_FAULTS = ("CtxbenchError", "InputFault", "MachineFault", "UnknownName")
_ROOMS = frozenset(("bench", "harness", "sandbox", "strategies", "dashboard"))


@contextlib.contextmanager
def _faults() -> Iterator[None]:
    """Turn the command line's errors into `CtxbenchError`s."""
    from click import ClickException

    from ctxbench.bench.errors import InputFault, MachineFault
    from ctxbench.bench.files import fault_of
    from ctxbench.sandbox.errors import SandboxError

    try:
        yield
    except ClickException as error:
        raise InputFault(error.format_message().removesuffix(".")) from None
    except SandboxError as error:
        raise MachineFault(error.what, where=error.where, cure=error.cure) from error
    except OSError as error:
        raise fault_of(error, str(error.filename or "this machine")) from error


@_faults()
def samples(name: str | None = None, *, home: str | Path | None = None) -> DataFrame:
    """Return the sample sets in a home folder, or the samples of one set with their references, one row each.

    Args:
        name: name of a set; None to list all sets.
        home: the home folder; None for CTXBENCH_HOME, or ``.ctxbench`` in the working directory.

    Raises:
        CtxbenchError: if the set does not exist, or its files are invalid.
    """
    from ctxbench.bench import samples as sets
    from ctxbench.harness import frames

    place = _query(home=home).home
    if name is not None:
        return frames.of_samples(sets.load(place, str(name))).to_user()
    return frames.of_sets(sets.load(place, set_name) for set_name in sets.names(place)).to_user()


@_faults()
def build(
    name: str,
    repo: str | Path | Sequence[str | Path] = (),
    *,
    set: str | None = None,  # noqa: A002 - as the command calls it
    kind: Literal["line", "function"] = "line",
    language: str | None = None,
    after: date | str | None = None,
    since: date | str | None = None,
    per_repo: int | None = None,
    protocol: str | None = None,
    seed: int | None = None,
    workers: int | None = None,
    force: bool = False,
    sandbox: str | None = None,
    home: str | Path | None = None,
) -> DataFrame:
    """Build a sample set from real repositories, as ``ctxbench samples build`` does, and return its samples.

    Args:
        name: name of the new set.
        repo: one or more built-in repositories or paths of manifests.
        set: a standard set, whose repositories, samples per repository and seed are used instead.
        kind: what the samples complete: lines or functions.
        language: use only repositories in this language.
        after: use only repositories whose version was released after this day.
        since: use only lines added after this commit or day.
        per_repo: maximum number of samples per repository; None for the protocol's default.
        protocol: the rules that choose lines; None for ``ctxbench``.
        seed: seed of every random choice; None for 0.
        workers: functions to judge at once or, with `since`, files to date at once; None for one per core.
        force: replace an existing set with this name.
        sandbox: the sandbox for the tests of functions, as in `run`, but not ``none``.
        home: the home folder, as in `samples`.

    Raises:
        CtxbenchError: if an argument is wrong, or a repository cannot be fetched.
    """
    from ctxbench.harness.cli.samples import build as command

    choices = {"set_name": set, "kind": kind, "language": language, "after": after, "since": since}
    limits = {"per_repo": per_repo, "protocol": protocol, "seed": seed, "workers": workers, "force": force}
    _do(command, name=name, repos=repo, **choices, **limits, sandbox=sandbox, home=home)
    return samples(name, home=home)


@_faults()
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
) -> DataFrame:
    """Run strategies over a sample set and store every result. Stored results are not computed again.

    Args:
        samples: name of the sample set.
        strategies: one or more specs, as for ``--strategy``: ``lc.repocoder``, ``mine.py@mine(limit={3,5})``.
        generator: spec of the model, such as ``incontext`` or ``openai:MODEL@URL``.
        home: the home folder, as in `samples`.
        db: SQLAlchemy URL of the results; None for CTXBENCH_DB, or the database in the home folder.
        limit: number of samples to run, taken from the repositories in turn; None for all.
        after: use only samples dated after this day.
        n: number of completions per sample.
        seed: seed of strategies and decoding.
        temperature: decoding temperature; None for 0, or 0.8 for several completions of a function.
        top_p: decoding's top-p, above 0 and at most 1; None for 1, or 0.95 for several completions of a function.
        fim: also show the model the text after the cursor.
        sandbox: ``docker``, ``bubblewrap`` or ``none`` (no tests); None for Docker if it runs, otherwise bubblewrap.
        workers: maximum number of strategies and tests that run at once; None for one per core.
        strategy_seconds: processor time limit of a strategy per sample, in seconds.

    Returns:
        One row per strategy: run, strategy, the numbers of samples that are scored, model-failed, missing and new, and
        the number of completions without a verdict.

    Raises:
        CtxbenchError: if a spec is wrong, or samples are missing at the end. The same call runs missing samples again.
    """
    from ctxbench.harness import frames
    from ctxbench.harness.cli.run import run as command

    decoding = {"n": n, "seed": seed, "temperature": temperature, "top_p": top_p, "fim": fim}
    means = {"sandbox": sandbox, "workers": workers, "strategy_seconds": strategy_seconds, "home": home, "db": db}
    of_samples = {"samples": samples, "limit": limit, "after": after}
    summaries = _do(command, strategies=strategies, generator=generator, **of_samples, **decoding, **means)
    return frames.of_summaries(summaries).to_user()


@_faults()
def runs(
    samples: str | None = None,
    *,
    columns: str | Iterable[str] = (),
    home: str | Path | None = None,
    db: str | None = None,
) -> DataFrame:
    """Return the stored runs, newest first, one row each, with error counts and the command that continues the run.

    Args:
        samples: return only runs over this sample set, including limited runs.
        columns: names of columns; empty for at most 20 common columns, ``all`` for all columns.
        home: the home folder, as in `samples`.
        db: SQLAlchemy URL of the results, as in `run`.

    Raises:
        CtxbenchError: if no run is stored, or the sample set or a column does not exist.
    """
    from ctxbench.dashboard.cli.runs import frame

    query = _query(home=home, db=db)
    return frame(query.home, query.db, None if samples is None else str(samples), columns).to_user()


@_faults()
def import_results(
    *files: str | Path,
    format: str | None = None,  # noqa: A002 - as the command calls it
    samples: str | None = None,
    reference: str | None = None,
    strategy: str | None = None,
    generator: str | None = None,
    language: str | None = None,
    home: str | Path | None = None,
    db: str | None = None,
) -> DataFrame:
    """Store recorded predictions as runs, as ``ctxbench results import`` does, and return one row per run.

    Args:
        files: JSON Lines or JSON files, plain or gzipped, or Parquet files.
        format: format of the files, such as ``ctxbench`` or ``crosscodeeval``; None only with `reference`.
        samples: name of the predictions' sample set.
        reference: name of a standard set; import the results that ship with ctxbench for it, instead of files.
        strategy: name of the strategy; None for the name in the file, or ``recorded``.
        generator: name of the model; None for the name in the file, or the first part of the file's name.
        language: accept only predictions for samples in this language.
        home: the home folder, as in `samples`.
        db: SQLAlchemy URL of the results, as in `run`.

    Raises:
        CtxbenchError: if a file is invalid. The error names file, line, field and cure. Nothing of the file is stored.
    """
    from ctxbench.harness import frames
    from ctxbench.harness.cli.results import import_files as command

    labels = {"strategy": strategy, "generator": generator, "language": language}
    places = {"files": files, "shape": format, "samples": samples, "reference": reference, "home": home, "db": db}
    return frames.of_imports(_do(command, **places, **labels)).to_user()


@_faults()
def scores(
    samples: str | None = None,
    *,
    home: str | Path | None = None,
    db: str | None = None,
    profile: str = "ctxbench",
    k: Sequence[int] = (),
    invalid: Literal["exclude", "include"] = "exclude",
    strict: bool = False,
    after: date | str | None = None,
    prices: str | Path | None = None,
    generator: str | None = None,
    columns: str | Iterable[str] = (),
) -> DataFrame:
    """Return the samples of the stored runs with status, scores and costs, one row per sample and run.

    Args:
        samples: return only runs over this sample set.
        home: the home folder, as in `samples`.
        db: SQLAlchemy URL of the results, as in `run`.
        profile: the metric profile; values are in its own scale.
        k: add pass@k for each k.
        invalid: ``exclude`` or ``include`` invalid (broken or vacuous) samples.
        strict: count completions that pass but are not plain code as failed (docs/verdicts.md).
        after: return only samples dated after this day.
        prices: a file with rates for the stored tokens; None for the rates at the time of the run.
        generator: return only runs by this generator, given by its spec, its name or its model's name.
        columns: names of columns; empty for at most 20 common columns, ``all`` for all columns.

    Raises:
        CtxbenchError: if no run or sample matches, or a column does not exist.
    """
    from ctxbench.harness import frames
    from ctxbench.harness.leaderboard.selection import leading

    chosen = {"samples": samples, "profile": profile, "invalid": invalid, "strict": strict, "generator": generator}
    tables = _query(**chosen, ks=k, after=after, prices=prices, home=home, db=db).tables()
    metrics = dict.fromkeys(name for table in tables for name in leading(profile, table.metrics))
    usual = ("strategy", "generator", "samples", "language", "repository", "sample", "level", "status")
    costs = ("context_tokens", "calls", "seconds", "price")
    return frames.of_runs(tables).chosen(columns, [*usual, *list(metrics)[:8], *costs]).to_user()


@_faults()
def board(
    samples: str | None = None,
    *,
    metric: str | None = None,
    baseline: str | None = None,
    home: str | Path | None = None,
    db: str | None = None,
    profile: str = "ctxbench",
    k: Sequence[int] = (),
    invalid: Literal["exclude", "include"] = "exclude",
    strict: bool = False,
    after: date | str | None = None,
    prices: str | Path | None = None,
    by_level: bool | None = None,
    published: Literal["auto", "all", "none"] = "none",
    generator: str | None = None,
    all_pairs: bool = False,
    columns: str | Iterable[str] = (),
) -> DataFrame:
    """Return the leaderboard: one row per strategy, best first, for each sample set, language and generator.

    ``attrs["headline"]`` states the result in a sentence, and ``attrs["notes"]`` lists remarks on the numbers. Print
    both. Means and differences are in percent or bits, as in the printed table.

    Args:
        samples: use only runs over this sample set.
        metric: the metric that ranks; None for the default of ``ctxbench leaderboard``, such as ``pass@1`` for
            functions and ``es`` for lines.
        baseline: the strategy that other rows are compared with; None for ``lc.infile`` or, without it, the first row.
        home: the home folder, as in `samples`.
        db: SQLAlchemy URL of the results, as in `run`.
        profile: the metric profile.
        k: add pass@k for each k.
        invalid: ``exclude`` or ``include`` invalid (broken or vacuous) samples.
        strict: count completions that pass but are not plain code as failed (docs/verdicts.md).
        after: use only samples dated after this day.
        prices: a file with rates for the stored tokens; None for the rates at the time of the run.
        by_level: add a ranking for each level; None for CoderEval only.
        published: which published results to add below the runs.
        generator: use only runs by this generator, given by its spec, its name or its model's name.
        all_pairs: test all pairs of rows, instead of each of your rows against the baseline.
        columns: names of columns, as in ``ctxbench leaderboard --columns`` and in its CSV, such as ``es`` and
            ``es_low``; empty for at most 20 common columns, ``all`` for all columns. ``metric`` and ``difference`` are
            values of the metric that ranks, which the column ``ranked_by`` names.

    Raises:
        CtxbenchError: if no run matches, or a column does not exist.
    """
    from ctxbench.harness.leaderboard.render import frame

    chosen = {"samples": samples, "profile": profile, "invalid": invalid, "strict": strict, "generator": generator}
    more = {"ks": k, "after": after, "prices": prices, "home": home, "db": db}
    ranked = {"metric": metric, "baseline": baseline, "by_level": by_level, "all_pairs": all_pairs}
    return frame(_query(**chosen, **more, **ranked, published=published).board(), columns).to_user()


@_faults()
def compare(
    *runs: str,
    metric: str | None = None,
    columns: str | Iterable[str] = (),
    home: str | Path | None = None,
    db: str | None = None,
    profile: str = "ctxbench",
) -> DataFrame:
    """Return how the other runs differ from the first run, as ``ctxbench compare`` does.

    The result has one row for each other run, language and metric.

    Args:
        runs: two or more runs, each given by its id or the start of its id, by its name, or by a strategy, which
            selects the strategy's newest whole run.
        metric: compare only this metric; None for all metrics that the runs share.
        columns: names of columns; empty for at most 20 common columns, ``all`` for all columns.
        home: the home folder, as in `samples`.
        db: SQLAlchemy URL of the results, as in `run`.
        profile: the metric profile.

    Raises:
        CtxbenchError: if a run does not exist, or the runs cannot be compared.
    """
    from ctxbench.bench.errors import InputFault
    from ctxbench.harness.frames import ResultFrame
    from ctxbench.harness.leaderboard.render import flat_comparison

    if not runs:
        raise InputFault("no run is named", cure="name two or more, such as lc.infile and lc.repocoder")
    query = _query(metric=metric, profile=profile, home=home, db=db)
    compared, _ = query.compared([str(run) for run in runs], metric=query.metric)
    frame = ResultFrame.of_records(flat_comparison(compared))
    usual = [name for name in frame if name not in ("repetitions", "baseline_repetitions")]
    return frame.chosen(columns, usual[:20]).to_user()


def _query(**values: Any) -> BoardQuery:
    from ctxbench.harness.cli.leaderboard import chosen

    query: BoardQuery = _do(chosen, **values)
    return query


def _do(command: Any, **values: Any) -> Any:
    """Call a command with these options and arguments, except those that are None, and return its result.

    The command line's own declarations check the values, so both interfaces share rules and defaults.
    """
    from click import Argument

    words: list[str] = []
    places: list[str] = []
    for param in command.params:
        value = values.get(param.name)
        if value is None:
            continue
        is_list = isinstance(value, Iterable) and not isinstance(value, str)
        several = is_list and (param.multiple or param.nargs == -1)
        if isinstance(param, Argument):
            places += map(str, value if several else [value])
        elif getattr(param, "is_flag", False) and isinstance(value, bool):
            words += param.opts[:1] if value else param.secondary_opts[:1]
        else:
            words += [f"{param.opts[0]}={one}" for one in (value if several else [value])]
    with command.make_context("ctxbench", [*words, "--", *places]) as context:
        return command.invoke(context)


def __getattr__(name: str) -> Any:
    """Return an error class or a name of `ctxbench.strategies`, imported at its first use."""
    if name in _FAULTS:
        from ctxbench.bench import errors

        return getattr(errors, name)
    if name not in _ROOMS and (not name.startswith("_") or name == "__all__"):
        from ctxbench import strategies

        if name == "__all__":
            return [*_FUNCTIONS, *_FAULTS, *strategies.__all__]
        if name in strategies.__all__:
            return getattr(strategies, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names: functions, error classes, and the names for authors of strategies."""
    return sorted(__getattr__("__all__"))
