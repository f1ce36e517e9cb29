# /// script
# requires-python = ">=3.11"
# dependencies = ["ripgrep==14.1.0"]
# ///
"""The windows of lines that hold the identifiers of the last lines, rare ones counting more."""

from __future__ import annotations

import subprocess

from ctxbench_engine import best_windows, identifiers

_FLAGS = ("--no-config", "--no-ignore", "--hidden", "-j1", "-n", "-o", "-w", "-F", "-m200", "--no-heading", "-H", "-0")


class Ripgrep:
    """Asks the program ``rg`` once a query; it keeps no index."""

    def __init__(self, *, lines: int = 20, window: int = 20, terms: int = 30) -> None:
        """Take `terms` identifiers of the last `lines` lines, and answer with windows of `window` lines."""
        self._lines, self._window, self._terms = lines, window, terms
        self._root = "."

    def index(self, root: str) -> tuple[str, str]:
        """Index nothing."""
        self._root = root
        version = subprocess.run(["rg", "--version"], capture_output=True, text=True, check=True).stdout
        return "ripgrep", version.split()[1]

    def update(self, paths: list[str]) -> None:
        """Read files when asked only."""

    def search(self, text: str, path: str, line: int, top: int) -> list[tuple[str, int, int, float]]:
        """Return the windows with the most weight of terms."""
        weights = identifiers(text, self._lines)
        terms = sorted(weights, key=lambda term: -weights[term])[: self._terms]
        if not terms:
            return []
        words = [part for term in terms for part in ("-e", term)]
        located = subprocess.run(
            ["rg", *_FLAGS, *words, "."], capture_output=True, text=True, errors="replace", check=False, cwd=self._root
        )
        hits = []
        for row in located.stdout.splitlines():
            name, _, behind = row.partition("\0")
            number, _, term = behind.partition(":")
            if number.isdecimal():
                hits.append((name.removeprefix("./"), int(number) - 1, term))
        windows: list[tuple[str, int, int, float]] = best_windows(hits, weights, self._window, top)
        return windows
