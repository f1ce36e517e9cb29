"""How pytest is called: the repository's settings hold, its command-line additions do not."""

from __future__ import annotations

from collections.abc import Iterable

OPTIONS = (
    # Plugins that the repository's developers have and we have not, strictness about new warnings, caches.
    *("-o", "addopts=", "-o", "filterwarnings=", "-p", "no:warnings", "-p", "no:cacheprovider"),
    *("--rootdir=.", "--confcutdir=.", "-q", "--tb=short", "--color=no", "--no-header"),
)
MARKER = "filterwarnings(warning): the marker of the plugin `warnings`, which is off"


def arguments(more: Iterable[str], paths: Iterable[str]) -> list[str]:
    """Return pytest's arguments: ours, the suite's own, then what to run."""
    return [*OPTIONS, *more, *paths]
