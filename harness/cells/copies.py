"""Find other copies of the benchmark's code on this machine: installed packages and the installers' caches.

A repository that is also installed here holds every answer about itself. These paths are passed to `open_cells` as
hidden; a strategy that imports such a package then fails with a message.
"""

from __future__ import annotations

import glob
import sys
from collections.abc import Iterable
from pathlib import Path

_SITES = ("site-packages", "dist-packages")
_SYSTEM = ("/usr/lib/python3*/*-packages", "/usr/local/lib/python3*/*-packages")
_CACHES = ("~/.cache/pip", "~/.cache/uv")


def copies(files: Iterable[str]) -> list[Path]:
    """Return installed packages that hold one of the files, and the caches of pip and uv.

    Args:
        files: paths inside the benchmark's repositories; ``src/rich/text.py`` is looked for as
            ``src/rich/text.py``, ``rich/text.py`` and ``text.py`` in every folder of packages.
    """
    sites = [(site, {entry.name for entry in site.iterdir()}) for site in _sites()]
    paths = {Path(cache).expanduser() for cache in _CACHES if Path(cache).expanduser().is_dir()}
    for file in set(files):
        parts = Path(file).parts
        for start, first in enumerate(parts):
            paths |= {
                site / first for site, names in sites if first in names and site.joinpath(*parts[start:]).is_file()
            }
    return sorted(paths)


def _sites() -> list[Path]:
    candidates = {Path(entry) for entry in sys.path if Path(entry).name in _SITES}
    candidates |= {Path(match) for pattern in _SYSTEM for match in glob.glob(pattern)}  # noqa: PTH207 - absolute patterns
    return sorted(site for site in candidates if site.is_dir())
