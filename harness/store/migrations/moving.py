"""Rows of the tables of before into the narrow ones, part by part: every part is a transaction that can be the last.

What has moved is what the narrow tables hold, so that no note of it is needed.
"""

from __future__ import annotations

from sqlalchemy import Connection, text

from ctxbench.harness.store.prompts import add_packs

MOVED = {
    "summarised": "summarised_fact",
    "judged": "judged_fact",
    "score": "score_fact",
    "block_gain": "block_gain_fact",
    "engine_use": "engine_use_fact",
    "block": "block_fact",
    "call": "call_fact",
    "completion": "completion_fact",
    "result": "result_fact",
    "planned": "planned_fact",
    "bits": "bits_fact",
    "generation": "generation_fact",
    "prompt": "prompt_fact",
}
"""Table of before -> the one that its rows move into; children first, as they are dropped."""
_PROMPTS = 2_000
"""Moved at once, as are ten times as many answers: within seconds."""
_KEY = "JOIN sample s ON s.set_digest = p.set_digest AND s.id = p.sample_id JOIN run r ON r.id = p.run_id"
_PLANNED = f"JOIN planned p ON p.run_id = o.run_id AND p.sample_id = o.sample_id {_KEY} " + (
    "JOIN planned_fact f ON f.run = r.number AND f.sample = s.number WHERE o.run_id = :id"
)
_OF_RUN = (
    f"""INSERT INTO planned_fact (key, run, sample, ordinal)
        SELECT (SELECT coalesce(max(key), 0) FROM planned_fact) + row_number() OVER (ORDER BY p.ordinal, p.sample_id),
        r.number, s.number, p.ordinal FROM planned p {_KEY} WHERE p.run_id = :id""",
    f"""INSERT INTO result_fact
        (key, prompt, status, context_tokens, calls, flags, strategy_seconds, generator_seconds)
        SELECT f.key, q.number, o.status, o.context_tokens, o.calls, o.flags, o.strategy_seconds, o.generator_seconds
        FROM result o JOIN prompt_fact q ON q.digest = o.prompt_digest {_PLANNED} ORDER BY f.key""",
    f"""INSERT INTO call_fact (key, ordinal, role, generation) SELECT f.key, o.ordinal, o.role, g.number
        FROM call o JOIN generation_fact g ON g.id = o.generation_id {_PLANNED} ORDER BY f.key""",
    f"""INSERT INTO engine_use_fact
        (key, engine, version, mode, index_seconds, query_seconds, calls, places, cut, index_bytes)
        SELECT f.key, o.engine, o.version, o.mode, o.index_seconds, o.query_seconds, o.calls, o.places, o.cut,
        o.index_bytes FROM engine_use o {_PLANNED} ORDER BY f.key""",
    f"""INSERT INTO block_fact (key, ordinal, kind, places, score, tokens, state, reason, char_start, char_end)
        SELECT f.key, o.ordinal, o.kind, o.places, o.score, o.tokens, o.state, o.reason, o.char_start, o.char_end
        FROM block o {_PLANNED} ORDER BY f.key""",
    f"""INSERT INTO block_gain_fact (key, ordinal, coder, gain) SELECT f.key, o.ordinal, o.coder, o.gain
        FROM block_gain o {_PLANNED} ORDER BY f.key""",
    f"""INSERT INTO completion_fact (key, idx, generation, status, text, flags)
        SELECT f.key, o.idx, g.number, o.status, o.text, o.flags
        FROM completion o JOIN generation_fact g ON g.id = o.generation_id {_PLANNED} ORDER BY f.key""",
    """INSERT INTO measure (profile, metric) SELECT DISTINCT o.profile, o.metric FROM score o WHERE o.run_id = :id
        AND NOT EXISTS (SELECT 1 FROM measure m WHERE m.profile = o.profile AND m.metric = o.metric)""",
    f"""INSERT INTO score_fact (run, measure, key, idx, value) SELECT r.number, m.number, f.key, o.idx, o.value
        FROM score o JOIN measure m ON m.profile = o.profile AND m.metric = o.metric {_PLANNED}
        ORDER BY m.number, f.key, o.idx""",
    f"""INSERT INTO judged_fact (key, idx, verdict_key) SELECT f.key, o.idx, o.verdict_key
        FROM judged o {_PLANNED} ORDER BY f.key""",
)
_SOURCES = """INSERT INTO source (generator, version, sampling)
    SELECT DISTINCT generator, version, sampling FROM generation"""
_GENERATIONS = """INSERT INTO generation_fact
    (id, source, prompt, idx, text, finish, tokens_in, tokens_out, seconds, cached, price)
    SELECT g.id, o.number, q.number, g.idx, g.text, g.finish, g.tokens_in, g.tokens_out, g.seconds, g.cached, g.price
    FROM ({part}) g JOIN prompt_fact q ON q.digest = g.prompt_digest
    JOIN source o ON o.generator = g.generator AND o.version = g.version AND o.sampling = g.sampling ORDER BY g.place"""
_REST = (
    """INSERT INTO coder (coder, language) SELECT DISTINCT b.coder, b.language FROM bits b
        WHERE NOT EXISTS (SELECT 1 FROM coder c WHERE c.coder = b.coder AND c.language = b.language)""",
    """INSERT INTO bits_fact (prompt, coder, target_digest, bits) SELECT q.number, c.number, b.target_digest, b.bits
        FROM bits b JOIN coder c ON c.coder = b.coder AND c.language = b.language
        JOIN prompt_fact q ON q.digest = b.prompt_digest ORDER BY 1, 2, 3""",
    """INSERT INTO summarised_fact (run, generation) SELECT r.number, g.number FROM summarised o
        JOIN run r ON r.id = o.run_id JOIN generation_fact g ON g.id = o.generation_id""",
)
_NEXT_RUN = """SELECT r.id FROM run r WHERE EXISTS (SELECT 1 FROM planned p WHERE p.run_id = r.id)
    AND NOT EXISTS (SELECT 1 FROM planned_fact f WHERE f.run = r.number) ORDER BY r.number LIMIT 1"""


def move_part(connection: Connection) -> bool:
    """Move the next part; return whether there may be more."""
    return _move_prompts(connection) or _move_generations(connection) or _move_run(connection) or _move_rest(connection)


def count(connection: Connection, table: str) -> int:
    """Return how many rows a table has."""
    return connection.scalar(text(f"SELECT count(*) FROM {table}")) or 0


def _part(connection: Connection, table: str, columns: str, moved: str, limit: int) -> str:
    """Return the query for the rows of a table behind those that have moved, in the order in which they were stored.

    Prompts that were stored one after the other are alike, and are packed best together.

    Args:
        connection: to the database.
        table: of before.
        columns: its columns.
        moved: what is joined to it, as ``o``, to find the rows that moved last.
        limit: rows at most.
    """
    place = {"sqlite": "rowid", "postgresql": "ctid"}.get(connection.dialect.name, "1")
    behind = (
        f"WHERE {place} > (SELECT max(o.{place}) FROM {table} o {moved})" if count(connection, MOVED[table]) else ""
    )
    return f"SELECT {columns}, {place} AS place FROM {table} {behind} ORDER BY {place} LIMIT {limit}"


def _move_prompts(connection: Connection) -> bool:
    last = "JOIN prompt_fact f ON f.digest = o.digest WHERE f.pack = (SELECT max(number) FROM pack)"
    rows = connection.execute(text(_part(connection, "prompt", "digest, text", last, _PROMPTS))).all()
    add_packs(connection, {row.digest: row.text.encode() for row in rows})
    return bool(rows)


def _move_generations(connection: Connection) -> bool:
    if not count(connection, "source"):
        connection.execute(text(_SOURCES))
    last = "JOIN generation_fact f ON f.id = o.id WHERE f.number = (SELECT max(number) FROM generation_fact)"
    part = _part(connection, "generation", "*", last, 10 * _PROMPTS)
    return connection.execute(text(_GENERATIONS.format(part=part))).rowcount > 0


def _move_run(connection: Connection) -> bool:
    run = connection.scalar(text(_NEXT_RUN))
    if run is None:
        return False
    for statement in _OF_RUN:
        connection.execute(text(statement), {"id": run})
    return True


def _move_rest(connection: Connection) -> bool:
    """Move at once what is little beside the rest."""
    if count(connection, "bits_fact") or count(connection, "summarised_fact"):
        return False
    for statement in _REST:
        connection.execute(text(statement))
    return False
