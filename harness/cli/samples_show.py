"""The output of ``ctxbench samples show``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ctxbench.bench.samples import SampleSet
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
_CLOCKS = {"kept_clocks_only": "judged only by tests that read a clock", "kept_clocks_too": "judged by such tests too"}


def show_set(sample_set: SampleSet) -> None:
    """Print the contents of a set, and what was dropped when it was built."""
    about = sample_set.manifest
    click.echo(
        f"{sample_set.name}: {len(sample_set.samples)} {about.get('kind', '')} samples, digest {sample_set.digest}"
    )
    made_by = ", ".join(
        f"{key} {about[key]}" for key in ("ctxbench", "imported_from", "prompts", "seed", "per_repo") if key in about
    )
    click.echo(made_by)
    _show_import(about)
    for repo, entry in about["repositories"].items():
        mine = [sample for sample in sample_set.samples if sample.repo == repo]
        kinds = sorted({sample.subkind for sample in mine})
        parts = ", ".join(f"{sum(sample.subkind == kind for sample in mine)} {kind}" for kind in kinds)
        click.echo(f"\n{repo} ({entry['language']}): {len(mine)} samples ({parts})")
        for key in _COUNTS:
            if key in entry:
                click.echo(f"  {key:12} {entry[key]}")
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
        click.echo(f"\nsee one with `ctxbench samples show {sample_set.name} '{sample_set.samples[0].id}'`")


def _show_tests(entry: Mapping[str, Any]) -> None:
    """Print how reliable the tests of a repository are."""
    if any(entry.get(key) for key in _CLOCKS):
        click.echo(f"  {'clocks':12} " + ", ".join(f"{label} {entry[key]}" for key, label in _CLOCKS.items()))
    if entry.get("mutants"):
        faults = entry["mutants"]
        noticed = f"{faults['killed']} of {faults['tried']} noticed, {faults['killed_by_all']} by all tests that run it"
        click.echo(f"  {'faults':12} {noticed}")


def _show_import(about: Mapping[str, Any]) -> None:
    """Print the sources of an imported set, the tasks left out, and the remarks for readers of its numbers."""
    for source in about.get("sources", ()):
        click.echo(f"from {source['source']}  {source['rows']} rows, {source['digest'][:12]}")
    if about.get("unusable"):
        click.echo("left out: " + ", ".join(f"{reason} {count}" for reason, count in about["unusable"].items()))
    for remark in about.get("remarks", ()):
        click.echo(f"note: {remark}")


def show_sample(sample: Sample, reference: Reference | None) -> None:
    """Print a sample for a person to read, with its answer if that is passed."""
    click.echo(f"{sample.id}  {sample.language} {sample.subkind}")
    click.echo("uses    " + ", ".join(f"{use.name} ({use.kind} of {use.module or 'unknown'})" for use in sample.uses))
    if sample.hidden:
        click.echo("hidden  " + ", ".join(sample.hidden))
    if sample.masked:
        click.echo("masked  lines " + ", ".join(f"{start + 1} to {end}" for start, end in sample.masked))
    click.echo()
    lines = sample.prefix.split("\n")
    first = max(0, len(lines) - _SHOWN_LINES)
    for number, line in enumerate(lines[first:], sample.context_start + first + 1):
        cursor = "▏" if number == sample.context_start + len(lines) else ""
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
