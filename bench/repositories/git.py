"""Git: the files of one commit, exactly as they are stored, and the history of their lines.

The user's and the machine's git configuration, hooks, attributes and filters have no say, so that a
commit gives the same files everywhere; certificates and proxies of the environment are honoured.

A `History` tells which lines of a repository were added after a day or a commit, and the day of each. `git blame` tells
who wrote a line. White space, and lines that were moved or copied from a file of the same commit, count as what they
were: a line is as old as its text. Its day is the earlier one of writing and committing, in UTC, so that neither a
rebase nor a wrong clock makes old code look new. Everything is asked of a bare copy of the whole history.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import Path

from ctxbench.bench.dates import read_date
from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import explained
from ctxbench.bench.home import Home
from ctxbench.bench.repositories.manifest import RepoManifest
from ctxbench.bench.repositories.sources import (
    Destination,
    GitSource,
    LocalSource,
    Report,
    Unreachable,
    run_program,
    unpack,
)

_SECONDS = 900.0
_PASSED_ON = ("GIT_SSL_", "GIT_HTTP_", "GIT_PROXY_", "GIT_SSH")
# These win over the .gitattributes of the tree: `git archive` must leave nothing out (many projects mark
# their tests export-ignore) and rewrite nothing.
_ATTRIBUTES = "* -export-ignore -export-subst -text !eol -ident !filter !working-tree-encoding\n"


def fetch(source: GitSource, to: Destination) -> date:
    """Fetch the commit, depth one, and lay out its files; submodules are left out.

    Returns:
        The day (UTC) of the commit.

    Raises:
        Unreachable: if git is not installed, the server cannot be reached or does not have the commit.
    """
    bare, archive = to.scratch / "bare", to.scratch / "tree.tar"
    fetch_commit(bare, source.url, source.commit, "--depth=1", source=source)
    git(bare, "archive", "--format=tar", f"--output={archive}", source.commit, source=source)
    dropped = unpack(archive, to.tree, strip=False)
    if dropped:
        to.report(f"{source}: {dropped} links left out")
    seconds = int(git(bare, "show", "--no-patch", "--format=%ct", source.commit, source=source))
    return datetime.fromtimestamp(seconds, UTC).date()


def fetch_commit(bare: Path, url: str, commit: str, *options: str, source: object) -> None:
    """Make a bare repository and fetch a commit into it, with its history unless the options say otherwise.

    Raises:
        Unreachable: if git is not installed, the server cannot be reached or does not have the commit.
    """
    git(bare, "init", "--quiet", "--bare", "--template=", str(bare), source=source)
    (bare / "info").mkdir(exist_ok=True)
    (bare / "info" / "attributes").write_text(_ATTRIBUTES, encoding="utf-8")
    how = ("--quiet", "--no-tags", "--no-recurse-submodules", *options)
    git(bare, "fetch", *how, "--", url, commit, source=source)


def git(bare: Path, *arguments: str, source: object) -> str:
    """Run git on a bare repository and return what it prints.

    Args:
        bare: the repository.
        arguments: of git.
        source: for messages.

    Raises:
        Unreachable: if git is not installed, or fails.
    """
    return run_program(
        ["git", "-c", "core.hooksPath=/dev/null", "--git-dir", str(bare), *arguments],
        folder=bare.parent,
        environment=environment(),
        seconds=_SECONDS,
        source=source,
    )


def environment() -> dict[str, str]:
    """Return the environment for a git that nobody's configuration has a say in, and that asks nothing."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k.startswith(_PASSED_ON)}
    return inherited | {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",
        "GIT_SSH_COMMAND": inherited.get("GIT_SSH_COMMAND", "ssh -oBatchMode=yes"),
        "LC_ALL": "C",
    }


_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_BLAMED = re.compile(r"([0-9a-f]{40,64}) \d+ (\d+) (\d+)")
"""Commit, first line in the file as it is, counted from 1, and number of lines."""
_TIME = re.compile(r"(author|committer)-time (-?\d+)")

Since = date | str
"""A day, or a commit's hash or its beginning; lines of that very day or commit are not after it."""


def read_since(text: str) -> Since:
    """Return the day, written as ``YYYY-MM-DD``, or the commit that a user gave.

    Raises:
        ValueError: if it is neither.
    """
    if _COMMIT.fullmatch(text):
        return text
    try:
        return read_date(text)
    except ValueError:
        raise ValueError(f"{text!r} is neither a day such as 2024-06-01 nor a commit of 7 or more digits") from None


def with_history(manifest: RepoManifest) -> RepoManifest:
    """Return the manifest with its first source that has a history as the only one.

    Raises:
        InputFault: if none has.
    """
    for source in manifest.sources:
        if isinstance(source, GitSource) or (isinstance(source, LocalSource) and _top(source.path) is not None):
            return replace(manifest, sources=(source,))
    raise InputFault(
        "none of its sources has a history",
        where=manifest.name,
        cure='give its manifest a [[source]] with kind = "git", or kind = "local" and the path of a clone of yours',
    )


@dataclass(frozen=True)
class History:
    """The history of one commit, and the point in it after which lines are asked for."""

    bare: Path
    commit: str
    folder: str
    """Where the repository's files lie in the history, ended by ``/``; empty for its root."""
    since: Since
    name: str
    """The repository's, for messages."""

    def days(self, path: str, raw: bytes, lines: int) -> Mapping[int, date] | None:
        """Return the lines of a file that were added after that point, from 0, and the day of each.

        Args:
            path: the file.
            raw: what it holds.
            lines: how many lines that has, as its reader counts them.

        Returns:
            None if the file is not as the history has it.
        """
        path = self.folder + path
        if self._blobs.get(path) != _blob(raw, len(self.commit)):
            return None
        if path not in self._changed:
            return {}
        owners, times = _blamed(self._git("blame", "--incremental", "-w", "-M", "-C", self.commit, "--", path))
        if len(owners) != lines:
            # A lone carriage return ends a line for us, and none for git.
            return None
        days = {line: _day(times[commit]) for line, commit in owners.items() if self._is_after(commit, times[commit])}
        return dict(sorted(days.items()))

    def earlier(self, paths: Sequence[str], *, suffix: str) -> Mapping[str, str]:
        """Return what was there at that point: all files of a suffix, and every line that some files had before.

        Args:
            paths: files whose earlier versions count, too.
            suffix: of the files to read.

        Returns:
            Two texts, each of many files.
        """
        cutoff = self._cutoff
        if not cutoff or not paths:
            return {}
        glob = f":(glob){self.folder}**/*{suffix}"
        # Without a line to find `git grep` fails, as if something were wrong.
        names = self._git("ls-tree", "-r", "--name-only", cutoff, "--", self.folder or ".").split("\n")
        has = any(name.endswith(suffix) for name in names)
        tree = self._git("grep", "--no-color", "-h", "-a", "-e", "", cutoff, "--", glob) if has else ""
        files = [f":(literal){self.folder}{path}" for path in paths]
        log = self._git(
            "log", "--format=", "-p", "-m", "-U0", "--no-color", "--no-ext-diff", "--text", cutoff, "--", *files
        )
        gone = (line[1:] for line in log.split("\n") if line.startswith("+") and not line.startswith("+++ "))
        return {"tree": tree, "versions": "\n".join(gone)}

    @cached_property
    def _cutoff(self) -> str:
        """The last commit that is not after that point, empty if all are."""
        if not isinstance(self.since, date):
            return self._range[0].partition("..")[0]
        until = f"--until={self.since.isoformat()}T23:59:59Z"
        return self._git("rev-list", "--first-parent", "-1", until, self.commit).strip()

    def _is_after(self, commit: str, times: tuple[int, ...]) -> bool:
        return _day(times) > self.since if isinstance(self.since, date) else commit in self._commits

    @cached_property
    def _commits(self) -> frozenset[str]:
        """The commits after the one that was given."""
        return frozenset(self._git("rev-list", *self._range).split())

    @cached_property
    def _changed(self) -> frozenset[str]:
        """The files that commits after that point have changed: no other needs to be asked for."""
        # Combined: of a merge only the files that it changed itself.
        names = self._git(
            "log", "--format=", "--name-only", "--no-renames", "--diff-merges=combined", "-z", *self._range
        )
        return frozenset(name.strip("\n") for name in names.split("\0"))

    @cached_property
    def _range(self) -> tuple[str, ...]:
        if isinstance(self.since, date):
            # Of commits, git knows when they were made: none whose day counts is left out, since that is no later.
            return f"--since={self.since.isoformat()}T00:00:00Z", self.commit
        try:
            since = self._git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{self.since}^{{commit}}")
        except Unreachable:
            raise InputFault(
                f"its history has no commit {self.since}",
                where=self.name,
                cure="give more of its digits, an earlier commit of the same branch, or a day such as 2024-06-01",
            ) from None
        return (f"{since.strip()}..{self.commit}",)

    @cached_property
    def _blobs(self) -> Mapping[str, str]:
        """Path -> hash of what the commit has there."""
        entries = (entry.partition("\t") for entry in self._git("ls-tree", "-r", "-z", self.commit).split("\0"))
        return {path: about.split()[2] for about, _, path in entries if path}

    def _git(self, *arguments: str) -> str:
        return git(self.bare, *arguments, source=self.name)


def open_history(manifest: RepoManifest, home: Home, since: Since, *, report: Report) -> History:
    """Return the history of the manifest's first source, which has one; it is fetched whole, and kept.

    Raises:
        InputFault: if it is cut off: its oldest lines would look newer than they are.
        Unreachable: if it cannot be had.
    """
    source = manifest.sources[0]
    folder = ""
    if isinstance(source, GitSource):
        url, commit = source.url, source.commit
    elif isinstance(source, LocalSource) and (top := _top(source.path)) is not None:
        url, folder = str(top), source.path.resolve().relative_to(top).as_posix()
        commit = _asked(source.path, "rev-parse", "--verify", "HEAD") or ""
        if not commit:
            raise InputFault("has no commit yet", where=str(top), cure="commit its files")
    else:
        raise ValueError(f"{source} has no history")
    bare = home.cache / "history" / f"{manifest.name}-{commit[:10]}"
    if not bare.is_dir():
        report(f"{manifest.name}: fetching the history of {source}")
        _fetch(bare, url, commit, str(source))
    return History(bare, commit, "" if folder in ("", ".") else f"{folder}/", since, manifest.name)


def _fetch(bare: Path, url: str, commit: str, source: str) -> None:
    """Fetch the whole history of a commit: beside its place, renamed in."""
    with explained(bare):
        bare.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=".part-", dir=bare.parent))
        try:
            part = beside / "bare"
            fetch_commit(part, url, commit, "--update-shallow", source=source)
            if git(part, "rev-parse", "--is-shallow-repository", source=source).strip() == "true":
                cure = "bring the rest with `git fetch --unshallow` there"
                raise InputFault("its history is cut off, so that old lines look new", where=source, cure=cure)
            if not bare.is_dir():
                part.rename(bare)
        finally:
            shutil.rmtree(beside, ignore_errors=True)


def _top(path: Path) -> Path | None:
    """Return the root of the git repository that a folder lies in; None if it lies in none."""
    top = _asked(path, "rev-parse", "--show-toplevel") if path.is_dir() else None
    return Path(top).resolve() if top else None


def _asked(folder: Path, *arguments: str) -> str | None:
    """Ask the user's git about a folder of theirs; None if it has no answer."""
    try:
        # Without variables by which a caller that is git itself points to another repository.
        own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        command = ["git", *arguments]
        answer = subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()


def _blob(raw: bytes, digits: int) -> str:
    """Return the hash under which git keeps a file's content."""
    algorithm = hashlib.sha1 if digits == hashlib.sha1().digest_size * 2 else hashlib.sha256  # noqa: S324 - as git does
    return algorithm(b"blob %d\0" % len(raw) + raw).hexdigest()


def _blamed(text: str) -> tuple[dict[int, str], dict[str, tuple[int, ...]]]:
    """Read ``git blame --incremental``: line, from 0 -> commit; commit -> when it was written and made."""
    owners: dict[int, str] = {}
    times: dict[str, tuple[int, ...]] = {}
    commit = ""
    for line in text.split("\n"):
        if blamed := _BLAMED.match(line):
            commit, first, count = blamed[1], int(blamed[2]) - 1, int(blamed[3])
            owners |= dict.fromkeys(range(first, first + count), commit)
        elif time := _TIME.match(line):
            times[commit] = (*times.get(commit, ()), int(time[2]))
    return owners, times


def _day(times: tuple[int, ...]) -> date:
    return datetime.fromtimestamp(min(times), UTC).date()
