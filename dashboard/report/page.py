"""Render a report as one HTML file: everything escaped, nothing loaded, no script."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from ctxbench.dashboard.report.bars import WIDTH
from ctxbench.dashboard.report.model import Report

_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def html(report: Report) -> str:
    """Return the file's text; equal reports give equal texts."""
    css = _read("report.css")
    digest = base64.b64encode(hashlib.sha256(css.encode("utf-8")).digest()).decode("ascii")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_printable
    )
    template = environment.from_string(_read("report.html"))
    # Our own style sheet is the only text that is not escaped; its digest is all that the page allows.
    return template.render(report=report, css=Markup(css), style=digest, width=WIDTH)  # noqa: S704 - not from data


def _printable(value: object) -> object:
    """Replace characters that HTML does not allow, of any text that is written."""
    return _UNPRINTABLE.sub("\ufffd", value) if type(value) is str else value


def _read(name: str) -> str:
    return files("ctxbench.dashboard.report").joinpath(name).read_text(encoding="utf-8")
