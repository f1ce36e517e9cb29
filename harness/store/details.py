"""Reads the details of one sample of a run, or the prompts or results of a whole run."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, select

from ctxbench.bench.errors import UnknownName
from ctxbench.bench.types import Place
from ctxbench.harness.results import Status
from ctxbench.harness.store import schema as t
from ctxbench.harness.store.facts import prompt_text, prompt_texts
from ctxbench.harness.store.samples import Facts, status_of
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.verdicts import PASS, PROFILE, verdict_of
from ctxbench.harness.store.write import StoredVerdict, read_flags
from ctxbench.strategies.agent import ROLE
from ctxbench.strategies.api import Block, BlockKind, Dropped, Prompt
from ctxbench.strategies.chat import Message


def detail(store: Store, run: str, sample: str) -> Detail:
    """Return one sample of a run with its status, prompt, blocks, completions and calls, but without the calls' texts.

    Raises:
        UnknownName: if the run has no such sample.
    """
    p, s, r, n = t.PLANNED_FACT.c, t.SAMPLE.c, t.RESULT_FACT.c, t.RUN.c
    joined = (
        t.PLANNED_FACT.join(t.SAMPLE, p.sample == s.number)
        .join(t.RUN, p.run == n.number)
        .outerjoin(t.RESULT_FACT, p.key == r.key)
        .outerjoin(t.PROMPT, r.prompt == t.PROMPT.c.number)
        .outerjoin(t.IMPORTED, n.id == t.IMPORTED.c.run_id)
    )
    result = (r.status, r.flags, r.context_tokens, r.strategy_seconds, r.generator_seconds)
    query = (
        select(t.SAMPLE, *result, n.n, n.coder, t.PROMPT.c.digest, t.IMPORTED.c.format)
        .select_from(joined)
        .where(p.key == t.key_of(run, sample))
    )
    with store.reading() as connection:
        row = connection.execute(query).mappings().first()
        if row is None:
            raise UnknownName(f"sample of the run {run}", sample, (), command="ctxbench samples show")
        marks = _marks(connection, row["set_digest"], sample)
        completions = _completions(connection, run, sample, row["status"])
        status = _status(row, completions, invalid=bool(marks))
        return Detail(
            run=run,
            sample=sample,
            **{name: row[name] for name in ("set_digest", "language", "kind", "repo", "path", "line")},
            level=row["subkind"],
            column=row["col"],
            status=status,
            marks=marks,
            faults=_faults(connection, run, sample) if status is Status.INFRA_FAILED else (),
            imported=row["format"] is not None,
            flags=read_flags(row["flags"]),
            **{name: row[name] for name in ("context_tokens", "strategy_seconds", "generator_seconds")},
            prompt=prompt_text(connection, row["digest"]) if row["digest"] is not None else None,
            blocks=_blocks(connection, run, sample, row["coder"]),
            calls=_calls(connection, run, sample),
            completions=completions,
        )


def call_texts(store: Store, run: str, sample: str, ordinal: int) -> CallTexts | None:
    """Return the prompt and the answer of a model call; None if the call does not exist."""
    c, g, q = t.CALL_FACT.c, t.GENERATION_FACT.c, t.PROMPT.c
    joined = t.CALL_FACT.join(t.GENERATION_FACT, c.generation == g.number).join(t.PROMPT, g.prompt == q.number)
    query = select(q.digest, g.text).select_from(joined)
    with store.reading() as connection:
        row = connection.execute(query.where(c.key == t.key_of(run, sample), c.ordinal == ordinal)).first()
        return None if row is None else CallTexts(prompt=prompt_text(connection, row.digest) or "", answer=row.text)


def _status(row: Mapping[Any, Any], completions: Collection[CompletionFacts], *, invalid: bool) -> Status:
    names = ("benchmark", "kind", "language", "repo", "path")
    facts = Facts(**{name: row[name] for name in names}, level=row["subkind"])
    judged = sum((PROFILE, PASS) in completion.scores for completion in completions)
    return status_of(facts, row["status"], judged, row["n"], excluded=invalid)


def _marks(connection: Connection, set_digest: str, sample: str) -> tuple[tuple[str, str], ...]:
    m = t.MARK.c
    query = select(m.mark, m.reason).where(m.set_digest == set_digest, m.sample_id == sample)
    return tuple(sorted((mark, reason) for mark, reason in connection.execute(query)))


def _faults(connection: Connection, run: str, sample: str) -> tuple[str, ...]:
    f = t.FAULT.c
    # A run has few attempts, so look them up first. With a join, the database might scan the faults of all runs.
    attempts = connection.scalars(select(t.ATTEMPT.c.id).where(t.ATTEMPT.c.run_id == run)).all()
    query = select(f.message).where(f.attempt_id.in_(attempts), f.sample_id == sample)
    return tuple(connection.scalars(query.order_by(f.attempt_id, f.ordinal)))


def _blocks(connection: Connection, run: str, sample: str, coder: str) -> tuple[BlockFacts, ...]:
    b, g = t.BLOCK_FACT.c, t.GAIN_FACT.c
    key = t.key_of(run, sample)
    measured = select(g.ordinal, g.coder, g.gain).where(g.key == key)
    gains: dict[str, dict[int, float]] = defaultdict(dict)
    for ordinal, by, gain in connection.execute(measured):
        gains[by][ordinal] = gain
    gains_by_ordinal = gains.get(coder) or (gains[max(gains)] if gains else {})
    query = select(t.BLOCK_FACT).where(b.key == key).order_by(b.ordinal)
    return tuple(
        BlockFacts(
            **{name: row[name] for name in ("kind", "score", "tokens", "state", "reason")},
            places=tuple(Place(path=path, start=start, end=end) for path, start, end in json.loads(row["places"])),
            start=row["char_start"],
            end=row["char_end"],
            gain=gains_by_ordinal.get(row["ordinal"]),
        )
        for row in connection.execute(query).mappings()
    )


def _calls(connection: Connection, run: str, sample: str) -> tuple[StoredCall, ...]:
    c, g = t.CALL_FACT.c, t.GENERATION_FACT.c
    query: Select[Any] = (
        select(c.ordinal, c.role, g.tokens_in, g.tokens_out, g.cached, g.price, g.seconds, g.finish)
        .select_from(t.CALL_FACT.join(t.GENERATION_FACT, c.generation == g.number))
        .where(c.key == t.key_of(run, sample))
        .order_by(c.ordinal)
    )
    return tuple(StoredCall(**row) for row in connection.execute(query).mappings())


def _completions(connection: Connection, run: str, sample: str, status: str | None) -> tuple[CompletionFacts, ...]:
    """Return a sample's completions. Those of reference results have only scores, and get the result's `status`."""
    c, g, j, v = t.COMPLETION_FACT.c, t.GENERATION_FACT.c, t.JUDGED_FACT.c, t.VERDICT.c
    joined = (
        t.COMPLETION_FACT.join(t.GENERATION_FACT, c.generation == g.number)
        .outerjoin(t.JUDGED_FACT, (c.key == j.key) & (c.idx == j.idx))
        .outerjoin(t.VERDICT, j.verdict_key == v.key)
    )
    query = (
        select(c.idx, c.status, c.flags, c.text, g.text, *v)
        .select_from(joined)
        .where(c.key == t.key_of(run, sample))
        .order_by(c.idx)
    )
    scores = _scores(connection, run, sample)
    with_texts = tuple(
        CompletionFacts(
            idx=idx,
            status=Status(of_completion),
            flags=read_flags(flags),
            scores=scores.get(idx, {}),
            text=text,
            raw=raw,
            judged=verdict_of(dict(zip(v.keys(), values, strict=True))) if values[0] else None,
        )
        for idx, of_completion, flags, text, raw, *values in connection.execute(query)
    )
    if with_texts or status is None:
        return with_texts
    return tuple(
        CompletionFacts(idx=idx, status=Status(status), flags=(), scores=values, text=None, raw="", judged=None)
        for idx, values in scores.items()
    )


def _scores(connection: Connection, run: str, sample: str) -> dict[int, Kinds]:
    s, m = t.SCORE_FACT.c, t.MEASURE.c
    query = (
        select(s.idx, m.profile, m.metric, s.value)
        .select_from(t.MEASURE.join(t.SCORE_FACT, s.measure == m.number))
        # Look up each measure, so that the scores of other samples are not read.
        .where(s.run == t.run_number(run), s.measure.in_(select(m.number)), s.key == t.key_of(run, sample))
        .order_by(s.idx)
    )
    scores_by_index: dict[int, dict[tuple[str, str], float | None]] = defaultdict(dict)
    for idx, profile, metric, value in connection.execute(query):
        scores_by_index[idx][profile, metric] = value
    return {idx: dict(sorted(values.items())) for idx, values in scores_by_index.items()}


Kinds = Mapping[tuple[str, str], float | None]
"""(profile, metric) -> value on the profile's scale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockFacts:
    """A block in the final prompt, or a block dropped from it."""

    kind: str
    places: tuple[Place, ...]
    score: float | None
    tokens: int
    state: str
    reason: str
    start: int | None
    """Index of the block's first character in the prompt; `end` is exclusive. Both are None for a dropped block."""
    end: int | None
    gain: float | None
    """Gain in bits; None unless `ctxbench diagnose` measured it. A gain by the run's own coder has precedence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCall:
    """A model call without its texts, which `call_texts` reads."""

    ordinal: int
    role: str
    tokens_in: int
    tokens_out: int
    cached: int
    price: float | None
    """Price in US dollars; None if unknown."""
    seconds: float
    finish: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionFacts:
    """A completion of a sample, with its scores and verdict."""

    idx: int
    status: Status
    flags: tuple[str, ...]
    scores: Kinds
    text: str | None
    """The completion's text; None for a reference result, which has only scores."""
    raw: str
    """The model's whole answer, from which `text` was extracted; empty for a reference result."""
    judged: StoredVerdict | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """One sample of one run. A sample without a result has no prompt, blocks, calls or completions."""

    run: str
    sample: str
    set_digest: str
    language: str
    kind: str
    level: str
    repo: str
    path: str
    line: int
    """Line of the cursor. `line` and `column` are counted from 0."""
    column: int
    status: Status
    marks: tuple[tuple[str, str], ...]
    """Marks that exclude the sample, each with its reason."""
    faults: tuple[str, ...]
    imported: bool
    """Whether the run was imported. The prompt is then unknown, and calls and times may be unknown too."""
    flags: tuple[str, ...]
    context_tokens: int | None
    strategy_seconds: float | None
    generator_seconds: float | None
    prompt: str | None
    blocks: tuple[BlockFacts, ...]
    calls: tuple[StoredCall, ...]
    completions: tuple[CompletionFacts, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTexts:
    """The prompt and the raw answer of a model call."""

    prompt: str
    answer: str


def prompts_of(store: Store, run: str) -> dict[str, Prompt]:
    """Return the prompts of a run's finished samples, with dropped blocks, by sample id in planned order."""
    r, p, b = t.RESULT.c, t.PLANNED.c, t.BLOCK.c
    joined = t.RESULT.join(t.PLANNED, r.key == p.key)
    digests = select(r.sample_id, r.prompt_digest).select_from(joined).where(r.run_id == run).order_by(p.ordinal)
    query = select(t.BLOCK).where(b.run_id == run).order_by(b.sample_id, b.ordinal)
    with store.reading() as connection:
        blocks: dict[str, list[Any]] = defaultdict(list)
        for row in connection.execute(query):
            blocks[row.sample_id].append(row)
        digest_by_sample = dict(map(tuple, connection.execute(digests)))
        texts = dict(prompt_texts(connection, digest_by_sample.values()))
    return {sample: _whole_prompt(texts[digest], blocks[sample]) for sample, digest in digest_by_sample.items()}


def _whole_prompt(text: str, rows: Sequence[Any]) -> Prompt:
    blocks, dropped = [], []
    for row in rows:
        places = tuple(Place(path=path, start=start, end=end) for path, start, end in json.loads(row.places))
        if row.char_start is None:
            kind, tokens = BlockKind(row.kind), row.tokens
            dropped.append(Dropped(kind=kind, places=places, score=row.score, reason=row.reason, tokens=tokens))
            continue
        shown, cut = text[row.char_start : row.char_end], row.state == "cut"
        blocks.append(Block(kind=BlockKind(row.kind), text=shown, places=places, score=row.score, cut=cut))
    return Prompt(blocks=tuple(blocks), dropped=tuple(dropped))


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """An agent's step: a tool call, or an answer without a tool call."""

    number: int
    """Number of the model's answer, from 1. Several steps have the same number if an answer calls several tools."""
    text: str
    """Text of the answer, without its tool calls."""
    tool: str
    arguments: str
    """The arguments as the model wrote them, normally as JSON; empty without a tool call."""


def steps_of(store: Store, run: str, sample: str) -> tuple[Step, ...]:
    """Return the steps of the agent on a sample, in order; empty if the strategy is not an agent."""
    c, g = t.CALL_FACT.c, t.GENERATION_FACT.c
    query = (
        select(g.text)
        .select_from(t.CALL_FACT.join(t.GENERATION_FACT, c.generation == g.number))
        .where(c.key == t.key_of(run, sample), c.role == ROLE)
        .order_by(c.ordinal)
    )
    with store.reading() as connection:
        messages = [Message.read(answer) for answer in connection.scalars(query)]
    steps: list[Step] = []
    for number, message in enumerate(messages, 1):
        called = [(call.name, call.arguments) for call in message.calls] or [("", "")]
        steps += [Step(number=number, text=message.text, tool=tool, arguments=written) for tool, written in called]
    return tuple(steps)


@dataclass(frozen=True, slots=True)
class RunRows:
    """The rows and values stored for a run, by sample. Each call and completion is paired with its answer, in order."""

    results: Mapping[str, Any]
    calls: Mapping[str, list[tuple[Any, Any]]]
    completions: Mapping[str, list[tuple[Any, Any]]]
    scores: Mapping[tuple[str, int], dict[str, dict[str, float | None]]]
    """Values by (sample, completion index), then by profile and metric."""
    verdicts: Mapping[tuple[str, int], Any]
    answers: Mapping[str, Any]
    """Rows of the answers to the calls, by answer id."""


def rows_of(store: Store, run: str) -> RunRows:
    """Return the results, calls, completions, scores, verdicts and answers of a run."""
    scores: dict[tuple[str, int], dict[str, dict[str, float | None]]] = defaultdict(lambda: defaultdict(dict))
    judged = select(t.JUDGED.c.sample_id, t.JUDGED.c.idx, t.VERDICT.c.verdict).select_from(
        t.JUDGED.join(t.VERDICT, t.JUDGED.c.verdict_key == t.VERDICT.c.key)
    )
    ids = select(t.CALL.c.generation_id).where(t.CALL.c.run_id == run)
    with store.reading() as connection:

        def rows(table: Any, *order: str) -> Any:
            columns = [table.c[name] for name in order]
            return connection.execute(select(table).where(table.c.run_id == run).order_by(*columns))

        def answered(table: Any, order: str) -> dict[str, list[tuple[Any, Any]]]:
            pairs: dict[str, list[tuple[Any, Any]]] = defaultdict(list)
            for row in rows(table, "sample_id", order):
                pairs[row.sample_id].append((row, answers[row.generation_id]))
            return pairs

        answers = {row.id: row for row in connection.execute(select(t.GENERATION).where(t.GENERATION.c.id.in_(ids)))}
        for row in rows(t.SCORE, "sample_id", "idx", "profile", "metric"):
            scores[row.sample_id, row.idx][row.profile][row.metric] = row.value
        verdicts = connection.execute(judged.where(t.JUDGED.c.run_id == run))
        return RunRows(
            results={row.sample_id: row for row in rows(t.RESULT)},
            calls=answered(t.CALL, "ordinal"),
            completions=answered(t.COMPLETION, "idx"),
            scores=scores,
            verdicts={(row.sample_id, row.idx): row.verdict for row in verdicts},
            answers=answers,
        )
