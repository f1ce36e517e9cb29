"""Sources of a strategy: the files whose digest is its version. Reads files, imports nothing.

They are the file itself with what it imports from beside it, directly or not; or all files of its package. What a file
imports is read from its text, wherever the statement stands, so that a module that is imported only when the strategy
runs counts too. Modules whose names are computed, and files that are no Python, are not seen.
"""

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
    """Return a digest of files, in their order."""
    return sha256("".join(f"{file.name}\0{sha256(content)}\n" for file, content in contents.items()))[:12]


def sources_of(module: str, path: Path) -> dict[Path, bytes]:
    """Return what defines a strategy: the files, in order, and their content.

    Args:
        module: the name of its module.
        path: the module's file.

    Raises:
        OSError: if it cannot be read.
    """
    root = _package(module)
    return with_neighbours(path) if root is None else {file: file.read_bytes() for file in sorted(root.rglob("*.py"))}


def with_neighbours(path: Path) -> dict[Path, bytes]:
    """Return a file, and then the files beside it that it imports, directly or not, with their content.

    Of a package that it imports these are all files.

    Raises:
        OSError: if the file itself cannot be read.
    """
    contents, unread = {path: path.read_bytes()}, [path]
    names: set[str] = set()
    with contextlib.suppress(OSError):
        # Where it may not be listed, nothing can be imported from it.
        others = (entry.name.partition(".")[0] for entry in path.parent.iterdir() if entry != path)
        names = {name for name in others if name.isidentifier()}
    while unread:
        for name in _imported(contents[unread.pop()], names):
            names.remove(name)
            for file in _beside(path.parent, name):
                # One that cannot be read cannot be imported either.
                with contextlib.suppress(OSError):
                    if file not in contents:
                        contents[file] = file.read_bytes()
                        unread.append(file)
    return {path: contents.pop(path), **dict(sorted(contents.items()))}


def _imported(content: bytes, names: Set[str]) -> set[str]:
    """Return which of some names are the first parts of those that a module imports.

    Relative ones are left out: they stay in its package.
    """
    imported: set[str] = set()
    if not any(name.encode() in content for name in names):
        return imported  # most files; to parse one takes milliseconds, for every sample
    with contextlib.suppress(SyntaxError, ValueError):
        for node in ast.walk(ast.parse(content)):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                imported.add(node.module.partition(".")[0])
    return imported & names


def _beside(folder: Path, name: str) -> list[Path]:
    """Return the files of the module or package that a file in a folder gets by a name; none if it is not from there.

    What is installed comes first, as in an import.
    """
    if name == _OURS or name in sys.builtin_module_names or folder.name in _INSTALLED:
        return []
    spec = PathFinder.find_spec(name, [*sys.path, str(folder)])
    places = (spec.submodule_search_locations or [spec.origin or ""]) if spec is not None else []
    # The path may have the folder under another spelling.
    entries = [Path(place).name for place in places if os.path.realpath(Path(place).parent) == os.path.realpath(folder)]
    roots = [folder / entry for entry in entries]
    return [file for root in roots for file in (root.rglob("*.py") if root.is_dir() else [root])]


def _package(module: str) -> Path | None:
    """Return the folder of the package that a module is in; None if it is in none. Ours is `ctxbench.strategies`."""
    ours = module.startswith(f"{__package__}.")
    top, dot = (__package__, ".") if ours else module.partition(".")[:2]
    file = getattr(sys.modules.get(top), "__file__", None)
    return Path(file).parent if dot and file and Path(file).name == "__init__.py" else None
