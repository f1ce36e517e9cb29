"""Options that commands share, with their environment variables, and tables as text."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
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
    """A finite number in a range; refuses ``inf`` and ``nan``, which click's ranges accept."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the value as a number; fail if it is not a finite number in the range."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number


class FormatChoice(click.types.StringParamType):
    """Option type for the name of a format. All formats are imported only for help and for an unknown name's error."""

    name = "format"

    def __init__(self, files: Literal["samples", "predictions"]) -> None:
        """Accept the installed formats for `files`."""
        self.files = files

    def names(self) -> tuple[str, ...]:
        """Return the names of the formats to choose from, sorted."""
        from ctxbench.bench import formats

        return tuple(sorted(formats.sample_names() if self.files == "samples" else formats.prediction_names()))

    def shape(self, name: str) -> str:
        """Return the description of a format's fields."""
        from ctxbench.bench import formats

        return (formats.samples(name) if self.files == "samples" else formats.predictions(name)).shape

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """Return the accepted format names for the help text."""
        return f"[{'|'.join(self.names())}]"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the format's name; fail if no installed format has it. Errors of a plug-in's import are raised."""
        try:
            self.shape(value)
        except UnknownName:
            self.fail(f"{value!r} is not one of {', '.join(map(repr, self.names()))}.", param, ctx)
        return value


class WithShapes(click.Command):
    """A command whose help lists the fields of each format that ``--format`` accepts."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of formats and their fields."""
        with formatter.section("Shapes"):
            formatter.write_dl(self.shapes())

    def shapes(self) -> list[tuple[str, str]]:
        """Return the name of each format and the description of its fields."""
        [choice] = [param.type for param in self.params if isinstance(param.type, FormatChoice)]
        return [(name, choice.shape(name)) for name in choice.names()]


class ExportChoice(FormatChoice):
    """Option type for export formats: predictions, or whole runs."""

    def names(self) -> tuple[str, ...]:
        """Return the names of the formats to choose from, sorted."""
        from ctxbench.harness.exports import RUN_FORMATS

        return tuple(sorted({*super().names(), *RUN_FORMATS}))

    def shape(self, name: str) -> str:
        """Return the description of a format's fields."""
        from ctxbench.harness.exports import RUN_FORMATS

        return RUN_FORMATS[name].shape if name in RUN_FORMATS else super().shape(name)


def sandbox_choice(text: str, *beside: str) -> Callable[[F], F]:
    """Return a decorator that adds ``--sandbox``.

    The command receives the name of the back end, one of the words in `beside`, or None for the default.
    """

    def check(_: click.Context, param: click.Parameter, value: str | None) -> str | None:
        if value is not None and value not in beside and read_name(value) is None:
            words = ", ".join((SPELLINGS.replace(" or", ","), *beside))
            raise click.BadParameter(f"{value!r} is not one of {words}", param=param)
        return value

    metavar = f"[{'|'.join(('docker', 'bubblewrap', *beside))}]"
    text = f"{text} Default: docker if it runs, otherwise bubblewrap."
    return click.option("--sandbox", metavar=metavar, callback=check, default=None, help=text)


sandbox_option = sandbox_choice("Where tests run.")


def opened_sandbox(name: str | None, home: Home) -> Sandbox:
    """Open the sandbox named by ``--sandbox``, or the default, and print its name on stderr.

    Raises:
        SandboxUnavailable: if the sandbox does not work on this machine.
    """
    from ctxbench.sandbox.registry import open_sandbox

    back_end = open_sandbox(name, home.cache / "sandbox")
    say(f"tests run in {back_end.name}")
    return back_end


def workers_option(text: str) -> Callable[[F], F]:
    """Return a decorator that adds ``--workers``, by default the number of cores."""
    return click.option(
        "--workers", type=click.IntRange(1), default=os.cpu_count() or 1, show_default="all cores", help=text
    )


run_workers_option = click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="W",
    help="Strategies and function tests to run at once; default: the number of cores.",
)
samples_option = click.option(
    "--samples", required=True, metavar="NAME", help="The sample set (see `ctxbench samples list`)."
)
limit_option = click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", help="Use only N samples, taken from the repositories in turn."
)


def seed_option(text: str) -> Callable[[F], F]:
    """Return a decorator that adds ``--seed``, a non-negative integer of up to 63 bits."""
    return click.option(
        "--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, metavar="S", help=text
    )


def columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield rows as lines of text with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def check_line(name: str, detail: str, *, passed: bool, width: int) -> str:
    """Return a line for the result of one check, with control characters in `detail` escaped."""
    from ctxbench.bench.escaping import visible

    return f"{'pass' if passed else 'FAIL'}  {name:{width}}  {visible(' '.join(detail.split()))}"


home_option = click.option(
    "--home",
    envvar="CTXBENCH_HOME",
    default=".ctxbench",
    show_default=True,
    callback=lambda _, __, value: Home.of(value),
    metavar="FOLDER",
    help="Folder of repositories, samples and results (CTXBENCH_HOME).",
)


db_option = click.option(
    "--db",
    envvar="CTXBENCH_DB",
    default=None,
    metavar="URL",
    help="SQLAlchemy URL of the results (CTXBENCH_DB); default: results.db in the home folder.",
)
"""``--db``: the command receives a SQLAlchemy URL, or None for the home's own database."""


def engine_options(function: F) -> F:
    """Add ``--engine`` and ``--address``. The command receives both; the address is None for no or a new cluster."""

    def check(ctx: click.Context, _: click.Parameter, value: str | None) -> str | None:
        if value is not None and ctx.params.get("engine") != "ray":
            raise click.UsageError("--address needs a cluster; give --engine ray too")
        return value

    function = click.option(
        "--address",
        metavar="ADDRESS",
        default=None,
        callback=check,
        help="With --engine ray: the cluster's head, HOST:PORT or auto; default: a new cluster on this machine.",
    )(function)
    return click.option(
        "--engine",
        type=click.Choice(["local", "ray"]),
        default="local",
        show_default=True,
        is_eager=True,
        help="Run on this machine, or on the nodes of a Ray cluster (docs/scale.md).",
    )(function)


def share_option(what: str) -> Callable[[F], F]:
    """Return a decorator that adds ``--shard``. The command receives ``share``, a `Share` or None."""
    return click.option(
        "--shard",
        "share",
        metavar="I/N",
        default=None,
        callback=_share,
        help=f"Run only part I, counted from 0, of N equal parts of {what}, and write the results to files; "
        "`ctxbench merge` collects them in one database (docs/scale.md).",
    )


def _share(ctx: click.Context, param: click.Parameter, value: str | None) -> Share | None:
    from ctxbench.harness.run.scheduling import Share

    try:
        return None if value is None else Share.parse(value)
    except InputFault as fault:
        raise click.BadParameter(f"{fault.what}; {fault.cure}", ctx, param) from None


def format_by_ending(out: Path | None, form: str | None, endings: Mapping[str, str]) -> str:
    """Return the requested format, or that of the file's ending. Without format and file, return the first format.

    Raises:
        InputFault: if no format is requested, and the file's ending is unknown or missing.
    """
    if form is not None or out is None:
        return form or next(iter(endings))
    for name, ending in endings.items():
        if out.suffix.lower() == ending:
            return name
    listed = ", ".join(endings.values())
    what = f"the ending {out.suffix!r} is not a known format" if out.suffix else "the file name has no ending"
    raise InputFault(what, where=str(out), cure=f"use one of {listed}, or give --format")


def format_option(*forms: str, text: str = "Output format.") -> Callable[[F], F]:
    """Return a decorator that adds ``--format``, by default the first of `forms`. The command receives ``form``."""
    return click.option("--format", "form", type=click.Choice(forms), default=forms[0], show_default=True, help=text)


base_image_option = click.option(
    "--base-image",
    envvar="CTXBENCH_BASE_IMAGE",
    default="python:3.11-slim-bookworm",
    show_default=True,
    metavar="IMAGE",
    help="The Docker image that the sandbox's images are built on (CTXBENCH_BASE_IMAGE).",
)


prices_option = click.option(
    "--prices",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Price stored tokens by the rates in FILE (docs/board.md#costs); default: the rates at the time of the run.",
)
"""``--prices``: the command receives a path, or None for the prices stored with the runs."""


strategy_seconds_option = click.option(
    "--strategy-seconds",
    type=Finite(min=0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="S",
    help="Processor seconds that a strategy may use per sample; waiting for the model or a processor does not count.",
)


def summariser_options(function: F) -> F:
    """Add ``--summariser``, ``--summarise-tests`` and ``--summary-template``.

    The command receives a spec (empty for none), a flag, and ``summary_templates`` (empty for ctxbench's own
    templates).
    """

    def check(context: click.Context, _: click.Parameter, value: bool) -> bool:
        if value and not context.params.get("summariser"):
            raise click.UsageError(
                "--summarise-tests needs --summariser; without a summariser, all functions are summarised anyway"
            )
        return value

    def read(context: click.Context, _: click.Parameter, value: Path | None) -> Mapping[str, str]:
        if value is None:
            return {}
        if not context.params.get("summariser"):
            raise click.UsageError("--summary-template needs --summariser; name the model that writes the summaries")
        from ctxbench.bench import apis

        return apis.released_templates(value)

    function = click.option(
        "--summary-template",
        "summary_templates",
        type=click.Path(path_type=Path),
        callback=read,
        metavar="DIR",
        help="Use InferCom's released prompt for the summariser; DIR is the release's checkout (see docs/strategy.md).",
    )(function)
    function = click.option(
        "--summarise-tests",
        is_flag=True,
        callback=check,
        help="Summarise functions in tests and vendored files too.",
    )(function)
    return click.option(
        "--summariser",
        default="",
        metavar="SPEC",
        is_eager=True,
        help="The model that summarises APIs and drafts (lc.infercom, aim); default: the generator.",
    )(function)


tokenizer_option = click.option(
    "--tokenizer",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Count budgets and compare windows in p50k_base tokens, as published programs do; FILE is the vocabulary "
    "(see docs/strategies.md); default: ctxcode-1 tokens.",
)


def _ks(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[int, ...]:
    words = [word.strip() for value in values for word in value.split(",")]
    wrong = [word for word in words if not (word.isascii() and word.isdigit() and 0 < int(word) <= MOST_K)]
    if wrong:
        raise click.BadParameter(f"{wrong[0]!r} is not a whole number from 1 to {MOST_K}", param_hint="--k")
    return tuple(sorted({int(word) for word in words}))


k_option = click.option(
    "--k",
    "ks",
    multiple=True,
    callback=_ks,
    metavar="K",
    help="Report pass@K; separate several with commas, or repeat the option.  [default: 1]",
)
"""``--k``, repeatable or with commas: the command receives ``ks``, sorted integers from 1."""


def check_ks(ks: tuple[int, ...], n: int, *, functions: bool, samples: str) -> None:
    """Check that pass@k can be estimated: the samples are functions, and no k exceeds `n` completions per sample."""
    if ks and not functions:
        raise InputFault(f"pass@{ks[0]} needs functions, and the sample set {samples!r} has none", cure="leave --k out")
    if ks and ks[-1] > n:
        raise InputFault(f"pass@{ks[-1]} cannot be estimated from {n} completions", cure=f"give --n {ks[-1]} or more")


def after_option(text: str) -> Callable[[F], F]:
    """Return a decorator that adds ``--after``. The command receives a date or None."""
    return click.option("--after", metavar="DATE", default=None, callback=_day, help=text)


def _day(ctx: click.Context, param: click.Parameter, value: str | None) -> date | None:
    try:
        return None if value is None else read_date(value)
    except ValueError as error:
        raise click.BadParameter(f"{error}; write it as 2024-06-01", ctx, param) from None


def language_option(text: str) -> Callable[[F], F]:
    """Return a decorator that adds ``--language``, limited to registered languages."""
    return click.option("--language", type=click.Choice(languages.names()), default=None, help=text)


def measure_option(text: str, *, more: Sequence[str] = ()) -> Callable[[F], F]:
    """Return a decorator that adds ``--measure``: a set of `Measurement`, by default all. Words in `more` add none."""

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
    help="Runs per strategy, with seeds S, S+1, …; they share a leaderboard row, which shows how much of its "
    "uncertainty comes from repetition (docs/statistics.md).",
)
"""``--repeat``: the command receives the number of runs per strategy."""
