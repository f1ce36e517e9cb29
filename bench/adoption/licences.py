"""Which licence a project's files name, as an SPDX expression. Pure."""

from __future__ import annotations

import email
import re
import tomllib
from collections.abc import Mapping
from posixpath import basename

UNKNOWN = "LicenseRef-unknown"
_VERSIONED = r"BSD-\d-Clause(-[A-Za-z-]+)?|[A-Za-z][A-Za-z0-9-]*-\d+(\.\d+)+[a-c]?(\+|-[A-Za-z-]+)?"
"""Identifiers of SPDX with a version; people write such ones otherwise: ``GPLv3``, ``Apache2``, ``BSD-3``."""
_IDENTIFIER = rf"(MIT(-0)?|ISC|Unlicense|0BSD|Zlib|X11|W3C|{_VERSIONED})( WITH [A-Za-z0-9.-]+)?"
_SPDX = re.compile(rf"{_IDENTIFIER}( (AND|OR) {_IDENTIFIER})*")
_FILE = re.compile(r"(licen[cs]e|copying|unlicense|notice)([._-].*)?$", re.IGNORECASE)
_NAMES = (
    ("Apache-2.0", r"apache.{0,40}(2|$)|^asl"),
    ("AGPL-3.0-or-later", r"affero|agpl"),
    ("LGPL-3.0-or-later", r"(lesser|library) general public.*3|lgpl.{0,4}3"),
    ("LGPL-2.1-or-later", r"(lesser|library) general public|lgpl"),
    ("GPL-2.0-or-later", r"general public.{0,60}\b(version )?2|gpl.{0,4}2"),
    ("GPL-3.0-or-later", r"general public|gpl"),
    ("MPL-2.0", r"mozilla public|mpl"),
    ("EPL-2.0", r"eclipse public.*2|epl.?2"),
    ("EPL-1.0", r"eclipse public|epl"),
    ("BSD-2-Clause", r"bsd.{0,4}2|simplified bsd|2.clause"),
    ("BSD-3-Clause", r"bsd"),
    ("MIT", r"\bmit\b|expat"),
    ("ISC", r"\bisc\b"),
    ("PSF-2.0", r"python software foundation|psf"),
    ("Unlicense", r"unlicense"),
    ("ZPL-2.1", r"zope public"),
    ("CC0-1.0", r"cc0"),
)
"""SPDX identifier -> what a name of that licence matches, the narrow ones first."""
_TEXTS = (
    ("Apache-2.0", r"apache license.{0,200}version 2\.0"),
    ("AGPL-3.0-or-later", r"gnu affero general public license"),
    ("LGPL-3.0-or-later", r"gnu lesser general public license.{0,60}version 3"),
    ("LGPL-2.1-or-later", r"gnu lesser general public license"),
    ("GPL-2.0-or-later", r"gnu general public license.{0,60}version 2"),
    ("GPL-3.0-or-later", r"gnu general public license"),
    ("MPL-2.0", r"mozilla public license.{0,30}2\.0"),
    ("EPL-2.0", r"eclipse public license.{0,10}v? ?2\.0"),
    ("EPL-1.0", r"eclipse public license"),
    ("BSD-3-Clause", r"redistribution and use in source and binary forms.*(neither the name|names? of)"),
    ("BSD-2-Clause", r"redistribution and use in source and binary forms"),
    ("MIT", r"permission is hereby granted, free of charge"),
    ("ISC", r"permission to use, copy, modify,? and/?(or)? distribute this software"),
    ("Unlicense", r"free and unencumbered software released into the public domain"),
    ("PSF-2.0", r"python software foundation license"),
)


def licence(files: Mapping[str, str]) -> str:
    """Return the SPDX expression of a project's licence, `UNKNOWN` if nothing tells.

    Args:
        files: path -> text of its metadata and licence files.
    """
    names = [*_stated(files)]
    for name in names:
        if _SPDX.fullmatch(re.sub("[()]", "", name)) and name.count("(") == name.count(")"):
            return name
    for name in names:
        identifier = _named(name)
        if identifier:
            return identifier
    for path in sorted(files, key=lambda path: (path.count("/"), path)):
        if _FILE.match(basename(path)) and path.count("/") < 2:
            text = " ".join(files[path].lower().split())
            identifier = next((spdx for spdx, form in _TEXTS if re.search(form, text[:20_000])), "")
            if identifier:
                return identifier
    return UNKNOWN


def _stated(files: Mapping[str, str]) -> list[str]:
    """Return the names of licences that metadata state, the most exact first."""
    names: list[str] = []
    try:
        data = tomllib.loads(files.get("pyproject.toml", ""))
    except (ValueError, RecursionError):
        data = {}
    tool = data.get("tool")
    for table in (data.get("project"), tool.get("poetry") if isinstance(tool, dict) else None):
        if not isinstance(table, dict):
            continue
        stated = table.get("license")
        text = stated.get("text") if isinstance(stated, dict) else stated
        names += [text] if isinstance(text, str) else []
        classifiers = table.get("classifiers")
        listed = classifiers if isinstance(classifiers, list) else []
        names += [str(item) for item in listed if str(item).startswith("License ::")]
    message = email.message_from_string(files.get("PKG-INFO", ""))
    names += [str(value) for key in ("License-Expression", "License") for value in message.get_all(key, [])]
    names += [str(item) for item in message.get_all("Classifier", []) if str(item).startswith("License ::")]
    match = re.search(r"<licenses>.*?<name>\s*([^<]+?)\s*</name>", files.get("pom.xml", ""), re.DOTALL)
    names += [match.group(1)] if match else []
    for path in ("setup.cfg", "setup.py"):
        names += re.findall(r"""(?:^|[\s,(])license\s*=\s*["']?([^"'\n,)]+)""", files.get(path, ""), re.MULTILINE)
        names += re.findall(r"License ::[^\"'\n]+", files.get(path, ""))
    return [name.strip() for name in names if len(name) < 200]


def _named(name: str) -> str:
    last = name.rpartition("::")[2].strip().lower()
    return next((identifier for identifier, form in _NAMES if re.search(form, last)), "")
