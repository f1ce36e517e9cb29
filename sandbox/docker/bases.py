"""The image that ours are built on: pulled where a registry can be reached, else made from Debian packages."""

from __future__ import annotations

import os
from pathlib import Path

from ctxbench.sandbox.docker.engine import Client, absent, told
from ctxbench.sandbox.errors import SandboxUnavailable
from ctxbench.sandbox.owners import owner
from ctxbench.sandbox.types import Report

OFFICIAL = "python:3.11-slim-bookworm"
HOME_MADE = "ctxbench-debian-base"
"""What scripts/debian_base.sh makes."""
_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


def local(client: Client, wanted: str) -> str | None:
    """Return the id of the base image that is here, the wanted one first; None if there is none."""
    for name in _names(wanted):
        with told(SandboxUnavailable, "docker"):
            try:
                return str(client.images.get(name).id)
            except Exception as error:
                if not absent(error):
                    raise
    return None


def get(client: Client, wanted: str, report: Report) -> str:
    """Return the id of the base image; pull it where it is not here.

    Raises:
        SandboxUnavailable: if it can neither be pulled nor replaced by the home-made one.
    """
    with told(SandboxUnavailable, "docker"):
        try:
            return str(client.images.get(wanted).id)
        except Exception as error:
            if not absent(error):
                raise
    report(f"pulling the image {wanted}")
    try:
        with told(SandboxUnavailable, "docker"):
            return str(client.images.pull(wanted).id)
    except SandboxUnavailable as refused:
        found = local(client, wanted)
        if found is None:
            raise SandboxUnavailable(
                f"the image cannot be pulled ({refused.what})",
                where=wanted,
                cure="name one that can in CTXBENCH_BASE_IMAGE, or make one from Debian packages as root: "
                "scripts/debian_base.sh; or use --sandbox bubblewrap",
            ) from refused
        report(f"{wanted} cannot be pulled: using {HOME_MADE}")
        return found


def python(client: Client, base: str, cache: Path) -> str:
    """Return the version of a base image's Python, e.g. ``3.11``; asked once an image.

    Raises:
        SandboxUnavailable: if it has none.
    """
    known = cache / "python" / base.partition(":")[2]
    if known.is_file():
        return known.read_text(encoding="utf-8")
    try:
        with told(SandboxUnavailable, base[:19]):
            said: bytes = client.containers.run(
                base,
                ["python3", "-c", _VERSION],
                entrypoint=[],
                remove=True,
                network_mode="none",
                labels={"ctxbench.owner": owner()},
            )
    except SandboxUnavailable as error:
        raise SandboxUnavailable(
            f"its Python cannot be asked ({error.what})", where="base image", cure="choose one that has python3"
        ) from error
    version = said.decode("ascii", "replace").strip()
    known.parent.mkdir(parents=True, exist_ok=True)
    # Renamed into place: another process may be reading.
    aside = known.with_name(f"{known.name}.{os.getpid()}.part")
    aside.write_text(version, encoding="utf-8")
    aside.replace(known)
    return version


def _names(wanted: str) -> tuple[str, ...]:
    return (wanted, HOME_MADE) if wanted == OFFICIAL else (wanted,)
