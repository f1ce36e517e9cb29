"""A small sample set on disk, written without the builder, with known repositories and references."""

from ctxbench.bench import samples as sets
from ctxbench.bench.home import Home
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Cursor, Reference, Sample
from tests.helpers.samples import make_sample
from tests.helpers.trees import make_snapshot


def _line(number: int) -> tuple[str, str]:
    return f"    total_{number} = ", f"apply_tax(cart_{number}, rate)"


def make_set(home: Home, *, name: str = "demo", repos: int = 2, per_repo: int = 4, **changes: object) -> SampleSet:
    """Write repositories into the home and a set of line samples over them. `changes` are fields of every sample."""
    samples: list[Sample] = []
    references: list[Reference] = []
    entries = {}
    for repo in (f"shop{number}" for number in range(repos)):
        lines = ["from shop.tax import apply_tax", "", "", f"def pay_{repo}(rate):"]
        for number in range(per_repo):
            before, answer = _line(number)
            lines.append(before + answer)
            cursor = Cursor(line=len(lines) - 1, column=len(before))
            fields = {
                "id": f"{repo}/shop/pay.py#L{cursor.line}",
                "repo": repo,
                "path": "shop/pay.py",
                "cursor": cursor,
                "prefix": "\n".join([*lines[:-1], before]),
            }
            samples.append(make_sample(**{**fields, **changes}))
            references.append(Reference(id=samples[-1].id, target=answer))
        files = {
            "shop/pay.py": "\n".join(lines) + "\n",
            "shop/tax.py": "def apply_tax(amount, rate):\n    return amount * (1 + rate)\n",
            "shop/use.py": "".join(f"cost_{n} = apply_tax(cart_{n}, rate)\nprint(cost_{n})\n" for n in range(20)),
        }
        made = make_snapshot(home.repos / repo / "1", files, name=repo)
        entries[repo] = {"language": "python", "checkout": f"{repo}/1", "snapshot": made.digest}
    return sets.save(home, name, samples, references, {"repositories": entries})
