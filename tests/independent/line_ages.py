"""Hold samples built with ``--since`` against plain `git blame`, by code that shares nothing with the builder.

``python -m tests.independent.line_ages HOME SET`` prints how many lines were asked for, and those that are not newer.
"""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from pathlib import Path


def times_of(repository: Path, commit: str, path: str, number: int) -> tuple[int, int, str]:
    """Return when a line (from 1) was written and committed, in seconds, and its commit."""
    command = ["git", "-C", str(repository), "blame", "--line-porcelain", f"-L{number},{number}", commit, "--", path]
    text = subprocess.run(command, check=True, capture_output=True).stdout.decode("utf-8", "replace")
    lines = text.splitlines()
    stamps = {words[0]: int(words[1]) for words in map(str.split, lines) if words and words[0].endswith("-time")}
    return stamps["author-time"], stamps["committer-time"], lines[0].split()[0]


def not_newer(home: Path, name: str, repositories: dict[str, Path], folder: str = "") -> tuple[int, list[str]]:
    """Return how many samples were looked at, and the ids of those whose line is not newer than the set's ``--since``.

    Args:
        home: the home folder.
        name: the set's.
        repositories: repository name -> a clone.
        folder: where its files lie in the clone, ended by a slash.
    """
    manifest = json.loads((home / "samples" / name / "manifest.json").read_text())
    count, old = 0, []
    for record in (home / "samples" / name / "samples.jsonl").read_text(encoding="utf-8").split("\n")[:-1]:
        sample = json.loads(record)
        about, clone = manifest["repositories"][sample["repo"]], repositories[sample["repo"]]
        *times, commit = times_of(clone, about["commit"], folder + sample["path"], sample["cursor"]["line"] + 1)
        count += 1
        since = about["since"]
        if "-" in since:
            midnight = dt.datetime.fromisoformat(since).replace(tzinfo=dt.UTC) + dt.timedelta(days=1)
            newer = min(times) >= midnight.timestamp()
        else:
            known = ["git", "-C", str(clone), "merge-base", "--is-ancestor", commit, since]
            newer = subprocess.run(known, check=False, capture_output=True).returncode == 1
        if not newer:
            old.append(sample["id"])
    return count, old


if __name__ == "__main__":
    place = Path(sys.argv[1])
    accounts = json.loads((place / "samples" / sys.argv[2] / "manifest.json").read_text())["repositories"]
    clones = {
        repo: next((place / "cache" / "history").glob(f"{repo}-{entry['commit'][:10]}"))
        for repo, entry in accounts.items()
    }
    checked, older = not_newer(place, sys.argv[2], clones)
    print(f"{checked} lines, {len(older)} not newer", *older, sep="\n")
    sys.exit(bool(older))
