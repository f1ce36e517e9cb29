"""The source files that determine a strategy's version: its package, or its file and the local files it imports."""

from __future__ import annotations

import ast
import contextlib
import os
import sys
from collections.abc import Mapping, Set
from importlib.machinery import PathFinder
from pathlib import Path

from ctxbench.bench.files import sha256

_OURS = __name__.partition(".")[0]
_INSTALLED = ("site-packages", "dist-packages")


def digest(contents: Mapping[Path, bytes]) -> str:
    """Return the first 12 hexadecimal digits of a SHA-256 of files' names and contents, in their order."""
    return sha256("".join(f"{file.name}\0{sha256(content)}\n" for file, content in contents.items()))[:12]


def sources_of(module: str, path: Path) -> dict[Path, bytes]:
    """Return the source files of a strategy with their content, in order.

    Raises:
        OSError: if the strategy's file, or a file of its package, cannot be read.
    """
    root = _package(module)
    return with_neighbours(path) if root is None else {file: file.read_bytes() for file in sorted(root.rglob("*.py"))}


def with_neighbours(path: Path) -> dict[Path, bytes]:
    """Return a file and the files beside it that it imports, directly or not, with their content.

    Raises:
        OSError: if the file itself cannot be read.
    """
    contents, unread = {path: path.read_bytes()}, [path]
    names: set[str] = set()
    with contextlib.suppress(OSError):
        # Python cannot import from a folder that it cannot list.
        others = (entry.name.partition(".")[0] for entry in path.parent.iterdir() if entry != path)
        names = {name for name in others if name.isidentifier()}
    while unread:
        for name in _imported(contents[unread.pop()], names):
            names.remove(name)
            for file in _beside(path.parent, name):
                with contextlib.suppress(OSError):
                    if file not in contents:
                        contents[file] = file.read_bytes()
                        unread.append(file)
    return {path: contents.pop(path), **dict(sorted(contents.items()))}


def _imported(content: bytes, names: Set[str]) -> set[str]:
    imported: set[str] = set()
    if not any(name.encode() in content for name in names):
        return imported  # most files; parsing one takes milliseconds, for every sample
    with contextlib.suppress(SyntaxError, ValueError):
        for node in ast.walk(ast.parse(content)):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                imported.add(node.module.partition(".")[0])
    return imported & names


def _beside(folder: Path, name: str) -> list[Path]:
    """Return the files in `folder` that ``import name`` would load; empty if the module is elsewhere."""
    if name == _OURS or name in sys.builtin_module_names or folder.name in _INSTALLED:
        return []
    spec = PathFinder.find_spec(name, [*sys.path, str(folder)])
    places = (spec.submodule_search_locations or [spec.origin or ""]) if spec is not None else []
    # sys.path may spell the folder differently.
    entries = [Path(place).name for place in places if os.path.realpath(Path(place).parent) == os.path.realpath(folder)]
    roots = [folder / entry for entry in entries]
    return [file for root in roots for file in (root.rglob("*.py") if root.is_dir() else [root])]


def _package(module: str) -> Path | None:
    """Return the folder of a module's package; None without one. Built-in strategies share `ctxbench.strategies`."""
    ours = module.startswith(f"{__package__}.")
    top, dot = (__package__, ".") if ours else module.partition(".")[:2]
    file = getattr(sys.modules.get(top), "__file__", None)
    return Path(file).parent if dot and file and Path(file).name == "__init__.py" else None
