"""Names that say nothing of what they hold, and public class names that stand twice; part of `make lint`.

``python -m scripts.names`` prints the share of vague names of each room and ends with 1 where it is over the limit, or
where a public class name stands for two classes.
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
"""Share of a room's bound names that may be vague: a local in a three-line loop may be right, a habit is not."""
VAGUE = frozenset(
    (
        *("one", "ones", "each", "found", "made", "wanted", "known", "said", "told", "given", "shown", "kept"),
        *("left", "taken", "seen", "asked", "done", "ready", "chosen", "meant", "held", "here", "rest"),
    )
)
SHARED = frozenset[str]()
"""Public class names that stand for more than one class with good reason."""


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
    """Say whether a name is one of `VAGUE`, private or not."""
    return name.strip("_").lower() in VAGUE


def main() -> int:
    """Print what was counted; return 1 if a room is over the limit or a class name stands twice."""
    over = False
    classes: dict[str, list[str]] = defaultdict(list)
    for room in ROOMS:
        total, vague = 0, 0
        places: dict[str, int] = {}
        for path in sorted((ROOT / room).rglob("*.py")):
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
