"""`Home`: the paths of everything that is kept; whoever owns a folder makes and fills it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ctxbench.bench.errors import InputFault

CACHE = "CTXBENCH_CACHE"
"""The variable that names another folder for the cache, where a home folder cannot be written."""


@dataclass(frozen=True, slots=True)
class Home:
    """The home folder (``--home``, ``CTXBENCH_HOME``, default ``.ctxbench`` in the working directory)."""

    root: Path

    @classmethod
    def of(cls, path: str | Path) -> Home:
        """Return the home at a path as a user writes it.

        Raises:
            InputFault: if a file is there.
        """
        root = Path(path).expanduser().absolute()
        # Unlike `Path.exists` it is silent about what may not be looked at, which whoever opens it says better.
        if os.path.isfile(root):  # noqa: PTH113
            raise InputFault("is a file, not a folder", where=str(path), cure="give the home's folder")
        return cls(root)

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
        return sqlite_url(self.root / "results.db")


def sqlite_url(path: Path) -> str:
    """Return the SQLAlchemy URL of an SQLite file, whatever characters its path holds."""
    return "sqlite:///" + str(path).replace("%", "%25").replace("?", "%3F")
