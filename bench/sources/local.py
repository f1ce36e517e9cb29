"""The ``local`` source: a folder or an archive on this machine, copied. Links and caches are left out."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from bench.errors import MachineFault
from bench.files import explained, sha256, sha256_file
from bench.home import Home
from bench.sources.archive import unpack
from bench.sources.base import Destination, LocalSource, Unreachable, check_sha256

_SKIPPED = frozenset({".git", ".hg", ".svn", "__pycache__", "node_modules", ".venv", ".tox", ".mypy_cache"})


def identity(source: LocalSource, home: Home) -> str | None:
    """Return the hash of what stands at the path now; None if nothing does."""
    if source.path.is_file():
        return sha256_file(source.path)
    return digest(source.path, home) if source.path.is_dir() else None


def digest(root: Path, home: Home) -> str:
    """Return the SHA-256 over the sorted (path, content) pairs of a folder's regular files."""
    return sha256("".join(f"{path.as_posix()}\0{sha256_file(root / path)}\n" for path in files(root, home)))


def files(root: Path, home: Home) -> list[Path]:
    """List the regular files that a copy holds, relative and sorted; `home` itself is never one of them."""
    found: list[Path] = []
    # A home folder inside the repository would otherwise be copied into itself.
    kept_out = home.root.resolve()
    with explained(root):
        for folder, names, leaves in os.walk(root, onerror=_raise, followlinks=False):
            here = Path(folder)
            names[:] = [n for n in names if n not in _SKIPPED and (here / n).resolve() != kept_out]
            found += [here / leaf for leaf in leaves if not (here / leaf).is_symlink() and (here / leaf).is_file()]
    return sorted(path.relative_to(root) for path in found)


def fetch(source: LocalSource, to: Destination) -> None:
    """Copy or unpack the source into the destination's tree.

    Raises:
        Unreachable: if nothing stands at the path.
        InputFault: if its hash is not the manifest's.
        MachineFault: if a file changed while it was copied.
    """
    found = identity(source, to.home)
    if found is None:
        raise Unreachable("no such file or folder", where=str(source))
    if source.sha256:
        check_sha256(source.path.name, source.sha256, found, where=str(source))
    if source.path.is_file():
        dropped = unpack(source.path, to.tree, strip=True)
        if dropped:
            to.report(f"{source}: {dropped} links or devices left out")
        return
    for path in files(source.path, to.home):
        target = to.tree / path
        with explained(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source.path / path, target, follow_symlinks=False)
    if digest(to.tree, to.home) != found:
        raise MachineFault("changed while it was copied", where=str(source), cure="run the same command again")


def _raise(error: OSError) -> None:
    raise error
