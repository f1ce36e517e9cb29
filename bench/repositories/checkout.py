"""Checkouts: fetched repositories as read-only folders ``repos/<name>/<key>/``, complete or absent."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.files import dump_line, explained, locked, sha256, sha256_file, write_atomic
from ctxbench.bench.home import Home
from ctxbench.bench.repositories import debian, git, local, pypi
from ctxbench.bench.repositories.manifest import RepoManifest
from ctxbench.bench.repositories.sources import (
    DebianSource,
    Destination,
    GitSource,
    LocalSource,
    PypiSource,
    Report,
    Source,
    Unreachable,
)

_FETCH: Mapping[type[Source], Callable[[Any, Destination], date | None]] = {
    GitSource: git.fetch,
    PypiSource: pypi.fetch,
    DebianSource: debian.fetch,
    LocalSource: local.fetch,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """A fetched version of a repository."""

    name: str
    root: Path
    key: str
    source: str
    published: date | None = None
    """Day of publication in UTC (for git, of the commit); None if the source does not state it."""
    left_out: tuple[str, ...] = ()
    """Parts of the source that are missing here, such as ``3 links``."""


def find(manifest: RepoManifest, home: Home) -> Checkout | None:
    """Return the checkout of the manifest's first source that has one; None if no source has one."""
    for source in manifest.sources:
        key = _key(manifest, source, home)
        checkout = cached_checkout(home, manifest.name, key) if key else None
        if checkout:
            return checkout
    return None


def cached_checkout(home: Home, name: str, key: str) -> Checkout | None:
    """Return the complete checkout with this key, or None."""
    root, marker = home.repos / name / key, _marker(home.repos / name, key)
    try:
        record = json.loads(marker.read_text(encoding="utf-8"))
        source = str(record["source"])
        published = date.fromisoformat(record["published"]) if record.get("published") else None
        left_out = tuple(map(str, record["left_out"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    checkout = Checkout(name=name, root=root, key=key, source=source, published=published, left_out=left_out)
    return checkout if root.is_dir() else None


def fetch(manifest: RepoManifest, home: Home, *, report: Report) -> Checkout:
    """Return a repository's checkout; if it is missing, fetch it from the first source that responds.

    Concurrent calls are safe: only one of them fetches.

    Raises:
        InputFault: if a source has a wrong hash, invalid archive, no file or no folder `source_dir`; nothing is kept.
        MachineFault: if no source can be reached, or the disk is full.
    """
    checkout = find(manifest, home)
    if checkout:
        return checkout
    with locked(home.repos / manifest.name) as folder:
        checkout = find(manifest, home)
        if checkout:
            return checkout
        reasons: list[str] = []
        for source in manifest.sources:
            report(f"{manifest.name}: fetching {source}")
            try:
                return _bring(manifest, source, home, folder, report)
            except Unreachable as error:
                reasons.append(f"{source} ({error.what})")
                report(f"{manifest.name}: cannot be fetched from {source}: {error.what}")
    raise MachineFault(
        f"no source can be reached: {', '.join(reasons)}",
        where=manifest.name,
        cure='check the network, or copy the manifest and add a [[source]] with kind = "local" and the path of a copy',
    )


def _bring(manifest: RepoManifest, source: Source, home: Home, folder: Path, report: Report) -> Checkout:
    key = _key(manifest, source, home)
    if key is None:
        raise Unreachable("no such file or folder", where=str(source))
    root, part = folder / key, folder / f".{key}.part"
    _remove(part)
    # A fetch that was killed between the two steps left a folder without its marker.
    _remove(root)
    try:
        with explained(part):
            (part / "tree").mkdir(parents=True)
            (part / "scratch").mkdir()
            to = Destination(tree=part / "tree", scratch=part / "scratch", home=home, report=report)
            published = _FETCH[type(source)](source, to)
            day = published.isoformat() if published else ""
            record = {"published": day, "left_out": to.left_out, **_sealed(to.tree, manifest)}
            to.tree.rename(root)
            root.chmod(0o555)
        if to.left_out:
            report(f"{manifest.name}: left out: {', '.join(to.left_out)}")
        write_atomic(_marker(folder, key), dump_line({"name": manifest.name, "source": str(source), **record}))
    except BaseException:
        _remove(root)
        raise
    finally:
        _remove(part)
    left_out = tuple(to.left_out)
    return Checkout(name=manifest.name, root=root, key=key, source=str(source), published=published, left_out=left_out)


def _key(manifest: RepoManifest, source: Source, home: Home) -> str | None:
    if isinstance(source, LocalSource):
        identity = local.identity(source, home)
    else:
        identity = source.commit if isinstance(source, GitSource) else source.sha256
    return f"{manifest.version}-{identity[:10]}" if identity else None


def _sealed(tree: Path, manifest: RepoManifest) -> dict[str, object]:
    if not (tree / manifest.source_dir).is_dir():
        raise InputFault(
            f"the files contain no folder {manifest.source_dir!r}", where=manifest.name, cure="correct source_dir"
        )
    lines, size = [], 0
    for folder, _, leaves in os.walk(tree):
        for leaf in leaves:
            path = Path(folder, leaf)
            lines.append(f"{path.relative_to(tree).as_posix()}\0{sha256_file(path)}\n")
            size += path.stat().st_size
            path.chmod(0o444)
        if folder != str(tree):
            Path(folder).chmod(0o555)
    if not lines:
        raise InputFault(
            "the source contains no file", where=manifest.name, cure="check the [[source]] in the manifest"
        )
    return {"digest": sha256("".join(sorted(lines))), "files": len(lines), "bytes": size}


def _marker(folder: Path, key: str) -> Path:
    return folder / f"{key}.json"


def _remove(path: Path) -> None:
    if not path.exists():
        return
    with explained(path):
        for folder, _, _ in os.walk(path):
            Path(folder).chmod(0o755)
        shutil.rmtree(path)
