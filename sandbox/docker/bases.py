"""The image that ours are built on: pulled where a registry can be reached, else made from Debian packages."""

from __future__ import annotations

import os
from pathlib import Path

from ctxbench.sandbox.docker.engine import Client, absent, engine_faults
from ctxbench.sandbox.errors import SandboxUnavailable
from ctxbench.sandbox.owners import owner
from ctxbench.sandbox.types import Report

OFFICIAL = "python:3.11-slim-bookworm"
HOME_MADE = "ctxbench-debian-base"
"""What scripts/debian_base.sh makes."""
_PRINT_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


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
                "scripts/debian_base.sh; or use --sandbox bubblewrap",
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
