"""`ScoreTables`: computes the scores of all source positions at a point, faster than `features`."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

from ctxbench.bench.float64 import Doubles, exp
from ctxbench.harness.generators.incontext import features as f
from ctxbench.harness.generators.incontext.context import UNKNOWN, Ints, TokenContext, TokenPoint
from ctxbench.harness.generators.incontext.lexer import LINE_KINDS, OPENERS, TokenClass

QUANTUM = 64
_KINDS = len(TokenClass)
_NEVER = -(1 << 40)
_ZERO = 49_000
"""Number of steps of 1 / `QUANTUM` below the best score from which the exponential counts as 0."""
_LONGEST_LINE = 64
"""A limit that is larger than the column of any token (see `lexer.advance`)."""


class ScoreTables:
    """The weights of one language, arranged for sums over all positions."""

    def __init__(self, weights: Ints) -> None:
        groups, start = {}, 0
        for group, cases, _ in f.GROUPS:
            groups[group.__name__.strip("_")] = weights[start : start + cases]
            start += cases
        self._groups = groups
        gates = weights[start:].tolist()
        sizes = f.GATE_CASES
        self._gates = [[gates[at : at + size] for at, size in _gate_places(gate, sizes)] for gate in range(3)]
        self._by_kind = self._kinds()
        # For each match length: the score of a loose match, and the extra score of an exact match.
        loose, longest = groups["loose"].reshape(6, 3, 4), np.arange(len(f.LOOSE))
        self._loose: Ints = (loose[f.LOOSE[longest], 0] - loose[0, 0]).ravel()
        self._loose_cases = loose
        self._matched = groups["matched"].reshape(9, 4)
        self._regions = groups["regions"].reshape(3, 4, 4, _KINDS)
        self.powers: Doubles = exp(-np.arange(_ZERO, dtype=np.float64) / QUANTUM)
        """Exponentials of scores that are 0, 1, 2, … steps below the best score. The last one is 0."""

    def _kinds(self) -> Ints:
        """Return the scores of all position signatures (`_signature`), for each class of the last token."""
        groups, kinds = self._groups, np.arange(_KINDS)
        of_kind = groups["kinds"].reshape(_KINDS, _KINDS, 2)[:, :, 0]
        following = groups["following"].reshape(4, _KINDS, 4)[:, :, f.GROUP]
        contexts = groups["contexts"].reshape(_KINDS, _KINDS, 4)[:, :, f.GROUP]
        regions = groups["regions"].reshape(3, 4, 4, _KINDS)[0][:, f.GROUP]
        # Axes: class of the last token, then a position's class, next class, previous class and region.
        table = of_kind.T[:, :, None, None, None] + following.transpose(1, 2, 0)[:, :, :, None, None]
        table = table + contexts.transpose(1, 2, 0)[:, :, None, :, None]
        table = table + regions.transpose(2, 1, 0)[:, :, None, None, :]
        table = table + groups["recent"].reshape(_KINDS, 8)[kinds, 0][:, None, None, None, None]
        flat: Ints = np.ascontiguousarray(table).reshape(_KINDS, -1)
        return flat

    def gates(self, p: TokenPoint) -> list[int]:
        """Return the scores of the prior, of spelling a token, and of a repetition, in steps of 1 / `QUANTUM`."""
        best = int(f.MATCH[int(p.exact.max(initial=0))])
        kind = p.recent[-1].kind if p.recent else TokenClass.EDGE
        cases = (kind * 9 + best, OPENERS.get(p.frame.opener, 0), p.frame.line_kind)
        return [sum(table[case] for table, case in zip(tables, cases, strict=True)) for tables in self._gates]

    def positions(self, c: TokenContext, p: TokenPoint) -> Ints:
        """Return the score of every source position, in steps of 1 / `QUANTUM`."""
        last = f.token_before(p, 0)
        after, paren = f.AFTER.get(last.text, 4), p.frame.opener == "("
        key = ("base", last.kind, after, paren, p.frame.line_kind, p.frame.function)
        scores = _kept(c, key, lambda: self._base(c, p, after, paren)).copy()
        scores += self._line(c, p)
        structure = _kept(c, ("structure", _bracket(p)), lambda: self._structure(c, p))
        scores += structure[0]
        self._add_matches(c, p, scores, structure[1])
        self._add_names(c, p, scores, after, paren)
        if last.kind is TokenClass.NEWLINE:
            scores += _kept(c, ("indent", f.indentation_state(p)), lambda: self._groups["indent"][f.indent(c, p)])
        if last.text == ".":
            scores += self._groups["dot"][f.dot(c, p)] - self._groups["dot"][0]
        return scores

    def _base(self, c: TokenContext, p: TokenPoint, after: int, paren: bool) -> Ints:
        groups = self._groups
        last = f.token_before(p, 0)
        group, line = _kept(c, "group", lambda: f.GROUP[c.kind]), p.frame.line_kind
        scores: Ints = _kept(c, "static", lambda: self._static(c)).copy()
        scores += self._by_kind[last.kind][_kept(c, "signature", lambda: _signature(c))]
        scores += groups["line_kinds"].reshape(LINE_KINDS, LINE_KINDS, 4)[c.line_kind, line, group]
        scores += (groups["named"].reshape(5, 3, 4)[after, 0] + groups["used"][:4])[group]
        scores += self._arguments(c, paren)[0]
        scores += groups["scope"][f.scope(c, p)]
        scores += int(groups["callee"][after])
        if last.kind is not TokenClass.NEWLINE:
            scores += int(groups["indent"][0])
        scores += int(groups["dot"][0])
        return scores

    def _static(self, c: TokenContext) -> Ints:
        point = c.point
        static = ("recency", "frequency", "latest", "novel")
        rows: dict[str, Callable[[TokenContext, TokenPoint], Ints]] = {name: getattr(f, name) for name in static}
        scores: Ints = sum((self._groups[name][row(c, point)] for name, row in rows.items()), np.zeros(len(c.id), int))
        scores = scores + (self._matched[0] + self._loose_cases[0, 0])[c.region]
        scores[f.impossible(c)] = _NEVER
        return scores

    def _line(self, c: TokenContext, p: TokenPoint) -> Ints:
        frame = p.frame
        cases = _kept(c, ("line", frame.line[:1], frame.line_kind), lambda: _line_cases(c, p))
        offsets = np.minimum(np.abs(np.arange(_LONGEST_LINE) - len(frame.line)), 3)
        table: Ints = self._groups["line"].reshape(4, 4)[offsets].ravel()
        line_scores: Ints = table[cases]
        return line_scores

    def _structure(self, c: TokenContext, p: TokenPoint) -> Ints:
        """Return the scores of all positions by their brackets, and the extra scores of those after an equal token."""
        cases = f.structure(c, p, same=0)
        table = self._groups["structure"]
        usual = table[cases]
        both: Ints = np.stack([usual, table[cases + 16] - usual])
        return both

    def _arguments(self, c: TokenContext, paren: bool) -> Ints:
        """Return the scores of tokens that are new in the enclosing bracket, and the extra scores of other tokens."""

        def rows() -> Ints:
            keyword = (c.next == c.number("=")) & (c.opener == 1)
            cases = 2 * keyword + 4 * paren + 8 * (_kept(c, "group", lambda: f.GROUP[c.kind]) == 0)
            usual = self._groups["arguments"][cases]
            both: Ints = np.stack([usual, self._groups["arguments"][cases + 1] - usual])
            return both

        return _kept(c, ("arguments", paren), rows)

    def _add_matches(self, c: TokenContext, p: TokenPoint, scores: Ints, same: Ints) -> None:
        kind = f.token_before(p, 0).kind
        scores += self._loose[p.loose * 4 + c.region]
        places = [_followers(c, f.id_before(c, p, back), back + 1) for back in range(3)]
        bits = np.zeros(len(c.id), np.int64)
        for back, at in enumerate(places):
            bits[at] += 1 << back
        recent = self._groups["recent"].reshape(_KINDS, 8)[kind]
        scores += (recent - recent[0])[bits]
        at = places[0]
        if not len(at):
            return
        pairs = self._groups["kinds"].reshape(_KINDS, _KINDS, 2)[:, kind]
        scores[at] += (pairs[:, 1] - pairs[:, 0])[c.kind[at]] + same[at]
        exact = p.exact[at]
        if not exact.any():
            return
        at, exact = at[exact > 0], exact[exact > 0]
        few, region, group = np.minimum(exact, 2), c.region[at], f.GROUP[c.kind[at]]
        loose = f.LOOSE[p.loose[at]]
        scores[at] += (
            self._matched[f.MATCH[exact], region]
            - self._matched[0, region]
            + self._loose_cases[loose, few, region]
            - self._loose_cases[loose, 0, region]
            + self._regions[few, region, group, kind]
            - self._regions[0, region, group, kind]
        )

    def _add_names(self, c: TokenContext, p: TokenPoint, scores: Ints, after: int, paren: bool) -> None:
        frame, groups = p.frame, self._groups
        group = _kept(c, "group", lambda: f.GROUP[c.kind])
        other = f.token_before(p, 1).text
        named, number = groups["named"].reshape(5, 3, 4)[after], c.number(other)
        like = c.sharing(other)
        at = c.positions_of(like.tolist())
        scores[at] += (named[1] - named[0])[group[at]]
        at = c.positions(number)
        scores[at] += (named[2] - named[1] if number in like else named[1] - named[0])[group[at]]
        if frame.stack:
            at = c.positions_of(list({c.number(text) for text in frame.stack[-1].tokens}))
            scores[at] += self._arguments(c, paren)[1][at]
        if p.used:
            used = groups["used"]
            at = c.positions_of(list(set(p.used)))
            scores[at] += (used[4:] - used[:4])[group[at]]
        callee = groups["callee"].reshape(4, 5)[:, after].tolist()
        called = c.sharing(frame.callee).tolist() if frame.callee else []
        begun = c.sharing(frame.line[0]).tolist() if frame.line else []
        scores[c.positions_of(called)] += callee[1] - callee[0]
        scores[c.positions_of(begun)] += callee[2] - callee[0]
        if both := set(called).intersection(begun):
            scores[c.positions_of(list(both))] += callee[3] - callee[1] - callee[2] + callee[0]


def _gate_places(gate: int, sizes: tuple[int, ...]) -> list[tuple[int, int]]:
    start, places = gate * sum(sizes), []
    for size in sizes:
        places.append((start, size))
        start += size
    return places


def _kept(c: TokenContext, key: Hashable, make: Callable[[], Ints]) -> Ints:
    if key not in c.parts:
        c.parts[key] = make()
    return c.parts[key]


def _signature(c: TokenContext) -> Ints:
    signature: Ints = ((c.kind * 4 + f.NEXT[c.next_kind]) * _KINDS + c.kind_before) * 4 + c.region
    return signature


def _bracket(p: TokenPoint) -> tuple[object, ...]:
    stack = p.frame.stack
    return (stack[-1].opener, stack[-1].callee, stack[-1].slot, len(stack)) if stack else ()


def _line_cases(c: TokenContext, p: TokenPoint) -> Ints:
    first = c.number(p.frame.line[0]) if p.frame.line else 0
    cases: Ints = c.column * 4 + (c.first == first) + 2 * (c.line_kind == p.frame.line_kind)
    return cases


def _followers(c: TokenContext, number: int, step: int) -> Ints:
    """Return the positions that have the token `number` exactly `step` steps before them. Edges precede position 0."""
    if number == UNKNOWN:
        return np.zeros(0, np.int64)
    if number == 0:
        return np.flatnonzero(c.before[step] == 0)
    at = c.positions(number) + step
    return at[at < len(c.id)]
