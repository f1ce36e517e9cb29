"""A database of real runs, for tests of the pages.

It contains three strategies, functions with verdicts, imported answers, and texts that must not harm a page.
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
"""A hostile text for completions and names. A page that does not escape it would show each word as markup."""
LONG = 200_000
"""Characters of the planted completion."""
HARMFUL = "scripted of **harm**"


class _Coder(Scripted):
    """A model for which each character of a text costs one bit."""

    capabilities = Capabilities(batch_size=16, instructs=True, log_likelihoods=True)

    def bits(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> list[float]:
        return [float(len(text)) for text in texts]


class _Planted(Scripted):
    """A model whose answers may exceed the token limit, at which `Scripted` stops."""

    def generate(self, requests: Sequence[Request]) -> list[Response]:
        replies = [self._answer(request) for request in requests]
        return [Response(text=text, finish="stop", tokens_in=1, tokens_out=len(text), seconds=0.0) for text in replies]


def shows_amount(cell: float, recorded: float) -> bool:
    """Check that a table's cell agrees with a mean count or time that the JSON gives with six decimals.

    The table rounds the measured value: 0.0458496 becomes 0.0458. The JSON's 0.04585 would become 0.0459.
    """
    low, high = (float(scales.amount(recorded + rounded_off)) for rounded_off in (-5e-7, 5e-7))
    return low <= cell <= high


def make_database(root: Path) -> Home:
    """Fill a home with the sets `demo` (lines), `functions` and `planted`, and with runs of every kind."""
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
    """Import answers for `demo` under a name that would harm a page."""
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
    """Run strategies on a set with a scripted model. `how` contains more arguments of `harness.run.runner`."""
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
