"""Compiles the repository: its main classes, its test classes, our canary. Runs none of its code."""

from __future__ import annotations

import base64
import io
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .programs import JARS, OWN, class_path, compile_files

_FAULT = re.compile(r"^(.+?\.java):\d+: error: ", re.MULTILINE)
_ROUNDS = 8
_MOST_OUTPUT = 8 * 1024 * 1024
"""Bytes of what javac says: all of it, but of a repository that it says the same of without end."""
_TIME = (1980, 1, 1, 0, 0, 0)
TOOLS = Path(__file__).parent


def build(arguments: dict[str, Any]) -> dict[str, Any]:
    """Compile the repository.

    Args:
        arguments: ``main`` and ``test`` (source folders), ``encoding``, ``release``, ``jars``.

    Returns:
        ``main``, ``test`` and ``tools``: jars in base64; ``dropped``: test files that do not compile;
        ``messages``: what javac says of them; or ``fault``: what it says of the main classes, or of the tests if
        none compiles.
    """
    options = {"encoding": arguments["encoding"], "release": arguments["release"]}
    jars = arguments["jars"]
    main, test, tools = (OWN / name for name in ("main", "test", "tools"))
    sources = java_files(arguments["main"])
    status, output = compile_files(sources, main, on=class_path(jars=jars), most_output=_MOST_OUTPUT, **options)
    if status:
        return {"fault": output}
    copy_rest(arguments["main"], main)
    path = class_path(main, jars=[*jars, *JARS])
    compiled, dropped, messages = compile_tests(java_files(arguments["test"]), test, on=path, **options)
    if not compiled:
        return {"fault": messages or "holds no test"}
    copy_rest(arguments["test"], test)
    status, output = compile_files([str(TOOLS / "Canary.java")], tools, on=class_path(), **options)
    if status:
        return {"fault": output}
    jars_of = {place.name: base64.b64encode(jar(place)).decode() for place in (main, test, tools)}
    return {"dropped": dropped, "messages": messages, **jars_of}


def compile_tests(
    files: Sequence[str], to: Path, *, on: str, encoding: str, release: str
) -> tuple[bool, list[str], str]:
    """Compile what compiles; return whether anything does, the files that do not, and what javac says of them."""
    remaining, messages = list(files), ""
    dropped: list[str] = []
    for _ in range(_ROUNDS):
        if not remaining:
            break
        status, output = compile_files(
            remaining, to, on=on, encoding=encoding, release=release, heap=640, most_output=_MOST_OUTPUT
        )
        if not status:
            return True, sorted(dropped), messages
        messages += output
        broken = {name for name in _FAULT.findall(output) if name in remaining}
        if not broken:
            break
        dropped += sorted(broken)
        remaining = [name for name in remaining if name not in broken]
    return False, sorted(dropped), messages


def java_files(folders: Sequence[str]) -> list[str]:
    """Return the Java files below some folders, sorted."""
    paths = [path for folder in folders for path in Path(folder).rglob("*.java")]
    return sorted(path.as_posix() for path in paths if path.name not in ("module-info.java",))


def copy_rest(folders: Sequence[str], to: Path) -> None:
    """Copy what is no Java source beside the classes, as build tools do with some of it."""
    for folder in folders:
        for path in sorted(Path(folder).rglob("*")):
            if path.is_file() and path.suffix not in (".java", ".html"):
                place = to / path.relative_to(folder)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(path.read_bytes())


def jar(folder: Path) -> bytes:
    """Return a folder as a jar; equal folders give equal bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _TIME)
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, path.read_bytes())
    return out.getvalue()
