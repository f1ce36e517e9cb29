"""`Home`: the paths of everything that is kept. Pure path arithmetic; whoever owns a folder makes and fills it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


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
        """Files that can be deleted and made again."""
        return self.root / "cache"

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
