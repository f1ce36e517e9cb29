"""`ctxbench quickstart` and `reproduce`: try ctxbench on real repositories, or repeat a paper's table."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import click
from click.core import ParameterSource

from ctxbench.bench.errors import CtxbenchError
from ctxbench.bench.home import Home
from ctxbench.bench.types import Kind
from ctxbench.harness.cli.options import (
    columns,
    db_option,
    format_option,
    home_option,
    limit_option,
    opened_sandbox,
    repeat_option,
    run_workers_option,
    sandbox_option,
    seed_option,
    summariser_options,
    tokenizer_option,
)
from ctxbench.harness.cli.terminal import progress, say
from ctxbench.harness.metrics import COPY_MODEL
from ctxbench.sandbox.errors import SandboxError

if TYPE_CHECKING:
    from ctxbench.bench.samples import SampleSet
    from ctxbench.harness.papers.reproduce import ComparedTable
    from ctxbench.harness.run.attempt import RunSummary
    from ctxbench.harness.store import Store


_COMPARED = ("lc.infile", "lc.repocoder(iterations=1)")
_STORED = {
    Kind.LINE: (*_COMPARED, "oracle-context"),
    Kind.FUNCTION: ("icl.direct", "icl.rag(encoder=bm25)", "icl.infile(encoder=bm25)", "gold", "blank"),
}
_LIVE = {Kind.LINE: 6, Kind.FUNCTION: 5}
_BESIDE = 3

_Texts: TypeAlias = "dict[str, Mapping[str, str]]"


@click.command()
@click.option(
    "--model",
    default="",
    metavar="NAME",
    help="Fetch this model (see `ctxbench model list`) and let the model answer too: --limit samples of each kind, or "
    f"{_LIVE[Kind.LINE]} lines and {_LIVE[Kind.FUNCTION]} functions.",
)
@limit_option
@sandbox_option
@home_option
@db_option
def quickstart(*, model: str, limit: int | None, sandbox: str | None, home: Home, db: str | None) -> None:
    """Try ctxbench: fetch real repositories, build samples, and show how a code model completes them.

    The output compares strategies by a published model's stored answers. For functions, the repositories' own tests
    also judge each function's own code and an empty body in a sandbox. With --model, that model also answers on this
    machine. Needs no GPU, and without --model no weights. Results are stored, so running it again takes seconds.
    """
    from ctxbench.bench import quickstart as job
    from ctxbench.harness.store import open_store

    # Open the database and the model first, so that their faults do not appear after minutes of building samples.
    with open_store(db or home.database) as store:
        live = _generators(model) if model else None
        steps = _Steps(home, store)
        lines = job.sample_set(home, job.fetch_set(home, say), workers=os.cpu_count() or 1, report=say)
        steps.built(lines)
        stored = steps.show_stored(lines, model)
        if live:
            steps.answer(lines, _COMPARED, live[Kind.LINE], limit or _LIVE[Kind.LINE], stored)
        # Print the results of the lines first: functions take minutes.
        try:
            judge = opened_sandbox(sandbox, home)
            manifests = job.fetch_set(home, say, job.FUNCTION_SET)
            functions = job.function_set(home, manifests, judge, workers=os.cpu_count() or 1, report=say)
            steps.built(functions)
            steps.show_stored(functions, model)
            steps.judge(functions, limit, judge.name)
            if live:
                steps.answer(functions, ("icl.direct",), live[Kind.FUNCTION], limit or _LIVE[Kind.FUNCTION], {})
        except (CtxbenchError, SandboxError) as missing:
            # The lines are already printed. The exit code and the last line report the fault.
            steps.faults.append(missing)
    if not live:
        say("Next: let a model answer on this machine with `make quickstart MODEL=smollm2-135m` (docs/first-model.md)")
    say(
        "Next: compare all other strategies with `ctxbench results import --reference ctxbench-2-lite` and "
        "`ctxbench leaderboard`; then write your own (`ctxbench strategy --help`)"
    )
    for fault in steps.faults:
        raise fault


def _generators(model: str) -> dict[Kind, str]:
    from ctxbench.bench.retrieval.encoders import weights
    from ctxbench.harness.cli.model import ensure_fetched
    from ctxbench.harness.generators import serve
    from ctxbench.harness.generators.models import find

    entry, engine = find(model), "hf"
    if not all(map(importlib.util.find_spec, ("torch", "transformers", "gguf", "accelerate"))):
        weights.need(("xllamacpp",), where=f"--model {model}", cure=serve.CURE)
        engine = "serve"
    ensure_fetched(entry)
    return {Kind.LINE: f"{engine}(model={model})", Kind.FUNCTION: f"{engine}(model={model}, chat=on)"}


@dataclass(frozen=True, slots=True)
class _Steps:
    home: Home
    store: Store
    faults: list[CtxbenchError | SandboxError] = field(default_factory=list)

    def built(self, sample_set: SampleSet) -> None:
        repositories = len(sample_set.manifest["repositories"])
        say(
            f"{len(sample_set.samples)} samples of {repositories} repositories in {self.home.samples / sample_set.name}"
        )

    def show_stored(self, sample_set: SampleSet, model: str) -> _Texts:
        from ctxbench.bench import quickstart as job
        from ctxbench.bench import standard
        from ctxbench.harness.imported import reference

        kind = sample_set.samples[0].kind
        name = job.SET if kind is Kind.LINE else standard.whole_name(job.SET)
        files = [file for file in reference.models(name, kind).values() if file.model != COPY_MODEL]
        # The sort is stable: with an unknown model, the first file stays first.
        files.sort(key=lambda file: file.model != model)
        if not files:
            return {}
        file = files[0]
        summaries = reference.store_files(self.store, [file], progress=progress)
        click.echo(
            f"STORED ANSWERS: {file.runs[0].generator} answered these {len(file.samples)} {kind}s earlier, on another "
            "machine. Its answers ship with ctxbench; no model was asked now.\n"
        )
        self._show([summary.run for summary in summaries if summary.strategy in _STORED[kind]])
        if kind is not Kind.LINE:
            return {}
        ids = [sample.id for sample in file.samples]
        rows = [run for run in file.runs if run.strategy in _COMPARED]
        texts: _Texts = {f"stored, {run.strategy}": dict(zip(ids, run.texts, strict=True)) for run in rows}
        exact = [run.scores["ctxbench"]["em"] for run in rows]
        click.echo("\nThe first lines that the model completed exactly with one strategy but not with the other:\n")
        told_apart = [id_ for id_, *hits in zip(ids, *exact, strict=True) if len(set(hits)) > 1]
        self._show_answers(sample_set, told_apart[:_BESIDE], texts)
        return texts

    def judge(self, functions: SampleSet, limit: int | None, sandbox: str) -> None:
        summaries = self._run(functions, ("gold", "blank"), COPY_MODEL, limit, sandbox)
        named = ("gold, each function's own code", "blank, an empty body")
        counts = [
            (f"  {name}", f"{sum(of.passes)} of {len(of.passes)} pass")
            for name, of in zip(named, summaries, strict=True)
        ]
        click.echo("\n".join(["\nJUDGED NOW, here, by the projects' own tests:\n", *columns(counts)]))

    def answer(
        self, sample_set: SampleSet, strategies: Sequence[str], generator: str, limit: int, beside: _Texts
    ) -> None:
        from ctxbench.harness.exported import completed

        there = len(sample_set.samples)
        named = f"{min(limit, there)} of the {there} {sample_set.samples[0].kind}s"
        click.echo(f"\nANSWERED NOW, here, by {generator}: {named}.\n")
        summaries = self._run(sample_set, strategies, generator, limit)
        self._show([summary.run for summary in summaries])
        if beside:
            texts: _Texts = {
                f"now, {of.strategy}": {
                    id_: texts[0].text for id_, texts in completed(self.store, of.run).texts.items()
                }
                for of in summaries
            }
            click.echo(f"\nAnswers by {generator} and by the model above:\n")
            self._show_answers(sample_set, list(next(iter(texts.values()))), texts | beside)

    def _run(
        self,
        sample_set: SampleSet,
        strategies: Sequence[str],
        generator: str,
        limit: int | None,
        sandbox: str | None = None,
    ) -> list[RunSummary]:
        from ctxbench.harness.run.runner import fault_of, run
        from ctxbench.harness.run.spec import RunOptions

        summaries = run(
            self.home,
            self.store,
            sample_set,
            strategies=strategies,
            generator=generator,
            choices=RunOptions(limit=limit, sandbox=sandbox, measure=frozenset()),
            progress=progress,
        )
        if (fault := fault_of(summaries)) is not None:
            self.faults.append(fault)
        return summaries

    def _show(self, run_ids: Collection[str]) -> None:
        from ctxbench.harness import cutoffs
        from ctxbench.harness.cli.leaderboard import printed
        from ctxbench.harness.leaderboard import board
        from ctxbench.harness.store.runs import run_tables

        tables = [table for table in run_tables(self.store) if table.run.id in run_ids]
        if tables:
            click.echo(printed(board(tables, cutoffs=cutoffs.of_home(self.home)), "table"), nl=False)

    def _show_answers(self, sample_set: SampleSet, ids: Sequence[str], texts: _Texts) -> None:
        from ctxbench.bench.escaping import visible

        # Repositories that could not be fetched have no samples here.
        for id_ in [id_ for id_ in ids if id_ in sample_set.references]:
            target = sample_set.references[id_].target
            answers = [
                ("the true line", target),
                *((name, of_sample.get(id_, "")) for name, of_sample in texts.items()),
            ]
            rows = [(f"  {name}", visible(" ".join(text.split()))) for name, text in answers]
            click.echo("\n".join([visible(id_), *columns(rows), ""]))


_WIDEST = 120


def _check_without(choices: Collection[str], refusal: str) -> None:
    """Raise a usage error for options that have no effect. `refusal` is a message with braces for the option's name."""
    context = click.get_current_context()
    for name in choices:
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise click.UsageError(refusal.format(f"--{name.replace('_', '-')}"))


@click.command()
@click.argument("table")
@click.option(
    "--generator",
    "generators",
    multiple=True,
    metavar="SPEC",
    help="A model for every row (see `ctxbench generator list`); repeatable. Without a model, only the "
    "paper's numbers are shown.",
)
@summariser_options
@tokenizer_option
@click.option(
    "--samples",
    multiple=True,
    metavar="NAME",
    help="A sample set; repeatable.  [default: the quick start's]",
)
@click.option(
    "--encoder",
    metavar="SPEC",
    help="Use this encoder (minilm, hashed, …) instead of each row's own; the output says so.",
)
@limit_option
@click.option(
    "--stored",
    is_flag=True,
    help="Run nothing; show stored runs, also those that ship with ctxbench, over the samples that all runs share.",
)
@run_workers_option
@seed_option("Random seed for strategies.")
@repeat_option
@format_option("table", "json", "markdown")
@sandbox_option
@home_option
@db_option
def reproduce(
    *,
    table: str,
    generators: tuple[str, ...],
    samples: tuple[str, ...],
    encoder: str | None,
    stored: bool,
    form: str,
    home: Home,
    db: str | None,
    **choices: Any,
) -> None:
    """Run every strategy of a paper's table and print the results beside the paper's numbers.

    TABLE is icl-table1, icl-table2, icl-table3 or icl-table4 (functions), infercom-table3, infercom-table4,
    infercom-table5, infercom-table6 or infercom-section6.4 (lines).

    Rows that differ only in the model become one run per generator. Below the table, the output shows the average gains
    that the paper states, and how many tasks each combination of rows solves. Unless samples, model and encoder are the
    paper's, the output lists the differences and is not a reproduction. Run the command again to do only what is
    missing. Table 6 of the InferCom paper needs five runs (--repeat 5).
    """
    from ctxbench.bench.spec import parse
    from ctxbench.harness import paper_tables
    from ctxbench.harness.papers import reproduce as job
    from ctxbench.harness.run.spec import RunOptions
    from ctxbench.harness.store import open_store

    paper_table = paper_tables.table(table)
    if encoder is not None:
        parse(encoder)
    fault: CtxbenchError | None = None
    if not generators:
        _check_without(("stored", "samples", "encoder", *choices), "{} needs --generator too")
        specs = job.specs_of(paper_table, None)
        beside = job.ComparedTable(table=paper_table, generators=(), encoder=None, specs=specs, ours={})
    elif stored:
        _check_without(choices, "--stored runs nothing; leave out {}")
        with open_store(db or home.database) as store:
            beside = job.stored(store, paper_table, samples, generators=generators, encoder=encoder)
    else:
        sample_sets = job.load_sets(home, samples, paper_table.kind)
        with open_store(db or home.database) as store:
            beside, fault = job.run(
                home,
                store,
                paper_table,
                sample_sets,
                generators=generators,
                encoder=encoder,
                choices=RunOptions(**choices),
                progress=progress,
            )
    click.echo(_printed(beside, form), nl=False)
    if fault is not None:
        raise fault


def _printed(beside: ComparedTable, form: str) -> str:
    from ctxbench.harness.papers import render

    if form == "json":
        return render.to_json(beside, beside.languages)
    if form == "markdown":
        return render.markdown(beside, beside.languages)
    width = min(_WIDEST, shutil.get_terminal_size().columns) if sys.stdout.isatty() else _WIDEST
    return render.table(beside, beside.languages, width=width)
