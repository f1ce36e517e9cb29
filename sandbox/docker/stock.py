"""The images that are there: what they are for, what they take, and which are of no use any more."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.docker import bases, images
from sandbox.docker.engine import Client, told
from sandbox.errors import SandboxLost, SandboxUnavailable
from sandbox.folders import held

LABEL = "ctxbench.image"
"""What the Dockerfile marks every image of ours with."""
BUILDS = "builds.lock"
"""Held by whoever builds, or removes what builds have left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """An image of ours."""

    id: str
    tag: str
    """Empty for a stage of a build, which only speeds up the next one."""
    name: str
    """Of the environment it was built for first."""
    size: int
    """Bytes, of which images share what they have in common."""
    age: float
    """Seconds since it was built."""
    idle: float | None
    """Seconds since a pool was opened on it here; None if none was."""
    boxes: int
    """Containers of it, running or not."""
    current: bool
    """Whether the present code and base image would still use it."""


def touch(notes: Path, found: Mapping[str, Any]) -> None:
    """Note that an image is used now."""
    file = notes / "used" / found["Id"].partition(":")[2]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()


def stored(client: Client, notes: Path, base_image: str) -> list[Stored]:
    """Return every image of ours, the latest first."""
    with told(SandboxUnavailable, "docker"):
        found = client.api.images(filters={"label": LABEL})
        boxes = client.api.containers(all=True, filters={"label": "ctxbench.owner"})
    code = images.code_digest(images.code())
    base = bases.local(client, base_image)
    made = [_stored(image, notes, [box["ImageID"] for box in boxes], (code, base)) for image in found]
    return sorted(made, key=lambda each: each.age)


def prune(client: Client, notes: Path, base_image: str, *, everything: bool = False) -> tuple[list[Stored], list[str]]:
    """Remove images of ours that the present code has no use for, or all of them; never another's.

    Returns:
        What was removed, and a line on each that could not be, such as one with a running box.
    """
    with held(notes / BUILDS):
        return _prune(client, notes, base_image, everything)


def _prune(client: Client, notes: Path, base_image: str, everything: bool) -> tuple[list[Stored], list[str]]:
    gone: list[Stored] = []
    kept: list[str] = []
    # Tagged ones first: a stage cannot go while an image is built on it.
    for image in sorted(stored(client, notes, base_image), key=lambda each: not each.tag):
        if image.current and not everything:
            continue
        if image.boxes:
            kept.append(f"{image.tag or image.id[:19]}: {image.boxes} boxes use it")
            continue
        try:
            with told(SandboxLost, image.tag or image.id[:19]):
                client.api.remove_image(image.tag or image.id)
        except SandboxLost as error:
            kept.append(str(error))
            continue
        (notes / "used" / image.id.partition(":")[2]).unlink(missing_ok=True)
        gone.append(image)
    return gone, kept


def _stored(image: Mapping[str, Any], notes: Path, boxes: list[str], now: tuple[str, str | None]) -> Stored:
    labels = image["Labels"] or {}
    tags = [tag for tag in image["RepoTags"] or [] if tag.startswith(f"{images.REPOSITORY}:")]
    used = notes / "used" / image["Id"].partition(":")[2]
    return Stored(
        id=image["Id"],
        tag=tags[0] if tags else "",
        name=labels.get("ctxbench.name", ""),
        size=image["Size"],
        age=time.time() - image["Created"],
        idle=time.time() - used.stat().st_mtime if used.exists() else None,
        boxes=boxes.count(image["Id"]),
        current=bool(tags) and (labels.get("ctxbench.code"), labels.get("ctxbench.base")) == now,
    )
