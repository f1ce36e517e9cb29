"""Standard sets: named, versioned lists of repositories from which everybody builds the same samples.

A set is one TOML file beside this module. Its power comes from many repositories with few samples each. All give lines;
those with ``functions = true`` give functions too, which their own tests judge. The first repositories of each language
are its ``-lite`` form. The rules by which they were chosen stand in docs/standard-set.md.
"""

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
    """A list of repositories, and how many samples of each kind are drawn from each."""

    name: str
    per_repo: Mapping[str, int]
    """Kind of sample -> most samples of a repository."""
    seed: int
    """Of every draw."""
    domains: Mapping[str, str]
    """Name of a shipped repository -> what its project is about; in the order of the set."""
    tested: frozenset[str]
    """Names of the repositories that give functions."""
    digests: Mapping[str, str]
    """Kind of sample -> the digest that the built set must have; empty for a kind that is not published."""

    @property
    def manifests(self) -> tuple[RepoManifest, ...]:
        """The repositories, in the order of the set."""
        return tuple(manifest.load(repository) for repository in self.domains)

    def size(self, kind: str) -> int:
        """Return how many samples of a kind the built set has."""
        repositories = self.tested if kind == Kind.FUNCTION else self.domains
        return self.per_repo[kind] * len(repositories)

    def manifests_of(self, kind: str) -> tuple[RepoManifest, ...]:
        """Return the repositories that give samples of a kind, in the order of the set."""
        return tuple(manifest.load(name) for name in self.domains if kind != Kind.FUNCTION or name in self.tested)


def names() -> tuple[str, ...]:
    """Return the names of the standard sets, each followed by its lite form."""
    return tuple(name + form for name in sorted(path.stem for path in _FOLDER.glob("*.toml")) for form in ("", _LITE))


def repositories(name: str) -> tuple[RepoManifest, ...]:
    """Return the repositories of a standard set, or of a set that manifests name themselves.

    Raises:
        UnknownName: if there is none of this name.
    """
    return load(name).manifests if name in names() else manifest.in_set(name)


def whole_name(name: str) -> str:
    """Return the name of the set that a name, of a lite form perhaps, belongs to."""
    return name.removesuffix(_LITE)


def samples_name(name: str, kind: str) -> str:
    """Return what the samples of a kind are called where nobody gives them another name."""
    return name if kind == Kind.LINE else f"{name}-{kind}s"


def load(name: str) -> StandardSet:
    """Return a standard set by its name.

    Raises:
        UnknownName: if there is none of this name.
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
    """Return the lite form: so many repositories of each language, from the first on."""
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
