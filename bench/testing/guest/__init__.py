"""What goes into a box to run Python tests: the package `ctxbench_pytest`, shipped as an environment's library.

Its modules import nothing of ours, only pytest and the standard library, and run on Python 3.11 and later.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

PACKAGE = "ctxbench_pytest"
RUN, COVER, COMPILE = f"{PACKAGE}:run_tests", f"{PACKAGE}:cover", f"{PACKAGE}:compiled"


@cache
def library() -> Mapping[str, bytes]:
    """Return the package's files by path, as `Environment.library` takes them."""
    folder = Path(__file__).parent / PACKAGE
    return MappingProxyType({f"{PACKAGE}/{path.name}": path.read_bytes() for path in sorted(folder.glob("*.py"))})
