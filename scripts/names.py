"""Check for vague names and for public class names that are used twice; part of `make lint`.

``python -m scripts.names`` prints the share of vague names in each package. It ends with 1 if a share exceeds the limit
or two classes have the same public name.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("bench", "harness", "sandbox", "strategies", "dashboard")
LIMIT = 0.005
"""Maximum share of vague names in a package: a local in a three-line loop may be vague, most names may not."""
VAGUE = frozenset(
    (
        *("one", "ones", "each", "found", "made", "wanted", "known", "said", "told", "given", "shown", "kept"),
        *("left", "taken", "seen", "asked", "done", "ready", "chosen", "meant", "held", "here", "rest"),
    )
)
SHARED = frozenset(("Definition", "Definitions", "FileNames"))
"""Public names shared by one class per language, which fulfil the same protocol."""
TESTS = ROOT / "bench" / "repos"
"""Tests for other people's projects, which keep their names."""


def bound_names(tree: ast.AST) -> Iterator[str]:
    """Yield the names that assignments, arguments, functions and classes bind."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def is_vague(name: str) -> bool:
    """Return whether a name is one of `VAGUE`, private or not."""
    return name.strip("_").lower() in VAGUE


def main() -> int:
    """Print the counts; return 1 if a package exceeds the limit or a class name is used twice."""
    over = False
    classes: dict[str, list[str]] = defaultdict(list)
    for room in ROOMS:
        total, vague = 0, 0
        places: dict[str, int] = {}
        for path in sorted((ROOT / room).rglob("*.py")):
            if path.is_relative_to(TESTS):
                continue
            tree = ast.parse(path.read_text(encoding="utf-8"))
            names = list(bound_names(tree))
            place = path.relative_to(ROOT).as_posix()
            total, places[place] = total + len(names), sum(map(is_vague, names))
            vague += places[place]
            for node in tree.body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    classes[node.name].append(place)
        over |= vague > LIMIT * total
        most = sorted((place for place in places if places[place]), key=lambda place: -places[place])[:3]
        where = "".join(f", {place} {places[place]}" for place in most)
        print(f"{room}: {vague} of {total} names are vague ({100 * vague / total:.1f} %){where}")
    twice = {name: places for name, places in classes.items() if len(places) > 1 and name not in SHARED}
    for name, files in sorted(twice.items()):
        print(f"class {name} stands in {', '.join(files)}")
    return int(over or bool(twice))


if __name__ == "__main__":
    sys.exit(main())
