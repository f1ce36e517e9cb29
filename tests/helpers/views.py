"""Views of small repositories for tests, with default fields from the query."""

from collections.abc import Mapping
from typing import Any

from ctxbench.bench.repository import View, digest_of
from ctxbench.bench.types import Query


def make_view(query: Query, texts: Mapping[str, str], **changes: Any) -> View:
    fields = {"name": query.repo, "language": query.language, "texts": texts, "digest": digest_of(texts)}
    return View(query=query, **{**fields, **changes})
