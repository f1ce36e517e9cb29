"""`Home`: the paths of everything that is kept. Pure path arithmetic; whoever owns a folder makes and fills it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

CACHE = "CTXBENCH_CACHE"
"""The variable that names another folder for the cache, where a home folder cannot be written."""


@dataclass(frozen=True, slots=True)
class Home:
    """The home folder (``--home``, ``CTXBENCH_HOME``, default ``.ctxbench`` in the working directory)."""

    root: Path

    @property
    def repos(self) -> Path:
        """Fetched repositories: ``repos/<name>/<version key>/``, read-only."""
        return self.root / "repos"

    @property
    def samples(self) -> Path:
        """Sample sets: ``samples/<name>/``."""
        return self.root / "samples"

    @property
    def cache(self) -> Path:
        """Files that can be deleted and made again (``CTXBENCH_CACHE``, default ``cache`` in the home folder)."""
        elsewhere = os.environ.get(CACHE)
        return Path(elsewhere).expanduser().absolute() if elsewhere else self.root / "cache"

    @property
    def shards(self) -> Path:
        """The default folder of results that are to be merged."""
        return self.root / "shards"

    @property
    def database(self) -> str:
        """The default database URL."""
        return f"sqlite:///{self.root / 'results.db'}"
