"""Small repositories written into a temporary folder."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any
from unittest import mock

from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.lines import build
from ctxbench.bench.repositories import snapshot
from ctxbench.bench.repositories.snapshot import Snapshot


def write_tree(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files below `root`. Text is dedented."""
    for path, content in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else dedent(content).lstrip("\n").encode())
    return root


def make_snapshot(
    root: Path, files: Mapping[str, str | bytes], *, language: Language = PYTHON, name: str = "demo"
) -> Snapshot:
    return snapshot.load(name, write_tree(root, files), language)


@contextmanager
def blind() -> Iterator[None]:
    """Build line samples without checks for visible answers. Only exact copies of lines are excluded."""

    def nothing(cuts: Sequence[Any], *_: Any) -> list[str]:
        return [""] * len(cuts)

    with mock.patch.object(build, "_sights", nothing):
        yield
