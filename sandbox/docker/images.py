"""Finds the base image, builds each Docker image once, and removes boxes left by dead processes."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import posixpath
import re
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from ctxbench.sandbox import wheels
from ctxbench.sandbox.docker.engine import DEBIAN_BASE, Client, absent, engine_faults, fault
from ctxbench.sandbox.errors import SandboxError, SandboxLost, SandboxUnavailable
from ctxbench.sandbox.link import guest_files
from ctxbench.sandbox.ownership import alive, owner
from ctxbench.sandbox.types import Environment, Report, digest_of, file_digests

REPOSITORY = "ctxbench-sandbox"
_LAST_BYTES = 16 * 1024
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_BUILDER = ("Step ", " ---> ", "Removing intermediate container")
_PROGRAM = re.compile(r"[a-z0-9][a-z0-9+.-]*(:[a-z0-9]+)?(=[A-Za-z0-9.+:~-]+)?")
OFFICIAL = "python:3.11-slim-bookworm"
"""Default base image. If it cannot be pulled, a local image built from Debian packages replaces it."""
HOME_MADE = "ctxbench-debian-base"
_PRINT_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"
BUILDS = "builds.lock"
_OWNER = "ctxbench.owner"
_STOPPED = ("created", "exited", "dead")


@functools.cache
def code() -> Mapping[str, bytes]:
    """Return the files that every image's build context contains, by path: the Dockerfile and the guest."""
    return {"Dockerfile": Path(__file__).with_name("Dockerfile").read_bytes(), **guest_files()}


def code_digest(files: Mapping[str, bytes]) -> str:
    """Return the SHA-256 of files and their paths."""
    return digest_of(file_digests(files))


def tag(environment: Environment, base: str) -> str:
    """Return the image name for an environment. `base` is the base image's id."""
    parts = [code_digest(code()), base, environment.installed, code_digest(environment.library)]
    return f"{REPOSITORY}:{digest_of(parts)[:32]}"


def key(attributes: Mapping[str, Any], environment: Environment) -> str:
    """Return the digest of everything a job sees in its box. `attributes` is the engine's data on the image."""
    labels = attributes["Config"]["Labels"]
    return digest_of([labels["ctxbench.key"], labels["ctxbench.wheels"], environment.digest])


def find(client: Client, name: str) -> dict[str, Any] | None:
    """Return the engine's data on an image; None if it does not exist."""
    with engine_faults(SandboxUnavailable, "docker"):
        try:
            attributes: dict[str, Any] = client.api.inspect_image(name)
        except Exception as error:
            if absent(error):
                return None
            raise
    return attributes


def build(client: Client, environment: Environment, base: str, folder: Path, report: Report) -> dict[str, Any]:
    """Build an image from the wheels in `folder`; return the engine's data on it. Only Debian packages need a network.

    Raises:
        SandboxUnavailable: if a step fails.
    """
    name = tag(environment, base)
    report(f"building the image of {environment.name}")
    labels = {
        "ctxbench.key": name,
        "ctxbench.name": environment.name,
        "ctxbench.wheels": digest_of(wheels.wheels(folder)),
    }
    with tempfile.TemporaryFile() as context, engine_faults(SandboxUnavailable, f"image of {environment.name}"):
        _pack(context, {**code(), **_library(environment)}, folder)
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
        raise SandboxUnavailable(
            "the engine built the image but cannot find it", where=name, cure="run the command again"
        )
    return image


def _follow(steps: Iterator[Mapping[str, Any]], environment: Environment) -> None:
    output = failed = ""
    # Read to the end of the stream in any case: only then is its connection released.
    for step in steps:
        failed = failed or str(step.get("error", ""))
        # These are parts of lines: a colour code starts a new line.
        output = (output + str(step.get("stream", "")))[-_LAST_BYTES:]
    if failed:
        raise fault(
            RuntimeError(f"the image cannot be built: {_reason(output)} ({failed.rpartition(' returned a ')[2]})"),
            SandboxUnavailable,
            f"image of {environment.name}",
            "check the names of its programs and the connection to the Debian mirror, and run the command again; "
            "or use --sandbox bubblewrap",
        )


def _reason(output: str) -> str:
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
    """Return the Debian packages, checked because they become part of a shell command."""
    for name in environment.programs:
        if not _PROGRAM.fullmatch(name):
            raise SandboxUnavailable(
                f"{name!r} is not a Debian package", where=environment.name, cure="correct the name"
            )
    return environment.programs


def _pack(into: IO[bytes], files: Mapping[str, bytes], folder: Path) -> None:
    """Write a build context. Equal inputs produce equal bytes, so the engine's layer cache applies."""
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
    """Return the id of the base image, or of its local replacement; None if the engine has neither."""
    for name in _base_names(base_image):
        with engine_faults(SandboxUnavailable, "docker"):
            try:
                return str(client.images.get(name).id)
            except Exception as error:
                if not absent(error):
                    raise
    return None


def base_id(client: Client, name: str, report: Report) -> str:
    """Return the id of the base image `name`, which is pulled if it is missing, or of its local replacement.

    Raises:
        SandboxUnavailable: if the image cannot be pulled and no local one replaces it.
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
                cure="set CTXBENCH_BASE_IMAGE to another image, or build one from Debian packages as root: "
                f"`{DEBIAN_BASE}`; or use --sandbox bubblewrap",
            ) from refused
        report(f"{name} cannot be pulled: using {HOME_MADE}")
        return image_id


def base_python(client: Client, base: str, cache: Path) -> str:
    """Return the Python version of a base image, e.g. ``3.11``. The image runs once; the result is cached.

    Raises:
        SandboxUnavailable: if the image has no Python, or cannot run.
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
            f"the image's Python version cannot be read ({error.what})",
            where="base image",
            cure="set CTXBENCH_BASE_IMAGE to an image with python3",
        ) from error
    version = output.decode("ascii", "replace").strip()
    note.parent.mkdir(parents=True, exist_ok=True)
    # Rename the file into place, because another process may be reading it.
    aside = note.with_name(f"{note.name}.{os.getpid()}.part")
    aside.write_text(version, encoding="utf-8")
    aside.replace(note)
    return version


def _base_names(name: str) -> tuple[str, ...]:
    return (name, HOME_MADE) if name == OFFICIAL else (name,)


def sweep(client: Client) -> None:
    """Remove stopped boxes of dead processes. On a remote engine, remove nothing: other machines may own boxes."""
    if "http+docker://" not in client.api.adapters:
        return
    with contextlib.suppress(SandboxError), engine_faults(SandboxLost, "docker"):
        for box in client.api.containers(all=True, filters={"label": _OWNER, "status": list(_STOPPED)}):
            if not alive(box["Labels"][_OWNER]):
                with contextlib.suppress(SandboxError), engine_faults(SandboxLost, box["Id"]):
                    # Without force: a box that was started meanwhile stays.
                    client.api.remove_container(box["Id"], v=True)
