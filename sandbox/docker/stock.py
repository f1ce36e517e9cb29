"""Images and boxes on the engine: their purpose, their size, and those that are no longer of use."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ctxbench.sandbox.docker import bases, images
from ctxbench.sandbox.docker.engine import Client, engine_faults
from ctxbench.sandbox.errors import SandboxError, SandboxLost, SandboxUnavailable
from ctxbench.sandbox.folders import exclusive_lock
from ctxbench.sandbox.owners import alive

LABEL = "ctxbench.image"
"""What the Dockerfile marks every image of ours with."""
BUILDS = "builds.lock"
"""Held by whoever builds, or removes what builds have left."""
_OWNER = "ctxbench.owner"
_STOPPED = ("created", "exited", "dead")
"""States of a container in which nothing runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredImage:
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


def touch(notes: Path, attributes: Mapping[str, Any]) -> None:
    """Note that an image is used now."""
    file = notes / "used" / attributes["Id"].partition(":")[2]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()


def sweep(client: Client) -> None:
    """Remove the boxes in which nothing runs and whose process is gone: a killed one leaves them.

    A running box ends by itself, with its stdin. On an engine that is not reached through a socket of this machine
    nothing is removed: whether a process of another machine lives cannot be seen from here. What cannot be removed
    stays for ``ctxbench doctor --clean``, which says why.
    """
    if "http+docker://" not in client.api.adapters:
        return
    with contextlib.suppress(SandboxError), engine_faults(SandboxLost, "docker"):
        for box in client.api.containers(all=True, filters={"label": _OWNER, "status": list(_STOPPED)}):
            if not alive(box["Labels"][_OWNER]):
                with contextlib.suppress(SandboxError), engine_faults(SandboxLost, box["Id"]):
                    # Not by force: one that somebody starts meanwhile stays.
                    client.api.remove_container(box["Id"], v=True)


def stored(client: Client, notes: Path, base_image: str) -> list[StoredImage]:
    """Return every image of ours, the latest first."""
    with engine_faults(SandboxUnavailable, "docker"):
        records = client.api.images(filters={"label": LABEL})
        boxes = client.api.containers(all=True, filters={"label": _OWNER})
    code = images.code_digest(images.code())
    base = bases.local(client, base_image)
    stored_images = [_stored(image, notes, [box["ImageID"] for box in boxes], (code, base)) for image in records]
    return sorted(stored_images, key=lambda stored_image: stored_image.age)


def prune(
    client: Client, notes: Path, base_image: str, *, everything: bool = False
) -> tuple[list[StoredImage], list[str]]:
    """Remove images of ours that the present code has no use for, or all of them; never another's.

    Returns:
        What was removed, and a line on each that could not be, such as one with a running box.
    """
    with exclusive_lock(notes / BUILDS):
        return _prune(client, notes, base_image, everything)


def _prune(client: Client, notes: Path, base_image: str, everything: bool) -> tuple[list[StoredImage], list[str]]:
    gone: list[StoredImage] = []
    reasons: list[str] = []
    # Tagged ones first: a stage cannot go while an image is built on it.
    for image in sorted(stored(client, notes, base_image), key=lambda stored_image: not stored_image.tag):
        if image.current and not everything:
            continue
        if image.boxes:
            reasons.append(f"{image.tag or image.id[:19]}: {image.boxes} boxes use it")
            continue
        try:
            with engine_faults(SandboxLost, image.tag or image.id[:19]):
                client.api.remove_image(image.tag or image.id)
        except SandboxLost as error:
            reasons.append(str(error))
            continue
        (notes / "used" / image.id.partition(":")[2]).unlink(missing_ok=True)
        gone.append(image)
    return gone, reasons


def _stored(image: Mapping[str, Any], notes: Path, boxes: list[str], now: tuple[str, str | None]) -> StoredImage:
    labels = image["Labels"] or {}
    tags = [tag for tag in image["RepoTags"] or [] if tag.startswith(f"{images.REPOSITORY}:")]
    used = notes / "used" / image["Id"].partition(":")[2]
    return StoredImage(
        id=image["Id"],
        tag=tags[0] if tags else "",
        name=labels.get("ctxbench.name", ""),
        size=image["Size"],
        age=time.time() - image["Created"],
        idle=time.time() - used.stat().st_mtime if used.exists() else None,
        boxes=boxes.count(image["Id"]),
        current=bool(tags) and (labels.get("ctxbench.code"), labels.get("ctxbench.base")) == now,
    )
