"""Standard sets: named, versioned lists of repositories, from which every machine builds the same samples."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from ctxbench.bench.errors import UnknownName
from ctxbench.bench.files import read_text
from ctxbench.bench.repositories import manifest
from ctxbench.bench.repositories.manifest import RepoManifest
from ctxbench.bench.types import Kind

_FOLDER = Path(__file__).parent
_LITE = "-lite"


@dataclass(frozen=True, slots=True, kw_only=True)
class StandardSet:
    """A list of repositories, with the maximum number of samples per repository."""

    name: str
    per_repo: Mapping[str, int]
    """Maximum number of samples per repository, by kind of sample."""
    seed: int
    domains: Mapping[str, str]
    """Subject of each repository, such as ``parsing``, by the repository's name, in the set's order."""
    tested: frozenset[str]
    digests: Mapping[str, str]
    """Digest of the published sample set, by kind of sample; kinds without a published set are missing."""

    @property
    def manifests(self) -> tuple[RepoManifest, ...]:
        """Manifests of the repositories, in the set's order."""
        return tuple(manifest.load(repository) for repository in self.domains)

    def size(self, kind: str) -> int:
        """Return the number of samples of a kind in the built set, if each repository yields the maximum."""
        repositories = self.tested if kind == Kind.FUNCTION else self.domains
        return self.per_repo[kind] * len(repositories)

    def manifests_of(self, kind: str) -> tuple[RepoManifest, ...]:
        """Return the manifests of the repositories with samples of a kind, in the set's order."""
        return tuple(manifest.load(name) for name in self.domains if kind != Kind.FUNCTION or name in self.tested)


def names() -> tuple[str, ...]:
    """Return the names of the standard sets, each followed by the name of its lite set."""
    return tuple(name + form for name in sorted(path.stem for path in _FOLDER.glob("*.toml")) for form in ("", _LITE))


def repositories(name: str) -> tuple[RepoManifest, ...]:
    """Return the manifests of a standard set's repositories, or of a set that built-in manifests name.

    Raises:
        UnknownName: if no set has this name.
    """
    return load(name).manifests if name in names() else manifest.in_set(name)


def whole_name(name: str) -> str:
    """Return the name of the full standard set, given this name or the name of its lite set."""
    return name.removesuffix(_LITE)


def samples_name(name: str, kind: str) -> str:
    """Return the default name of a sample set: the standard set's name, with ``-functions`` for functions."""
    return name if kind == Kind.LINE else f"{name}-{kind}s"


def load(name: str) -> StandardSet:
    """Return a standard set by name.

    Raises:
        UnknownName: if no set has this name.
    """
    if name not in names():
        raise UnknownName("standard set", name, names())
    data = tomllib.loads(read_text(_FOLDER / f"{whole_name(name)}.toml"))
    whole = StandardSet(
        name=data["name"],
        per_repo=MappingProxyType(data["per_repo"]),
        seed=data["seed"],
        domains=MappingProxyType({entry["name"]: entry["domain"] for entry in data["repository"]}),
        tested=frozenset(entry["name"] for entry in data["repository"] if entry.get("functions")),
        digests=MappingProxyType(data["digests"]),
    )
    lite = data["lite"]
    return _first(whole, dict(lite["repositories"]), lite["digests"]) if name.endswith(_LITE) else whole


def _first(whole: StandardSet, counts: dict[str, int], digests: Mapping[str, str]) -> StandardSet:
    domains: dict[str, str] = {}
    for repository in whole.manifests:
        if counts[repository.language]:
            counts[repository.language] -= 1
            domains[repository.name] = whole.domains[repository.name]
    return replace(
        whole,
        name=whole.name + _LITE,
        domains=MappingProxyType(domains),
        tested=whole.tested & domains.keys(),
        digests=MappingProxyType(digests),
    )
