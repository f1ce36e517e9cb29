"""Merges shards, which are results of other processes, into a store.

The samples, answers and verdicts of a shard are stored completely or not at all. A shard that contradicts a stored
value is refused. Otherwise its answers, prompts and scores are not checked.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Table, insert, select

from ctxbench.bench import samples as sets
from ctxbench.bench.dates import dates_of
from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import explained, sha256
from ctxbench.bench.home import Home
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Sample
from ctxbench.harness.results import GAINS
from ctxbench.harness.run.execution import sample_digest
from ctxbench.harness.run.spec import RunSpec, planned_samples, samples_after
from ctxbench.harness.store import schema as t
from ctxbench.harness.store import verdicts
from ctxbench.harness.store.facts import append_finished, append_verdicts
from ctxbench.harness.store.notes import add_cutoff, add_remarks
from ctxbench.harness.store.runs import CONTEXT
from ctxbench.harness.store.shard import SUFFIX, AttemptLog, Shard, read
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.verdicts import PASS, PROFILE
from ctxbench.harness.store.write import Finished, clean, load, parts, row_of

_NEAR = 1e-9
"""Allowed relative difference between costs in bits from two machines, which may sum in different orders."""
REMARK = "Results were merged from shards: answers and verdicts are as the shards' author states."
_CURE = "the stored value stays; remove this shard, and repeat its samples with `ctxbench run` without --shard"
_SAMPLE_FACTS = ("status", "prompt_digest", "context_tokens", "calls", "flags")


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The result of merging a shard, as numbers of samples, verdicts and faults."""

    run: str
    new: int
    judged: int
    again: int
    """Number of samples whose results were already stored."""
    faults: int


def shard_files(places: Iterable[Path]) -> list[Path]:
    """Return the shard files in `places`, which may be files or folders, sorted by name.

    Raises:
        InputFault: if a folder contains no shard, or a place cannot be read.
    """
    files: list[Path] = []
    for place in places:
        with explained(place):
            in_place = [place] if place.is_file() else sorted(place.glob(f"*{SUFFIX}"))
            if not in_place:
                list(place.iterdir())
        if not in_place:
            raise InputFault(
                f"the folder contains no shard (*{SUFFIX})",
                where=str(place),
                cure="give the --out folder of the shards",
            )
        files += in_place
    return sorted(dict.fromkeys(files), key=lambda file: (file.name, str(file)))


class Merger:
    """A merger of shards into one store."""

    def __init__(self, store: Store, *sample_sets: SampleSet, home: Home | None = None, own: bool = False) -> None:
        """Accept shards of these sets and of a home folder's sets. With `own`, verdicts count as computed here."""
        self._home, self._store, self._own = home, store, own
        self._sets = {sample_set.digest: (sample_set, dates_of(sample_set)) for sample_set in sample_sets}
        self._plans: dict[str, dict[str, Sample]] = {}

    def merge_file(self, file: Path) -> Merged:
        """Read and merge a shard file; raises as `merge` and `shard.read`."""
        return self.merge(read(file), str(file))

    def merge(self, shard: Shard, where: str) -> Merged:
        """Merge a shard, whose samples are stored completely or not at all. `where` is the shard's file, for messages.

        Raises:
            InputFault: if the sample set is missing or differs, or the shard is incomplete or contradicts the store.
        """
        sample_set, days = self._set(shard, where)
        for repo, digest in shard.snapshots.items():
            if sample_set.manifest["repositories"].get(repo, {}).get("snapshot", digest) != digest:
                what = f"the shard and the sample set {sample_set.name!r} have different files of {repo!r}"
                raise InputFault(what, where=where, cure="fetch them again on the shard's machine and repeat the shard")
        self._check_shared(shard, where)
        if not self._own:
            shard = _bound(shard)
            self._check_shared(shard, where)
        spec = shard.spec
        planned = self._plan(spec, sample_set, days, where)
        _check_whole(shard, planned, self._store, where)
        new = self._new(spec.id, shard.finished, where)
        self._store.add_run(spec, list(planned.values()), days)

        def added(connection: Connection) -> int:
            append_verdicts(connection, shard.verdicts)
            if shard.attempt is not None:
                _append_attempt(connection, spec.id, shard.attempt)
            return append_finished(connection, spec.id, spec.coder, new, shard.generations)

        # After the check for this attempt, no other process may append the same attempt.
        count = self._store.settle(added, together=shard.attempt is None)
        judged = self._link(sample_set, shard) if any(sample.tested for sample in planned.values()) else 0
        if not self._own and (count or judged):
            add_remarks(self._store, spec.id, [REMARK])
        if shard.attempt is not None:
            add_remarks(self._store, spec.id, shard.attempt.remarks)
            self._store.add_summaries(spec.id, shard.attempt.summaries)
            if shard.attempt.cutoff is not None:
                add_cutoff(self._store, spec.generator, shard.attempt.cutoff)
        faults = len(shard.attempt.faults) if shard.attempt is not None else 0
        return Merged(run=spec.id, new=count, judged=judged, again=len(shard.finished) - count, faults=faults)

    def _set(self, shard: Shard, where: str) -> tuple[SampleSet, Mapping[str, date]]:
        digest, name = shard.spec.samples_digest, shard.spec.samples
        if digest not in self._sets:
            sample_set = None if self._home is None else of_digest(self._home, digest, name)
            if sample_set is None:
                raise InputFault(
                    f"the shard's sample set {name!r} is not in the home folder",
                    where=where,
                    cure="copy the set's folder from the shard's machine into samples/ of the home folder",
                )
            self._sets[digest] = sample_set, dates_of(sample_set)
        return self._sets[digest]

    def _plan(self, spec: RunSpec, sample_set: SampleSet, days: Mapping[str, date], where: str) -> dict[str, Sample]:
        if spec.id not in self._plans:
            eligible = samples_after(sample_set.samples, spec.after, days)
            self._plans[spec.id] = {sample.id: sample for sample in planned_samples(eligible, spec.limit)}
        return self._plans[spec.id]

    def _check_shared(self, shard: Shard, where: str) -> None:
        """Raise `InputFault` if an answer, verdict or cost in bits differs from the stored one with the same key."""
        stored = self._store.generations([answer.id for answer in shard.generations])
        for answer in shard.generations:
            other = stored.get(answer.id)
            if other is not None and (other.text, other.finish) != (clean(answer.text), clean(answer.finish)):
                raise _two(f"the answer {answer.id[:12]} of {answer.generator}", other.text, answer.text, where)
        judged = verdicts.find(self._store, [verdict.key for verdict in shard.verdicts])
        for verdict in shard.verdicts:
            if verdict.key in judged and judged[verdict.key].verdict != verdict.verdict:
                raise _two(f"the verdict {verdict.key[:12]}", judged[verdict.key].verdict, verdict.verdict, where)
        costs = {
            (cost.language, cost.prompt_digest, cost.target_digest): cost.bits
            for sample in shard.finished
            for cost in sample.bits
        }
        for key, bits in self._store.bits(shard.spec.coder, costs).items():
            if not _near(bits, costs[key], bits):
                raise _two(f"the cost in bits after the prompt {key[1][:12]}", bits, costs[key], where)

    def _new(self, run: str, finished: Sequence[Finished], where: str) -> list[Finished]:
        present = self._store.finished(run, [sample.sample_id for sample in finished])
        again = {sample.sample_id: _facts(sample) for sample in finished if sample.sample_id in present}
        if again:
            for sample_id, stored in _stored_facts(self._store, run, again).items():
                if (difference := _first_difference(stored, again[sample_id])) is not None:
                    raise _two(f"{sample_id} in the run {run}", *difference, where)
        return [sample for sample in finished if sample.sample_id not in present]

    def _link(self, sample_set: SampleSet, shard: Shard) -> int:
        run = shard.spec.id
        samples = {sample.id: sample for sample in sample_set.samples}
        digest = functools.cache(lambda sample_id: sample_digest(sample_set, samples[sample_id]))
        contents = {
            (completion.sample_id, completion.idx): (digest(completion.sample_id), sha256(clean(completion.text)))
            for completion in verdicts.unjudged(self._store, run)
        }
        stored = verdicts.find_by_text(self._store, contents.values(), run)
        linked: dict[str, dict[int, Any]] = defaultdict(dict)
        for (sample_id, idx), content in contents.items():
            if content in stored:
                linked[sample_id][idx] = stored[content]
        return sum(self._store.link_verdicts(run, sample_id, some) for sample_id, some in linked.items())


def _bound(shard: Shard) -> Shard:
    """Return a shard whose verdict keys include its run, so that they differ from keys of verdicts computed here."""
    run = shard.spec.id

    def key(original: str) -> str:
        return sha256(f"{run}\n{original}")

    finished = tuple(
        dataclasses.replace(
            sample,
            completions=tuple(
                dataclasses.replace(completion, verdict=key(completion.verdict) if completion.verdict else None)
                for completion in sample.completions
            ),
        )
        for sample in shard.finished
    )
    judged = tuple(dataclasses.replace(verdict, key=key(verdict.key), run=run) for verdict in shard.verdicts)
    return dataclasses.replace(shard, finished=finished, verdicts=judged)


def of_digest(home: Home, digest: str, likely: str) -> SampleSet | None:
    """Return the sample set with a digest, trying the set named `likely` first; None if the home folder lacks it."""
    for name in sorted(sets.names(home), key=lambda name: (name != likely, name)):
        if sets.digest_of(sets.manifest_of(home, name)["files"]) == digest:
            return sets.load(home, name)
    return None


def _check_whole(shard: Shard, planned: Mapping[str, Sample], store: Store, where: str) -> None:
    strangers = [sample.sample_id for sample in shard.finished if sample.sample_id not in planned]
    if shard.attempt is not None:
        strangers += [fault.sample_id for fault in shard.attempt.faults if fault.sample_id not in planned]
    if strangers:
        raise InputFault(
            f"{strangers[0]!r} is not a sample of the shard's run", where=where, cure="leave the shard out"
        )
    odd = next((sample.sample_id for sample in shard.finished if len(sample.completions) != shard.spec.n), None)
    if odd is not None:
        raise InputFault(
            f"{odd} does not have the run's {shard.spec.n} completions", where=where, cure="leave the shard out"
        )
    answers = {id_ for sample in shard.finished for _, id_ in sample.calls}
    answers |= {completion.generation_id for sample in shard.finished for completion in sample.completions}
    answers |= set(shard.attempt.summaries) if shard.attempt is not None else set()
    answers -= {answer.id for answer in shard.generations}
    keys = {completion.verdict for sample in shard.finished for completion in sample.completions if completion.verdict}
    keys -= {verdict.key for verdict in shard.verdicts}
    if answers - store.generations(answers).keys() or keys - verdicts.find(store, keys).keys():
        raise InputFault(
            "the shard lacks an answer or a verdict of its samples", where=where, cure="repeat `ctxbench run --shard`"
        )


def _append_attempt(connection: Connection, run: str, log: AttemptLog) -> None:
    a = t.ATTEMPT.c
    same = (a.run_id == run, a.started == log.started, a.isolation == log.isolation)
    if connection.execute(select(a.id).where(*same)).first() is not None:
        return
    row: dict[str, Any] = {"run_id": run, "started": log.started, "isolation": log.isolation, "locked": 0}
    row |= {} if log.load is None else dataclasses.asdict(log.load)
    primary_key = connection.execute(insert(t.ATTEMPT).values(**row)).inserted_primary_key
    attempt = int(primary_key[0]) if primary_key else 0
    load(connection, t.OUTCOME, [row_of(t.OUTCOME, log, attempt_id=attempt)])
    records: dict[Table, Sequence[object]] = {t.FAULT: log.faults, t.CONSTRUCTION: log.constructions}
    for table, logged in records.items():
        rows = [row_of(table, record, attempt_id=attempt, ordinal=at) for at, record in enumerate(logged)]
        load(connection, table, rows)


_Facts = tuple[dict[str, Any], dict[tuple[int, str, str], Any]]


def _facts(sample: Finished) -> _Facts:
    values = (
        str(sample.status),
        sample.prompt_digest,
        sample.context_tokens,
        len(sample.calls),
        json.dumps(sample.flags),
    )
    facts: dict[str, Any] = dict(zip(_SAMPLE_FACTS, values, strict=True))
    scores: dict[tuple[int, str, str], Any] = {}
    for idx, completion in enumerate(sample.completions):
        facts[f"completion {idx}"] = clean(completion.text)
    for idx, of_completion in enumerate(sample.all_scores):
        scores |= {(idx, *kind): clean(value) for kind, value in of_completion.items()}
    return facts, scores


def _stored_facts(store: Store, run: str, samples: Iterable[str]) -> dict[str, _Facts]:
    r, c, s, m = t.RESULT.c, t.COMPLETION.c, t.SCORE_FACT.c, t.MEASURE.c
    stored: dict[str, _Facts] = {}
    with store.reading() as connection:
        for part in parts(sorted(samples)):
            columns = [r[name] for name in _SAMPLE_FACTS]
            query = select(r.key, r.sample_id, *columns).where(r.run_id == run, r.sample_id.in_(part))
            names: dict[int, str] = {}
            for key, sample_id, *values in connection.execute(query):
                names[key] = sample_id
                stored[sample_id] = dict(zip(_SAMPLE_FACTS, values, strict=True)), {}
            texts = select(c.sample_id, c.idx, c.text).where(c.key.in_(list(names)))
            for sample_id, idx, text in connection.execute(texts):
                stored[sample_id][0][f"completion {idx}"] = text
            scores = (
                select(s.key, s.idx, m.profile, m.metric, s.value)
                .select_from(t.MEASURE.join(t.SCORE_FACT, s.measure == m.number))
                .where(s.run == t.run_number(run), s.measure.in_(select(m.number)), s.key.in_(list(names)))
            )
            for key, idx, *kind, value in connection.execute(scores):
                if tuple(kind) != (PROFILE, PASS):
                    stored[names[key]][1][idx, kind[0], kind[1]] = value
    return stored


def _first_difference(stored: _Facts, mine: _Facts) -> tuple[str, str] | None:
    (old_facts, old_scores), (new_facts, new_scores) = stored, mine
    for fact in sorted(old_facts.keys() | new_facts.keys()):
        if old_facts.get(fact) != new_facts.get(fact):
            return f"{fact} {old_facts.get(fact)!r}", f"{fact} {new_facts.get(fact)!r}"
    for key in sorted(old_scores.keys() & new_scores.keys(), key=str):
        idx, profile, metric = key
        old, new = old_scores[key], new_scores[key]
        if profile == CONTEXT and metric in GAINS and None not in (old, new):
            # A gain is the difference of two costs in bits, and has the same absolute error as the costs.
            same = _near(old, new, max(abs(old), old_scores.get((idx, CONTEXT, "bits")) or 0.0))
        else:
            same = old == new
        if not same:
            return f"{profile} {metric} {old!r}", f"{profile} {metric} {new!r}"
    return None


def _near(bits: float, other: float, scale: float) -> bool:
    """Return whether two values computed from costs of about `scale` bits can be equal except for rounding."""
    return abs(bits - other) <= _NEAR * max(abs(scale), 1.0)


def _two(key: str, stored: object, other: object, where: str) -> InputFault:
    first, second = (str(value)[:60] for value in (stored, other))
    return InputFault(
        f"the shard has another value for {key}: {second!r}, but {first!r} is stored", where=where, cure=_CURE
    )
