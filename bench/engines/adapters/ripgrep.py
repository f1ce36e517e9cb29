# /// script
# requires-python = ">=3.11"
# dependencies = ["ripgrep==14.1.0"]
# ///
"""Finds windows of lines that contain identifiers of the query's last lines. Rare identifiers have more weight."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator

from ctxbench_engine import best_windows, identifiers

_FLAGS = ("--no-config", "--no-ignore", "--hidden", "--sort=path", "-n", "-o", "-w", "-F", "--no-heading", "-H", "-0")


class Ripgrep:
    """Runs ``rg`` for each query, without an index."""

    def __init__(self, *, lines: int = 20, window: int = 20, terms: int = 30) -> None:
        """Search for up to `terms` identifiers of the last `lines` lines, in windows of `window` lines."""
        self._lines, self._window, self._terms = lines, window, terms
        self._root = "."

    def index(self, root: str) -> tuple[str, str]:
        """Return name and version. Ripgrep builds nothing."""
        self._root = root
        version = subprocess.run(["rg", "--version"], capture_output=True, text=True, check=True).stdout
        return "ripgrep", version.split()[1]

    def update(self, paths: list[str]) -> None:
        """Do nothing: every search reads the files."""

    def search(self, text: str, path: str, line: int, top: int) -> list[tuple[str, int, int, float]]:
        """Return the windows whose identifiers have the highest total weight."""
        weights = identifiers(text, self._lines)
        terms = sorted(weights, key=lambda term: -weights[term])[: self._terms]
        if not terms:
            return []
        words = [part for term in terms for part in ("-e", term)]
        # Read as it comes: a repository may hold a term hundreds of thousands of times.
        with subprocess.Popen(
            ["rg", *_FLAGS, *words, "."],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            errors="replace",
            cwd=self._root,
        ) as located:
            hits = _hits(located.stdout or ())
            windows: list[tuple[str, int, int, float]] = best_windows(hits, weights, self._window, top)
        return windows


def _hits(rows: Iterable[str]) -> Iterator[tuple[str, int, str]]:
    for row in rows:
        name, _, rest = row.rstrip("\n").partition("\0")
        number, _, term = rest.partition(":")
        if number.isdecimal():
            yield name.removeprefix("./"), int(number) - 1, term
