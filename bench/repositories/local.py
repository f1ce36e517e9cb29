"""The ``local`` source: an archive, or a folder without caches and what ``.gitignore`` excludes. Links are dropped."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from pathspec import GitIgnoreSpec

from ctxbench.bench.errors import MachineFault
from ctxbench.bench.files import explained, sha256, sha256_file
from ctxbench.bench.home import Home
from ctxbench.bench.repositories.sources import Destination, LocalSource, Unreachable, check_sha256

_SKIPPED = frozenset({".git", ".hg", ".svn", "__pycache__", "node_modules", ".venv", ".tox", ".mypy_cache"})


def identity(source: LocalSource, home: Home) -> str | None:
    """Return the hash of a source's file or folder; None if the path does not exist."""
    if source.path.is_file():
        return sha256_file(source.path)
    return digest(source.path, home) if source.path.is_dir() else None


def digest(root: Path, home: Home) -> str:
    """Return a SHA-256 over the paths and contents of the files below `root` that `fetch` copies."""
    return _digest(root, files(root, home))


def _digest(root: Path, paths: Sequence[Path]) -> str:
    return sha256("".join(f"{path.as_posix()}\0{sha256_file(root / path)}\n" for path in paths))


def files(root: Path, home: Home) -> list[Path]:
    """Return the sorted paths, relative to `root`, of the files that `fetch` copies. `home` itself is left out."""
    regular = (place for place in _leaves(root, home) if not place.is_symlink() and place.is_file())
    return sorted(path.relative_to(root) for path in regular)


def _leaves(root: Path, home: Home) -> list[Path]:
    paths: list[Path] = []
    # A home folder inside the repository would otherwise be copied into itself.
    kept_out = home.root.resolve()
    with explained(root):
        rules = {root: _rules_above(root.resolve())}
        for folder, names, leaves in os.walk(root, onerror=_raise, followlinks=False):
            directory = Path(folder)
            ours = [*rules.pop(directory), *_rules_of(directory)]
            names[:] = [
                name
                for name in names
                if name not in _SKIPPED
                and (directory / name).resolve() != kept_out
                and not _ignored(directory / name, ours, "/")
            ]
            rules |= {directory / name: ours for name in names}
            links = [name for name in names if (directory / name).is_symlink()]
            places = (directory / leaf for leaf in (*leaves, *links))
            paths += [place for place in places if not _ignored(place, ours)]
    return paths


_Rules = tuple[Path, GitIgnoreSpec]


def _rules_of(folder: Path) -> Iterator[_Rules]:
    path = folder / ".gitignore"
    if path.is_file():
        yield folder, GitIgnoreSpec.from_lines(path.read_bytes().decode("utf-8", "replace").splitlines())


def _rules_above(root: Path) -> list[_Rules]:
    if (root / ".git").exists():
        return []
    top = next((folder for folder in root.parents if (folder / ".git").exists()), None)
    between = [folder for folder in reversed(root.parents) if top is not None and folder.is_relative_to(top)]
    rules: list[_Rules] = []
    for folder, inner in zip(between, [*between, root][1:], strict=True):
        rules += _rules_of(folder)
        if _ignored(inner, rules, "/"):
            return []
    return rules


def _ignored(path: Path, rules: Sequence[_Rules], end: str = "") -> bool:
    """Return whether a file, or a folder if `end` is a slash, is ignored. The innermost matching rules decide."""
    for folder, spec in reversed(rules):
        inner = path if path.is_relative_to(folder) else path.resolve()
        is_ignored = spec.check_file(f"{inner.relative_to(folder).as_posix()}{end}").include
        if is_ignored is not None:
            return is_ignored
    return False


def fetch(source: LocalSource, to: Destination) -> None:
    """Copy the source's folder, or unpack its archive, into the destination.

    Raises:
        Unreachable: if the path does not exist.
        InputFault: if the hash differs from the manifest's, or the archive is invalid.
        MachineFault: if a file changed while it was copied.
    """
    source_digest = identity(source, to.home)
    if source_digest is None:
        raise Unreachable("no such file or folder", where=str(source))
    if source.sha256:
        check_sha256(source.path.name, source.sha256, source_digest, where=str(source))
    if source.path.is_file():
        to.unpack(source.path, strip=True)
        return
    paths = files(source.path, to.home)
    for path in paths:
        target = to.tree / path
        with explained(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source.path / path, target, follow_symlinks=False)
    to.skip_links(sum(place.is_symlink() for place in _leaves(source.path, to.home)))
    if _digest(to.tree, paths) != source_digest:
        raise MachineFault("a file changed while it was copied", where=str(source), cure="run the same command again")


def _raise(error: OSError) -> None:
    raise error
