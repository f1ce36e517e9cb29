"""Cut line-completion samples out of unpacked packages, with prompts of several kinds.

A target is a line that uses a name which its file imports from the same package; the import is
blanked. Each sample gets prompts in the layout of the line strategies: in-file only, with random
windows, with windows like the code before the cursor, with windows like the target, and with API
signatures among which the target's own may be. None of the packages is in a benchmark set.

    python -m scripts.fit_incontext.cut LANGUAGE FOLDER OUT.jsonl [--per-package N] [--all-kinds]
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from scripts.fit_incontext.windows import WORD, Windows

WHOLE, HALF = 12000, 6500
"""Characters of in-file text: about 4096 and 2048 tokens."""
KINDS = ("infile", "random", "similar", "similar+api", "reference", "reference+api")
CHANCES = (0.2, 0.12, 0.28, 0.2, 0.08, 0.12)
_JAVA_METHOD = re.compile(
    r"^[ \t]+(?:public|protected|private|static)[\w<>\[\], .?]*?[ \t](\w+)\(([^)]*)\)[^;{]*\{", re.MULTILINE
)


class Target(NamedTuple):
    """One line to complete."""

    path: str
    line: int
    column: int
    names: frozenset[str]
    masked: tuple[tuple[int, int], ...]


def python_targets(files: dict[str, list[str]]) -> Iterator[Target]:
    """Yield the lines that use a name imported from the same package."""
    roots = {path.split("/")[0] for path in files}
    for path, lines in files.items():
        tree = _parsed("\n".join(lines))
        if tree is None:
            continue
        bound: dict[str, tuple[int, int]] = {}
        skipped: set[int] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").split(".")[0] in roots):
                for alias in node.names:
                    bound[alias.asname or alias.name] = (node.lineno - 1, node.end_lineno or node.lineno)
            if isinstance(node, ast.Import | ast.ImportFrom):
                skipped.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
                skipped.add(node.lineno)
                skipped.update(d.lineno for d in node.decorator_list)
        uses: dict[int, list[ast.Name]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id in bound and node.lineno not in skipped:
                uses.setdefault(node.lineno, []).append(node)
        for number, nodes in uses.items():
            first = min(nodes, key=lambda node: node.col_offset)
            if len(WORD.findall(lines[number - 1])) >= 4 and lines[number - 1].isascii():
                names = frozenset(node.id for node in nodes)
                masked = tuple(sorted({bound[name] for name in names}))
                yield Target(path, number - 1, first.col_offset, names, masked)


def java_targets(files: dict[str, list[str]]) -> Iterator[Target]:
    """Yield the lines in bodies that use a class of another file of the package."""
    classes = {Path(path).stem for path in files}
    for path, lines in files.items():
        own = Path(path).stem
        imports = {line.strip("; ").split(".")[-1]: at for at, line in enumerate(lines) if line.startswith("import ")}
        for number, line in enumerate(lines):
            if not line.startswith("        ") or line.strip()[:1] in ("*", "/", "@"):
                continue
            found = [m for m in re.finditer(r"[A-Z]\w+", line) if m.group() in classes and m.group() != own]
            if found and len(WORD.findall(line)) >= 4 and line.isascii():
                names = frozenset(match.group() for match in found)
                masked = tuple((imports[name], imports[name] + 1) for name in sorted(names) if name in imports)
                yield Target(path, number, found[0].start(), names, masked)


def _parsed(text: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except SyntaxError:
            return None


def signatures(path: str, lines: list[str], language: str) -> Iterator[tuple[str, str]]:
    """Yield (name that a user writes, API text) of every function of a file."""
    text = "\n".join(lines)
    if language == "java":
        owner = Path(path).stem
        for match in _JAVA_METHOD.finditer(text):
            head = " ".join(match.group().rstrip("{").split())
            yield owner, f"# {path}\n# public class {owner} {{\n#     {head};\n# }}\n\n"
        return
    tree = _parsed(text)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
            yield node.name, f"# {path}\n# def {node.name}({ast.unparse(node.args)}){returns}\n\n"
        elif isinstance(node, ast.ClassDef):
            for child in node.body:
                if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                    head = f"# {path}\n# class {node.name}:\n#     \n#     def {child.name}({ast.unparse(child.args)})"
                    yield (node.name if child.name == "__init__" else child.name), head + "\n\n"


class Package:
    """One package, ready to cut from."""

    def __init__(self, root: Path, language: str) -> None:
        """Read its files."""
        suffix = ".py" if language == "python" else ".java"
        self.files: dict[str, list[str]] = {}
        for path in sorted(root.rglob(f"*{suffix}")):
            name = path.relative_to(root).as_posix()
            if "vendor" in name or (language == "java" and "/test/" in name):
                continue
            text = path.read_text("utf-8", "replace")
            if len(text) < 200_000:
                self.files[name] = text.split("\n")
        self.language = language
        self.windows = Windows(self.files)
        self.api: dict[str, list[str]] = {}
        for name, lines in self.files.items():
            for key, text in signatures(name, lines, language):
                self.api.setdefault(key, []).append(text)

    def targets(self) -> list[Target]:
        """List all targets."""
        return list(python_targets(self.files) if self.language == "python" else java_targets(self.files))

    def sample(self, target: Target, kinds: tuple[str, ...], rng: random.Random) -> Iterator[dict[str, object]]:
        """Yield the sample with one prompt a kind."""
        lines = list(self.files[target.path])
        for start, end in target.masked:
            lines[start:end] = [""] * (end - start)
        whole = lines[target.line]
        column = 0 if rng.random() < 0.4 else target.column
        prefix = "\n".join([*lines[: target.line], whole[:column]])
        before = "\n".join(lines[max(0, target.line - 20) : target.line])
        around = "\n".join(lines[max(0, target.line - 10) : target.line + 10])
        for kind in kinds:
            blocks: list[tuple[str, str]] = []
            if kind == "random":
                blocks.append(("similar", self.windows.block(self._random(target.path, rng))))
            elif kind.startswith("similar"):
                found = self.windows.like(before, target.path, forward=True)
                blocks.append(("similar", self.windows.block(found)))
            elif kind.startswith("reference"):
                found = self.windows.like(around, target.path, forward=False)
                blocks.append(("similar", self.windows.block(found)))
            if kind.endswith("api"):
                blocks.append(("api", self._apis(target, whole, kind, rng)))
            blocks.append(("infile", _tail(prefix, WHOLE if kind == "infile" else HALF)))
            yield {"kind": kind, "path": target.path, "blocks": blocks, "target": whole[column:]}

    def _random(self, path: str, rng: random.Random) -> list[tuple[str, int, int]]:
        return [
            place for place in rng.sample(self.windows.places, min(20, len(self.windows.places))) if place[0] != path
        ]

    def _apis(self, target: Target, line: str, kind: str, rng: random.Random) -> str:
        own = [text for name in sorted(set(re.findall(r"\w+", line))) for text in self.api.get(name, ())[:2]]
        own = [text for text in own if f"# {target.path}\n" not in text]
        keys = sorted(self.api)
        others = [rng.choice(self.api[rng.choice(keys)]) for _ in range(4)] if keys else []
        chosen = own[:4] if rng.random() < 0.6 or kind == "reference+api" else []
        mixed = list(dict.fromkeys([*chosen, *others]))[:6]
        rng.shuffle(mixed)
        return "# Here are some APIs that may be used from other files\n" + "".join(mixed) + "\n"


def _tail(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    at = text.find("\n", len(text) - limit)
    return text[at + 1 :] if at >= 0 else text[-limit:]


def main() -> None:
    """Write the samples."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("language", choices=["python", "java"])
    parser.add_argument("folder", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--per-package", type=int, default=200)
    parser.add_argument("--all-kinds", action="store_true")
    options = parser.parse_args()
    counted: Counter[str] = Counter()
    with options.out.open("w", encoding="utf-8") as out:
        for root in sorted(options.folder):
            rng = random.Random(f"cut {root.name}")  # noqa: S311
            package = Package(root, options.language)
            targets = package.targets()
            rng.shuffle(targets)
            for target in targets[: options.per_package]:
                kinds = KINDS if options.all_kinds else (rng.choices(KINDS, CHANCES)[0],)
                for sample in package.sample(target, kinds, rng):
                    out.write(json.dumps({"package": root.name, **sample}) + "\n")
                    counted[root.name] += 1
    print(dict(counted))


if __name__ == "__main__":
    main()
