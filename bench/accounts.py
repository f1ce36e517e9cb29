"""The account that a sample set gives of itself: versions, seed, and what each repository gave."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from ctxbench.bench.types import Kind

_PARSERS = ("tree-sitter", "tree-sitter-java", "tree-sitter-python")


def account(
    kind: Kind, repositories: Mapping[str, Mapping[str, Any]], totals: Sequence[str], *, seed: int, per_repo: int
) -> dict[str, Any]:
    """Return the manifest of a set that is built here.

    Args:
        kind: of its samples.
        repositories: name -> what was read, dropped and kept.
        totals: keys of `repositories`' entries to add up.
        seed: of every draw.
        per_repo: most samples a repository.
    """
    return {
        "ctxbench": version("ctxbench"),
        "python": platform.python_version(),
        "parsers": {name: version(name) for name in _PARSERS},
        "kind": kind.value,
        "seed": seed,
        "per_repo": per_repo,
        "repositories": dict(repositories),
        "totals": {key: sum(entry[key] for entry in repositories.values()) for key in totals},
    }
