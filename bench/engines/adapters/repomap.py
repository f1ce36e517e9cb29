# /// script
# requires-python = ">=3.11"
# ///
"""Finds definitions in files with a high PageRank over symbol references, as in aider's repository map."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path

from ctxbench_engine import identifiers

_NAME = re.compile(r"[A-Za-z_$][\w$]{2,}")
_JAVA = (
    r"^[ \t]*(?:@\w+[ \t]+)*"
    r"(?:(?:public|protected|private|static|final|abstract|sealed|default|synchronized)[ \t]+)*"
    r"(?:(?:class|interface|enum|record)[ \t]+(\w+)"
    r"|(?:<[^>\n]+>[ \t]+)?[\w<>\[\],.?]+[ \t]+(\w+)[ \t]*\([^;\n]*\{)"
)
_DEFINITIONS = {
    ".py": re.compile(r"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.M),
    ".java": re.compile(_JAVA, re.M),
}
_DAMPING, _ROUNDS = 0.85, 30
_MENTIONED, _PRIVATE, _LONG = 10.0, 0.1, 8
"""aider's settings: weight of a name in the query, weight of a private name, length of a long name."""
_WIDELY = 5
"""A name that more files define says nothing."""


class RepoMap:
    """Ranks files by PageRank. A file points to the files that define a name it uses."""

    saves = True

    def __init__(self, *, lines: int = 60, shown: int = 6) -> None:
        """Search for identifiers of the last `lines` lines. A result has `shown` lines of a definition."""
        self._lines, self._shown = lines, shown
        self._root = Path()
        self._defined: dict[str, dict[str, list[int]]] = {}
        self._named: dict[str, Counter[str]] = {}

    def index(self, root: str) -> tuple[str, str]:
        """Read the definitions and names of all files."""
        self._root = Path(root)
        self._defined, self._named = {}, {}
        self.update([file.relative_to(root).as_posix() for file in Path(root).rglob("*") if file.is_file()])
        return "repomap", "1"

    def update(self, paths: list[str]) -> None:
        """Read these files again."""
        for path in paths:
            self._defined.pop(path, None)
            self._named.pop(path, None)
            pattern = _DEFINITIONS.get(Path(path).suffix)
            if pattern is None or not (self._root / path).is_file():
                continue
            text = (self._root / path).read_text(encoding="utf-8", errors="replace")
            definitions: dict[str, list[int]] = defaultdict(list)
            for match in pattern.finditer(text):
                name = match.group(match.lastindex or 0)
                definitions[name].append(text.count("\n", 0, match.start(match.lastindex or 0)))
            self._defined[path] = definitions
            self._named[path] = Counter(_NAME.findall(text))

    def search(self, text: str, path: str, line: int, top: int) -> list[tuple[str, int, int, float]]:
        """Return definitions, those with the highest rank first."""
        mentioned = identifiers(text, self._lines)
        edges = self._edges(mentioned, path, Counter(_NAME.findall(text)))
        rank = _pagerank(edges, {path: 1.0})
        carried: dict[tuple[str, str], float] = defaultdict(float)
        for source, targets in edges.items():
            total = sum(weight for _, _, weight in targets)
            for target, name, weight in targets:
                carried[target, name] += rank.get(source, 0.0) * weight / total
        places = []
        for (target, name), score in sorted(carried.items(), key=lambda item: (-item[1], item[0]))[:top]:
            start = self._defined[target][name][0]
            places.append((target, start, start + self._shown, score))
        return places

    def _edges(
        self, mentioned: dict[str, float], path: str, own: Counter[str]
    ) -> dict[str, list[tuple[str, str, float]]]:
        definers: dict[str, list[str]] = defaultdict(list)
        for target, definitions in sorted(self._defined.items()):
            for name in definitions:
                definers[name].append(target)
        edges: dict[str, list[tuple[str, str, float]]] = defaultdict(list)
        occurrences = {**self._named, path: own}
        for source, names in sorted(occurrences.items()):
            for name in sorted(names.keys() & definers.keys()):
                targets = [target for target in definers[name] if target != source]
                if not targets or len(definers[name]) > _WIDELY:
                    continue
                weight = names[name] ** 0.5 * (_MENTIONED if name in mentioned else 1.0)
                weight *= _PRIVATE if name.startswith("_") else 1.0
                weight *= _MENTIONED if len(name) >= _LONG and ("_" in name or name.lower() != name) else 1.0
                edges[source] += [(target, name, weight / len(targets)) for target in targets]
        return edges


def _pagerank(edges: dict[str, list[tuple[str, str, float]]], start: dict[str, float]) -> dict[str, float]:
    nodes = sorted({*edges, *(target for targets in edges.values() for target, _, _ in targets), *start})
    flows: dict[str, dict[str, float]] = {source: defaultdict(float) for source in edges}
    for source, targets in edges.items():
        total = sum(weight for _, _, weight in targets)
        for target, _, weight in targets:
            flows[source][target] += weight / total
    rank = {node: start.get(node, 0.0) for node in nodes}
    for _ in range(_ROUNDS):
        dangling = sum(rank[node] for node in nodes if node not in flows)
        fresh = {node: (1 - _DAMPING + _DAMPING * dangling) * start.get(node, 0.0) for node in nodes}
        for source, shares in flows.items():
            for target, share in shares.items():
                fresh[target] += _DAMPING * rank[source] * share
        rank = fresh
    return rank
