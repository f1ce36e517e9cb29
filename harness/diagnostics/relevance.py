"""Files that define what a target uses, and how much of them was looked at or shown. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ctxbench.bench.repositories.snapshot import Snapshot
from ctxbench.bench.types import Place, Sample, Use

_PACKAGE_FILE = "/__init__"


def modules_of(paths: Mapping[str, str] | Sequence[str]) -> dict[str, list[str]]:
    """Return dotted name -> the files that may be that module or class, from the folders that sources begin in."""
    files_by_name: dict[str, list[str]] = {}
    for path in sorted(paths):
        stem = path.rpartition(".")[0].removesuffix(_PACKAGE_FILE)
        parts = stem.split("/")
        for start in range(len(parts)):
            files_by_name.setdefault(".".join(parts[start:]), []).append(path)
    return files_by_name


def relevant_files(sample: Sample, modules: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the files of the repository that define what the target uses, without the target's own."""
    files = (path for use in sample.uses for path in _defining(use, modules))
    return tuple(dict.fromkeys(path for path in files if path != sample.path))


def _defining(use: Use, modules: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """Return the files of a use: of several of that name the one nearest to the root."""
    # A class in a class is defined in the outer one's file.
    names = use.module.split(".")
    for end in range(len(names), 0, -1):
        if files := modules.get(".".join(names[:end])):
            fewest = min(path.count("/") for path in files)
            return [path for path in files if path.count("/") == fewest][:1]
    return ()


class RelevantFiles:
    """The relevant files of samples; the names of a repository are read once."""

    def __init__(self, snapshots: Mapping[str, Snapshot]) -> None:
        """Use these repositories, by name."""
        self._snapshots = snapshots
        self._modules: dict[str, Mapping[str, Sequence[str]]] = {}

    def files(self, sample: Sample) -> tuple[str, ...]:
        """Return the other files that define what a sample's target uses; none where nobody knows."""
        snapshot = self._snapshots.get(sample.repo)
        if snapshot is None or not sample.uses:
            return ()
        if sample.repo not in self._modules:
            self._modules[sample.repo] = modules_of(snapshot.texts)
        return relevant_files(sample, self._modules[sample.repo])


def recall_precision(
    places: Collection[Place], relevant: Collection[str], target: str
) -> tuple[float | None, float | None]:
    """Return the share of the relevant files that some places lie in, and the share of their files that are relevant.

    Args:
        places: that were looked at, or shown.
        relevant: the files that define what the target uses.
        target: its own file, which counts for neither.

    Returns:
        In 0..1; None for both where no file is relevant, for the second also where there is no place elsewhere.
    """
    if not relevant:
        return None, None
    files = {place.path for place in places} - {target}
    hits = len(files.intersection(relevant))
    return hits / len(relevant), hits / len(files) if files else None
