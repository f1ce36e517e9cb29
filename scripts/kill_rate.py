"""Measure the gross faults that a set's tests let pass: ``python -m scripts.kill_rate HOME SET [--limit N]``.

Puts faults of its own making (`tests/independent/mutants.py`, for Java `mutants_java.py`) into the published
functions of a set, has `ctxbench exec` judge them, and runs the whole suite of the repository, under bubblewrap, on
those that passed: what that notices, the set's tests let pass. Prints a line a repository, and what was let pass.
What javac does not take is not tried. It takes minutes to hours.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from shutil import copytree
from typing import Any

from tests.independent import mutants_java
from tests.independent.java_suite import JavaSuite
from tests.independent.mutants import failed, mutants, rate

_SECONDS = 1800.0
Row = dict[str, Any]


def main() -> int:
    """Print the rates; return 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("home", type=Path)
    parser.add_argument("set")
    parser.add_argument("--mutants", type=int, default=2, help="of each function")
    parser.add_argument("--limit", type=int, default=10**6, help="functions of each repository")
    options = parser.parse_args()
    folder = options.home / "samples" / options.set
    about = json.loads((folder / "manifest.json").read_text())["repositories"]
    answers = {row["id"]: row for row in _rows(folder / "references.jsonl")}
    with tempfile.TemporaryDirectory() as work:
        faulty: list[tuple[Row, str]] = []
        suites = {repo: _suite(options.home, entry, Path(work) / repo) for repo, entry in about.items()}
        for repo, suite in suites.items():
            rows = (row for row in _rows(folder / "samples.jsonl") if row["repo"] == repo)
            for row in islice(rows, options.limit):
                target = answers[row["id"]]["target"]
                faulty += [(row, text) for text in _faults(row, target, options.mutants, suite)]
        verdicts = _judged(options.home, options.set, faulty, Path(work))
        for repo, suite in suites.items():
            outcomes: list[tuple[str, bool]] = []
            for (row, text), verdict in zip(faulty, verdicts, strict=True):
                if row["repo"] != repo:
                    continue
                noticed = verdict == "PASSED" and suite.notices(row["path"], row["span"], text)
                outcomes.append((verdict, noticed))
                if verdict == "PASSED":
                    print(f"{row['id']}: passed, and the whole suite notices it: {noticed}\n{text}\n")
            killed, noticeable, tried = rate(outcomes)
            print(f"{repo}: {tried} mutants, {noticeable} noticed by the whole suite, {killed} failed", flush=True)
    return 0


def _suite(home: Path, entry: Row, work: Path) -> _Suite | JavaSuite:
    kind = JavaSuite if entry["language"] == "java" else _Suite
    return kind(home / "repos" / entry["checkout"], entry["tests"], work)


def _faults(row: Row, target: str, most: int, suite: _Suite | JavaSuite) -> list[str]:
    name = row["name"].partition("(")[0].rpartition(".")[2]
    if isinstance(suite, _Suite):
        return mutants(target, name, most)
    drawn = mutants_java.mutants(target, name)
    return list(islice((text for text in drawn if suite.compiles(row["path"], row["span"], text)), most))


def _rows(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _judged(home: Path, name: str, faulty: list[tuple[Row, str]], work: Path) -> list[str]:
    """Return the platform's verdict on each text."""
    completions, out = work / "completions.jsonl", work / "verdicts.jsonl"
    lines = [json.dumps({"sample": row["id"], "index": i, "text": text}) for i, (row, text) in enumerate(faulty)]
    completions.write_text("\n".join(lines) + "\n")
    command = [
        str(Path(sys.executable).with_name("ctxbench")),
        "exec",
        "--samples",
        name,
        "--completions",
        str(completions),
    ]
    subprocess.run([*command, "--sandbox", "bubblewrap", "--home", str(home), "--out", str(out)], check=True)
    verdicts = {row["index"]: row["verdict"] for row in _rows(out)}
    return [verdicts[number] for number in range(len(faulty))]


class _Suite:
    """The whole suite of a repository, run on a copy of its files."""

    def __init__(self, root: Path, tests: Mapping[str, Any], work: Path) -> None:
        self._root, self._tests, self._work = root, tests, work
        self._baseline: set[str] | None = None

    def notices(self, path: str, span: tuple[int, int], text: str) -> bool:
        """Say whether some test fails with a function replaced that does not fail without."""
        if self._baseline is None:
            copytree(self._root, self._work / "tree")
            install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(self._work / "site")]
            subprocess.run([*install, *self._tests["lock"], *filter(None, [self._tests["project"]])], check=True)
            self._baseline = self._failed()
        file = self._work / "tree" / path
        published = file.read_text()
        lines = published.split("\n")
        margin = lines[span[0]][: len(lines[span[0]]) - len(lines[span[0]].lstrip())]
        put = [margin + line if line.strip() else line for line in text.split("\n")]
        file.write_text("\n".join([*lines[: span[0]], *put, *lines[span[1] :]]))
        try:
            return bool(self._failed() - self._baseline)
        finally:
            file.write_text(published)

    def _failed(self) -> set[str]:
        tree, site = self._work / "tree", self._work / "site"
        left_out = [f"--{'deselect' if '::' in test else 'ignore'}={test}" for test in self._tests["deselect"]]
        pytest = ["-q", "-p", "no:cacheprovider", "-o", "addopts=", "-p", "no:warnings", "--junitxml=.report.xml"]
        box = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", tempfile.gettempdir()]
        box += [
            "--unshare-all",
            "--bind",
            str(tree),
            str(tree),
            "--ro-bind",
            str(site),
            str(site),
            "--chdir",
            str(tree),
        ]
        box += ["--setenv", "PYTHONPATH", f"{tree / self._tests['pythonpath']}:{tree}:{site}", "--die-with-parent"]
        (tree / ".report.xml").unlink(missing_ok=True)
        command = ["bwrap", *box, sys.executable, "-S", "-B", "-m", "pytest", *pytest, *left_out]
        try:
            subprocess.run([*command, *self._tests["paths"]], capture_output=True, timeout=_SECONDS, check=False)
            return failed((tree / ".report.xml").read_text())
        except (subprocess.TimeoutExpired, FileNotFoundError):
            return {"did not end"}


if __name__ == "__main__":
    sys.exit(main())
