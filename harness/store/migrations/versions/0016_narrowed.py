"""Views with the names of the tables whose rows have moved into narrow ones; those are dropped."""

from __future__ import annotations

from alembic import op

from ctxbench.harness.store.migrations.moving import MOVED, count, move_part

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_SAMPLE = "JOIN planned_fact p ON p.key = f.key JOIN run r ON r.number = p.run JOIN sample s ON s.number = p.sample"
_NAMES = "f.key, r.id AS run_id, s.id AS sample_id"
_VIEWS = {
    "planned": "SELECT f.key, r.id AS run_id, s.id AS sample_id, s.set_digest, f.ordinal FROM planned_fact f "
    "JOIN run r ON r.number = f.run JOIN sample s ON s.number = f.sample",
    "generation": "SELECT f.number, f.id, o.generator, o.version, q.digest AS prompt_digest, o.sampling, f.idx, "
    "f.text, f.finish, f.tokens_in, f.tokens_out, f.seconds, f.cached, f.price FROM generation_fact f "
    "JOIN source o ON o.number = f.source JOIN prompt_fact q ON q.number = f.prompt",
    "bits": "SELECT c.coder, c.language, q.digest AS prompt_digest, f.target_digest, f.bits FROM bits_fact f "
    "JOIN coder c ON c.number = f.coder JOIN prompt_fact q ON q.number = f.prompt",
    "result": f"SELECT {_NAMES}, q.digest AS prompt_digest, f.status, f.context_tokens, f.calls, f.flags, "
    f"f.strategy_seconds, f.generator_seconds FROM result_fact f {_SAMPLE} JOIN prompt_fact q ON q.number = f.prompt",
    "call": f"SELECT {_NAMES}, g.id AS generation_id, f.ordinal, f.role FROM call_fact f {_SAMPLE} "
    "JOIN generation_fact g ON g.number = f.generation",
    "engine_use": f"SELECT {_NAMES}, f.engine, f.version, f.mode, f.index_seconds, f.query_seconds, f.calls, f.places, "
    f"f.cut, f.index_bytes FROM engine_use_fact f {_SAMPLE}",
    "block": f"SELECT {_NAMES}, f.ordinal, f.kind, f.places, f.score, f.tokens, f.state, f.reason, f.char_start, "
    f"f.char_end FROM block_fact f {_SAMPLE}",
    "block_gain": f"SELECT {_NAMES}, f.ordinal, f.coder, f.gain FROM block_gain_fact f {_SAMPLE}",
    "completion": f"SELECT {_NAMES}, g.id AS generation_id, f.idx, f.status, f.text, f.flags FROM completion_fact f "
    f"{_SAMPLE} JOIN generation_fact g ON g.number = f.generation",
    "score": "SELECT f.key, r.id AS run_id, s.id AS sample_id, m.profile, m.metric, f.idx, f.value FROM score_fact f "
    "JOIN measure m ON m.number = f.measure JOIN run r ON r.number = f.run "
    "JOIN planned_fact p ON p.key = f.key JOIN sample s ON s.number = p.sample",
    "judged": f"SELECT {_NAMES}, f.idx, f.verdict_key FROM judged_fact f {_SAMPLE}",
    "summarised": "SELECT r.id AS run_id, g.id AS generation_id FROM summarised_fact f "
    "JOIN run r ON r.number = f.run JOIN generation_fact g ON g.number = f.generation",
}


def upgrade() -> None:
    bind = op.get_bind()
    while move_part(bind):
        pass
    for table, fact in MOVED.items():
        before, after = count(bind, table), count(bind, fact)
        if before != after:
            raise RuntimeError(f"{table}: {after} of {before} rows have moved")
    for table in MOVED:
        op.drop_table(table)
    for name, query in _VIEWS.items():
        op.execute(f"CREATE VIEW {name} AS {query}")
