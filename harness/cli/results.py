"""`ctxbench results` and `merge`: import predictions, verdicts and shards; export, pack and verify runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ctxbench.bench.home import Home
from ctxbench.bench.types import Kind
from ctxbench.harness.cli.options import (
    ExportChoice,
    FormatChoice,
    WithShapes,
    columns,
    db_option,
    format_option,
    home_option,
    language_option,
    sandbox_choice,
    workers_option,
)
from ctxbench.harness.cli.terminal import progress, say

if TYPE_CHECKING:
    from ctxbench.bench.samples import SampleSet
    from ctxbench.harness.exported import Completed
    from ctxbench.harness.imported import ImportSummary
    from ctxbench.harness.run.merging import Merged
    from ctxbench.harness.store import Store
    from ctxbench.harness.submissions.records import PackageVerification


DIFFERS = 10
"""Exit code of `results verify` if a derived value differs from the package."""
_SHAPES = FormatChoice("predictions")
_EXPORTED = ExportChoice("predictions")


@click.group()
def results() -> None:
    """Import predictions; export, pack and verify runs."""


@results.command("import", cls=WithShapes)
@click.argument("files", nargs=-1, metavar="FILE...")
@click.option("--format", "shape", type=_SHAPES, help="Format of the files.")
@click.option(
    "--reference",
    metavar="S",
    help="Import the results over the standard set S that ship with ctxbench, instead of files; S is ctxbench-2 or "
    "ctxbench-2-lite.",
)
@click.option(
    "--samples",
    metavar="NAME",
    help="The sample set of the predictions; output of CoderEval's harness names its own set. With "
    "--reference: your build of S, if it has another name.",
)
@click.option(
    "--strategy", default="", metavar="TEXT", help="Name of the strategy; default: the name in the file, or `recorded`."
)
@click.option(
    "--generator",
    default="",
    metavar="TEXT",
    help="Name of the model; default: the name in the file, or the file's name up to its first dot.",
)
@language_option("Accept only samples in this language.")
@home_option
@db_option
def import_files(
    *,
    files: tuple[str, ...],
    shape: str | None,
    reference: str | None,
    samples: str | None,
    strategy: str,
    generator: str,
    language: str | None,
    home: Home,
    db: str | None,
) -> list[ImportSummary]:
    """Store recorded predictions as runs of origin `imported`, with the verdicts that FILE contains.

    FILE is JSON Lines or a JSON document (.json), both also gzipped (.gz), or a Parquet file. With --samples, texts are
    scored; `ctxbench exec --run` judges functions without verdicts. Samples that a file lacks are stored as missing. If
    a record is wrong, nothing of its file is stored. Importing a file again changes nothing.

    With --reference, store the built-in strategies' results over a standard set, with origin `reference`: scores
    without prompts. This needs neither a network nor the samples.
    """
    from ctxbench.bench import samples as sets
    from ctxbench.bench.formats.rows import open_tables
    from ctxbench.bench.languages.base import Language
    from ctxbench.harness.imported import import_results
    from ctxbench.harness.imported.matching import Labels
    from ctxbench.harness.store import open_store

    if reference is not None:
        if any([files, shape, strategy, generator, language]):
            raise click.UsageError("--reference takes no FILE, and only the options --samples, --home and --db")
        return _import_reference(reference, samples, home, db)
    if not files or shape is None:
        raise click.UsageError("FILE or --format is missing; give both, or only --reference")
    sample_set = None if samples is None else sets.load(home, samples)
    tables = open_tables(files)
    with open_store(db or home.database) as store:
        return [
            _say_imported(summary)
            for table in tables
            for summary in import_results(
                store,
                table,
                shape,
                labels=Labels(strategy=strategy, generator=generator),
                sample_set=sample_set,
                language=None if language is None else Language(language),
                progress=progress,
            )
        ]


def _import_reference(name: str, samples: str | None, home: Home, db: str | None) -> list[ImportSummary]:
    from ctxbench.bench import samples as sets
    from ctxbench.bench import standard
    from ctxbench.harness.imported import reference
    from ctxbench.harness.store import open_store

    kinds = reference.kinds(name)
    given = None if samples is None else sets.load(home, samples)
    if given is not None:
        # A set that is neither kind's build is compared with the lines, and refused.
        kinds = tuple(kind for kind in kinds if standard.load(name).digests.get(kind) == given.digest) or kinds[:1]
    summaries: list[ImportSummary] = []
    with open_store(db or home.database) as store:
        for kind in kinds or (Kind.LINE,):
            usual = standard.samples_name(name, kind)
            sample_set = given or (sets.load(home, usual) if usual in sets.names(home) else None)
            stored = reference.import_reference(store, name, kind, sample_set=sample_set, progress=progress)
            summaries += map(_say_imported, stored)
    return summaries


def _say_imported(summary: ImportSummary) -> ImportSummary:
    stored = f"{summary.new} of {summary.planned} samples" if summary.new else "already imported, nothing changed"
    click.echo(f"{summary.run}  {summary.samples}  {summary.strategy}  {summary.generator}  n={summary.n}  {stored}")
    for remark in summary.remarks:
        click.echo(remark, err=True)
    return summary


@results.command(cls=WithShapes)
@click.argument("run")
@click.option("--format", "shape", type=_EXPORTED, required=True, help="Format of the file.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The file to write.")
@click.option("--samples", metavar="NAME", help="The run's sample set, if its name has changed.")
@click.option(
    "--repeat",
    type=click.IntRange(1),
    default=1,
    metavar="N",
    help="Repeat the answers of each task until there are N, as CoderEval's harness requires.",
)
@click.option("--partial", is_flag=True, help="Export a run even if samples are missing.")
@home_option
@db_option
def export(
    *, run: str, shape: str, out: Path, samples: str | None, repeat: int, partial: bool, home: Home, db: str | None
) -> None:
    """Write the stored RUN (an id, its beginning, a name, or the folder of a package) for other tools.

    `every-eval-ever` and `inspect` contain the whole run: prompts, answers, scores, means. `ctxbench` writes a line per
    completion, with labels and verdicts. The benchmarks' own scorers read the other formats. `ctxbench scores` writes
    the scores.
    """
    from ctxbench.bench import formats
    from ctxbench.bench.errors import InputFault
    from ctxbench.bench.files import write_jsonl
    from ctxbench.harness.exported import check, completed, rows
    from ctxbench.harness.exports import RUN_FORMATS
    from ctxbench.harness.store.store import open_reader
    from ctxbench.harness.submissions.boards import open_in_database
    from ctxbench.harness.submissions.format import is_package, read

    url, package = db or home.database, read(Path(run)) if is_package(Path(run)) else None
    if package is not None:
        url, [run, *others] = click.get_current_context().with_resource(open_in_database(package))
        also = f", and the first of {len(others) + 1} repetitions is written" * bool(others)
        click.echo(f"a package has no prompts, so they are left out{also}", err=True)
    if repeat > 1 and (shape in RUN_FORMATS or not formats.predictions(shape).repeats):
        repeated = [name for name in formats.prediction_names() if formats.predictions(name).repeats]
        raise click.UsageError(f"--repeat needs --format {' or '.join(repeated)}")
    if out.is_dir():
        raise InputFault("the path is a folder", where=str(out), cure="pass the path of a file: --out FILE")
    with open_reader(url) as store:
        if shape in RUN_FORMATS:
            _export_run(
                store, run, shape, out, samples, home, partial=partial, day=package.manifest.date if package else None
            )
            return
        stored = completed(store, run)
    check(stored, shape)
    lacking = f"{len(stored.missing)} of {len(stored.kinds)} samples of the run {stored.run.id} are missing"
    if stored.missing and not partial:
        raise InputFault(
            f"{lacking}, such as {stored.missing[0]!r}",
            cure="run the same `ctxbench run` again, or add --partial to export the other samples",
        )
    lines = list(rows(stored, shape, _samples_of(stored, shape, samples, home), repeat=repeat))
    write_jsonl(out, lines)
    click.echo(f"{out}: {len(stored.texts)} samples, {sum(map(len, stored.texts.values()))} completions")
    if stored.missing:
        click.echo(f"{lacking}: {', '.join(stored.missing)}", err=True)


def _export_run(
    store: Store, run: str, name: str, out: Path, samples: str | None, home: Home, *, partial: bool, day: str | None
) -> None:
    from ctxbench.bench import samples as sets
    from ctxbench.bench.errors import InputFault
    from ctxbench.bench.files import write_atomic
    from ctxbench.harness.exports import RUN_FORMATS, read_run
    from ctxbench.harness.store.runs import check_set

    exported = replace(read_run(store, run), day=day)
    choices = exported.work.choices
    given = samples or choices.samples
    if samples is not None or given in sets.names(home):
        sample_set = sets.load(home, given)
        if samples is not None or sample_set.digest == choices.samples_digest:
            check_set(exported.id, choices.samples_digest, sample_set)
            exported = replace(exported, sample_set=sample_set)
    lacking = exported.work.planned - exported.work.finished
    if lacking and not partial:
        raise InputFault(
            f"{lacking} of {exported.work.planned} samples of the run {exported.id} are missing",
            cure="run the same `ctxbench run` again, or add --partial to export the other samples",
        )
    write_atomic(out, RUN_FORMATS[name].write(exported))
    click.echo(f"{out}: {exported.work.finished} of {exported.work.planned} samples")
    if exported.sample_set is None:
        click.echo(f"the run's sample set {given!r} is not in the home folder, so references are left out", err=True)


def _samples_of(stored: Completed, shape: str, name: str | None, home: Home) -> SampleSet | None:
    from ctxbench.bench import samples as sets
    from ctxbench.harness.exported import needs_samples
    from ctxbench.harness.store.runs import check_set

    if not needs_samples(shape):
        return None
    sample_set = sets.load(home, name or stored.run.samples)
    check_set(stored.run.id, stored.run.samples_digest, sample_set)
    return sample_set


@results.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The package's folder.")
@click.option(
    "--author", "authors", multiple=True, required=True, metavar="NAME", help="Author of the package; repeatable."
)
@click.option("--title", default="", metavar="TEXT", help="Title of the package; default: the strategy and the model.")
@click.option("--license", default="CC-BY-4.0", show_default=True, metavar="SPDX", help="Licence of the data.")
@click.option("--supersedes", metavar="ID", help="Id of the package that this one corrects.")
@home_option
@db_option
def pack(*, runs: tuple[str, ...], out: Path, home: Home, db: str | None, **words: Any) -> None:
    """Write RUN as a package that others can verify: prompts' digests, completions, scores, the strategy's source.

    Several RUNs must be repetitions that differ only in the seed. Equal runs produce equal packages. A package contains
    no path and no name of this machine; read `submission.toml` before you publish it.
    """
    from ctxbench.bench import samples as sets
    from ctxbench.harness.store.runs import check_set, find_run
    from ctxbench.harness.store.store import open_reader
    from ctxbench.harness.store.work import run_works
    from ctxbench.harness.submissions.format import read, write
    from ctxbench.harness.submissions.stored import packed

    with open_reader(db or home.database) as store:
        stored = run_works(store, [find_run(store, run).id for run in runs])
        sample_set = sets.load(home, stored[0].choices.samples)
        check_set(stored[0].id, stored[0].choices.samples_digest, sample_set)
        submission = packed(store, stored, sample_set, **words)
    write(out, submission)
    read(out)
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    click.echo(f"{out}: {submission.manifest.id}, {len(submission.samples)} samples, {size / 1e6:.2f} MB")


@results.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--all", "whole", is_flag=True, help="Check every sample, not only 30 drawn ones.")
@sandbox_choice("Where function tests run.", "none")
@workers_option("Strategies and function tests to run at once.")
@format_option("text", "json")
@home_option
def verify(*, folder: Path, whole: bool, sandbox: str | None, workers: int, form: str, home: Home) -> int:
    """Compute values of the package in FOLDER again, and compare them with the package's values.

    For 30 drawn samples, or all with --all, runs the strategy in a cell, compares the prompts' digests, scores the
    completions, and runs the function tests in a box. Computes the means from the package's scores. Prints for each
    part how far it was checked: re-derived, rescored only (without the strategy), or trusted (the author's claim).
    Needs the repositories of the sample set. A standard set is built if the home folder lacks it. Nothing of the
    package is stored. Exit code: 0 if no value differs, 10 if a value differs, 1 if the package is refused or this
    machine cannot check it.
    """
    from ctxbench.bench.escaping import visible
    from ctxbench.harness.submissions.format import read, verification_text
    from ctxbench.harness.submissions.verify import Verifier

    submission = read(folder)
    manifest = submission.manifest
    if manifest.withdrawn is not None:
        say(visible(f"withdrawn on {manifest.withdrawn.date}: {manifest.withdrawn.reason}"))
    verification = Verifier(
        home, submission, _set_of(home, manifest.set.name, manifest.set.digest), whole, sandbox, workers, progress
    ).verify()
    text = verification_text(verification) if form == "json" else _verification(visible(manifest.title), verification)
    click.echo(text, nl=False)
    return 0 if verification.equal else DIFFERS


def _set_of(home: Home, name: str, digest: str) -> SampleSet:
    """Return the sample set with a digest; builds a standard set if the home lacks it."""
    from ctxbench.bench import standard
    from ctxbench.bench.errors import InputFault
    from ctxbench.harness.cli.main import cli
    from ctxbench.harness.run.merging import of_digest

    sample_set = of_digest(home, digest, name)
    for standard_set in standard.names() if sample_set is None else ():
        for kind, published in standard.load(standard_set).digests.items():
            usual = standard.samples_name(standard_set, kind)
            if published == digest:
                words = ["samples", "build", usual, "--set", standard_set, "--kind", str(kind), "--home"]
                cli.main(args=[*words, str(home.root)], standalone_mode=False)
                sample_set = of_digest(home, digest, usual)
    if sample_set is None:
        raise InputFault(
            f"the sample set with the digest {digest[:12]} is neither in the home folder nor a current standard set",
            cure=f"ask the author for its folder and repositories, and copy them to {home.samples} and {home.repos}",
        )
    return sample_set


def _verification(title: str, verification: PackageVerification) -> str:
    from ctxbench.bench.escaping import visible

    rows = [
        [part.name, str(part.state), f"{part.checked} of {part.of}" if part.checked else "", part.note]
        for part in verification.parts
    ]
    lines = [f"{title}  {verification.id}  {verification.samples} of {verification.of} samples drawn", *columns(rows)]
    for part in verification.parts:
        if (first := part.difference) is not None:
            where = f"{first.sample}: " if first.sample else ""
            text = f"{where}{first.what}: the package has {first.expected}, this machine computed {first.got}"
            lines.append(
                f"{part.name}: {part.differing} differ; the first difference: {' '.join(visible(text).split())}"
            )
    lines.append("nothing differs" if verification.equal else "the package differs from this machine's results")
    return "".join(f"{line.rstrip()}\n" for line in lines)


@click.command()
@click.argument("places", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FOLDER…")
@home_option
@db_option
def merge(*, places: tuple[Path, ...], home: Home, db: str | None) -> None:
    """Merge the shards of `ctxbench run --shard` into one database.

    Merge only shards of people you trust: their answers and scores are stored unchecked, and the board says so. Their
    verdicts apply only to their own run.

    FOLDER is a folder of shards or a single shard. The home folder must contain the shards' sample sets, with equal
    content. Prints a line per run: run id, strategy, samples that are new or already there, faults, missing samples.
    Shards may come in any order and more than once. A shard that contradicts a stored value is refused as a whole; the
    others are merged, and the exit code is 1.
    """
    from ctxbench.bench.errors import InputFault
    from ctxbench.harness.run.merging import Merger, shard_files
    from ctxbench.harness.store import open_store

    files = shard_files(places)
    refused: list[InputFault] = []
    merged: list[Merged] = []
    with open_store(db or home.database) as store:
        merger = Merger(store, home=home)
        with progress("shards", len(files)) as tick:
            for file in files:
                try:
                    merged.append(merger.merge_file(file))
                except InputFault as fault:
                    refused.append(fault)
                tick(1)
        _say_merged(store, merged)
    if len(refused) == 1:
        raise refused[0]
    if refused:
        raise InputFault(f"{len(refused)} shards were refused; the first fault: {refused[0]}")


def _say_merged(store: Store, merged: list[Merged]) -> None:
    from ctxbench.harness.store.work import run_works

    ids = {part.run for part in merged}
    for run in sorted(run_works(store, ids), key=lambda run: run.id):
        parts = [part for part in merged if part.run == run.id]
        new, again, faults, judged = (
            sum(getattr(part, name) for part in parts) for name in ("new", "again", "faults", "judged")
        )
        click.echo(
            f"{run.id}  {run.choices.strategy}  new {new}  already there {again}  faults {faults}  "
            f"missing {run.planned - run.finished}" + (f"  judged {judged}" if judged else "")
        )
