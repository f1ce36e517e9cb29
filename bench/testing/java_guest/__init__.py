"""What goes into a box to run Java tests: the package `ctxbench_java`, shipped as an environment's library.

Its modules import nothing of ours, only the standard library; they start `javac` and JUnit's console launcher.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

PACKAGE = "ctxbench_java"
BUILD, SURVEY, JUDGE = (f"{PACKAGE}:{name}" for name in ("build", "survey", "judge"))
_SHIPPED = (".py", ".java", ".policy")


@cache
def library() -> Mapping[str, bytes]:
    """Return the package's files by path, as `Environment.library` takes them."""
    folder = Path(__file__).parent / PACKAGE
    files = sorted(path for path in folder.iterdir() if path.suffix in _SHIPPED)
    return MappingProxyType({f"{PACKAGE}/{path.name}": path.read_bytes() for path in files})
