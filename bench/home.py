"""Paths of the files that ctxbench stores."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ctxbench.bench.errors import InputFault

CACHE = "CTXBENCH_CACHE"
"""Environment variable that names another cache folder, for example if the home folder is read-only."""


@dataclass(frozen=True, slots=True)
class Home:
    """The home folder (``--home``, ``CTXBENCH_HOME``, default ``.ctxbench``)."""

    root: Path

    @classmethod
    def of(cls, path: str | Path) -> Home:
        """Return the home folder at a path from the user.

        Raises:
            InputFault: if the path is a file.
        """
        root = Path(path).expanduser().absolute()
        # `Path.exists` may raise a permission error; opening the folder reports that better.
        if os.path.isfile(root):  # noqa: PTH113
            raise InputFault("the home is a file, not a folder", where=str(path), cure="give the path of a folder")
        return cls(root)

    @property
    def repos(self) -> Path:
        """Folder of fetched (read-only) and imported repositories: ``repos/<name>/<version key>/``."""
        return self.root / "repos"

    @property
    def samples(self) -> Path:
        """Folder of sample sets: ``samples/<name>/``."""
        return self.root / "samples"

    @property
    def cache(self) -> Path:
        """Folder of files that can be rebuilt (``CTXBENCH_CACHE``, by default ``cache`` in the home folder)."""
        elsewhere = os.environ.get(CACHE)
        return Path(elsewhere).expanduser().absolute() if elsewhere else self.root / "cache"

    @property
    def shards(self) -> Path:
        """Default folder of shards, the files with parts of a run's results."""
        return self.root / "shards"

    @property
    def database(self) -> str:
        """URL of the default database of results."""
        return sqlite_url(self.root / "results.db")


def sqlite_url(path: Path) -> str:
    """Return the SQLAlchemy URL of an SQLite file."""
    return "sqlite:///" + str(path).replace("%", "%25").replace("?", "%3F")
