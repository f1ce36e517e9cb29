"""A control: RepoCoder's layout filled with windows drawn by chance. Context that does not help must not seem to."""

from __future__ import annotations

from random import Random

from strategies import Context, Query, Repository, Snippet, strategy


@strategy("random-windows")
def random_windows(query: Query, repo: Repository, *, size: int = 20, count: int = 20) -> Context:
    """Show windows of other files, drawn by chance."""
    draw = Random(f"{query.id}/{query.seed}")
    others = [path for path in repo.files() if path != query.path and repo.read(path).strip()]
    snippets = []
    for rank in range(count if others else 0):
        path = draw.choice(others)
        lines = repo.read(path).rstrip("\n").split("\n")
        start = draw.randrange(max(1, len(lines) - size // 2))
        end = min(len(lines), start + size)
        text = "\n".join(lines[start:end])
        snippets.append(Snippet(path=path, text=text, start=start, end=end, score=1 - rank / count))
    return Context.ranked(snippets)
