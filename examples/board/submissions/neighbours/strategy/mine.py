"""Files that live beside the target: the ones with the most similar names first."""

from posixpath import commonprefix, dirname

from ctxbench import Context, Query, Repository, Snippet, strategy


@strategy("neighbours")
def neighbours(query: Query, repo: Repository, *, limit: int = 5) -> Context:
    """Show the files of the target's own folder, the most similar names first."""
    beside = [path for path in repo.files() if dirname(path) == dirname(query.path) and path != query.path]
    return Context.ranked(
        Snippet(path=path, text=repo.read(path), score=len(commonprefix([path, query.path]))) for path in beside
    ).top(limit)
