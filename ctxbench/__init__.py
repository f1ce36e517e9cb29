"""ctxbench for Python: ``ctxbench.run(…)``, ``ctxbench.board(…)``, and the names that a strategy's author needs.

The functions are for notebooks and scripts. Each does what the command of its name does, by the same options, and
returns a pandas ``DataFrame`` (``pip install 'ctxbench[pandas]'``). Without pandas it returns an Arrow table, and
without pyarrow too a dictionary of columns. What is wrong raises a `CtxbenchError` with its cure, in the words of the
command line. The five folders beside this file are links to those of the same names at the top of the repository.
Nothing is imported before it is needed: strategies import this too.
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
    """Turn what the command line says in a line into exceptions of ours."""
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
    """Return the sample sets of a home folder, or the samples of one of them with their answers: a row each.

    Args:
        name: of a set; None for the list of all.
        home: the home folder; None for CTXBENCH_HOME, else ``.ctxbench`` in the working directory.

    Raises:
        CtxbenchError: if there is no such set, or its files are wrong.
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
    """Build a sample set from real repositories, as ``ctxbench samples build`` does; return it as `samples` does.

    Args:
        name: of the new set.
        repo: built-in repositories, or paths of manifests, one or several.
        set: a standard set in place of these: its repositories, samples a repository and seed.
        kind: what to complete.
        language: use only the repositories in it.
        after: use only the repositories whose release was published after that day.
        since: take only lines that were added after that commit or day.
        per_repo: most samples a repository; None for what the protocol says.
        protocol: the rules that choose lines; None for ``ctxbench``.
        seed: of every random choice; None for 0.
        workers: processes; None for one a core.
        force: replace another set of that name.
        sandbox: what runs the tests of functions, as in `run`.
        home: the home folder, as in `samples`.

    Raises:
        CtxbenchError: if an argument is wrong, or a repository cannot be had.
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
    """Return the stored runs, the one begun last first, with what went wrong and the command to go on: a row each.

    Args:
        samples: only runs over this sample set, limited ones too.
        columns: names of columns; none for 20 usual ones, ``all`` for every one.
        home: the home folder, as in `samples`.
        db: SQLAlchemy URL of the results, as in `run`.

    Raises:
        CtxbenchError: if no run is stored, or there is no such column.
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
    """Store recorded predictions as runs, as ``ctxbench results import`` does: a row a run.

    Args:
        files: JSON Lines, also gzipped.
        format: shape of the files, such as ``ctxbench`` or ``crosscodeeval``.
        samples: name of the sample set that the predictions are of.
        reference: instead of files the results that ship with ctxbench: those over this standard set.
        strategy: what to call the strategy; None: the file's word, else ``recorded``.
        generator: what to call the model; None: the file's word, else its name's first part.
        language: only this language's samples are meant.
        home: the home folder, as in `samples`.
        db: SQLAlchemy URL of the results, as in `run`.

    Raises:
        CtxbenchError: naming file, line, field and cure; then nothing of that file is stored.
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
    """Return every sample of the stored runs with its status, scores and costs: a row each.

    Args:
        samples: only runs over this sample set.
        home: the home folder, as in `samples`.
        db: SQLAlchemy URL of the results, as in `run`.
        profile: the metric profile; values are in its own scale.
        k: add pass@k for these k.
        invalid: what is done with invalid samples, broken or vacuous ones.
        strict: count completions that passed and are not plain as failed.
        after: only samples dated after that day.
        prices: a file of rates to price the stored tokens by.
        generator: only runs by this generator: its spec, its name, or its model's.
        columns: names of columns; none for 20 usual ones, ``all`` for every one.

    Raises:
        CtxbenchError: if nothing fits, or there is no such column.
    """
    from ctxbench.harness import frames
    from ctxbench.harness.leaderboard.sections import leading

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
    """Return the leaderboard of the stored runs: a row a method, best first.

    Its ``attrs["headline"]`` is the answer in a sentence, and ``attrs["notes"]`` what a reader of the numbers must
    know: print them. Means and differences are in the unit that the table shows, percent or bits.

    Args:
        samples: only runs over this sample set.
        metric: what ranks; None for ``pass@1`` of functions, ``copyable_bits`` for ``incontext``, else ``es``.
        baseline: the strategy that differences refer to; None for ``lc.infile``.
        home: the home folder, as in `samples`.
        db: SQLAlchemy URL of the results, as in `run`.
        profile: the metric profile.
        k: add pass@k for these k.
        invalid: what is done with invalid samples, broken or vacuous ones.
        strict: count completions that passed and are not plain as failed.
        after: only samples dated after that day.
        prices: a file of rates to price the stored tokens by.
        by_level: add a ranking for each level; None: for CoderEval only.
        published: rows of the papers' tables below.
        generator: only runs by this generator: its spec, its name, or its model's.
        all_pairs: test every pair of rows, and not each of your own against the baseline.
        columns: names of columns, those of ``ctxbench leaderboard --columns`` and of its CSV among them, such as ``es``
            and ``es_low``; none for 20 usual ones, ``all`` for every one. ``metric`` and ``difference`` are those of
            the metric that ranks, which `ranked_by` names.

    Raises:
        CtxbenchError: if nothing fits, or there is no such column.
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
    """Return the differences of runs to the first one, as ``ctxbench compare`` has them: a row a pair and metric.

    Args:
        runs: two or more: ids or their beginnings, names, or strategies, of which the newest whole run is taken.
        metric: only this one; None for all that the runs share.
        columns: names of columns; none for 20 usual ones, ``all`` for every one.
        home: the home folder, as in `samples`.
        db: SQLAlchemy URL of the results, as in `run`.
        profile: the metric profile.

    Raises:
        CtxbenchError: if there is no such run, or the runs cannot be compared.
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
    """Do what a command does with these values of its options and arguments, but for None; return what it returns.

    The declarations of the command line read and check them, so that there is one set of rules, and one of defaults.
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
    """Return a fault, or a name of `ctxbench.strategies`, imported when it is first asked for."""
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
    """Return what a user needs: the functions, their faults, and the names for authors of strategies."""
    return sorted(__getattr__("__all__"))
