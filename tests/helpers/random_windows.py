"""A control: randomly drawn windows, in RepoCoder's layout. Retrieval must be better than this.

Use it as ``tests/helpers/random_windows.py@control.random``.
"""

import random

from ctxbench.bench.windows import spans, split_lines
from ctxbench.strategies import Context, Query, Repository, Snippet, strategy


@strategy("control.random")
def random_windows(query: Query, repo: Repository, *, blocks: int = 10, size: int = 20) -> Context:
    """Show randomly drawn windows of other files."""
    lot = random.Random(f"{query.seed} {query.id}")
    others = [path for path in repo.files() if path != query.path]
    windows = [
        Snippet(path=path, text="\n".join(lines[start:end]), start=start, end=end)
        for path in lot.sample(others, min(len(others), 5 * blocks))
        for lines in [split_lines(repo.read(path))]
        for start, end in spans(len(lines), size, size // 2)
    ]
    return Context(tuple(lot.sample(windows, min(len(windows), blocks))))
