"""Options shared by commands, their environment variables (read nowhere else), and tables as text."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from ctxbench.bench import languages
from ctxbench.bench.dates import read_date
from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.bench.home import Home
from ctxbench.harness.cli.terminal import say
from ctxbench.harness.metrics import MOST_K
from ctxbench.harness.results import EVERY, Measurement
from ctxbench.sandbox.registry import SPELLINGS, read_name

if TYPE_CHECKING:
    from ctxbench.harness.run.scheduling import Share
    from ctxbench.sandbox.types import Sandbox

F = TypeVar("F", bound=Callable[..., Any])


class Finite(click.FloatRange):
    """A finite number in a range. ``inf`` and ``nan``, which click's ranges accept, are refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is no finite number", param, ctx)
        return number


class FormatChoice(click.types.StringParamType):
    """The name of an installed format. A format is imported when it is used, and all are for the help text."""

    name = "format"

    def __init__(
        self, files: Literal["samples", "predictions"], also: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Accept formats of `files`, and those of `also`: name -> description of their fields."""
        self.files, self._also = files, also

    def names(self) -> tuple[str, ...]:
        """Return the names to choose from, sorted."""
        from ctxbench.bench import formats

        names = formats.sample_names() if self.files == "samples" else formats.prediction_names()
        return tuple(sorted({*names, *self._also}))

    def shape(self, name: str) -> str:
        """Return the fields that a format reads."""
        from ctxbench.bench import formats

        if name in self._also:
            return self._also[name]
        return (formats.samples(name) if self.files == "samples" else formats.predictions(name)).shape

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """Return the names for the help text."""
        return f"[{'|'.join(self.names())}]"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name of an installed format; raise the fault of a plug-in that cannot be imported."""
        try:
            self.shape(value)
        except UnknownName:
            self.fail(f"{value!r} is not one of {', '.join(map(repr, self.names()))}.", param, ctx)
        return value


class WithShapes(click.Command):
    """A command whose help lists the fields of each format that its ``--format`` accepts."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of shapes."""
        with formatter.section("Shapes"):
            formatter.write_dl(self.shapes())

    def shapes(self) -> list[tuple[str, str]]:
        """Return name and fields of every format."""
        [choice] = [param.type for param in self.params if isinstance(param.type, FormatChoice)]
        return [(name, choice.shape(name)) for name in choice.names()]


class ExportChoice(FormatChoice):
    """The name of a format for exporting a stored run: predictions, or whole runs."""

    def names(self) -> tuple[str, ...]:
        """Return the names to choose from, sorted."""
        from ctxbench.harness.exports import RUN_FORMATS

        return tuple(sorted({*super().names(), *RUN_FORMATS}))

    def shape(self, name: str) -> str:
        """Return the fields of a format."""
        from ctxbench.harness.exports import RUN_FORMATS

        return RUN_FORMATS[name].shape if name in RUN_FORMATS else super().shape(name)


def sandbox_choice(text: str, *beside: str) -> Callable[[F], F]:
    """Add ``--sandbox``; the command receives a back end's name, a word of `beside`, or None for the default."""

    def check(_: click.Context, param: click.Parameter, value: str | None) -> str | None:
        if value is not None and value not in beside and read_name(value) is None:
            words = ", ".join((SPELLINGS.replace(" or", ","), *beside))
            raise click.BadParameter(f"{value!r} is none of {words}", param=param)
        return value

    metavar = f"[{'|'.join(('docker', 'bubblewrap', *beside))}]"
    text = f"{text} Default: docker where an engine answers, else bubblewrap."
    return click.option("--sandbox", metavar=metavar, callback=check, default=None, help=text)


sandbox_option = sandbox_choice("Where tests run.")


def opened_sandbox(name: str | None, home: Home) -> Sandbox:
    """Open the back end that ``--sandbox`` names, and print its name on stderr.

    Raises:
        SandboxUnavailable: if it does not work on this machine.
    """
    from ctxbench.sandbox.registry import open_sandbox

    back_end = open_sandbox(name, home.cache / "sandbox")
    say(f"tests run in {back_end.name}")
    return back_end


def workers_option(text: str) -> Callable[[F], F]:
    """Add ``--workers``; the default is the number of cores."""
    return click.option(
        "--workers", type=click.IntRange(1), default=os.cpu_count() or 1, show_default="all cores", help=text
    )


run_workers_option = click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="W",
    help="Strategies, and tests of functions, at work at once; default: one a core.",
)
samples_option = click.option(
    "--samples", required=True, metavar="NAME", help="The sample set (see `ctxbench samples list`)."
)
limit_option = click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", help="Take N samples, from the repositories in turn."
)


def seed_option(text: str) -> Callable[[F], F]:
    """Add ``--seed``, a non-negative integer of up to 63 bits."""
    return click.option(
        "--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, metavar="S", help=text
    )


def columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table, each column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def check_line(name: str, detail: str, *, passed: bool, width: int) -> str:
    """Return the line of a check, with the checked code's text on one line and its control characters escaped."""
    from ctxbench.bench.escaping import visible

    return f"{'pass' if passed else 'FAIL'}  {name:{width}}  {visible(' '.join(detail.split()))}"


home_option = click.option(
    "--home",
    envvar="CTXBENCH_HOME",
    default=".ctxbench",
    show_default=True,
    callback=lambda _, __, value: Home.of(value),
    metavar="FOLDER",
    help="Where repositories, samples and results are kept (CTXBENCH_HOME).",
)
"""``--home``; the command receives a `Home`."""


db_option = click.option(
    "--db",
    envvar="CTXBENCH_DB",
    default=None,
    metavar="URL",
    help="SQLAlchemy URL of the results (CTXBENCH_DB); default: results.db in the home folder.",
)
"""``--db``; the command receives a SQLAlchemy URL, or None for the home's own database."""


def engine_options(function: F) -> F:
    """Add ``--engine`` and ``--address``; the command receives both, the address as text or None."""

    def check(ctx: click.Context, _: click.Parameter, value: str | None) -> str | None:
        if value is not None and ctx.params.get("engine") != "ray":
            raise click.UsageError("--address is of a cluster: give --engine ray too")
        return value

    function = click.option(
        "--address",
        metavar="ADDRESS",
        default=None,
        callback=check,
        help="With --engine ray: the cluster's head, HOST:PORT or auto; default: a cluster of this machine alone.",
    )(function)
    return click.option(
        "--engine",
        type=click.Choice(["local", "ray"]),
        default="local",
        show_default=True,
        is_eager=True,
        help="Who does the work: this machine, or the nodes of a Ray cluster (docs/scale.md).",
    )(function)


def share_option(what: str) -> Callable[[F], F]:
    """Add ``--shard``; the command receives ``share``, a `Share` or None."""
    return click.option(
        "--shard",
        "share",
        metavar="I/N",
        default=None,
        callback=_share,
        help=f"Do only part I, from 0, of N equal parts of {what}, and write the results as files that "
        "`ctxbench merge` brings into one database (docs/scale.md).",
    )


def _share(ctx: click.Context, param: click.Parameter, value: str | None) -> Share | None:
    from ctxbench.harness.run.scheduling import Share

    try:
        return None if value is None else Share.parse(value)
    except InputFault as fault:
        raise click.BadParameter(f"{fault.what}; {fault.cure}", ctx, param) from None


def format_by_ending(out: Path | None, form: str | None, endings: Mapping[str, str]) -> str:
    """Return the format of an output file: the requested one, or the one of the file name's ending.

    Args:
        out: the file; None takes the first format.
        form: the requested format.
        endings: format -> ending of its files.

    Raises:
        InputFault: if neither determines the format.
    """
    if form is not None or out is None:
        return form or next(iter(endings))
    for name, ending in endings.items():
        if out.suffix.lower() == ending:
            return name
    listed = ", ".join(endings.values())
    what = f"ends in {out.suffix!r}, which says no format" if out.suffix else "has no ending that says its format"
    raise InputFault(what, where=str(out), cure=f"let it end in one of {listed}, or give --format")


def format_option(*forms: str, text: str = "How to print it.") -> Callable[[F], F]:
    """Add ``--format``, by default the first of `forms`; the command receives it as ``form``."""
    return click.option("--format", "form", type=click.Choice(forms), default=forms[0], show_default=True, help=text)


base_image_option = click.option(
    "--base-image",
    envvar="CTXBENCH_BASE_IMAGE",
    default="python:3.11-slim-bookworm",
    show_default=True,
    metavar="IMAGE",
    help="The Docker image that the sandbox's images are built on (CTXBENCH_BASE_IMAGE).",
)
"""``--base-image``; the command receives its name."""


prices_option = click.option(
    "--prices",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Price the stored tokens by this file's rates (docs/board.md#costs); default: as when they were asked for.",
)
"""``--prices``; the command receives a path, or None for the stored prices."""


strategy_seconds_option = click.option(
    "--strategy-seconds",
    type=Finite(min=0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="S",
    help="Processor time of a strategy for one sample, in seconds; waiting for the model or a processor is none.",
)
"""``--strategy-seconds``; the command receives a number above 0."""


def summariser_options(function: F) -> F:
    """Add ``--summariser`` and its options.

    The command receives a spec (empty for none), a flag, and ``summary_templates`` (empty for ctxbench's own).
    """

    def check(context: click.Context, _: click.Parameter, value: bool) -> bool:
        if value and not context.params.get("summariser"):
            raise click.UsageError("--summarise-tests is for --summariser: a run's own generator is asked about all")
        return value

    def read(context: click.Context, _: click.Parameter, value: Path | None) -> Mapping[str, str]:
        if value is None:
            return {}
        if not context.params.get("summariser"):
            raise click.UsageError("--summary-template is for --summariser: name the model that is asked")
        from ctxbench.bench import apis

        return apis.released_templates(value)

    function = click.option(
        "--summary-template",
        "summary_templates",
        type=click.Path(path_type=Path),
        callback=read,
        metavar="DIR",
        help="Ask the summariser with the text of InferCom's release; DIR is a checkout of it (see docs/strategy.md).",
    )(function)
    function = click.option(
        "--summarise-tests",
        is_flag=True,
        callback=check,
        help="Ask the summariser about functions in tests and vendored files too, not only about the others.",
    )(function)
    return click.option(
        "--summariser",
        default="",
        metavar="SPEC",
        is_eager=True,
        help="The model that writes the summaries of APIs and of drafts (lc.infercom, aim); default: the generator.",
    )(function)


tokenizer_option = click.option(
    "--tokenizer",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Count budgets, and compare windows, in tokens of p50k_base, as the papers do; its vocabulary is in FILE "
    "(see docs/strategies.md); default: in those of ctxcode-1.",
)
"""``--tokenizer``; the command receives the path of a file, or None."""


def _ks(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[int, ...]:
    words = [word.strip() for value in values for word in value.split(",")]
    wrong = [word for word in words if not (word.isascii() and word.isdigit() and 0 < int(word) <= MOST_K)]
    if wrong:
        raise click.BadParameter(f"{wrong[0]!r} is no whole number from 1 on", param_hint="--k")
    return tuple(sorted({int(word) for word in words}))


k_option = click.option(
    "--k",
    "ks",
    multiple=True,
    callback=_ks,
    metavar="K",
    help="Say pass@K; give several with commas, or the option again.  [default: 1]",
)
"""``--k``, repeatable or with commas; the command receives ``ks``, sorted integers from 1."""


def check_ks(ks: tuple[int, ...], n: int, *, functions: bool, samples: str) -> None:
    """Refuse a pass@k that cannot be estimated.

    Raises:
        InputFault: if a k exceeds the number of completions, or the set has no functions.
    """
    if ks and not functions:
        raise InputFault(f"pass@{ks[0]} is of functions, and the sample set {samples!r} has none", cure="leave --k out")
    if ks and ks[-1] > n:
        raise InputFault(f"pass@{ks[-1]} cannot be estimated from {n} completions", cure=f"give --n {ks[-1]} or more")


def after_option(text: str) -> Callable[[F], F]:
    """Add ``--after``; the command receives a date or None."""
    return click.option("--after", metavar="DATE", default=None, callback=_day, help=text)


def _day(ctx: click.Context, param: click.Parameter, value: str | None) -> date | None:
    try:
        return None if value is None else read_date(value)
    except ValueError as error:
        raise click.BadParameter(f"{error}; write it as 2024-06-01", ctx, param) from None


def language_option(text: str) -> Callable[[F], F]:
    """Add ``--language``, a registered language."""
    return click.option("--language", type=click.Choice(languages.names()), default=None, help=text)


def measure_option(text: str, *, more: Sequence[str] = ()) -> Callable[[F], F]:
    """Add ``--measure``; the command receives a set of `Measurement`, by default all."""

    def read(_: click.Context, __: click.Parameter, names: tuple[str, ...]) -> frozenset[Measurement]:
        return frozenset(Measurement(name) for name in names if name not in more) if names else EVERY

    choice = click.Choice([*more, *map(str, Measurement)])
    return click.option("--measure", "measure", multiple=True, type=choice, callback=read, help=text)


repeat_option = click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="R",
    help="Runs of each strategy, with the seeds S, S+1, …: one row of the leaderboard, which says what part of its "
    "uncertainty repetition has (docs/statistics.md).",
)
"""``--repeat``; the command receives the number of runs of each strategy."""
