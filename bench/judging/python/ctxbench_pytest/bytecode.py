"""The bytecode of what tests import, their assertions rewritten: made once, so that no judgement has to."""

from __future__ import annotations

import base64
import contextlib
import py_compile
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from . import options

MAX_BYTES = 900 * 1024
"""Of all that is returned: the rest is compiled when it is imported."""
_CHECKED = b"\x03\0\0\0"
"""The flags of a file that holds for one source text only, whenever that was written."""


def compiled(arguments: dict[str, Any]) -> dict[str, str]:
    """Import the tests and return the bytecode files that came of it; see the package for arguments and result."""
    sys.dont_write_bytecode = False
    pytest.main(options.arguments([*arguments["arguments"], "--collect-only"], arguments["paths"]))
    files: dict[str, str] = {}
    room = MAX_BYTES
    for path, content in _files(Path.cwd()):
        if content[4:8] == _CHECKED:
            files[path] = base64.b64encode(zlib.compress(content)).decode()
            room -= len(files[path])
        if room < 0:
            break
    return files


def _files(root: Path) -> Iterator[tuple[str, bytes]]:
    """Yield path and content: of what pytest rewrote, which takes longest, then of all else that was imported."""
    rewritten = sorted(root.rglob(f"__pycache__/*-pytest-{pytest.__version__}.pyc"))
    for path in rewritten:
        yield path.relative_to(root).as_posix(), path.read_bytes()
    sources = {(path.parent.parent, path.name.partition(".")[0]) for path in rewritten}
    for module in list(sys.modules.values()):
        path = Path(getattr(module, "__file__", None) or root)
        if path.suffix == ".py" and path.is_relative_to(root) and (path.parent, path.stem) not in sources:
            with contextlib.suppress(py_compile.PyCompileError, OSError):
                mode = py_compile.PycInvalidationMode.CHECKED_HASH
                cached = Path(py_compile.compile(str(path), doraise=True, invalidation_mode=mode) or "")
                yield cached.relative_to(root).as_posix(), cached.read_bytes()
