"""Images by what they hold: the same environment, code and base image are built once.

An image is tagged with the digest of everything that it is built from. The tree of a repository is in
none: it holds the answers.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import posixpath
import re
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from ctxbench import sandbox
from ctxbench.sandbox import wheels
from ctxbench.sandbox.docker.engine import Client, absent, engine_faults, fault
from ctxbench.sandbox.errors import SandboxUnavailable
from ctxbench.sandbox.types import Environment, Report

REPOSITORY = "ctxbench-sandbox"
_LAST_BYTES = 16 * 1024
"""Characters of a build's output that a fault is looked for in."""
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_BUILDER = ("Step ", " ---> ", "Removing intermediate container")
"""How lines of the builder's begin."""
_PROGRAM = re.compile(r"[a-z0-9][a-z0-9+.-]*(:[a-z0-9]+)?(=[A-Za-z0-9.+:~-]+)?")
"""A Debian package, maybe with its architecture and version."""


@functools.cache
def code() -> Mapping[str, bytes]:
    """Return the files that every image is built from, by their path in the build's context.

    Read once: a guest that is edited while a process runs would not fit what that process has imported.
    """
    root = Path(sandbox.__file__).resolve().parent
    paths = [root / "__init__.py", root / "errors.py", *sorted((root / "guest").rglob("*"))]
    files = {
        f"sandbox/{path.relative_to(root).as_posix()}": path.read_bytes()
        for path in paths
        if path.is_file() and "__pycache__" not in path.parts
    }
    return {"Dockerfile": (root / "docker" / "Dockerfile").read_bytes(), **files}


def code_digest(files: Mapping[str, bytes]) -> str:
    """Return the SHA-256 of files by path."""
    return _digest([[path, hashlib.sha256(files[path]).hexdigest()] for path in sorted(files)])


def tag(environment: Environment, base: str) -> str:
    """Return the name of an environment's image on a base image of that id."""
    parts = [code_digest(code()), base, environment.installed, code_digest(environment.library)]
    return f"{REPOSITORY}:{_digest(parts)[:32]}"


def key(attributes: Mapping[str, Any], environment: Environment) -> str:
    """Return the digest of everything that a job finds in its box: the image, the wheels in it, the environment."""
    labels = attributes["Config"]["Labels"]
    return _digest([labels["ctxbench.key"], labels["ctxbench.wheels"], environment.digest])


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
        "ctxbench.wheels": _digest(wheels.wheels(folder)),
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


def _digest(parts: list[Any]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
