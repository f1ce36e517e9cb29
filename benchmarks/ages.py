"""Finding the ages of lines, compared with `git blame -w -M -C` over the whole history of the same files.

``python -m benchmarks.ages CLONE DAY [FILES]`` measures up to FILES (40) files that changed after a day, and prints
processor seconds.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TypeVar

from ctxbench.bench.repositories.git import History, fetch_commit

T = TypeVar("T")
FILES = 40


def main(clone: Path, day: date, most: int = FILES) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        bare, root = Path(scratch) / "bare", Path(scratch) / "files"
        commit = _asked(clone, "rev-parse", "HEAD").strip()
        fetch_commit(bare, clone.resolve().as_uri(), commit, source=clone)
        names = _asked(bare, "log", "--format=", "--name-only", f"--since={day}", commit).splitlines()
        there = set(_asked(bare, "ls-tree", "-r", "--name-only", commit).splitlines())
        paths = sorted(name for name in set(names) & there if name.endswith((".py", ".java")))
        texts = {path: _asked(bare, "show", f"{commit}:{path}") for path in paths[:: max(1, len(paths) // most)][:most]}
        for path, text in texts.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(text.encode())
        asked = {path: range(text.count("\n")) for path, text in texts.items() if text}
        slow, plain = _timed(lambda: {path: _plain(bare, commit, path, day) for path in asked})
        history = History(bare, commit, "", day, clone.name)
        fast, days = _timed(lambda: history.days(asked, root=root, texts=texts))
        again, _ = _timed(lambda: history.days(asked, root=root, texts=texts))
    same = sum(plain[path] == days[path] for path in asked)
    lines = sum(map(len, plain.values()))
    print(f"{len(asked)} files of {clone}, {lines} lines after {day}; equal in {same} files")
    print(f"git blame {slow:.2f} s; ctxbench {fast:.2f} s ({slow / fast:.1f} times faster), again {again:.2f} s")


def _plain(bare: Path, commit: str, path: str, day: date) -> Mapping[int, date]:
    text = _asked(bare, "blame", "--line-porcelain", "-w", "-M", "-C", commit, "--", path)
    times: list[list[int]] = []
    for line in text.split("\n"):
        if line.startswith("author-time "):
            times.append([int(line.split()[1])])
        elif line.startswith("committer-time "):
            times[-1].append(int(line.split()[1]))
    dates = {number: datetime.fromtimestamp(min(both), UTC).date() for number, both in enumerate(times)}
    return {number: of_line for number, of_line in dates.items() if of_line > day}


def _asked(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True).stdout.decode("utf-8", "replace")


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    before = _processor()
    result = work()
    return _processor() - before, result


def _processor() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(part.ru_utime + part.ru_stime for part in used)


if __name__ == "__main__":
    main(Path(sys.argv[1]), date.fromisoformat(sys.argv[2]), *map(int, sys.argv[3:]))
