"""`ctxbench samples`: build, verify, show and list sample sets."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from datetime import date
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ctxbench.bench.dates import dates_of
from ctxbench.bench.errors import InputFault
from ctxbench.bench.home import Home
from ctxbench.harness.cli.options import (
    after_option,
    db_option,
    home_option,
    language_option,
    opened_sandbox,
    sandbox_option,
    workers_option,
)
from ctxbench.harness.cli.samples_import import export, import_files, prompt
from ctxbench.harness.cli.terminal import progress, say

if TYPE_CHECKING:
    from ctxbench.bench.functions.build import Verification
    from ctxbench.bench.repositories.git import Since
    from ctxbench.bench.repositories.manifest import RepoManifest
    from ctxbench.bench.samples import SampleSet
    from ctxbench.bench.standard import StandardSet
    from ctxbench.bench.types import Reference, Sample

_SHOWN_LINES = 12
_REASONS = {
    "encodings": "encodings",
    "left out": "left_out",
    "no targets": "skipped_as_targets",
    "dropped": "drops",
    "tests dropped": "tests_dropped",
}
_COUNTS = ("files", "lines", "functions", "documented", "covered", "candidates", "usable", "tried")
_UNJUDGED = ("blank_passed", "reference_failed", "reference_has_no_tests")
"""Reasons why tests cannot judge a function: an empty body passes, or the published code fails or runs no test."""
_CLOCKS = {"kept_clocks_only": "judged only by tests that read a clock", "kept_clocks_too": "also by other tests"}


def _since(ctx: click.Context, param: click.Parameter, value: str | None) -> Since | None:
    from ctxbench.bench.repositories.git import read_since

    try:
        return None if value is None else read_since(value)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from None


since_option = click.option(
    "--since",
    metavar="COMMIT|DATE",
    callback=_since,
    help="Use only lines added after that commit or day, from sources with a git history.",
)


@click.group()
def samples() -> None:
    """Build, show, import and export sample sets."""


for _command in (import_files, export, prompt):
    samples.add_command(_command)


@samples.command("list")
@home_option
def list_sets(home: Home) -> None:
    """List the sample sets in the home folder."""
    from ctxbench.bench import samples as sets

    names = sets.names(home)
    if not names:
        say("no sample sets yet; build one with `ctxbench samples build NAME --repo R`")
    for name in names:
        try:
            sample_set = sets.load(home, name)
        except InputFault as fault:
            click.echo(f"{name}  cannot be read: {fault}")
            continue
        repositories = ", ".join(sample_set.manifest["repositories"])
        click.echo(f"{name}  {len(sample_set.samples)} samples  {sample_set.digest[:12]}  {repositories}")


@samples.command()
@click.argument("name")
@click.option(
    "--kind", type=click.Choice(["line", "function"]), default="line", show_default=True, help="What to complete."
)
@click.option(
    "--repo",
    "repos",
    multiple=True,
    metavar="R",
    help="A built-in repository or a manifest's path; repeatable.",
)
@click.option(
    "--set",
    "set_name",
    metavar="S",
    help="A standard set, such as ctxbench-2 or ctxbench-2-lite; it sets the repositories, --per-repo and --seed.",
)
@language_option("Use only the repositories in this language.")
@after_option("Use only repositories released after DATE.")
@since_option
@click.option(
    "--per-repo",
    type=click.IntRange(1),
    metavar="N",
    help="Maximum number of samples per repository; default: 50, or 200 with --protocol projbench.",
)
@click.option(
    "--protocol",
    metavar="SPEC",
    help="The rules that choose lines: ctxbench (default), or projbench, also with cursor=value and "
    "first_use=member, as in projbench(cursor=value).",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed for all random choices.")
@workers_option("Functions to judge at once; with --since, files whose lines are dated at once.")
@click.option("--force", is_flag=True, help="Replace an existing set of this name.")
@sandbox_option
@home_option
@click.pass_context
def build(
    context: click.Context,
    *,
    name: str,
    kind: str,
    repos: tuple[str, ...],
    set_name: str | None,
    language: str | None,
    after: date | None,
    since: Since | None,
    per_repo: int | None,
    protocol: str | None,
    seed: int,
    workers: int,
    force: bool,
    sandbox: str | None,
    home: Home,
) -> None:
    """Build the sample set NAME from real repositories.

    A line sample is a line that uses what the repository's files import from each other, as in ProjBench; --protocol
    projbench applies only the rules of ProjBench's paper. A function sample (--kind function) is a documented function
    that the repository's own tests cover. It runs in the sandbox: its reference must pass, and an empty body must fail.
    Equal options and seeds produce equal sets.
    """
    _refuse_options(kind, since=since, sandbox=sandbox, protocol=protocol, set_name=set_name)
    from ctxbench.bench import samples as sets

    standard_set = _standard_set(context, set_name, repos)
    sets.folder(home, name)
    if standard_set is not None:
        per_repo, seed = standard_set.per_repo[kind], standard_set.seed
    manifests = _manifests(standard_set, repos, kind, language, after)
    options: dict[str, Any] = {"per_repo": per_repo, "seed": seed, "workers": workers, "force": force}
    if kind == "function":
        sample_set = build_functions(manifests, home, name, sandbox, **options)
    else:
        sample_set = build_lines(manifests, home, name, since, protocol, **options)
    click.echo(f"{name}: {len(sample_set.samples)} samples, digest {sample_set.digest}")
    if standard_set is not None and (language, after, since) == (None, None, None):
        _compare_with_published(standard_set, kind, sample_set)


def _refuse_options(
    kind: str, *, since: Since | None, sandbox: str | None, protocol: str | None, set_name: str | None
) -> None:
    if kind == "function" and protocol is not None:
        raise click.UsageError("--protocol needs --kind line; tests decide which functions become samples")
    if set_name is not None and protocol is not None:
        raise click.UsageError("--protocol needs --repo; a standard set has its own protocol")
    if kind == "function" and since is not None:
        raise click.UsageError("--since needs --kind line; functions come from releases whose tests judge them")
    if kind == "line" and sandbox is not None:
        raise click.UsageError("--sandbox needs --kind function; lines are not run")


def _manifests(
    standard_set: StandardSet | None, repos: tuple[str, ...], kind: str, language: str | None, after: date | None
) -> list[RepoManifest]:
    from ctxbench.bench.repositories import manifest

    if standard_set is None:
        manifests = [manifest.load(repo) for repo in repos]
    else:
        manifests = list(standard_set.manifests_of(kind))
    if language is not None:
        manifests = [repo_manifest for repo_manifest in manifests if repo_manifest.language == language]
        if not manifests:
            raise InputFault(f"none of the repositories is in {language}", cure="leave --language out")
    return manifests if after is None else _released_after(manifests, after)


def _standard_set(context: click.Context, name: str | None, repos: tuple[str, ...]) -> StandardSet | None:
    from ctxbench.bench import standard

    if bool(repos) == (name is not None):
        raise click.UsageError("--repo and --set are both given or both missing; give one of them")
    if name is None:
        return None
    for parameter in ("per_repo", "seed"):
        if context.get_parameter_source(parameter) is not ParameterSource.DEFAULT:
            option = parameter.replace("_", "-")
            raise click.UsageError(f"--{option} needs --repo; a standard set has its own value")
    return standard.load(name)


def _compare_with_published(standard_set: StandardSet, kind: str, sample_set: SampleSet) -> None:
    if kind not in standard_set.digests:
        say(f"no {kind} samples of {standard_set.name} are published yet; a later ctxbench may build other samples")
        return
    if sample_set.digest != standard_set.digests[kind]:
        raise InputFault(
            f"the samples differ from the published {standard_set.name}, whose digest is {standard_set.digests[kind]}"
            + _differing(standard_set.name, kind, {sample.id for sample in sample_set.samples}),
            cure="compare only with runs over the same digest, or use the version of ctxbench that published the set",
        )
    say(f"the samples are equal to the published samples of {standard_set.name}")


def _differing(name: str, kind: str, built: Set[str]) -> str:
    from ctxbench.bench.types import Kind
    from ctxbench.harness.imported import reference

    if kind not in reference.kinds(name):
        return ""
    published = {sample.id for sample in reference.load(name, Kind(kind)).samples}
    sides = {"of these are not published": built - published, "published ones are missing": published - built}
    said = [f"{len(ids)} {side}, such as {min(ids)}" for side, ids in sides.items() if ids]
    return f"; {'; '.join(said) or 'the places are equal, but texts or tests differ'}"


def _released_after(manifests: Sequence[RepoManifest], day: date) -> list[RepoManifest]:
    recent = [repo for repo in manifests if repo.released is not None and repo.released > day]
    if not recent:
        releases = ", ".join(f"{repo.name} {repo.released or '(no day)'}" for repo in manifests)
        cure = "give an earlier day, or add `released` to their manifests"
        raise InputFault(f"none of the repositories was released after {day}: {releases}", cure=cure)
    return recent


def build_lines(
    manifests: Sequence[RepoManifest], home: Home, name: str, since: Since | None, protocol: str | None, **options: Any
) -> SampleSet:
    """Build a set of line samples by `protocol`, or by ctxbench's own for None. `options` go to `lines.build.build`."""
    from ctxbench.bench.lines.build import build
    from ctxbench.bench.lines.candidates import OURS, read_protocol

    rules = OURS if protocol is None else read_protocol(protocol)
    return build(manifests, home, name, since=since, protocol=rules, report=say, progress=progress, **options)


def build_functions(
    manifests: Sequence[RepoManifest],
    home: Home,
    name: str,
    sandbox: str | None,
    *,
    per_repo: int | None,
    **options: Any,
) -> SampleSet:
    """Build a set of function samples in a sandbox. `options` are passed to `bench.functions.build.build`."""
    from ctxbench.bench.functions.build import build, check
    from ctxbench.bench.lines.candidates import OURS
    from ctxbench.sandbox import wheels

    per_repo = OURS.per_repo if per_repo is None else per_repo
    check(manifests, per_repo)
    box, lock = opened_sandbox(sandbox, home), functools.partial(wheels.lock, cache=home.cache / "sandbox", report=say)
    return build(manifests, home, name, sandbox=box, lock=lock, per_repo=per_repo, report=say, **options)


@samples.command()
@click.argument("name")
@workers_option("Samples to judge at once.")
@click.option(
    "--mark",
    is_flag=True,
    help="Mark invalid samples in the database; leaderboards and comparisons then leave them out.",
)
@sandbox_option
@home_option
@db_option
def verify(name: str, workers: int, mark: bool, sandbox: str | None, home: Home, db: str | None) -> int:
    """Run the reference and an empty body of every function sample in the set NAME.

    Exit 1 unless every reference passes and every empty body fails. With --mark, samples that violate this are stored
    as invalid (broken or vacuous), and exit 1 means a fault of the machine.
    """
    from ctxbench.bench import samples as sets
    from ctxbench.bench.functions.build import verify as verify_set

    sample_set = sets.load(home, name)
    run = functools.partial(verify_set, home, sample_set, opened_sandbox(sandbox, home), workers=workers, report=say)
    with progress("verified", len(sample_set.samples)) as tick:
        verification = run(tick=tick)
    count = len(verification.checked)
    reference, blank = (_share(part, count) for part in (verification.references_passed, verification.blanks_passed))
    click.echo(f"{name}: pass rates: reference {reference}, blank {blank}")
    if mark:
        click.echo(_store_invalid(verification, sample_set.digest, db or home.database))
        return 1 if verification.machine_faults else 0
    return 1 if verification.faults else 0


def _store_invalid(verification: Verification, digest: str, url: str) -> str:
    from ctxbench.harness.store import open_store
    from ctxbench.harness.store.notes import add_marks
    from ctxbench.harness.store.write import Mark

    marks = [
        Mark(sample_id=check.id, mark=mark, reason=reason, image=check.image)
        for check in verification.checked
        for mark, reason in check.marks()
    ]
    with open_store(url) as store:
        new = add_marks(store, digest, marks)
    counts = Counter(check.mark for check in marks)
    summary = ", ".join(f"{count} {mark}" for mark, count in sorted(counts.items()))
    return f"invalid: {summary} ({new} new)" if marks else "invalid: none"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}% ({part} of {whole})"


@samples.command()
@click.argument("name")
@click.argument("sample_id", metavar="[ID]", required=False)
@click.option("--reference", is_flag=True, help="Show the sample's reference too.")
@click.option("--ids", is_flag=True, help="List the ids, one per line.")
@home_option
def show(name: str, sample_id: str | None, reference: bool, ids: bool, home: Home) -> None:
    """Show what the set NAME contains and leaves out, or show the sample with this ID."""
    from ctxbench.bench import samples as sets

    sample_set = sets.load(home, name)
    if ids:
        click.echo("\n".join(sample.id for sample in sample_set.samples))
        return
    if sample_id is None:
        _show_set(sample_set)
        return
    _show_sample(sets.find(sample_set, sample_id), sample_set.references[sample_id] if reference else None)


def _show_set(sample_set: SampleSet) -> None:
    about = sample_set.manifest
    click.echo(
        f"{sample_set.name}: {len(sample_set.samples)} {about.get('kind', '')} samples, digest {sample_set.digest}"
    )
    made_by = ", ".join(
        f"{key} {about[key]}"
        for key in ("ctxbench", "imported_from", "prompts", "protocol", "seed", "per_repo")
        if key in about
    )
    click.echo(made_by)
    _show_import(about)
    days_of = dates_of(sample_set)
    for repo, entry in about["repositories"].items():
        mine = [sample for sample in sample_set.samples if sample.repo == repo]
        days = sorted({days_of[sample.id] for sample in mine if sample.id in days_of})
        kinds = sorted({sample.subkind for sample in mine})
        parts = ", ".join(f"{sum(sample.subkind == kind for sample in mine)} {kind}" for kind in kinds)
        click.echo(f"\n{repo} ({entry['language']}): {len(mine)} samples ({parts})")
        for key in _COUNTS:
            if key in entry:
                click.echo(f"  {key:12} {entry[key]}")
        click.echo(f"  {'dated':12} {' to '.join(map(str, dict.fromkeys([days[0], days[-1]]))) if days else 'unknown'}")
        if about.get("kind") != "function":
            click.echo(f"  {'masked':12} {sum(bool(sample.masked) for sample in mine)}")
        for key in ("copies_hidden", "copies_visible", "copies_in_file", "verbatim_elsewhere"):
            if entry.get(key):
                click.echo(f"  {key}  {entry[key]}")
        _show_tests(entry)
        if entry.get("read_with_replacement"):
            click.echo(f"  {'undecodable':12} {entry['read_with_replacement']} files")
        for label, key in _REASONS.items():
            if entry.get(key):
                click.echo(f"  {label:12} " + ", ".join(f"{reason} {count}" for reason, count in entry[key].items()))
    if sample_set.samples:
        click.echo(f"\nshow a sample with `ctxbench samples show {sample_set.name} '{sample_set.samples[0].id}'`")


def _show_tests(entry: Mapping[str, Any]) -> None:
    if "tried" in entry:
        judged = entry["tried"] - sum(entry["drops"].get(reason, 0) for reason in _UNJUDGED)
        share = f" ({entry['kept'] / judged:.1%})".replace("%", " %") if judged else ""
        click.echo(f"  {'certified':12} {entry['kept']} of {judged} that a test can judge{share}")
    if any(entry.get(key) for key in _CLOCKS):
        click.echo(f"  {'clocks':12} " + ", ".join(f"{label} {entry[key]}" for key, label in _CLOCKS.items()))
    if entry.get("mutants"):
        faults = entry["mutants"]
        noticed = f"{faults['killed']} of {faults['tried']} by judging tests, {faults['killed_by_all']} by any test"
        click.echo(f"  {'faults':12} noticed {noticed}")


def _show_import(about: Mapping[str, Any]) -> None:
    for source in about.get("sources", ()):
        click.echo(f"from {source['source']}  {source['rows']} rows, {source['digest'][:12]}")
    if about.get("unusable"):
        click.echo("left out: " + ", ".join(f"{reason} {count}" for reason, count in about["unusable"].items()))
    for remark in about.get("remarks", ()):
        click.echo(f"note: {remark}")


def _show_sample(sample: Sample, reference: Reference | None) -> None:
    click.echo(f"{sample.id}  {sample.language} {sample.subkind}")
    click.echo("uses    " + ", ".join(f"{use.name} ({use.kind} of {use.module or 'unknown'})" for use in sample.uses))
    if sample.dated:
        click.echo(f"dated   {sample.dated}")
    if sample.hidden:
        click.echo("hidden  " + ", ".join(sample.hidden))
    if sample.masked:
        click.echo("masked  lines " + ", ".join(f"{start + 1} to {end}" for start, end in sample.masked))
    click.echo()
    lines = sample.prefix.split("\n")
    first = max(0, len(lines) - _SHOWN_LINES)
    for number, line in enumerate(lines[first:], sample.first_line + first + 1):
        cursor = "▏" if number == sample.first_line + len(lines) else ""
        click.echo(f"{number:6}  {line}{cursor}")
    if reference is not None:
        click.echo("\nreference")
        for line in reference.target.split("\n"):
            click.echo(f"        {line}".rstrip())
        if reference.tests:
            click.echo("tests")
            for test in reference.tests:
                click.echo(f"        {test}{'  (reads a clock)' if test in reference.clocks else ''}")
        if reference.original_import:
            click.echo("masked import")
            for line in reference.original_import.split("\n"):
                click.echo(f"        {line}")
