"""Runs with engines over a small set whose answers are known."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import text as sql

from ctxbench.bench import samples as sets
from ctxbench.bench.home import Home
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.repositories import snapshot
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Cursor, Reference, Sample
from ctxbench.harness.generators.base import Capabilities
from ctxbench.harness.generators.scripted import Scripted
from ctxbench.harness.run.attempt import RunSummary
from ctxbench.harness.run.runner import run
from ctxbench.harness.run.spec import RunOptions
from ctxbench.harness.store import open_store
from ctxbench.harness.store.facts import prompt_text
from ctxbench.sandbox.types import Sandbox
from ctxbench.strategies.api import Prompt
from tests.helpers.samples import make_sample


class Coder(Scripted):
    """A generator whose texts cost one bit per character."""

    capabilities = Capabilities(batch_size=16, log_likelihoods=True)

    def bits(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> list[float]:
        return [float(len(text)) for text in texts]


SPIES = Path(__file__).with_name("spies.py")
NAMES = ("levy", "toll", "duty", "fee", "fine", "cess", "due", "rent")


def answer_of(repo: int, number: int) -> str:
    return f"{NAMES[(3 * repo + 5 * number + 2) % len(NAMES)]}(zq_{repo}_{number})"


def make_set(home: Home, *, repos: int = 1, files: int = 1, per_file: int = 3) -> SampleSet:
    """Write repositories whose target files call functions of another file. Save a line set over them."""
    samples: list[Sample] = []
    references, entries = [], {}
    for at in range(repos):
        repo, root = f"shop{at}", home.repos / f"shop{at}" / "1" / "shop"
        root.mkdir(parents=True)
        root.joinpath("rates.py").write_text(
            "".join(f"def {name}(zq_amount):\n    return zq_amount * {at}\n\n\n" for name in NAMES)
        )
        for file in range(files):
            lines = ["from shop import rates", "", f"def pay_{file}(zq_rate):"]
            path = f"shop/pay{file or ''}.py"
            for number in range(per_file):
                before, answer = f"    total_{number} = ", answer_of(at, per_file * file + number)
                cursor = Cursor(line=len(lines), column=len(before))
                id_ = f"{repo}/{path}#L{cursor.line}"
                prefix = "\n".join([*lines, before])
                samples.append(make_sample(id=id_, repo=repo, path=path, cursor=cursor, prefix=prefix))
                references.append(Reference(id=id_, target=answer))
                lines.append(before + answer)
            (root.parent / path).write_text("\n".join([*lines, "    return total_0", ""]))
        digest = snapshot.load(repo, root.parent, PYTHON).digest
        entries[repo] = {"language": "python", "checkout": f"{repo}/1", "snapshot": digest}
    return sets.save(home, "demo", samples, references, {"repositories": entries})


def attempt(folder: Path, sandbox: Sandbox, engine: str, *, home: Home | None = None, **how: Any) -> RunSummary:
    """Run ``engine(…)`` over the set. Create the set if the home has none."""
    home = home or Home(folder / "home")
    sample_set = sets.load(home, "demo") if home.samples.exists() else make_set(home)
    machines: dict[str, Any] = {"boxes": lambda: sandbox, **how.pop("machines", {})}
    strategy = how.pop("strategy", f"engine({engine})")
    with open_store(home.database) as store:
        [summary] = run(
            home,
            store,
            sample_set,
            strategies=(strategy,),
            generator="scripted",
            choices=RunOptions(workers=2, **how),
            resolve=lambda _: Coder(lambda _: "x", version="1"),
            **machines,
        )
    return summary


def spy(name: str) -> str:
    return f"{SPIES}@{name}"


def query_database(folder: Path, query: str) -> list[tuple[Any, ...]]:
    with open_store(Home(folder / "home").database) as store, store.reading() as connection:
        return [tuple(row) for row in connection.execute(sql(query))]


def prompts(folder: Path) -> dict[str, str]:
    """Return sample -> its stored prompt."""
    digests = query_database(folder, "SELECT sample_id, prompt_digest FROM result")
    with open_store(Home(folder / "home").database) as store, store.reading() as connection:
        return {str(sample): prompt_text(connection, digest) or "" for sample, digest in digests}
