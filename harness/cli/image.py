"""`ctxbench image`: the images of the sandbox, which take most of its space."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ctxbench.bench.home import Home
from ctxbench.harness.cli.options import base_image_option, home_option

if TYPE_CHECKING:
    from ctxbench.sandbox.docker.images import StoredImage

_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


@click.group()
def image() -> None:
    """List and remove the Docker images that code runs in."""


@image.command("list")
@base_image_option
@home_option
def list_images(base_image: str, home: Home) -> None:
    """List the images: size, age, when they were used last, and whether the present code still uses them.

    Images share what they have in common: the sizes do not add up.
    """
    from ctxbench.sandbox.docker.engine import connected
    from ctxbench.sandbox.docker.images import stored

    with connected() as client:
        images = stored(client, home.cache / "sandbox" / "docker", base_image)
    whole = [stored_image for stored_image in images if stored_image.tag]
    if not whole:
        click.echo("no images yet; they are built when function samples are built, verified or run", err=True)
    for stored_image in whole:
        click.echo(_line(stored_image))
    if stages := len(images) - len(whole):
        click.echo(f"{stages} stages of builds besides; `ctxbench image prune` removes them", err=True)


@image.command()
@click.option(
    "--all", "everything", is_flag=True, help="Remove every image of ctxbench; they are built again when needed."
)
@base_image_option
@home_option
def prune(everything: bool, base_image: str, home: Home) -> None:
    """Remove the images that the present code has no use for, and what builds left behind.

    Images that are not ctxbench's stay, the base image among them.
    """
    from ctxbench.sandbox.docker import images
    from ctxbench.sandbox.docker.engine import connected

    with connected() as client:
        gone, reasons = images.prune(client, home.cache / "sandbox" / "docker", base_image, everything=everything)
    whole = [stored_image for stored_image in gone if stored_image.tag]
    for stored_image in whole:
        click.echo(f"removed {_name(stored_image)}")
    for line in reasons:
        click.echo(f"kept {line}", err=True)
    click.echo(f"{len(whole)} images and {len(gone) - len(whole)} stages of builds removed, {len(reasons)} kept")


def _line(stored_image: StoredImage) -> str:
    state = f"{stored_image.boxes} boxes" if stored_image.boxes else "current" if stored_image.current else "of no use"
    used = "never" if stored_image.idle is None else f"{_time(stored_image.idle)} ago"
    built = f"{_time(stored_image.age)} ago"
    return f"{_name(stored_image):50} {stored_image.size / 1e6:7.0f} MB  built {built}  used {used}  {state}"


def _name(stored_image: StoredImage) -> str:
    return f"{stored_image.tag.partition(':')[2][:12]} {stored_image.name}"


def _time(seconds: float) -> str:
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= size), _UNITS[-1])
    return f"{max(0.0, seconds) / size:.0f} {unit}"
