"""A database made by real runs, for tests of the pages.

Three strategies, functions with verdicts, what others recorded, and what a model must never get to do.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ctxbench.bench.home import Home
from ctxbench.bench.languages.base import Language
from ctxbench.bench.samples import SampleSet
from ctxbench.harness.generators.base import Capabilities, Request, Response
from ctxbench.harness.generators.scripted import Scripted
from ctxbench.harness.leaderboard import scales
from ctxbench.harness.run.runner import run
from ctxbench.harness.run.spec import RunOptions
from ctxbench.harness.store import open_store
from ctxbench.strategies.api import Prompt
from tests.helpers.cells import open_inline
from tests.helpers.cli import run_cli
from tests.helpers.functions import RIGHT, WRONG, FakeJudge, make_function_set
from tests.helpers.sets import make_set

STRATEGIES = ("lc.infile", "lc.random_windows", "lc.repocoder")
PLANTED = (
    '<script>window.harmed = 1</script><img src=x onerror="window.harmed = 1"> **bold** [link](http://harm.example/) '
    ":smile: :red[red] $x^2$ `code` "
)
"""What a model may write, and a team may call its method: each word is markup to a page that takes it for such."""
LONG = 200_000
"""Characters of the planted completion."""
HARMFUL = "scripted of **harm**"


class _Coder(Scripted):
    """A text costs a bit a character."""

    capabilities = Capabilities(batch_size=16, instructs=True, log_likelihoods=True)

    def bits(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> list[float]:
        return [float(len(text)) for text in texts]


class _Planted(Scripted):
    """Says the same to everything, however long, where `Scripted` stops at the tokens it was allowed."""

    def generate(self, requests: Sequence[Request]) -> list[Response]:
        replies = [self._answer(request) for request in requests]
        return [Response(text=text, finish="stop", tokens_in=1, tokens_out=len(text), seconds=0.0) for text in replies]


def shows_amount(cell: float, recorded: float) -> bool:
    """Return whether a table's cell is a mean count or time that the JSON has with six decimals.

    The table rounds what was measured and not what the JSON says: 0.0458496 is 0.0458, of the JSON's 0.04585 0.0459.
    """
    low, high = (float(scales.amount(recorded + rounded_off)) for rounded_off in (-5e-7, 5e-7))
    return low <= cell <= high


def make_database(root: Path) -> Home:
    """Fill a home: sets `demo` (lines), `functions` and `planted`; runs of every kind over them."""
    home = Home(root)
    demo = make_set(home, repos=8, per_repo=3)
    options = [word for name in STRATEGIES for word in ("--strategy", name)]
    _ok("run", "--samples", "demo", *options, "--generator", "incontext", home=home)
    _ok("run", "--samples", "demo", "--limit", "4", "--strategy", "lc.infile", "--generator", "incontext", home=home)
    _record(home, demo)
    _plant(home)
    _functions(home)
    return home


def _ok(*arguments: str, home: Home) -> None:
    result = run_cli(*arguments, "--home", str(home.root))
    assert result.code == 0, result.err


def _record(home: Home, sample_set: SampleSet) -> None:
    """Import what somebody else recorded over `demo`, under a name that would harm a page."""
    file = home.root / "recorded.jsonl"
    texts = {id_: reference.target for id_, reference in sample_set.references.items()}
    lines = [
        {"sample": id_, "text": text if number % 2 else PLANTED} for number, (id_, text) in enumerate(texts.items())
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    names = ("--strategy", PLANTED.strip(), "--generator", HARMFUL)
    _ok("results", "import", "--format", "ctxbench", str(file), "--samples", "demo", *names, home=home)


def _plant(home: Home) -> None:
    sample_set = make_set(home, name="planted", repos=2, per_repo=2)
    text = PLANTED + "x" * (LONG - len(PLANTED))
    make_runs(home, sample_set, _Planted(lambda request: text, version="1"), ("lc.infile", "lc.repocoder"))


def _functions(home: Home) -> None:
    sample_set = make_function_set(home, repos=6, per_repo=3)

    def answer(request: Request) -> str:
        number = request.prompt.text.rpartition("def times_")[2].partition("(")[0]
        return WRONG if number == "3" else RIGHT.format(number=number)

    make_runs(
        home,
        sample_set,
        Scripted(answer, version="1"),
        ("lc.infile", "lc.repocoder"),
        judges=FakeJudge(sample_set).open,
    )


def make_runs(home: Home, sample_set: SampleSet, model: Scripted, strategies: Sequence[str], **how: Any) -> None:
    """Run strategies over a set with a model of our own; `how` is what `harness.run.runner` takes."""
    with open_store(home.database) as store:
        run(
            home,
            store,
            sample_set,
            strategies=strategies,
            generator=how.pop("generator", "scripted"),
            choices=how.pop("choices", RunOptions()),
            cells=open_inline,
            resolve=lambda spec: _Coder(lambda _: "", version="1") if spec == "incontext" else model,
            **how,
        )
