"""Views of small repositories for tests: name what matters, the rest follows from the query."""

from collections.abc import Mapping
from typing import Any

from ctxbench.bench.repository import View, digest_of
from ctxbench.bench.types import Query


def make_view(query: Query, texts: Mapping[str, str], **changes: Any) -> View:
    """Return what a strategy sees of a repository with these whole files at a query."""
    fields = {"name": query.repo, "language": query.language, "texts": texts, "digest": digest_of(texts)}
    return View(query=query, **{**fields, **changes})
