"""Compares where ctxbench and jedi find used names' definitions: ``python -m scripts.definitions --home HOME``."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click
import jedi

from ctxbench.bench import samples as sets
from ctxbench.bench.home import Home
from ctxbench.bench.repositories.snapshot import Snapshot
from ctxbench.bench.types import Kind, Sample, Use
from ctxbench.harness.definitions import needed
from ctxbench.harness.diagnostics import Diagnostics
from ctxbench.harness.run.spec import planned_samples
from scripts import write_section

PAGE = Path(__file__).parent.parent / "docs" / "metrics.md"
BEGIN, END = "<!-- definitions -->\n", "<!-- end of definitions -->"
SAMPLES = 300
SAME = "same file and line"


class Jedi:
    """Looks up definitions with jedi, in copies of repositories' files that it writes to a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._projects = folder, dict[str, jedi.Project]()

    def _project(self, repo: str, snapshot: Snapshot) -> jedi.Project:
        if repo not in self._projects:
            root = self._folder / str(len(self._projects))
            for path, text in snapshot.texts.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text, encoding="utf-8")
            # jedi does not find the source root of the imports by itself.
            sys_path = [str(root), str(root / "src")]
            self._projects[repo] = jedi.Project(root, sys_path=sys_path, load_unsafe_extensions=False)
        return self._projects[repo]

    def places(self, repo: str, snapshot: Snapshot, path: str, line: int, column: int) -> list[tuple[str, int]]:
        """Return (path, 0-based line) of each definition, within the repository, of the name at a position."""
        project = self._project(repo, snapshot)
        script = jedi.Script(snapshot.texts[path], path=project.path / path, project=project)
        names = script.goto(line + 1, column, follow_imports=True, follow_builtin_imports=False)
        inside = [
            name for name in names if name.line and name.module_path and name.module_path.is_relative_to(project.path)
        ]
        return [(str(name.module_path.relative_to(project.path)), name.line - 1) for name in inside]


def position(snapshot: Snapshot, sample: Sample, use: Use) -> tuple[int, int] | None:
    """Return (line, column) of the last part of a used name; None if the cursor's line lacks it after the cursor."""
    line = snapshot.texts[sample.path].split("\n")[sample.cursor.line]
    *owners, last = map(re.escape, use.name.split("."))
    chain = "".join(rf"{owner}\s*\.\s*" for owner in owners)
    match = re.search(rf"(?<![\w.]){chain}(?P<last>{last})\b", line[sample.cursor.column :])
    return None if match is None else (sample.cursor.line, sample.cursor.column + match.start("last"))


def outcomes(samples: tuple[Sample, ...], snapshots: dict[str, Snapshot]) -> Iterator[tuple[Sample, Use, str]]:
    """Yield (sample, use, outcome) for each name that a sample needs: how ctxbench's and jedi's definitions compare."""
    diagnostics = Diagnostics(lambda: snapshots)
    with tempfile.TemporaryDirectory() as folder:
        asked = Jedi(Path(folder))
        for sample in samples:
            snapshot = snapshots[sample.repo]
            for use in needed(sample.uses):
                where = position(snapshot, sample, use)
                if use.kind == "module":
                    yield sample, use, "a module, which has no line"
                elif where is None:
                    yield sample, use, "not on the cursor's line"
                else:
                    yield sample, use, _outcome(diagnostics, asked, snapshot, sample, use, where)


def _outcome(
    diagnostics: Diagnostics, asked: Jedi, snapshot: Snapshot, sample: Sample, use: Use, where: tuple[int, int]
) -> str:
    definitions = diagnostics.definitions(replace(sample, uses=(use,)))
    ours = {(definition.path, at) for definition in definitions for at, _ in definition.lines}
    theirs = set(asked.places(sample.repo, snapshot, sample.path, *where))
    if not ours or not theirs:
        finder = "only jedi" if theirs else "only ctxbench"
        return f"{finder} finds a definition" if ours or theirs else "neither finds a definition"
    if ours & theirs:
        return SAME
    same_file = {path for path, _ in ours} & {path for path, _ in theirs}
    return "same file, another line" if same_file else "another file"


@click.command()
@click.option("--home", type=click.Path(path_type=Path), required=True)
@click.option("--samples", default="ctxbench-2-lite", show_default=True)
@click.option("--list", "listed", is_flag=True, help="Print each use that differs, and leave the page as it is.")
def main(home: Path, samples: str, listed: bool) -> None:
    """Compare the definitions that ctxbench and jedi find, and write the table into docs/metrics.md."""
    sample_set = sets.load(Home(home), samples)
    lines = [sample for sample in sample_set.samples if sample.language == "python" and sample.kind is Kind.LINE]
    chosen = planned_samples(lines, SAMPLES)
    snapshots = dict(sets.snapshots(Home(home), sample_set, {sample.repo for sample in chosen}))
    counts: Counter[str] = Counter()
    for sample, use, outcome in outcomes(chosen, snapshots):
        counts[outcome] += 1
        if listed and outcome != SAME:
            click.echo(f"{outcome}: {sample.id} {use.name} {use.module} {use.kind}")
    compared = counts.total()
    rows = "".join(f"| {outcome} | {count} | {count / compared:.1%} |\n" for outcome, count in counts.most_common())
    table = (
        f"| {compared} uses of {len(chosen)} samples, jedi {jedi.__version__} | uses | share |\n|---|---|---|\n{rows}"
    )
    click.echo(table, nl=False)
    if not listed:
        write_section(PAGE, BEGIN, END, table)


if __name__ == "__main__":
    main()
