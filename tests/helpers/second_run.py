"""Runs every strategy in one process over a database: `python -m tests.helpers.second_run HOME [LIMIT]`.

Prints a JSON object: strategy -> requests that reached the generator, finished samples, faults.
"""

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import entry_points
from pathlib import Path

from ctxbench.bench import spec as specs
from ctxbench.bench.home import Home
from ctxbench.bench.languages.base import Language
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Kind
from ctxbench.harness.cells import open_cells
from ctxbench.harness.generators.base import Capabilities, Request
from ctxbench.harness.generators.scripted import Scripted
from ctxbench.harness.papers.presets import presets, with_encoder
from ctxbench.harness.run.attempt import RunSummary
from ctxbench.harness.run.resources import OpenCells
from ctxbench.harness.run.runner import fault_of, run
from ctxbench.harness.run.spec import NO_SANDBOX, RunOptions
from ctxbench.harness.store import open_store
from ctxbench.strategies import registry, resolve
from ctxbench.strategies.api import Execute, Execution, Prompt
from ctxbench.strategies.registry import CONTROLS
from tests.helpers.functions import make_function_set
from tests.helpers.sets import make_set

LINES = ("demo", "again")
FUNCTIONS = ("functions", "functions-again")


class Counting(Scripted):
    """Answers by the prompt's digest, counts one bit per character of a text, and records its requests."""

    capabilities = Capabilities(batch_size=16, instructs=True, log_likelihoods=True)

    def __init__(self) -> None:
        super().__init__(self._say, version="1", batch_size=4)
        self.asked: list[Request] = []

    def _say(self, request: Request) -> str:
        self.asked.append(request)
        digest = request.prompt.digest
        code = f"    return amount * {int(digest[:2], 16)}\n"
        if request.kind is Kind.LINE:
            return f"apply_tax(cart_{int(digest[:4], 16) % 20}, rate)\ntotal = cart_{digest[0]}\n"
        return f"1. Read the amount.\n2. Multiply it by {digest[:3]}.\n[CODE]\n{code}[/CODE]\n"

    def bits(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> list[float]:
        return [float(len(text)) for text in texts]


def every_spec() -> list[str]:
    """Return a spec of every strategy that is installed outside tests, preset with a cheap encoder, and control."""
    found = [str(with_encoder(specs.parse(row.strategy), "hashed")) for row in presets().values() if row.strategy]
    covered = {specs.parse(spec).name for spec in found}
    # `engine` needs a sandbox. Its searches are repeated, and its answers stored like those of every strategy.
    for name in sorted(entry_points(group="ctxbench.strategies").names - {"engine"}):
        known = {parameter.name for parameter in registry.get(name).parameters}
        if name not in covered:
            found.append(f"{name}(encoder=hashed)" if "encoder" in known else name)
    return [*dict.fromkeys(resolve(spec).spec for spec in found), *CONTROLS]


def takes(spec: str, kind: Kind) -> bool:
    return spec in CONTROLS or kind in resolve(spec).kinds


@contextlib.contextmanager
def tools(_: int) -> Iterator[Execute]:
    def execute(program: str, *, seconds: float = 10.0) -> Execution:
        return Execution(finished=len(program) % 2 == 0, output=f"{len(program)} characters")

    yield execute


def attempt(
    home: Home, sample_set: SampleSet, strategies: Sequence[str], *, cells: OpenCells, limit: int | None = None
) -> dict[str, tuple[int, int, str]]:
    """Run strategies one after the other. Return strategy -> (requests, finished samples, fault)."""
    found: dict[str, tuple[int, int, str]] = {}
    made = Counting()

    def note(summary: RunSummary) -> None:
        before = sum(asked for asked, _, _ in found.values())
        found[summary.strategy] = (len(made.asked) - before, summary.new, str(fault_of([summary]) or ""))

    with open_store(home.database) as store:
        run(
            home,
            store,
            sample_set,
            strategies=strategies,
            generator="scripted",
            choices=RunOptions(workers=2, sandbox=NO_SANDBOX, limit=limit),
            resolve=lambda _: made,
            report=note,
            cells=cells,
            tools=tools,
        )
    return found


def everything(
    home: Home, names: tuple[str, str], *, cells: OpenCells, limit: int | None = None
) -> dict[str, tuple[int, int, str]]:
    """Run every strategy over a set of lines and a set of functions, which are built if the home lacks them."""
    made: dict[Kind, Callable[..., SampleSet]] = {Kind.LINE: make_set, Kind.FUNCTION: make_function_set}
    found = {}
    for kind, name in zip(made, names, strict=True):
        sample_set = made[kind](home, name=name, repos=1, per_repo=3)
        specs_ = [spec for spec in every_spec() if takes(spec, kind)]
        rows = attempt(home, sample_set, specs_, cells=cells, limit=limit)
        found |= {f"{kind} {spec}": row for spec, row in rows.items()}
    return found


def main() -> None:
    home, limit = Home(Path(sys.argv[1])), [int(text) for text in sys.argv[2:]]
    print(json.dumps(everything(home, (LINES[1], FUNCTIONS[1]), cells=open_cells, limit=limit[0] if limit else None)))


if __name__ == "__main__":
    main()
