"""The verdict on a completion that counts: the first one, or the last of those that took its place.

`JUDGED` and `SCORE` read like the tables of these names. Whatever shows a verdict or a score reads them; the tables
keep the first verdict.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, and_, case, exists, func, select

from ctxbench.harness.metrics import context
from ctxbench.harness.store import schema as t

PROFILE, PASS = "ctxbench", context.PASS
"""Profile and metric of a completion's score: 1 if it passed its tests, else 0."""
_r, _j, _s, _v = t.REJUDGED.c, t.JUDGED.c, t.SCORE.c, t.VERDICT.c


def _newest(key: ColumnElement[str]) -> ColumnElement[str]:
    """Return the key of the last verdict that took the place of `key`; null where none did."""
    newest = select(_r.verdict_key).where(_r.key == key, _r.counts).order_by(_r.ordinal.desc()).limit(1)
    return newest.scalar_subquery()


COUNTING_VERDICT = select(
    _j.run_id, _j.sample_id, _j.idx, func.coalesce(_newest(_j.verdict_key), _j.verdict_key).label("verdict_key")
).subquery("counted")

_changed = (
    select(case((_v.verdict == "PASSED", 1.0), else_=0.0))
    .select_from(t.JUDGED.join(t.REJUDGED, _r.key == _j.verdict_key).join(t.VERDICT, _v.key == _r.verdict_key))
    .where(_j.run_id == _s.run_id, _j.sample_id == _s.sample_id, _j.idx == _s.idx, _r.counts)
    .order_by(_r.ordinal.desc())
    .limit(1)
    .scalar_subquery()
)
# Asked once a query and not once a row, since nearly no database has one.
_any = exists(select(_r.key).where(_r.counts).correlate(None))
COUNTING_SCORE = select(
    _s.run_id,
    _s.profile,
    _s.metric,
    _s.sample_id,
    _s.idx,
    case(
        (and_(_s.profile == PROFILE, _s.metric == PASS, _any), func.coalesce(_changed, _s.value)), else_=_s.value
    ).label("value"),
).subquery("scored")
