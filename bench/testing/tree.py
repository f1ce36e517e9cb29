"""A repository's files as bytes, as boxes get them: links, version control and compiled files left out."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import explained, sha256

MAX_BYTES = 48 << 20
"""Of all files together: a box's working folder is no larger than 64 MiB, and tests write too."""
ADDED = "ctxbench_tests/"
"""Where tests of ours lie, beside those that the repository brings."""
_SKIPPED = frozenset({".git", ".hg", ".svn", "__pycache__", ".tox", ".venv", "node_modules"})


def read(root: Path) -> dict[str, bytes]:
    """Return path -> content of every plain file below `root`, in sorted order.

    Raises:
        InputFault: if they are too large for a box.
        MachineFault: if one cannot be read.
    """
    contents: dict[str, bytes] = {}
    size = 0
    with explained(root):
        for folder, folders, files in os.walk(root):
            folders[:] = sorted(name for name in folders if name not in _SKIPPED)
            for name in sorted(files):
                path = Path(folder, name)
                if path.is_symlink() or name.endswith(".pyc") or not path.is_file():
                    continue
                content = path.read_bytes()
                size += len(content)
                if size > MAX_BYTES:
                    raise InputFault(
                        f"its files are larger than {MAX_BYTES >> 20} MiB",
                        where=str(root),
                        cure="limit it with source_dir, or leave it out of function samples",
                    )
                contents[path.relative_to(root).as_posix()] = content
    return dict(sorted(contents.items()))


def texts(folder: Path) -> dict[str, str]:
    """Return path -> text of tests of ours, to be laid over a repository's files.

    Raises:
        InputFault: if the folder holds no file, or one that is not UTF-8.
    """
    texts_by_path: dict[str, str] = {}
    for path, content in read(folder).items():
        try:
            texts_by_path[path] = content.decode("utf-8")
        except UnicodeDecodeError:
            raise InputFault("is not UTF-8", where=str(folder / path), cure="write it as UTF-8") from None
    if not texts_by_path:
        raise InputFault("holds no test", where=str(folder), cure="put tests there, or leave `added` out")
    return texts_by_path


def laid(tree: Mapping[str, bytes], added: Mapping[str, str]) -> dict[str, bytes]:
    """Return a repository's files with tests of ours under `ADDED`.

    Args:
        tree: the repository's files.
        added: path below `ADDED` -> text; may be empty.

    Raises:
        InputFault: if the repository itself has something there.
    """
    if added and any(path.startswith(ADDED) for path in tree):
        raise InputFault(f"the repository has a folder {ADDED} of its own", cure="leave `added` out of its [tests]")
    ours = {ADDED + path: text.encode() for path, text in added.items()}
    return dict(sorted({**tree, **ours}.items()))


def digest(tree: Mapping[str, bytes]) -> str:
    """Return a SHA-256 over paths and contents."""
    return sha256(json.dumps([[path, sha256(tree[path])] for path in sorted(tree)]))
