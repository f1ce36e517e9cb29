"""Which repositories stand for CoderEval's projects."""

from __future__ import annotations

from collections.abc import Iterable

from ctxbench.bench import manifest
from ctxbench.bench.errors import InputFault
from ctxbench.bench.manifest_types import RepoManifest
from ctxbench.bench.types import Language


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
    found: dict[tuple[Language, str], RepoManifest] = {}
    for each in manifests:
        for project in each.codereval:
            other = found.setdefault((each.language, key(project)), each)
            if other is not each:
                what = f"{other.name} and {each.name} both stand for CoderEval's project {project}"
                raise InputFault(what, cure="leave it out of one manifest's `codereval`")
    return found
