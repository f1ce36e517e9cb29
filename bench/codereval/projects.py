"""The repositories that stand for CoderEval's projects."""

from __future__ import annotations

from collections.abc import Iterable

from ctxbench.bench.errors import InputFault
from ctxbench.bench.languages.base import Language
from ctxbench.bench.repositories import manifest
from ctxbench.bench.repositories.manifest import RepoManifest


def key(project: str) -> str:
    """Return a project's name as it is looked up: records write ``owner/repo`` and ``owner---repo``, in any case."""
    return project.strip().replace("---", "/").lower()


def by_project(own: Iterable[RepoManifest] = ()) -> dict[tuple[Language, str], RepoManifest]:
    """Return language and `key` of a project -> the repository that its tasks are rebuilt on.

    Args:
        own: the user's manifests; they go before the shipped ones.

    Raises:
        InputFault: if two of the user's, or two of the shipped ones, stand for one project.
    """
    return {**_claims(map(manifest.load, manifest.builtin_names())), **_claims(own)}


def _claims(manifests: Iterable[RepoManifest]) -> dict[tuple[Language, str], RepoManifest]:
    claims: dict[tuple[Language, str], RepoManifest] = {}
    for repository in manifests:
        for project in repository.codereval:
            other = claims.setdefault((repository.language, key(project)), repository)
            if other is not repository:
                what = f"{other.name} and {repository.name} both stand for CoderEval's project {project}"
                raise InputFault(what, cure="leave it out of one manifest's `codereval`")
    return claims
