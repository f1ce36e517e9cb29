# /// script
# requires-python = ">=3.11"
# dependencies = ["jedi==0.20.1"]
# ///
"""Finds definitions and uses of the names in the query's last lines (Python only)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jedi
from ctxbench_engine import best_windows, identifiers

_MOST_LINES = 2000
_WORD = re.compile(r"[\w$]+")


class Jedi:
    """Finds definitions of names, and code that uses them, with Jedi's static analysis."""

    def __init__(self, *, lines: int = 10, shown: int = 20, names: int = 15, uses: bool = True) -> None:
        """Look up `names` names of the last `lines` lines, and with `uses` their uses. Results have `shown` lines."""
        self._lines, self._shown, self._names, self._uses = lines, shown, names, uses
        self._root = Path()
        self._project: Any = None

    def index(self, root: str) -> tuple[str, str]:
        """Create a Jedi project. Jedi reads files when it needs them."""
        self._root = Path(root)
        jedi.settings.cache_directory = str(Path.home() / "jedi")
        self._project = jedi.Project(root, load_unsafe_extensions=False)
        return "jedi", jedi.__version__

    def update(self, paths: list[str]) -> None:
        """Clear Jedi's caches."""
        jedi.cache.clear_time_caches(delete_all=True)
        self._project = jedi.Project(str(self._root), load_unsafe_extensions=False)

    def search(self, text: str, path: str, line: int, top: int) -> list[tuple[str, int, int, float]]:
        """Return definitions, nearest names first, then windows that use the names."""
        weights = identifiers(text, self._lines)
        script = jedi.Script(code=text, path=str(self._root / path), project=self._project)
        rows = text.split("\n")
        places: dict[tuple[str, int, int], float] = {}
        for name, weight in sorted(weights.items(), key=lambda item: -item[1])[: self._names]:
            for number in range(len(rows), max(0, len(rows) - self._lines), -1):
                columns = [word.start() for word in _WORD.finditer(rows[number - 1]) if word[0] == name]
                if columns:
                    for place in self._defined(script, number, columns[-1] + 1, path):
                        places.setdefault(place, 1 + weight)
                    break
        if self._uses:
            hits = [hit for hit in self._hits(set(weights)) if hit[0] != path]
            for located, start, end, score in best_windows(hits, weights, self._shown, top):
                places.setdefault((located, start, end), score / (1 + sum(weights.values())))
        best = sorted(places.items(), key=lambda item: -item[1])[:top]
        return [(*place, score) for place, score in best]

    def _defined(self, script: Any, line: int, column: int, path: str) -> list[tuple[str, int, int]]:
        try:
            names = script.goto(line, column, follow_imports=True)
        except Exception:  # noqa: BLE001 - its faults on code that breaks off are of many kinds, and cost one name
            return []
        places = []
        for name in names:
            file = name.module_path
            if file is None or name.line is None or not Path(file).is_relative_to(self._root):
                continue
            located = Path(file).relative_to(self._root).as_posix()
            if located != path and Path(file).stat().st_size:
                places.append((located, name.line - 1, name.line - 1 + self._shown))
        return places

    def _hits(self, names: set[str]) -> list[tuple[str, int, str]]:
        hits = []
        for file in sorted(self._root.rglob("*.py")):
            for number, row in enumerate(file.read_text(encoding="utf-8", errors="replace").split("\n")[:_MOST_LINES]):
                used = names.intersection(_WORD.findall(row))
                hits += [(file.relative_to(self._root).as_posix(), number, name) for name in used]
        return hits
