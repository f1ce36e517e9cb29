"""The features of a candidate: groups of exclusive cases, one weight a case.

Each group gives every source position one case number; a position's score is the sum of its
cases' weights. The prior and the spelling of unseen tokens compete as two candidates more, whose
scores come from the gate groups.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ctxbench.harness.generators.incontext.context import LINE_KINDS, OPENERS, Bools, Ints, TokenContext, TokenPoint
from ctxbench.harness.generators.incontext.lexer import Token, TokenClass

Cases: TypeAlias = Any
"""A case number per source position; numpy's stubs lose the type in integer arithmetic."""

_KINDS = len(TokenClass)
_EDGE = Token("", "", TokenClass.EDGE)

_MATCH = np.array([0, 1, 2, 3, 4, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7, 7, *[8] * 30], np.int32)
_LOOSE = np.array([0, 1, 2, 3, 3, 4, 4, 4, *[5] * 40], np.int32)
_COUNT = np.array([0, 0, 1, 2, 2, 3, 3, 3, 3, *[4] * 8, 5], np.int32)
_GROUP = np.full(_KINDS, 3, np.int32)
_GROUP[[TokenClass.NAME, TokenClass.TYPE, TokenClass.CONSTANT]] = 0
_GROUP[TokenClass.STRING] = 1
_GROUP[TokenClass.NUMBER] = 2
_NEXT = np.full(_KINDS, 3, np.int32)
_NEXT[TokenClass.OPEN], _NEXT[TokenClass.DOT], _NEXT[TokenClass.ASSIGN] = 0, 1, 2
_AFTER = {"=": 0, ".": 1, "(": 2, ",": 3}


def _before(p: TokenPoint, back: int) -> Token:
    return p.recent[-1 - back] if len(p.recent) > back else _EDGE


def _id(c: TokenContext, p: TokenPoint, back: int) -> int:
    return c.number(_before(p, back).entry) if len(p.recent) > back else 0


def _nothing(p: TokenPoint) -> object:  # noqa: ARG001
    return ()


def _kind(p: TokenPoint) -> object:
    return _before(p, 0).kind


def _last_texts(p: TokenPoint) -> object:
    return _before(p, 0).text, _before(p, 1).text


def _above(p: TokenPoint) -> object:
    """Return what decides the next line's indentation, if the line is at its end."""
    frame = p.frame
    return (frame.ended, frame.began, frame.above, bool(frame.stack)) if _kind(p) is TokenClass.NEWLINE else ()


def _matched(c: TokenContext, p: TokenPoint) -> Cases:
    return _MATCH[p.exact] * 4 + c.region


def _loose(c: TokenContext, p: TokenPoint) -> Cases:
    return (_LOOSE[p.loose] * 3 + np.minimum(p.exact, 2)) * 4 + c.region


def _recent(c: TokenContext, p: TokenPoint) -> Cases:
    bits = sum((c.before[k + 1] == _id(c, p, k)).astype(np.int32) << k for k in range(3))
    return bits + 8 * _before(p, 0).kind


def _kinds(c: TokenContext, p: TokenPoint) -> Cases:
    same = (c.before[1] == _id(c, p, 0)).astype(np.int32)
    return (c.kind * _KINDS + _before(p, 0).kind) * 2 + same


def _structure(c: TokenContext, p: TokenPoint) -> Cases:
    frame = p.frame
    opener = (c.opener == OPENERS.get(frame.opener, 0)).astype(np.int32)
    callee = c.number(frame.callee)
    called = (c.callee == callee) & (callee > 0)
    slot = c.slot == (frame.stack[-1].slot if frame.stack else 0)
    depth = c.depth == len(frame.stack)
    same = c.before[1] == _id(c, p, 0)
    return opener + 2 * called + 4 * slot + 8 * depth + 16 * same + 32 * bool(frame.stack)


def _line(c: TokenContext, p: TokenPoint) -> Cases:
    first = c.number(p.frame.line[0]) if p.frame.line else 0
    offset = np.minimum(np.abs(c.column - len(p.frame.line)), 3)
    return (c.first == first) + 2 * (c.line_kind == p.frame.line_kind) + 4 * offset


def _recency(c: TokenContext, p: TokenPoint) -> Cases:  # noqa: ARG001
    return np.minimum(np.frexp(c.distance)[1] - 1, 12) * 4 + c.region


def _frequency(c: TokenContext, p: TokenPoint) -> Cases:  # noqa: ARG001
    return _COUNT[np.minimum(c.count, 17)] * 4 + _GROUP[c.kind]


def _latest(c: TokenContext, p: TokenPoint) -> Cases:  # noqa: ARG001
    return (c.latest * 4 + c.region) * 4 + _GROUP[c.kind]


def _named(c: TokenContext, p: TokenPoint) -> Cases:
    """The relation of the candidate to the token before last: ``name=name``, ``cart = Cart``."""
    other = _before(p, 1).text
    relation = c.shares(other)[c.id].astype(np.int32) + (c.id == c.number(other))
    return (_AFTER.get(_before(p, 0).text, 4) * 3 + relation) * 4 + _GROUP[c.kind]


def _arguments(c: TokenContext, p: TokenPoint) -> Cases:
    """Whether the candidate stands in this bracket already, and whether it is a keyword there."""
    frame = p.frame
    flags = np.zeros(c.size, bool)
    if frame.stack:
        numbers = [c.number(text) for text in frame.stack[-1].tokens]
        flags[[n for n in numbers if n >= 0]] = True
    keyword = (c.next == c.number("=")) & (c.opener == 1)
    return flags[c.id] + 2 * keyword + 4 * (frame.opener == "(") + 8 * (_GROUP[c.kind] == 0)


def _used(c: TokenContext, p: TokenPoint) -> Cases:
    flags = np.zeros(c.size, bool)
    flags[[n for n in p.used if n >= 0]] = True
    return flags[c.id] * 4 + _GROUP[c.kind]


def _line_kinds(c: TokenContext, p: TokenPoint) -> Cases:
    return (c.line_kind * LINE_KINDS + p.frame.line_kind) * 4 + _GROUP[c.kind]


def _indent(c: TokenContext, p: TokenPoint) -> Cases:
    frame = p.frame
    if _before(p, 0).kind is not TokenClass.NEWLINE:
        return np.zeros(len(c.id), np.int32)
    if frame.ended in (":", "{"):
        situation = 0
    elif frame.stack:
        situation = 1 + (frame.ended not in (",",))
    else:
        situation = 3 + (frame.began in ("return", "raise", "throw", "break", "continue", "pass", "}"))
    more = np.sign(c.width - len(frame.above)) + (c.width > len(frame.above) + 4)
    return np.where(c.kind == TokenClass.INDENT, 1 + (more + 1) * 5 + situation, 0)


def _scope(c: TokenContext, p: TokenPoint) -> Cases:
    same = (c.function == p.frame.function) & (c.region == 0)
    return (same + 2 * (c.line_kind == 2)) * 4 + _GROUP[c.kind]


def _callee(c: TokenContext, p: TokenPoint) -> Cases:
    """Whether the candidate shares a sub-word with the callee, and with the line's first token."""
    frame = p.frame
    callee = c.shares(frame.callee)[c.id] if frame.callee else np.zeros(len(c.id), bool)
    first = c.shares(frame.line[0])[c.id] if frame.line else np.zeros(len(c.id), bool)
    return (callee + 2 * first) * 5 + _AFTER.get(_before(p, 0).text, 4)


def _dot(c: TokenContext, p: TokenPoint) -> Cases:
    """After a dot: whether the candidate stood after the same receiver, or a like one."""
    if _before(p, 0).text != ".":
        return np.zeros(len(c.id), np.int32)
    receiver = _before(p, 1).text
    like = c.shares(receiver)[c.before[2]].astype(np.int32) + (c.before[2] == c.number(receiver))
    return np.where(c.before[1] == c.number("."), 2 + like, 1)


def _following(c: TokenContext, p: TokenPoint) -> Cases:
    return (_NEXT[c.next_kind] * _KINDS + _before(p, 0).kind) * 4 + _GROUP[c.kind]


def _novel(c: TokenContext, p: TokenPoint) -> Cases:  # noqa: ARG001
    """The number of times that the in-file text holds the candidate: a name whose import is hidden is new there."""
    return ((c.infile_count * 4 + c.region) * 4 + _GROUP[c.kind]) * 4 + _NEXT[c.next_kind]


def _regions(c: TokenContext, p: TokenPoint) -> Cases:
    after = _before(p, 0).kind
    return ((np.minimum(p.exact, 2) * 4 + c.region) * 4 + _GROUP[c.kind]) * _KINDS + after


def _contexts(c: TokenContext, p: TokenPoint) -> Cases:
    """The kinds of token before the candidate and before the cursor."""
    return (c.kind_before * _KINDS + _before(p, 0).kind) * 4 + _GROUP[c.kind]


GROUPS: tuple[tuple[Callable[[TokenContext, TokenPoint], Cases], int, Callable[[TokenPoint], object] | None], ...] = (
    (_matched, 9 * 4, None),
    (_loose, 6 * 3 * 4, None),
    (_recent, 8 * _KINDS, lambda p: p.recent[-3:]),
    (_kinds, 2 * _KINDS * _KINDS, lambda p: p.recent[-1:]),
    (_structure, 64, None),
    (_line, 16, lambda p: (p.frame.line[:1], len(p.frame.line))),
    (_recency, 13 * 4, _nothing),
    (_frequency, 24, _nothing),
    (_latest, 32, _nothing),
    (_named, 60, _last_texts),
    (_arguments, 16, lambda p: (p.frame.opener, p.frame.stack[-1].tokens if p.frame.stack else ())),
    (_used, 8, None),
    (_line_kinds, 4 * LINE_KINDS * LINE_KINDS, lambda p: p.frame.line_kind),
    (_indent, 21, _above),
    (_scope, 16, lambda p: p.frame.function),
    (_callee, 20, lambda p: (p.frame.callee, p.frame.line[:1], _AFTER.get(_before(p, 0).text))),
    (_dot, 5, lambda p: _last_texts(p) if _before(p, 0).text == "." else ()),
    (_following, 16 * _KINDS, _kind),
    (_novel, 3 * 64, _nothing),
    (_regions, 3 * 16 * _KINDS, None),
    (_contexts, 4 * _KINDS * _KINDS, _kind),
)
"""The groups of copy features, each with its number of cases and what of a point they depend on, None for all."""

_STARTS = np.cumsum([0, *(cases for _, cases, _ in GROUPS)])
_GATES = int(_STARTS[-1])
_GATE_CASES = (_KINDS * 9, 4, LINE_KINDS)
SIZE = _GATES + 3 * sum(_GATE_CASES)
"""The number of weights."""


def indices(c: TokenContext, p: TokenPoint) -> Ints:
    """Return the weight numbers of every source position, one row a group."""
    rows = np.empty((len(GROUPS), len(c.id)), np.int32)
    for row, ((group, _, depends), start) in enumerate(zip(GROUPS, _STARTS, strict=False)):
        if depends is None:
            rows[row] = group(c, p) + start
            continue
        key = row, depends(p)
        if key not in c.rows:
            c.rows[key] = (group(c, p) + start).astype(np.int32)
        rows[row] = c.rows[key]
    return rows


def gates(p: TokenPoint) -> npt.NDArray[np.int64]:
    """Return the weight numbers of the prior, the spelling of an unseen token, and a repetition; a row each."""
    best = int(_MATCH[p.exact.max(initial=0)])
    cases = (_before(p, 0).kind * 9 + best, OPENERS.get(p.frame.opener, 0), p.frame.line_kind)
    prior = []
    at = _GATES
    for case, size in zip(cases, _GATE_CASES, strict=True):
        prior.append(at + case)
        at += size
    return np.array(prior) + sum(_GATE_CASES) * np.arange(3)[:, None]


def impossible(c: TokenContext) -> Bools:
    """Return which positions can never be copied: the edges between stretches."""
    return np.equal(c.kind, TokenClass.EDGE)
