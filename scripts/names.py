"""Checks for vague names, stilted phrases and public class names used twice; part of `make lint`.

``python -m scripts.names`` prints the share of vague names and of stilted texts of each package. It returns 1 if a
share is over its limit, or if two public classes have the same name. ``--phrases`` lists the stilted texts.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("bench", "harness", "sandbox", "strategies", "dashboard")
LIMIT = 0.005
VAGUE = frozenset(
    (
        *("one", "ones", "each", "found", "made", "wanted", "known", "said", "told", "given", "shown", "kept"),
        *("left", "taken", "seen", "asked", "done", "ready", "chosen", "meant", "held", "here", "rest"),
    )
)
PHRASES = re.compile(
    r"\b(?:(?:of|to|by|with) (?:which|whom)|(?<!there )(?:is|are) (?:none|no (?!longer|more)\w+)"
    r"|comes? to (?:be )?(?=nothing|what|[0-9])|told apart|taken for|nobody|somebody|who asks?|, else the)\b"
)
"""Unusual phrases: chains of relative pronouns, denied nouns, odd verbs."""
PHRASE_LIMIT = 0.02
"""Maximum share of a package's docstrings and comments that may contain such a phrase."""
SHARED = frozenset(("Definition", "Definitions", "FileNames"))
"""Public class names that each language defines once, for the same part of a protocol."""
TESTS = ROOT / "bench" / "repos"
"""Tests for other people's projects, in their words."""


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
    """Return whether a name is in `VAGUE`, ignoring case and underscores."""
    return name.strip("_").lower() in VAGUE


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of every docstring, including those of fields, and of every comment."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def stilted(package: str) -> tuple[int, list[str]]:
    """Return the number of texts of a package, and a line for each text with one of `PHRASES`."""
    count, lines = 0, []
    for path in sorted((ROOT / package).rglob("*.py")):
        if path.is_relative_to(TESTS):
            continue
        for line, text in texts(path.read_text(encoding="utf-8")):
            count += 1
            if match := PHRASES.search(" ".join(text.split())):
                lines.append(f"{path.relative_to(ROOT)}:{line}: {match[0]}")
    return count, lines


def main() -> int:
    """Print the counts. Return 1 if a package is over a limit or two classes have the same name."""
    over = False
    classes: dict[str, list[str]] = defaultdict(list)
    for room in PACKAGES:
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
        count, lines = stilted(room)
        over |= len(lines) > PHRASE_LIMIT * count
        share = 100 * len(lines) / max(count, 1)
        print(f"{room}: {len(lines)} of {count} docstrings and comments are stilted ({share:.1f} %)")
        if "--phrases" in sys.argv:
            print(*lines, sep="\n")
    twice = {name: places for name, places in classes.items() if len(places) > 1 and name not in SHARED}
    for name, files in sorted(twice.items()):
        print(f"class {name} is defined in {', '.join(files)}")
    return int(over or bool(twice))


if __name__ == "__main__":
    sys.exit(main())
