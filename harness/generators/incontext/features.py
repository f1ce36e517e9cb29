"""Features of the copy model's candidates. Each maps every source position to a case number, which has a weight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ctxbench.harness.generators.incontext.context import Bools, Ints, TokenContext, TokenPoint
from ctxbench.harness.generators.incontext.lexer import LINE_KINDS, OPENERS, Token, TokenClass

Cases: TypeAlias = Any
"""Case numbers, one per source position. `Any`, because numpy's stubs lose the type in integer arithmetic."""

_KINDS = len(TokenClass)
_EDGE = Token("", "", TokenClass.EDGE)

MATCH = np.array([0, 1, 2, 3, 4, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7, 7, *[8] * 30], np.int32)
LOOSE = np.array([0, 1, 2, 3, 3, 4, 4, 4, *[5] * 40], np.int32)
_COUNT = np.array([0, 0, 1, 2, 2, 3, 3, 3, 3, *[4] * 8, 5], np.int32)
GROUP = np.full(_KINDS, 3, np.int32)
GROUP[[TokenClass.NAME, TokenClass.TYPE, TokenClass.CONSTANT]] = 0
GROUP[TokenClass.STRING] = 1
GROUP[TokenClass.NUMBER] = 2
NEXT = np.full(_KINDS, 3, np.int32)
NEXT[TokenClass.OPEN], NEXT[TokenClass.DOT], NEXT[TokenClass.ASSIGN] = 0, 1, 2
AFTER = {"=": 0, ".": 1, "(": 2, ",": 3}


def token_before(p: TokenPoint, back: int) -> Token:
    """Return the token `back` tokens before the point's last token, or an edge token."""
    return p.recent[-1 - back] if len(p.recent) > back else _EDGE


def id_before(c: TokenContext, p: TokenPoint, back: int) -> int:
    """Return the id of the token `back` tokens before the point's last token, or 0 without such a token."""
    return c.number(token_before(p, back).entry) if len(p.recent) > back else 0


def _nothing(p: TokenPoint) -> object:  # noqa: ARG001
    return ()


def _kind(p: TokenPoint) -> object:
    return token_before(p, 0).kind


def _last_texts(p: TokenPoint) -> object:
    return token_before(p, 0).text, token_before(p, 1).text


def indentation_state(p: TokenPoint) -> object:
    """Return the state that determines the next line's indentation; empty if the line has not ended."""
    frame = p.frame
    return (frame.ended, frame.began, frame.above, bool(frame.stack)) if _kind(p) is TokenClass.NEWLINE else ()


def matched(c: TokenContext, p: TokenPoint) -> Cases:
    """Classify positions by the exact match length with the point (binned) and by prompt region."""
    return MATCH[p.exact] * 4 + c.region


def loose(c: TokenContext, p: TokenPoint) -> Cases:
    """Classify positions by loose match length with the point (binned), exact match length (up to 2), and region."""
    return (LOOSE[p.loose] * 3 + np.minimum(p.exact, 2)) * 4 + c.region


def recent(c: TokenContext, p: TokenPoint) -> Cases:
    """Classify positions by which of 3 preceding tokens match the point's, and the class of the point's last token."""
    bits = sum((c.before[k + 1] == id_before(c, p, k)).astype(np.int32) << k for k in range(3))
    return bits + 8 * token_before(p, 0).kind


def kinds(c: TokenContext, p: TokenPoint) -> Cases:
    """Classify positions by token class, class of the point's last token, and whether the same token precedes them."""
    same = (c.before[1] == id_before(c, p, 0)).astype(np.int32)
    return (c.kind * _KINDS + token_before(p, 0).kind) * 2 + same


def structure(c: TokenContext, p: TokenPoint, same: Cases = None) -> Cases:
    """Classify positions by bracket and preceding token relative to the point's. `same` replaces the token's result."""
    frame = p.frame
    opener = (c.opener == OPENERS.get(frame.opener, 0)).astype(np.int32)
    callee = c.number(frame.callee)
    called = (c.callee == callee) & (callee > 0)
    slot = c.slot == (frame.stack[-1].slot if frame.stack else 0)
    depth = c.depth == len(frame.stack)
    if same is None:
        same = c.before[1] == id_before(c, p, 0)
    return opener + 2 * called + 4 * slot + 8 * depth + 16 * same + 32 * bool(frame.stack)


def line(c: TokenContext, p: TokenPoint) -> Cases:
    """Classify positions by how their column and their line's first token and kind compare with the point's."""
    first = c.number(p.frame.line[0]) if p.frame.line else 0
    offset = np.minimum(np.abs(c.column - len(p.frame.line)), 3)
    return (c.first == first) + 2 * (c.line_kind == p.frame.line_kind) + 4 * offset


def recency(c: TokenContext, p: TokenPoint) -> Cases:  # noqa: ARG001
    """Classify positions by their distance from the cursor, in powers of two, and by prompt region."""
    return np.minimum(np.frexp(c.distance)[1] - 1, 12) * 4 + c.region


def frequency(c: TokenContext, p: TokenPoint) -> Cases:  # noqa: ARG001
    """Classify positions by how often their token occurs in the prompt (binned) and by token type."""
    return _COUNT[np.minimum(c.count, 17)] * 4 + GROUP[c.kind]


def latest(c: TokenContext, p: TokenPoint) -> Cases:  # noqa: ARG001
    """Classify positions by whether they are the last with their token, by prompt region, and by token type."""
    return (c.latest * 4 + c.region) * 4 + GROUP[c.kind]


def named(c: TokenContext, p: TokenPoint) -> Cases:
    """Classify positions by token type, the point's last token, and likeness to its second last (``cart = Cart``)."""
    other = token_before(p, 1).text
    relation = c.shares(other)[c.id].astype(np.int32) + (c.id == c.number(other))
    return (AFTER.get(token_before(p, 0).text, 4) * 3 + relation) * 4 + GROUP[c.kind]


def arguments(c: TokenContext, p: TokenPoint) -> Cases:
    """Classify positions by token (repeated in the bracket, keyword argument, name) and by a ``(`` around the point."""
    frame = p.frame
    flags = np.zeros(c.size, bool)
    if frame.stack:
        numbers = [c.number(text) for text in frame.stack[-1].tokens]
        flags[[n for n in numbers if n >= 0]] = True
    keyword = (c.next == c.number("=")) & (c.opener == 1)
    return flags[c.id] + 2 * keyword + 4 * (frame.opener == "(") + 8 * (GROUP[c.kind] == 0)


def used(c: TokenContext, p: TokenPoint) -> Cases:
    """Classify positions by whether their token is already on the point's line, and by token type."""
    flags = np.zeros(c.size, bool)
    flags[[n for n in p.used if n >= 0]] = True
    return flags[c.id] * 4 + GROUP[c.kind]


def line_kinds(c: TokenContext, p: TokenPoint) -> Cases:
    """Classify positions by the kind of their line, the kind of the point's line, and token type."""
    return (c.line_kind * LINE_KINDS + p.frame.line_kind) * 4 + GROUP[c.kind]


def indent(c: TokenContext, p: TokenPoint) -> Cases:
    """Classify indentations at the start of a line by comparison with the line above; all other tokens get case 0."""
    frame = p.frame
    if token_before(p, 0).kind is not TokenClass.NEWLINE:
        return np.zeros(len(c.id), np.int32)
    if frame.ended in (":", "{"):
        situation = 0
    elif frame.stack:
        situation = 1 + (frame.ended not in (",",))
    else:
        situation = 3 + (frame.began in ("return", "raise", "throw", "break", "continue", "pass", "}"))
    more = np.sign(c.width - len(frame.above)) + (c.width > len(frame.above) + 4)
    return np.where(c.kind == TokenClass.INDENT, 1 + (more + 1) * 5 + situation, 0)


def scope(c: TokenContext, p: TokenPoint) -> Cases:
    """Classify positions by being in the point's function, being on a declaration's line, and token type."""
    same = (c.function == p.frame.function) & (c.region == 0)
    return (same + 2 * (c.line_kind == 2)) * 4 + GROUP[c.kind]


def callee(c: TokenContext, p: TokenPoint) -> Cases:
    """Classify positions by sub-words shared with the callee and with the line's first token, and by the last token."""
    frame = p.frame
    callee = c.shares(frame.callee)[c.id] if frame.callee else np.zeros(len(c.id), bool)
    first = c.shares(frame.line[0])[c.id] if frame.line else np.zeros(len(c.id), bool)
    return (callee + 2 * first) * 5 + AFTER.get(token_before(p, 0).text, 4)


def dot(c: TokenContext, p: TokenPoint) -> Cases:
    """For a point after a dot, classify positions: no dot before, or a different, similar or equal receiver."""
    if token_before(p, 0).text != ".":
        return np.zeros(len(c.id), np.int32)
    receiver = token_before(p, 1).text
    like = c.shares(receiver)[c.before[2]].astype(np.int32) + (c.before[2] == c.number(receiver))
    return np.where(c.before[1] == c.number("."), 2 + like, 1)


def following(c: TokenContext, p: TokenPoint) -> Cases:
    """Classify positions by the class of the next token, the class of the point's last token, and token type."""
    return (NEXT[c.next_kind] * _KINDS + token_before(p, 0).kind) * 4 + GROUP[c.kind]


def novel(c: TokenContext, p: TokenPoint) -> Cases:  # noqa: ARG001
    """Classify positions by token count in the file (up to 2), prompt region, token type, and next token's class."""
    return ((c.infile_count * 4 + c.region) * 4 + GROUP[c.kind]) * 4 + NEXT[c.next_kind]


def regions(c: TokenContext, p: TokenPoint) -> Cases:
    """Classify positions by match length (up to 2), prompt region, token type, and class of the point's last token."""
    after = token_before(p, 0).kind
    return ((np.minimum(p.exact, 2) * 4 + c.region) * 4 + GROUP[c.kind]) * _KINDS + after


def contexts(c: TokenContext, p: TokenPoint) -> Cases:
    """Classify positions by the class of the preceding token, the class of the point's last token, and token type."""
    return (c.kind_before * _KINDS + token_before(p, 0).kind) * 4 + GROUP[c.kind]


GROUPS: tuple[tuple[Callable[[TokenContext, TokenPoint], Cases], int, Callable[[TokenPoint], object] | None], ...] = (
    (matched, 9 * 4, None),
    (loose, 6 * 3 * 4, None),
    (recent, 8 * _KINDS, lambda p: p.recent[-3:]),
    (kinds, 2 * _KINDS * _KINDS, lambda p: p.recent[-1:]),
    (structure, 64, None),
    (line, 16, lambda p: (p.frame.line[:1], len(p.frame.line))),
    (recency, 13 * 4, _nothing),
    (frequency, 24, _nothing),
    (latest, 32, _nothing),
    (named, 60, _last_texts),
    (arguments, 16, lambda p: (p.frame.opener, p.frame.stack[-1].tokens if p.frame.stack else ())),
    (used, 8, None),
    (line_kinds, 4 * LINE_KINDS * LINE_KINDS, lambda p: p.frame.line_kind),
    (indent, 21, indentation_state),
    (scope, 16, lambda p: p.frame.function),
    (callee, 20, lambda p: (p.frame.callee, p.frame.line[:1], AFTER.get(token_before(p, 0).text))),
    (dot, 5, lambda p: _last_texts(p) if token_before(p, 0).text == "." else ()),
    (following, 16 * _KINDS, _kind),
    (novel, 3 * 64, _nothing),
    (regions, 3 * 16 * _KINDS, None),
    (contexts, 4 * _KINDS * _KINDS, _kind),
)
"""Groups of copy features: function, number of cases, and the parts of a point that affect the result (None: all)."""

_STARTS = np.cumsum([0, *(cases for _, cases, _ in GROUPS)])
_GATES = int(_STARTS[-1])
GATE_CASES = (_KINDS * 9, 4, LINE_KINDS)
SIZE = _GATES + 3 * sum(GATE_CASES)


def indices(c: TokenContext, p: TokenPoint) -> Ints:
    """Return the index of every source position's weight, one row per entry of `GROUPS`."""
    rows = np.empty((len(GROUPS), len(c.id)), np.int64)
    for row, ((group, _, depends), start) in enumerate(zip(GROUPS, _STARTS, strict=False)):
        if depends is None:
            rows[row] = group(c, p) + start
            continue
        key = row, depends(p)
        if key not in c.parts:
            c.parts[key] = group(c, p) + start
        rows[row] = c.parts[key]
    return rows


def gates(p: TokenPoint) -> npt.NDArray[np.int64]:
    """Return the indices of the weights for the prior, for spelling a token and for a repetition, one row each."""
    best = int(MATCH[p.exact.max(initial=0)])
    cases = (token_before(p, 0).kind * 9 + best, OPENERS.get(p.frame.opener, 0), p.frame.line_kind)
    prior = []
    at = _GATES
    for case, size in zip(cases, GATE_CASES, strict=True):
        prior.append(at + case)
        at += size
    return np.array(prior) + sum(GATE_CASES) * np.arange(3)[:, None]


def impossible(c: TokenContext) -> Bools:
    """Return, for each position, whether it is an edge token before a code section, which cannot be copied."""
    edges: Bools = np.equal(c.kind, TokenClass.EDGE)
    return edges
