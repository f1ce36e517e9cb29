"""Images: what they are built on, building them once for the same content, and listing and removing them.

An image is tagged with the digest of everything that it is built from. The tree of a repository is in
none: it holds the answers.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import posixpath
import re
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ctxbench.sandbox import wheels
from ctxbench.sandbox.docker.engine import DEBIAN_BASE, Client, absent, engine_faults, fault
from ctxbench.sandbox.errors import SandboxError, SandboxLost, SandboxUnavailable
from ctxbench.sandbox.link import guest_files
from ctxbench.sandbox.ownership import alive, exclusive_lock, owner
from ctxbench.sandbox.types import Environment, Report, digest_of, file_digests

REPOSITORY = "ctxbench-sandbox"
_LAST_BYTES = 16 * 1024
"""Characters of a build's output that a fault is looked for in."""
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_BUILDER = ("Step ", " ---> ", "Removing intermediate container")
"""How lines of the builder's begin."""
_PROGRAM = re.compile(r"[a-z0-9][a-z0-9+.-]*(:[a-z0-9]+)?(=[A-Za-z0-9.+:~-]+)?")
"""A Debian package, maybe with its architecture and version."""
OFFICIAL = "python:3.11-slim-bookworm"
"""What images are built on: pulled where a registry can be reached, else made from Debian packages."""
HOME_MADE = "ctxbench-debian-base"
"""What `DEBIAN_BASE` makes."""
_PRINT_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"
LABEL = "ctxbench.image"
"""What the Dockerfile marks every image of ours with."""
BUILDS = "builds.lock"
"""Held by whoever builds, or removes what builds have left."""
_OWNER = "ctxbench.owner"
_STOPPED = ("created", "exited", "dead")
"""States of a container in which nothing runs."""


@functools.cache
def code() -> Mapping[str, bytes]:
    """Return the files that every image is built from, by their path in the build's context."""
    return {"Dockerfile": Path(__file__).with_name("Dockerfile").read_bytes(), **guest_files()}


def code_digest(files: Mapping[str, bytes]) -> str:
    """Return the SHA-256 of files by path."""
    return digest_of(file_digests(files))


def tag(environment: Environment, base: str) -> str:
    """Return the name of an environment's image on a base image of that id."""
    parts = [code_digest(code()), base, environment.installed, code_digest(environment.library)]
    return f"{REPOSITORY}:{digest_of(parts)[:32]}"


def key(attributes: Mapping[str, Any], environment: Environment) -> str:
    """Return the digest of everything that a job finds in its box: the image, the wheels in it, the environment."""
    labels = attributes["Config"]["Labels"]
    return digest_of([labels["ctxbench.key"], labels["ctxbench.wheels"], environment.digest])


def find(client: Client, name: str) -> dict[str, Any] | None:
    """Return what the engine knows of an image; None if it is not there."""
    with engine_faults(SandboxUnavailable, "docker"):
        try:
            attributes: dict[str, Any] = client.api.inspect_image(name)
        except Exception as error:
            if absent(error):
                return None
            raise
    return attributes


def build(client: Client, environment: Environment, base: str, folder: Path, report: Report) -> dict[str, Any]:
    """Build an environment's image from its fetched wheels, offline unless it needs programs.

    Raises:
        SandboxUnavailable: if a step fails; the message holds its last line.
    """
    name = tag(environment, base)
    files = code()
    report(f"building the image of {environment.name}")
    labels = {
        "ctxbench.key": name,
        "ctxbench.name": environment.name,
        "ctxbench.code": code_digest(files),
        "ctxbench.base": base,
        "ctxbench.wheels": digest_of(wheels.wheels(folder)),
    }
    with tempfile.TemporaryFile() as context, engine_faults(SandboxUnavailable, f"image of {environment.name}"):
        _pack(context, {**files, **_library(environment)}, folder)
        steps = client.api.build(
            fileobj=context,
            custom_context=True,
            tag=name,
            target="sandbox",
            buildargs={"BASE_IMAGE": base, "PROGRAMS": " ".join(_programs(environment))},
            labels=labels,
            network_mode=None if environment.programs else "none",
            rm=True,
            forcerm=True,
            decode=True,
        )
        _follow(steps, environment)
    image = find(client, name)
    if image is None:
        raise SandboxUnavailable("the engine built it and has it not", where=name, cure="run it again")
    return image


def _follow(steps: Iterator[Mapping[str, Any]], environment: Environment) -> None:
    output = failed = ""
    # To the stream's end, whatever it says: only then is its connection given back.
    for step in steps:
        failed = failed or str(step.get("error", ""))
        # Parts of lines: a colour begins a new one.
        output = (output + str(step.get("stream", "")))[-_LAST_BYTES:]
    if failed:
        raise fault(
            RuntimeError(f"it cannot be built: {_reason(output)} ({failed.rpartition(' returned a ')[2]})"),
            SandboxUnavailable,
            f"image of {environment.name}",
            "check the names of its programs and the connection to the Debian mirror, and run it again; "
            "or use --sandbox bubblewrap",
        )


def _reason(output: str) -> str:
    """Return the last lines that name a fault, or else the last lines; not the builder's own."""
    output_lines = _COLOURS.sub("", output).splitlines()
    lines = [line.strip() for line in output_lines if line.strip() and not line.startswith(_BUILDER)]
    faults = [line for line in lines if line.startswith(("E:", "ERROR", "error"))]
    return " | ".join((faults or lines)[-2:])[:300] or "no output"


def _library(environment: Environment) -> dict[str, bytes]:
    for path in environment.library:
        if path != posixpath.normpath(path) or path.startswith(("/", "..")):
            raise ValueError(f"{path!r} is not a path of a module")
    return {f"library/{path}": data for path, data in environment.library.items()}


def _programs(environment: Environment) -> tuple[str, ...]:
    """Return the Debian packages; each goes into a shell's line."""
    for name in environment.programs:
        if not _PROGRAM.fullmatch(name):
            raise SandboxUnavailable(f"{name!r} is not a Debian package", where=environment.name, cure="correct it")
    return environment.programs


def _pack(into: IO[bytes], files: Mapping[str, bytes], folder: Path) -> None:
    """Write a build context; equal inputs give equal bytes, or the engine's cache of layers never hits."""
    with tarfile.open(fileobj=into, mode="w") as tar:
        for path in sorted(files):
            tar.addfile(_entry(path, len(files[path])), io.BytesIO(files[path]))
        for wheel in sorted(folder.glob("*.whl")):
            with wheel.open("rb") as data:
                tar.addfile(_entry(f"wheels/{wheel.name}", wheel.stat().st_size), data)
    into.seek(0)


def _entry(path: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(path)
    entry.size, entry.mode = size, 0o644
    return entry


def local_base(client: Client, base_image: str) -> str | None:
    """Return the id of a local base image, preferably of `base_image`; None if there is none."""
    for name in _base_names(base_image):
        with engine_faults(SandboxUnavailable, "docker"):
            try:
                return str(client.images.get(name).id)
            except Exception as error:
                if not absent(error):
                    raise
    return None


def base_id(client: Client, name: str, report: Report) -> str:
    """Return the id of the base image; pull it where it is not here.

    Raises:
        SandboxUnavailable: if it can neither be pulled nor replaced by the home-made one.
    """
    with engine_faults(SandboxUnavailable, "docker"):
        try:
            return str(client.images.get(name).id)
        except Exception as error:
            if not absent(error):
                raise
    report(f"pulling the image {name}")
    try:
        with engine_faults(SandboxUnavailable, "docker"):
            return str(client.images.pull(name).id)
    except SandboxUnavailable as refused:
        image_id = local_base(client, name)
        if image_id is None:
            raise SandboxUnavailable(
                f"the image cannot be pulled ({refused.what})",
                where=name,
                cure="name one that can in CTXBENCH_BASE_IMAGE, or make one from Debian packages as root: "
                f"`{DEBIAN_BASE}`; or use --sandbox bubblewrap",
            ) from refused
        report(f"{name} cannot be pulled: using {HOME_MADE}")
        return image_id


def base_python(client: Client, base: str, cache: Path) -> str:
    """Return the version of a base image's Python, e.g. ``3.11``; asked once an image.

    Raises:
        SandboxUnavailable: if it has none.
    """
    note = cache / "python" / base.partition(":")[2]
    if note.is_file():
        return note.read_text(encoding="utf-8")
    try:
        with engine_faults(SandboxUnavailable, base[:19]):
            output: bytes = client.containers.run(
                base,
                ["python3", "-c", _PRINT_VERSION],
                entrypoint=[],
                remove=True,
                network_mode="none",
                labels={"ctxbench.owner": owner()},
            )
    except SandboxUnavailable as error:
        raise SandboxUnavailable(
            f"its Python cannot be asked ({error.what})", where="base image", cure="choose one that has python3"
        ) from error
    version = output.decode("ascii", "replace").strip()
    note.parent.mkdir(parents=True, exist_ok=True)
    # Renamed into place: another process may be reading.
    aside = note.with_name(f"{note.name}.{os.getpid()}.part")
    aside.write_text(version, encoding="utf-8")
    aside.replace(note)
    return version


def _base_names(name: str) -> tuple[str, ...]:
    return (name, HOME_MADE) if name == OFFICIAL else (name,)


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
    digest = code_digest(code())
    base = local_base(client, base_image)
    stored_images = [_stored(image, notes, [box["ImageID"] for box in boxes], (digest, base)) for image in records]
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
    tags = [tag for tag in image["RepoTags"] or [] if tag.startswith(f"{REPOSITORY}:")]
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
