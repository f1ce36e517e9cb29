"""Small repositories written into a temporary folder."""

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.repositories import snapshot
from ctxbench.bench.repositories.snapshot import Snapshot


def write_tree(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files below `root`; text is dedented."""
    for path, content in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else dedent(content).lstrip("\n").encode())
    return root


def make_snapshot(
    root: Path, files: Mapping[str, str | bytes], *, language: Language = PYTHON, name: str = "demo"
) -> Snapshot:
    """Write files and read them as a snapshot."""
    return snapshot.load(name, write_tree(root, files), language)
