"""Compare samples built with ``--since`` with plain `git blame`, in code independent of the builder.

``python -m tests.independent.line_ages HOME SET`` prints the number of lines checked, and those that are not newer.
"""

import datetime as dt
import json
import subprocess
import sys
from pathlib import Path

from tests.independent import in_sight


def times_of(repository: Path, commit: str, path: str, number: int) -> tuple[int, int, str]:
    """Return when a line (from 1) was written and committed, in seconds, and its commit."""
    command = ["git", "-C", str(repository), "blame", "--line-porcelain", f"-L{number},{number}", commit, "--", path]
    text = subprocess.run(command, check=True, capture_output=True).stdout.decode("utf-8", "replace")
    lines = text.splitlines()
    stamps = {words[0]: int(words[1]) for words in map(str.split, lines) if words and words[0].endswith("-time")}
    return stamps["author-time"], stamps["committer-time"], lines[0].split()[0]


def not_newer(home: Path, name: str, repositories: dict[str, Path], folder: str = "") -> tuple[int, list[str]]:
    """Return the number of samples checked, and the ids of those with a line not newer than the set's ``--since``.

    Args:
        home: the home folder.
        name: the set's name.
        repositories: repository name -> a clone.
        folder: the folder of the files in the clone, with a slash at the end.
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


def standing_before(home: Path, name: str, clone: Path, cutoff: str) -> list[str]:
    """Return the ids of the samples whose line was in a commit's tree, or in an earlier version of its file.

    Args:
        home: the home folder.
        name: the set's name.
        clone: a clone of the set's only repository.
        cutoff: the commit.
    """

    def asked(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(clone), *arguments], check=True, capture_output=True)
        return done.stdout.decode("utf-8", "replace")

    folder = home / "samples" / name
    records = [json.loads(line) for line in (folder / "samples.jsonl").read_text("utf-8").splitlines()]
    answers = [json.loads(line) for line in (folder / "references.jsonl").read_text("utf-8").splitlines()]
    targets = {answer["id"]: answer["target"] for answer in answers}
    tree = [asked("show", f"{cutoff}:{path}") for path in asked("ls-tree", "-r", "--name-only", cutoff).splitlines()]
    stood = []
    for record in records:
        path = record["path"]
        commits = asked("rev-list", cutoff, "--", path).split()
        versions = [asked("show", f"{commit}:{path}") for commit in commits if asked("ls-tree", commit, path)]
        line = record["prefix"].rpartition("\n")[2] + targets[record["id"]]
        if any(in_sight.stands_in(line, text) for text in (*tree, *versions)):
            stood.append(record["id"])
    return stood


if __name__ == "__main__":
    place = Path(sys.argv[1])
    accounts = json.loads((place / "samples" / sys.argv[2] / "manifest.json").read_text())["repositories"]
    clones = {repo: next((place / "cache" / "history").glob(f"{repo}-*/bare")) for repo in accounts}
    checked, older = not_newer(place, sys.argv[2], clones)
    print(f"{checked} lines, {len(older)} not newer", *older, sep="\n")
    sys.exit(bool(older))
