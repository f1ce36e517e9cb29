# /// script
# requires-python = ">=3.11"
#
# [tool.ctxbench]
# programs = ["universal-ctags"]
# ///
"""Finds definitions of the query's last names with Universal Ctags: any language, but no types."""

from __future__ import annotations

import json
import math
import subprocess

from ctxbench_engine import identifiers

_FLAGS = ("--options=NONE", "--output-format=json", "--fields=+ne-P", "--quiet", "-f", "-")


class Ctags:
    """Maps names to the lines of their definitions."""

    saves = True

    def __init__(self, *, lines: int = 20, shown: int = 20) -> None:
        """Look up names of the last `lines` lines. A result has up to `shown` lines."""
        self._lines, self._shown = lines, shown
        self._root = "."
        self._tags: dict[str, dict[str, list[tuple[int, int]]]] = {}

    def index(self, root: str) -> tuple[str, str]:
        """Read the tags of all files."""
        self._root = root
        self._tags = {}
        self._read(["-R", "."])
        version = subprocess.run(["ctags", "--version"], capture_output=True, text=True, check=True).stdout
        return "ctags", version.split(",")[0].rpartition(" ")[2]

    def update(self, paths: list[str]) -> None:
        """Read these files' tags again."""
        for path in paths:
            self._tags.pop(path, None)
        # One may begin with a dash.
        self._read([f"./{path}" for path in paths])

    def search(self, text: str, path: str, line: int, top: int) -> list[tuple[str, int, int, float]]:
        """Return definitions in other files. Names near the cursor and rare names come first."""
        located: list[tuple[str, int, int, float]] = []
        for name, weight in identifiers(text, self._lines).items():
            spans = [(file, *span) for file, tags in self._tags.items() if file != path for span in tags.get(name, ())]
            score = weight / (1 + math.log(max(1, len(spans))))
            located += [(file, start, min(end, start + self._shown), score) for file, start, end in spans]
        return sorted(located, key=lambda place: (-place[3], place))[:top]

    def _read(self, what: list[str]) -> None:
        command = ["ctags", *_FLAGS, *what]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, cwd=self._root)
        for row in done.stdout.splitlines():
            tag = json.loads(row)
            if tag.get("_type") == "tag":
                start = tag["line"] - 1
                tags = self._tags.setdefault(tag["path"].removeprefix("./"), {})
                tags.setdefault(tag["name"], []).append((start, max(tag.get("end", 0), start + 1)))
