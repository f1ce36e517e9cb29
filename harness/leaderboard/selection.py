"""Selects the runs to compare, their metric and baseline, and warns about different decoding, versions or load."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import replace
from typing import Any

from ctxbench.bench.code_tokens import P50K_BASE
from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.bench.spec import parse
from ctxbench.harness.leaderboard.scales import restrict
from ctxbench.harness.metrics import BIT_METRICS, COPYABLE, GAIN, HEADLINE, common_metric
from ctxbench.harness.metrics import metrics as declared_metrics
from ctxbench.harness.results import Origin, RunInfo, RunTable, Status, file_label, only_copies, spec_of_label

BASELINE = "lc.infile"
RANKS_FUNCTIONS = "pass@1"
_BESIDE = ("em", "es", "id_f1", GAIN, COPYABLE)
_BESIDE_PASSES = (GAIN, "es", "id_f1", "em", COPYABLE)
_MOST_PASSES = 2
_RANKING = ("es", RANKS_FUNCTIONS, "em")
_MADE_BY = ("generator", "coder", "tokenizer", "ctxbench")
"""Components whose versions all rows should share. Each strategy has its own version."""
_OF_GENERATOR = ("generator", "coder")
_LONGEST = 40
_ALWAYS = ("completions", "temperature")


def check(tables: Sequence[RunTable], metric: str | None, baseline: str | None) -> None:
    """Raise `UnknownName` if no run has the requested metric or strategy."""
    metrics = {name for table in tables for name in table.metrics}
    if metric is not None and metric not in metrics:
        raise UnknownName("metric of these runs", metric, metrics)
    strategies = {table.run.strategy for table in tables}
    if baseline is not None and not any(is_named(baseline, strategy) for strategy in strategies):
        raise UnknownName("strategy of these runs", baseline, strategies)


def file_labelled(tables: Sequence[RunTable]) -> list[RunTable]:
    """Label strategies from files by `file_label`, so that all versions of a file share one row.

    Files of the same name in different folders keep their paths, unless they once had the same text: then the file was
    moved, and they share the label.
    """
    versions: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for table in tables:
        run = table.run
        versions[file_label(run.strategy)][run.strategy].add(run.versions.get("strategy", ""))
    alone = {label for label, specs in versions.items() if len(specs) == 1 or set.intersection(*specs.values()) - {""}}
    return [
        replace(table, run=replace(table.run, strategy=label))
        if (label := file_label(table.run.strategy)) in alone
        else table
        for table in tables
    ]


def strategy_of(run: RunInfo) -> Hashable:
    """Return the key of a row in a group: the strategy and the origin of its numbers."""
    return run.strategy, run.origin


def newest(tables: Sequence[RunTable], key_of: Callable[[RunInfo], Hashable] = strategy_of) -> list[RunTable]:
    """Return one table per key: the newest complete table, or the newest if none is complete.

    `tables` are in order of age, oldest first. A reference result is dropped if the user has a complete run of the same
    strategy.
    """
    newest_tables: dict[Hashable, RunTable] = {}
    for table in tables:
        key = key_of(table.run)
        if key not in newest_tables or complete(table) or not complete(newest_tables[key]):
            newest_tables[key] = table
    candidates = list(newest_tables.values())
    own = {table.run.strategy for table in candidates if table.run.origin is Origin.RUN and complete(table)}
    return [table for table in candidates if table.run.origin is not Origin.REFERENCE or table.run.strategy not in own]


def newest_of(tables: Sequence[RunTable], strategies: Sequence[str], beside: Sequence[str] = ()) -> dict[str, str]:
    """Return the id of each strategy's newest complete run, by strategy. All have the same samples and generator.

    Args:
        tables: stored runs; of runs that began at the same time, the later one is newer.
        strategies: specs or bare names.
        beside: run ids; if given, only runs over their samples and by their generator are considered.

    Raises:
        InputFault: if a bare name matches several strategies, or no samples and generator have complete runs of all.
    """
    # A run in two languages is complete only if both tables are.
    broken = {table.run.id for table in tables if not complete(table)}
    runs = [table.run for table in file_labelled(tables) if table.run.id not in broken]
    runs.sort(key=lambda run: run.began)
    newest_runs: dict[Hashable, dict[str, RunInfo]] = defaultdict(dict)
    languages: dict[str, set[str]] = defaultdict(set)
    age = {run.id: place for place, run in enumerate(runs)}
    for run in runs:
        languages[run.id].add(run.language)
        of = newest_runs[run.samples_digest, run.samples, run.generator]
        # Use a reference result only if the user has no run.
        if run.origin is Origin.RUN or run.strategy not in of or of[run.strategy].origin is not Origin.RUN:
            of[run.strategy] = run
    fixed = {(t.run.samples_digest, t.run.samples, t.run.generator) for t in tables if t.run.id in beside}
    candidates, faults = [], []
    for key, of in newest_runs.items():
        if fixed and key not in fixed:
            continue
        try:
            named = [_named(name, list(of)) for name in strategies]
        except InputFault as fault:
            faults.append(fault)
            continue
        picked = [of[strategy] for strategy in named if strategy]
        if len(picked) == len(named) and set.intersection(*(languages[run.id] for run in picked)):
            candidates.append(picked)
    if not candidates:
        where = " as the other named run" if fixed else ""
        if faults:
            raise faults[-1]
        raise InputFault(
            f"no complete runs of {' and '.join(strategies)} have the same samples and the same generator{where}",
            cure="finish the runs with the same commands as before, or name runs by id (see `ctxbench runs`)",
        )
    best = max(candidates, key=lambda of: (sum(run.origin is Origin.RUN for run in of), max(age[run.id] for run in of)))
    return {name: run.id for name, run in zip(strategies, best, strict=True)}


def _named(name: str, strategies: Collection[str]) -> str:
    matches = sorted(strategy for strategy in strategies if is_named(name, strategy))
    exact = [strategy for strategy in matches if strategy in (name, _canonical(name))]
    if len(matches) > 1 and not exact:
        what = f"{name!r} matches several strategies: {' and '.join(matches)}"
        raise InputFault(what, cure="give one of these specs")
    return next(iter(exact or matches), "")


def of_one_coder(tables: Sequence[RunTable], members: Sequence[RunTable]) -> list[RunTable]:
    """Return a group's runs with bits of one model: that of the user's newest run or, without any, of the newest run.

    Bits of two models, or of two versions of a model, are different units. `members` are the runs before pooling.
    """
    coders = {table.run.id: coder for table in tables if (coder := _coder(table)) is not None}
    if len(set(coders.values())) < 2:
        return list(tables)
    age = {table.run.id: (table.run.began, place) for place, table in enumerate(members)}
    # The user's runs come first: a newer reference result must not remove their bits.
    newest_run = max(
        (table.run for table in tables if table.run.id in coders),
        key=lambda run: (run.origin is Origin.RUN, max(age[id_] for id_ in run.ids)),
    )
    kept = coders[newest_run.id]
    return [table if coders.get(table.run.id, kept) == kept else _without_bits(table, kept) for table in tables]


def _coder(table: RunTable) -> str | None:
    """Return the model that measured a run's bits; empty if unknown, None if the run has no bits."""
    columns = [table.metrics.get(name, ()) for name in BIT_METRICS]
    has_bits = any(value is not None for column in columns for value in column)
    return table.run.versions.get("coder", "") if has_bits else None


def _without_bits(table: RunTable, kept: str) -> RunTable:
    own, of_others = (coder or "an unknown model" for coder in (_coder(table), kept))
    remark = (
        f"Bits are left out: {own} measured this row, but {of_others} measured the other rows, in another unit. "
        "Cure: run the strategy again."
    )
    metrics = {name: column for name, column in table.metrics.items() if name not in BIT_METRICS}
    repeated = {name: column for name, column in table.repeated.items() if name not in BIT_METRICS}
    run = replace(table.run, remarks=(*table.run.remarks, remark))
    return replace(table, run=run, metrics=metrics, repeated=repeated)


def complete(table: RunTable) -> bool:
    """Return whether the run has no missing samples."""
    return Status.INFRA_FAILED not in table.status


def default_metric(metrics: Sequence[str], run: RunInfo) -> str:
    """Return the default ranking metric. The runs may lack it.

    Without completions it is `HEADLINE`; for functions ``pass@1``; for lines ``copyable_bits`` with the built-in copy
    model, otherwise ``es``, ``em`` or the profile's first metric.
    """
    if not run.completions:
        return HEADLINE
    if run.functions:
        return RANKS_FUNCTIONS
    first = (COPYABLE, *_RANKING) if only_copies(run.generator) else _RANKING
    own = own_metrics(run.profile, metrics)
    # Do not replace a missing score: another metric would be printed under the profile's name.
    return next((name for name in (*first, *own) if name in metrics), None) or _ranking_metric(run.profile)


def own_metrics(profile: str, metrics: Collection[str]) -> list[str]:
    """Return the metrics in the profile's order, without the metrics that every board can have."""
    candidates = [name for name in metrics if common_metric(name) is None]
    if len(candidates) < 2:
        return candidates
    declared = declared_metrics(profile)
    return sorted(candidates, key=lambda name: declared.index(name) if name in declared else len(declared))


def _ranking_metric(profile: str) -> str:
    declared = declared_metrics(profile)
    return next((name for name in _RANKING if name in declared), declared[0])


def passes(metrics: Collection[str]) -> list[str]:
    """Return the pass@k metrics among `metrics`, sorted by k."""
    return sorted((name for name in metrics if name.startswith("pass@")), key=lambda name: int(name.partition("@")[2]))


def baseline(
    tables: Sequence[RunTable], ranked: Sequence[int], whole: Sequence[int], requested: str | None
) -> int | None:
    """Return the baseline's position: the requested row, ``lc.infile`` if none is requested, or the first ranked row.

    Without a request, the baseline is a complete run, one of the user's if possible, and never a control. None if no
    row qualifies.
    """
    anyone = range(len(tables))
    if requested is not None:
        questions = [(requested, ranked), (requested, whole), (requested, anyone)]
    else:
        questions = [(BASELINE, ranked), (BASELINE, whole)]
    for name, among in questions:
        if name is not None:
            matches = [index for index in among if is_named(name, tables[index].run.strategy)]
            exact = [index for index in matches if tables[index].run.strategy == _canonical(name)]
            if exact or matches:
                return (exact or matches)[0]
    return ranked[0] if ranked else None


def is_named(requested: str, strategy: str) -> bool:
    """Return whether a canonical spec equals the requested spec or has the requested bare name."""
    return strategy in (_canonical(requested), file_label(requested)) or requested.strip() == strategy.partition("(")[0]


def is_generator(requested: str, generator: str) -> bool:
    """Return whether a generator matches the request by spec, bare name or model name."""
    if requested.strip() in (generator, spec_of_label(generator).partition("(")[0]):
        return True
    try:
        return parse(spec_of_label(generator)).arguments.get("model") == requested.strip()
    except InputFault:
        # Labels of imported runs may not be specs.
        return False


def of_newest_run(tables: Sequence[RunTable]) -> tuple[list[RunTable], list[tuple[str, str]]]:
    """Return the runs over the newest run's samples by its generator, and all other (samples, generator) pairs.

    The user's runs take precedence. Without any, runs by language models do.
    """
    own = [table for table in tables if table.run.origin is Origin.RUN]
    candidates = own or [table for table in tables if not only_copies(table.run.generator)] or tables
    newest_run = sorted((table.run for table in candidates), key=lambda run: run.began)[-1]
    keys = dict.fromkeys((table.run.samples, table.run.generator) for table in tables)
    in_view = newest_run.samples, newest_run.generator
    of_view = [table for table in runs_over(tables, newest_run.samples) if table.run.generator == newest_run.generator]
    return of_view, [key for key in keys if key != in_view]


def with_rows_over_more(tables: Sequence[RunTable]) -> list[RunTable]:
    """Return all runs. If the user ran only a part ``[:N]`` of a set, add runs over more of it, cut to that part."""
    parts = {table.run.samples for table in tables if table.run.origin is Origin.RUN and "[:" in table.run.samples}
    joined = [table for table in tables if table.run.samples not in parts]
    return joined + [table for label in sorted(parts) for table in runs_over(tables, label)]


def runs_over(tables: Sequence[RunTable], label: str) -> list[RunTable]:
    """Return the runs over a sample set or its part ``[:N]``, and runs over more of the set, limited to that part.

    Strategies that ran over the part itself are not added again, nor are runs that lack a sample of the part.
    """
    name, is_part, _ = label.partition("[:")
    samples_at: dict[Hashable, set[str]] = defaultdict(set)
    run_there = set()
    for table in tables:
        if table.run.samples == label:
            samples_at[table.run.samples_digest, table.run.language].update(table.sample)
            run_there.add((strategy_of(table.run), table.run.generator))
    parts = []
    for table in tables:
        run, part = table.run, samples_at[table.run.samples_digest, table.run.language]
        if run.samples == label:
            parts.append(table)
        elif not is_part or run.samples.partition("[:")[0] != name or (strategy_of(run), run.generator) in run_there:
            continue
        elif part and part <= set(table.sample):
            parts.append(replace(restrict(table, part), run=replace(run, samples=label)))
    return parts


def _canonical(text: str) -> str:
    try:
        return str(parse(text))
    except InputFault:
        return text


def run_warnings(runs: Sequence[RunInfo]) -> list[str]:
    """Return warnings about different decoding and versions. Strategy versions count only for runs of one strategy."""
    return [*_decoding(runs), *_versions(runs)]


def load_of(runs: Sequence[RunInfo]) -> str:
    """Describe the load under which seconds were measured; empty if loads differ or nothing was timed."""
    loads = {load for run in _timed(runs) for load in run.loads}
    if len(loads) != 1:
        return ""
    [load] = loads
    if load is None:
        return "The load under which these seconds were measured is not recorded."
    return f"Seconds were measured with {load}; any other load of the machines is unknown."


def coders_of(runs: Sequence[RunInfo]) -> list[str]:
    """Return the models that measured the runs' bits (empty if unknown), sorted. Bits of two models differ in unit."""
    return sorted({run.versions.get("coder", "") for run in runs})


def differing_coders(runs: Sequence[RunInfo]) -> list[str]:
    """Return a list of one sentence on excluded bits if several known models measured them, otherwise an empty list."""
    model_versions = list(filter(None, coders_of(runs)))
    if len(model_versions) < 2:
        return []
    return [
        f"Bits are left out, because different models measured them in different units: {', '.join(model_versions)}."
    ]


def _decoding(runs: Sequence[RunInfo]) -> list[str]:
    decodings = [(run.strategy, _decoded(run)) for run in runs if run.sampling]
    differ = _differing([decoded for _, decoded in decodings])
    if any(run.repetitions for run in runs):
        # The interval of a row over several seeds includes their noise, so the seeds may differ.
        differ = [name for name in differ if name != "seed"]
    if not differ:
        return []
    how = "; ".join(f"{strategy} {_how(decoded, differ)}" for strategy, decoded in decodings)
    return [f"Runs were decoded in different ways, which affects their differences: {how}."]


def _decoded(run: RunInfo) -> dict[str, Any]:
    return {"completions": run.completions, "temperature": 0.0, **json.loads(run.sampling)}


def _how(decoded: dict[str, Any], differ: list[str]) -> str:
    more = [f", {name} {json.dumps(decoded.get(name))}" for name in differ if name not in _ALWAYS]
    return f"{decoded['completions']} per sample at temperature {decoded['temperature']:g}{''.join(more)}"


def _versions(runs: Sequence[RunInfo]) -> list[str]:
    names: tuple[str, ...] = (*_MADE_BY, "strategy") if len({run.strategy for run in runs}) == 1 else _MADE_BY
    if len({run.generator for run in runs}) > 1:
        names = tuple(name for name in names if name not in _OF_GENERATOR)
    if any(run.versions.get("tokenizer") == P50K_BASE for run in runs):
        # The user chose this tokenizer, and the generators' labels name it.
        names = tuple(name for name in names if name != "tokenizer")
    versions = [{name: run.versions[name][:_LONGEST] for name in names if name in run.versions} for run in runs]
    differ = [
        name for name in names if len({run_versions[name] for run_versions in versions if name in run_versions}) > 1
    ]
    if not differ:
        return []
    strategies_by_versions: dict[str, list[str]] = defaultdict(list)
    for run, run_versions in zip(runs, versions, strict=True):
        if run_versions.keys() & set(differ):
            versions_text = ", ".join(f"{name} {run_versions[name]}" for name in differ if name in run_versions)
            strategies_by_versions[versions_text].append(run.strategy)
    descriptions = [
        f"{' and '.join([*of[:1], f'{len(of) - 1} others']) if len(of) > 2 else ' and '.join(of)} ({versions_text})"
        for versions_text, of in strategies_by_versions.items()
    ]
    return [
        f"Runs used different versions, which affects their differences: {'; '.join(descriptions)}. "
        "Cure: run the older ones again."
    ]


def _timed(runs: Sequence[RunInfo]) -> list[RunInfo]:
    return [run for run in runs if run.loads and not run.control]


def load_warnings(runs: Sequence[RunInfo]) -> list[str]:
    """Return a warning if the seconds of runs were measured under different loads."""
    timed = _timed(runs)
    if len({load for run in timed for load in run.loads}) < 2:
        return []
    how = "; ".join(
        f"{run.strategy} {', then '.join('not recorded' if load is None else str(load) for load in run.loads)}"
        for run in timed
    )
    return [f"Seconds were measured under different loads, and cannot be compared: {how}."]


def _differing(settings: list[dict[str, Any]]) -> list[str]:
    names = dict.fromkeys(name for setting in settings for name in setting)
    return [name for name in names if len({json.dumps(setting.get(name)) for setting in settings}) > 1]


def leading(profile: str, metrics: Collection[str], *, but: str = "") -> list[str]:
    """Return the metrics to print beside a profile's ranking metric `but`, most useful first."""
    last_passes = [name for name in passes(metrics) if name != but][-_MOST_PASSES:]
    own = own_metrics(profile, metrics)
    usual = _BESIDE_PASSES if passes(metrics) else _BESIDE
    # A profile without the usual metrics shows its own metrics first.
    others = (*([] if set(own) & set(usual) else own), *usual)
    return [*last_passes, *(name for name in others if name in metrics and name != but)]
