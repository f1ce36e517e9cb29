"""HTML of pictures: everything escaped, nothing loaded, no script, no style but that of `pictures.css`."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ctxbench.bench.visible import visible
from ctxbench.dashboard.pictures.curves import HEIGHT, WIDTH, drawing
from ctxbench.harness.leaderboard.sections import Curves

_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def environment(package: str) -> Environment:
    """Return what renders the templates of a package: it escapes, and replaces what HTML does not allow."""
    templates = Environment(
        loader=PackageLoader(package, ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_printable,
    )
    templates.filters["visible"] = visible
    return templates


def _printable(value: object) -> object:
    """Replace characters that HTML does not allow, of any text that is written."""
    return _UNPRINTABLE.sub("\ufffd", value) if type(value) is str else value


@cache
def css() -> str:
    """Return the style sheet of all pictures."""
    return files(__package__).joinpath("pictures.css").read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    return environment(str(__package__))


def drawn(picture: Curves) -> Markup:
    """Return a picture."""
    template = _environment().get_template("curves.html")
    # Escaped by the template.
    return Markup(  # noqa: S704
        template.render(picture=picture, drawing=drawing(picture), table=picture.table(), width=WIDTH, height=HEIGHT)
    )
