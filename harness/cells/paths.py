"""Files of this machine that cells see, those of Python and the strategy's, and copies of answers that they must not.

The trusted side works them out, and imports no package for it.
"""

from __future__ import annotations

import contextlib
import glob
import importlib.util
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import entry_points
from pathlib import Path

import ctxbench
from ctxbench.bench import spec as specs
from ctxbench.bench.errors import InputFault
from ctxbench.sandbox.bubblewrap import host

_GROUP = "ctxbench.strategies"
_ETC = ("localtime", "mime.types")
"""Files of ``/etc`` that a program needs beside those in a box."""
_SITES = ("site-packages", "dist-packages")
_SYSTEM = ("/usr/lib/python3*/*-packages", "/usr/local/lib/python3*/*-packages")
REFERENCE_FOLDER = Path(__file__).parents[1] / "reference"
"""The shipped results: what other strategies scored, sample by sample, was measured with the answers."""
SHIPPED_ANSWERS = (REFERENCE_FOLDER, Path(specs.__file__).parent / "repos" / "codereval-tests")
"""What ctxbench ships that says more than a strategy may know: those results, and tests of CoderEval's functions."""
_CACHES = ("~/.cache/pip", "~/.cache/uv")


def visible_paths() -> list[str]:
    """Return the paths that every cell needs: the system's programs, the interpreter, the importable packages."""
    paths = [*host.SYSTEM, *map(str, host.etc()), *(f"/etc/{name}" for name in _ETC)]
    paths += [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, *map(str, _imported())]
    paths += os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    return _with_real(path for path in paths if path)


def check_unseen(path: Path) -> None:
    """Refuse a path for answers that strategies could read there.

    Raises:
        InputFault: if it lies in one of `visible_paths`.
    """
    real = Path(os.path.realpath(path))
    if seen := next((folder for folder in visible_paths() if real.is_relative_to(folder)), None):
        raise InputFault(
            f"would hold the answers where strategies can read them, below {seen}",
            where=str(path),
            cure="write it elsewhere",
        )


def beside(spec: str) -> list[str]:
    """Return the folders of the strategy files that a spec names, at any depth: a file may import its neighbours.

    A missing file and an unreadable spec have none: the cell says what is wrong.
    """
    if "@" not in spec:
        return []
    return _with_real(str(path.parent) for file in _files(spec) for path in (file, Path(os.path.realpath(file))))


def private(path: str) -> bool:
    """Return whether others than its owner cannot read a path, or a module that lies in it."""
    try:
        modules = [entry.path for entry in os.scandir(path) if entry.name.endswith(".py")]
        return not _readable_by_others(path) or not all(map(_readable_by_others, modules))
    except NotADirectoryError:
        return not _readable_by_others(path)
    except OSError:
        return True


def _readable_by_others(path: str) -> bool:
    mode = Path(path).stat().st_mode
    needed = 0o5 if stat.S_ISDIR(mode) else 0o4
    return mode & needed == needed


def _files(spec: str) -> Iterator[Path]:
    try:
        parsed = specs.parse(spec)
    except InputFault:
        return
    path, at, _ = parsed.name.rpartition("@")
    if at:
        with contextlib.suppress(OSError, RuntimeError, ValueError):
            file = Path(path).expanduser().absolute()
            if file.is_file():
                yield file
    for value in parsed.arguments.values():
        if isinstance(value, str):
            yield from _files(value)


def _imported() -> Iterator[Path]:
    for entry in sys.path:
        yield Path(entry).absolute()
    for folder in map(Path, ctxbench.__path__):
        yield folder
        # These may be links to other places.
        yield from (folder / room for room in ("bench", "harness", "sandbox", "strategies"))
    # Packages that are installed from where they are developed may be in no folder of the path.
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("__editable__"):
            yield from map(Path, getattr(module, "MAPPING", {}).values())
    for point in entry_points(group=_GROUP):
        with contextlib.suppress(ImportError, ValueError):
            module_spec = importlib.util.find_spec(point.module.partition(".")[0])
            if module_spec is not None:
                yield from map(Path, module_spec.submodule_search_locations or [module_spec.origin or ""])


def _with_real(paths: Iterable[str]) -> list[str]:
    """Return the existing paths, in order, each also with its links resolved."""
    both = [form for path in paths for form in (os.path.normpath(path), os.path.realpath(path))]
    return [path for path in dict.fromkeys(both) if path != "/" and Path(path).is_absolute() and Path(path).exists()]


def copies(files: Iterable[str]) -> list[Path]:
    """Return installed packages that hold one of the files, and the caches of pip and uv: to be hidden from cells.

    A repository that is also installed here holds every answer about itself. A strategy that imports such a package
    then fails with a message.

    Args:
        files: paths inside the benchmark's repositories; ``src/rich/text.py`` is looked for as
            ``src/rich/text.py``, ``rich/text.py`` and ``text.py`` in every folder of packages.
    """
    sites = [(site, {entry.name for entry in site.iterdir()}) for site in _sites()]
    paths = {Path(cache).expanduser() for cache in _CACHES if Path(cache).expanduser().is_dir()}
    for file in set(files):
        parts = Path(file).parts
        for start, first in enumerate(parts):
            paths |= {
                site / first for site, names in sites if first in names and site.joinpath(*parts[start:]).is_file()
            }
    return sorted(paths)


def _sites() -> list[Path]:
    candidates = {Path(entry) for entry in sys.path if Path(entry).name in _SITES}
    candidates |= {Path(match) for pattern in _SYSTEM for match in glob.glob(pattern)}  # noqa: PTH207 - absolute patterns
    return sorted(site for site in candidates if site.is_dir())
