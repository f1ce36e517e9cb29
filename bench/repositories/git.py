"""Reads a commit's files, exactly as stored, and the history of their lines. Neither depends on git's configuration."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Collection, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import Path

from ctxbench.bench.concurrency import Progress, silent
from ctxbench.bench.dates import read_date
from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import explained, locked, sha256, write_atomic
from ctxbench.bench.home import Home
from ctxbench.bench.languages.outline import Span
from ctxbench.bench.repositories.manifest import RepoManifest
from ctxbench.bench.repositories.sources import (
    Destination,
    GitSource,
    LocalSource,
    Report,
    Unreachable,
    run_program,
)

_SECONDS = 900.0
_PASSED_ON = ("GIT_SSL_", "GIT_HTTP_", "GIT_PROXY_", "GIT_SSH")
# These rules override the tree's .gitattributes: `git archive` must omit nothing (many projects mark their tests
# export-ignore) and rewrite nothing.
_ATTRIBUTES = "* -export-ignore -export-subst -text !eol -ident !filter !working-tree-encoding\n"
_LINK = "120000"


def fetch(source: GitSource, to: Destination) -> date:
    """Fetch a commit without its history and unpack its files, except submodules. Return the commit's day in UTC.

    Raises:
        Unreachable: if git is not installed, or the server cannot be reached or lacks the commit.
    """
    bare, archive = to.scratch / "bare", to.scratch / "tree.tar"
    fetch_commit(bare, source.url, source.commit, "--depth=1", source=source)
    git(bare, "archive", "--format=tar", f"--output={archive}", source.commit, source=source)
    to.unpack(archive, strip=False)
    listing = git(bare, "ls-tree", "-r", source.commit, source=source)
    to.left_out.extend(f"submodule {path}" for path in re.findall(r"^160000 .*\t(.+)$", listing, re.MULTILINE))
    seconds = int(git(bare, "show", "--no-patch", "--format=%ct", source.commit, source=source))
    return datetime.fromtimestamp(seconds, UTC).date()


def fetch_commit(bare: Path, url: str, commit: str, *options: str, source: object) -> None:
    """Fetch a commit into a bare repository, created if missing; with its whole history unless `options` limit it.

    Raises:
        Unreachable: if git is not installed, or the server cannot be reached or lacks the commit.
    """
    git(bare, "init", "--quiet", "--bare", "--template=", str(bare), source=source)
    (bare / "info").mkdir(exist_ok=True)
    (bare / "info" / "attributes").write_text(_ATTRIBUTES, encoding="utf-8")
    how = ("--quiet", "--no-tags", "--no-recurse-submodules", *options)
    git(bare, "fetch", *how, "--", url, commit, source=source)


def git(bare: Path, *arguments: str, source: object) -> str:
    """Run git on a bare repository and return its output.

    Raises:
        Unreachable: if git is not installed or fails.
    """
    return run_program(
        ["git", "-c", "core.hooksPath=/dev/null", "--git-dir", str(bare), *arguments],
        folder=bare.parent,
        environment=_environment(),
        seconds=_SECONDS,
        source=source,
    )


def _environment() -> dict[str, str]:
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
_BLAMED = re.compile(r"^([0-9a-f]{40,64}) \d+ (\d+) (\d+)$", re.MULTILINE)
"""Groups: commit, first line in the current file (from 1), number of lines."""

Since = date | str
"""A day, or the start of a commit's hash. Lines written on that day or in that commit do not count as new."""


def read_since(text: str) -> Since:
    """Parse a day, ``YYYY-MM-DD``, or the start of a commit's hash: 7 to 64 hexadecimal digits in lower case.

    Raises:
        ValueError: if the text is neither.
    """
    if _COMMIT.fullmatch(text):
        return text
    try:
        return read_date(text)
    except ValueError:
        raise ValueError(f"{text!r} is neither a day such as 2024-06-01 nor a commit of 7 or more digits") from None


def with_history(manifest: RepoManifest) -> RepoManifest:
    """Return the manifest with only its first source that has a history.

    Raises:
        InputFault: if no source has a history.
    """
    for source in manifest.sources:
        if isinstance(source, GitSource) or (isinstance(source, LocalSource) and _top(source.path) is not None):
            return replace(manifest, sources=(source,))
    raise InputFault(
        "no source of the repository has a history",
        where=manifest.name,
        cure='add a [[source]] to the manifest with kind = "git", or with kind = "local" and the path of your clone',
    )


Days = Mapping[int, date]


@dataclass(frozen=True, slots=True)
class _Newer:
    days: Mapping[str, date]
    walked: Set[str]
    """Commits after the point and their descendants. Only these commits can contain new lines."""
    ends: tuple[str, ...]


@dataclass(frozen=True)
class History:
    """A commit's history, and the point after which lines are new.

    White space, moves and copies do not make a line new. A line's day is the earlier of its author date and its commit
    date, in UTC.
    """

    bare: Path
    commit: str
    folder: str
    """Folder of the repository's files in the history, with a final ``/``; empty for the root."""
    since: Since
    name: str

    def days(
        self,
        asked: Mapping[str, Sequence[int]],
        *,
        root: Path,
        texts: Mapping[str, str],
        workers: int = 1,
        progress: Progress = silent,
    ) -> dict[str, Days | None]:
        """Return those of the `asked` lines that were added after `since`.

        Results are stored beside the history. A file is blamed again only if a commit changed it, for another `since`,
        or for other lines.

        Args:
            asked: numbers of the lines to check, counted from 0, by path.
            root: folder of the files.
            texts: texts by path, with line ends as ctxbench reads them.

        Returns:
            New lines and their days, by path; None for a file that differs from the commit's, or that git splits into
            other lines.
        """
        days: dict[str, Days | None] = {path: {} if self._is_committed(path, root / path) else None for path in asked}
        changed = {
            f"{self._tips[place]} {place} {sha256(repr(asked[path]))[:10]}": path
            for path in asked
            if days[path] is not None and (place := self.folder + path) in self._tips
        }
        blamed = self._kept()
        files = {
            key: (path, len(texts[path].removesuffix("\n").split("\n")), asked[path])
            for key, path in changed.items()
            if key not in blamed
        }
        if files:
            self._blame(blamed, files, workers, progress)
        return days | {path: blamed[key] for key, path in changed.items()}

    def _is_committed(self, path: str, place: Path) -> bool:
        with explained(place):
            return self._blobs.get(self.folder + path) == _blob(place.read_bytes(), len(self.commit))

    def _blame(
        self,
        blamed: dict[str, Days | None],
        files: Mapping[str, tuple[str, int, Sequence[int]]],
        workers: int,
        progress: Progress,
    ) -> None:
        pool = ThreadPoolExecutor(workers)
        try:
            with progress(f"{self.name}: ages of lines, files", len(files)) as tick:
                for key, days in zip(files, pool.map(lambda file: self._added(*file), files.values()), strict=True):
                    blamed[key] = days
                    tick(1)
        finally:
            # Do not wait: an interrupted command has only a moment to write.
            pool.shutdown(wait=False, cancel_futures=True)
            write_atomic(self._place(self._point), json.dumps(blamed, default=str))

    def _kept(self) -> dict[str, Days | None]:
        # Unreadable results are blamed again.
        with contextlib.suppress(OSError, ValueError, AttributeError, TypeError):
            stored: Mapping[str, Mapping[str, str] | None] = json.loads(self._place(self._point).read_bytes())
            return {key: None if days is None else _dated(days) for key, days in stored.items()}
        return {}

    def _added(self, path: str, count: int, asked: Sequence[int]) -> Days | None:
        """Blame a file of `count` lines back to the point.

        Git's search for moved or copied lines is slow and can only date a line earlier. A second blame therefore
        searches only the lines that the first blame found to be new.
        """
        owners = self._owners(path)
        if len(owners) != count:
            # A lone carriage return ends a line in ctxbench, but not in git.
            return None
        stretches = _stretches(dict.fromkeys(line for line in sorted(owners) if owners[line] in self._newer.walked))
        options = [f"-L{first + 1},{last + 1}" for first, last in stretches if any(first <= n <= last for n in asked)]
        if not options:
            return {}
        owners = self._owners(path, "-M", "-C", *options)
        dated = self._newer.days
        return {line: dated[owners[line]] for line in asked if owners.get(line) in dated}

    def _owners(self, path: str, *options: str) -> dict[int, str]:
        place, ends = self.folder + path, self._newer.ends
        return _blamed(self._git("blame", "--incremental", "-w", *options, self._tips[place], *ends, "--", place))

    def earlier(self, paths: Sequence[str], *, suffix: str) -> Mapping[str, str]:
        """Return the code up to `since`: files that end with `suffix`, and lines that the files at `paths` ever had.

        Returns:
            The text of the files as ``tree``, and of the lines as ``versions``; empty without `paths` or older commits.
        """
        cutoff = self._cutoff
        if not cutoff or not paths:
            return {}
        glob = f":(glob){self.folder}**/*{suffix}"
        # If `git grep` finds no line, it fails just as on an error.
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
    def _point(self) -> str:
        if isinstance(self.since, date):
            return self.since.isoformat()
        try:
            asked = f"{self.since}^{{commit}}"
            return self._git("rev-parse", "--verify", "--quiet", "--end-of-options", asked).strip()
        except Unreachable:
            raise InputFault(
                f"no single commit of the history has a hash that starts with {self.since}",
                where=self.name,
                cure="give more digits of the hash, an earlier commit of the same branch, or a day such as 2024-06-01",
            ) from None

    @cached_property
    def _cutoff(self) -> str:
        if not isinstance(self.since, date):
            return self._point
        until = f"--until={self._point}T23:59:59Z"
        return self._git("rev-list", "--first-parent", "-1", until, self.commit).strip()

    def _place(self, point: str) -> Path:
        return self.bare.parent / "ages" / f"{point}.json"

    @cached_property
    def _newer(self) -> _Newer:
        options = () if isinstance(self.since, date) else ("--not", self._point)
        log = self._git("log", "--topo-order", "--reverse", "--format=%H %at %ct %P", self.commit, *options)
        days, walked, ends = dict[str, date](), set[str](), dict[str, None]()
        for line in log.splitlines():
            commit, written, committed, *parents = line.split()
            day = _day(int(written), int(committed))
            if self._is_after(day):
                days[commit] = day
            if commit in days or not walked.isdisjoint(parents):
                walked.add(commit)
                ends |= dict.fromkeys(f"^{parent}" for parent in parents if parent not in walked)
        return _Newer(days, walked, tuple(ends))

    def _is_after(self, day: date) -> bool:
        """Return whether a day is after the point. If the point is a commit, git lists only later commits."""
        return not isinstance(self.since, date) or day > self.since

    @cached_property
    def _tips(self) -> Mapping[str, str]:
        if self.commit not in self._newer.walked:
            return {}
        main = ("--first-parent", "--diff-merges=first-parent", "--no-renames", "--name-only", "-z")
        tips: dict[str, str] = {}
        commit = ""
        for word in self._git("log", *main, "--format=/%H", self.commit, *self._newer.ends).split("\0"):
            if word.startswith("/"):
                commit = word[1:]
            else:
                tips.setdefault(word.removeprefix("\n"), commit)
        return tips

    @cached_property
    def _blobs(self) -> Mapping[str, str]:
        entries = (entry.partition("\t") for entry in self._git("ls-tree", "-r", "-z", self.commit).split("\0"))
        return {path: about.split()[2] for about, _, path in entries if path}

    def _git(self, *arguments: str) -> str:
        return git(self.bare, *arguments, source=self.name)


def open_history(manifest: RepoManifest, home: Home, since: Since, *, report: Report) -> History:
    """Return the whole history of the manifest's first source, fetched if missing (see `with_history`).

    Raises:
        InputFault: if the history is empty or shallow. In a shallow history, old lines look new.
        Unreachable: if the history cannot be fetched.
        ValueError: if the first source has no history.
    """
    source = manifest.sources[0]
    folder = ""
    if isinstance(source, GitSource):
        url, commit = source.url, source.commit
    elif isinstance(source, LocalSource) and (top := _top(source.path)) is not None:
        url, folder = str(top), source.path.resolve().relative_to(top).as_posix()
        commit = _asked(source.path, "rev-parse", "--verify", "HEAD") or ""
        if not commit:
            raise InputFault("the repository has no commit yet", where=str(top), cure="commit its files")
    else:
        raise ValueError(f"{source} has no history")
    place = home.cache / "history" / f"{manifest.name}-{sha256(url)[:10]}"
    with locked(place.absolute()):
        _fetch(place / "bare", url, commit, str(source), report)
    return History(place / "bare", commit, "" if folder in ("", ".") else f"{folder}/", since, manifest.name)


def _fetch(bare: Path, url: str, commit: str, source: str, report: Report) -> None:
    """Fetch a commit's missing history. A branch named after the commit, written last, marks the history as whole."""
    kept = f"refs/heads/{commit}"
    if (bare / "HEAD").is_file() and git(bare, "for-each-ref", kept, source=source):
        return
    report(f"{source}: fetching its history")
    fetch_commit(bare, url, f"{commit}:{kept}", "--update-shallow", source=source)
    if git(bare, "rev-parse", "--is-shallow-repository", source=source).strip() == "true":
        shutil.rmtree(bare)
        cure = "fetch the rest with `git fetch --unshallow` there"
        raise InputFault("the history is cut off, so old lines look new", where=source, cure=cure)


def _top(path: Path) -> Path | None:
    top = _asked(path, "rev-parse", "--show-toplevel") if path.is_dir() else None
    return Path(top).resolve() if top else None


def head(folder: Path) -> GitSource | None:
    """Return the commit whose files a folder contains; None if files differ, or the folder is not a git root."""
    if _top(folder) != folder.resolve():
        return None
    commit = _asked(folder, "rev-parse", "--verify", "HEAD")
    tree = _asked(folder, "ls-tree", "-rz", "HEAD")
    if not commit or not tree or _asked(folder, "ls-files", "--others", "--exclude-standard") != "":
        return None
    for mode, kind, blob, path in re.findall(r"(\d+) (\w+) (\w+)\t([^\0]+)", tree):
        if kind == "blob" and mode != _LINK:
            try:
                content = (folder / path).read_bytes()
            except OSError:
                return None
            if _blob(content, len(commit)) != blob:
                return None
    return GitSource(url=folder.resolve().as_uri(), commit=commit)


def _asked(folder: Path, *arguments: str) -> str | None:
    try:
        # If git started this process, its variables point to another repository. Nothing is fetched.
        own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        own |= {"GIT_ALLOW_PROTOCOL": "none", "GIT_OPTIONAL_LOCKS": "0"}
        command = ["git", "-c", "core.fsmonitor=false", *arguments]
        answer = subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, UnicodeDecodeError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()


def _blob(raw: bytes, digits: int) -> str:
    algorithm = hashlib.sha1 if digits == hashlib.sha1().digest_size * 2 else hashlib.sha256  # noqa: S324 - as git does
    return algorithm(b"blob %d\0" % len(raw) + raw).hexdigest()


def _dated(days: Mapping[str, str]) -> Days:
    return {int(line): date.fromisoformat(day) for line, day in days.items()}


def _blamed(text: str) -> dict[int, str]:
    owners: dict[int, str] = {}
    for blamed in _BLAMED.finditer(text):
        first, count = int(blamed[2]) - 1, int(blamed[3])
        owners |= dict.fromkeys(range(first, first + count), blamed[1])
    return owners


def _stretches(numbers: Collection[int]) -> list[Span]:
    firsts = [number for number in numbers if number - 1 not in numbers]
    return list(zip(firsts, [number for number in numbers if number + 1 not in numbers], strict=True))


def _day(*seconds: int) -> date:
    return datetime.fromtimestamp(min(seconds), UTC).date()
