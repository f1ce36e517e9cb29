"""The ``local`` source: a folder or an archive on this machine, copied.

Of a folder links, caches and what its ``.gitignore`` files name are left out: secrets lie there. An archive is whole.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.files import explained, sha256, sha256_file
from ctxbench.bench.home import Home
from ctxbench.bench.repositories import git
from ctxbench.bench.repositories.sources import Destination, LocalSource, Unreachable, check_sha256, unpack

_SKIPPED = (".hg", ".svn", "__pycache__", "node_modules", ".venv", ".tox", ".mypy_cache")
_RULES = ("--exclude-per-directory=.gitignore", *(f"--exclude={name}/" for name in _SKIPPED))


def identity(source: LocalSource, home: Home) -> str | None:
    """Return the hash of what stands at the path now; None if nothing does."""
    if source.path.is_file():
        return sha256_file(source.path)
    return digest(source.path, home) if source.path.is_dir() else None


def digest(root: Path, home: Home) -> str:
    """Return the SHA-256 over the sorted (path, content) pairs of the files that a copy holds."""
    return _digest(root, files(root, home))


def _digest(root: Path, paths: Sequence[Path]) -> str:
    return sha256("".join(f"{path.as_posix()}\0{sha256_file(root / path)}\n" for path in paths))


def files(root: Path, home: Home) -> list[Path]:
    """List the regular files that a copy holds, relative and sorted; `home` itself is never one of them.

    Raises:
        InputFault: if a folder cannot be read.
        Unreachable: if git is not installed.
    """
    whole = root.resolve()
    top = next((folder for folder in (whole, *whole.parents) if (folder / ".git").exists()), whole)
    # Whoever names a folder that the repository around it leaves out as a whole wants it.
    listed = _listed(whole, top) or _listed(whole, whole)
    # A home folder inside the repository would otherwise be copied into itself.
    kept_out = home.root.resolve()
    places = (whole / path for path in listed if kept_out == whole or not (whole / path).is_relative_to(kept_out))
    return sorted(place.relative_to(whole) for place in places if not place.is_symlink() and place.is_file())


def _listed(root: Path, top: Path) -> list[str]:
    """Return the paths of the files in a folder that no ``.gitignore`` names, from the one in `top` on, tracked or not.

    Git reads the rules, with an empty repository of ours in place of the user's.
    """
    with tempfile.TemporaryDirectory() as scratch:
        bare = Path(scratch, "bare")
        git.git(bare, "init", "--quiet", "--bare", "--template=", str(bare), source=root)
        done = subprocess.run(
            ["git", "-C", root, "--git-dir", bare, "--work-tree", top, "ls-files", "-z", "--others", *_RULES],
            env=git.environment(),
            capture_output=True,
            check=False,
        )
    if done.stderr:
        what = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1]
        raise InputFault(what, where=str(root), cure="make all of it readable, or give another folder")
    paths: list[str] = []
    for path in filter(None, os.fsdecode(done.stdout).split("\0")):
        # A repository inside of it has rules of its own.
        paths += [path + inner for inner in _listed(root / path, root / path)] if path.endswith("/") else [path]
    return paths


def fetch(source: LocalSource, to: Destination) -> None:
    """Copy or unpack the source into the destination's tree; when it was published is not known.

    Raises:
        Unreachable: if nothing stands at the path.
        InputFault: if its hash is not the manifest's.
        MachineFault: if a file changed while it was copied.
    """
    source_digest = identity(source, to.home)
    if source_digest is None:
        raise Unreachable("no such file or folder", where=str(source))
    if source.sha256:
        check_sha256(source.path.name, source.sha256, source_digest, where=str(source))
    if source.path.is_file():
        dropped = unpack(source.path, to.tree, strip=True)
        if dropped:
            to.report(f"{source}: {dropped} links or devices left out")
        return
    paths = files(source.path, to.home)
    for path in paths:
        target = to.tree / path
        with explained(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source.path / path, target, follow_symlinks=False)
    if _digest(to.tree, paths) != source_digest:
        raise MachineFault("changed while it was copied", where=str(source), cure="run the same command again")
