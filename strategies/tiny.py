"""The tiny repository of the conformance check: five files, built from `tiny.toml`, with a planted answer."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ctxbench.bench.engines.types import ScoredPlace
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.repository import AccessLedger, Repository, View, digest_of
from ctxbench.bench.types import Cursor, Kind, Place, Query, StoredContext, StoredSnippet

OTHER = "zq_another_answer"
PLANTED = "zq_planted_answer"
"""The planted answer, which is only after the cursor in the target file. No prompt may contain it."""
TARGET = "shop/checkout.py"

_DATA = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_BEFORE, _AFTER, _OTHER_FUNCTION = _DATA["before"], _DATA["after"], _DATA["other_function"]
_FILES: dict[str, str] = _DATA["files"]
_TARGET_TEXT = _BEFORE.replace('"""Paying."""\n\n', f'"""Paying."""\nimport {PLANTED}\n') + _AFTER + _OTHER_FUNCTION
_TEXTS = dict(sorted({"shop/__init__.py": "", TARGET: _TARGET_TEXT, **_FILES}.items()))
_MASKED = ((1, 2),)
_STORED = StoredContext(
    name="rg1_bm25",
    snippets=(
        StoredSnippet(path="shop/store.py", text=_FILES["shop/store.py"].split("\n", 8)[8], score=2.5),
        StoredSnippet(path="shop/price_rules.py", text=_FILES["shop/price_rules.py"], score=1.5),
    ),
)


def query_for(kind: Kind) -> Query:
    """Return the query for a line or a function of the file `TARGET`."""
    prefix, suffix = _BEFORE, None
    if kind is Kind.FUNCTION:
        documented = '"""Take the money."""\n'
        prefix, suffix = prefix[: prefix.index(documented) + len(documented)], _OTHER_FUNCTION
    line, column = prefix.count("\n"), len(prefix.rpartition("\n")[2])
    return _query(kind, TARGET, prefix, Cursor(line=line, column=column), suffix)


@dataclass(slots=True)
class SearchLedger(AccessLedger):
    """An access ledger that keeps search results."""

    hits: list[tuple[str, Sequence[Place]]] = field(default_factory=list)

    def search(self, hits: Iterable[tuple[str, Sequence[Place]]]) -> None:
        """Record search hits."""
        self.hits += hits


def view_for(query: Query, answer: str = PLANTED, ledger: SearchLedger | None = None) -> Repository:
    """Return the repository as the query's strategy sees it.

    Args:
        answer: if `OTHER`, the hidden text differs: other names, more of them, and a nested function.
    """
    texts = _TEXTS
    if answer != PLANTED:
        after = _AFTER.replace(PLANTED, answer)
        hidden = f"{answer}()\n\n    def {answer}():\n        return cart.total\n\n    {after}"
        texts = {**_TEXTS, TARGET: _TEXTS[TARGET].replace(_AFTER, hidden).replace(PLANTED, answer)}
    return _view(texts, query, _MASKED, ledger)


def bare_case(kind: Kind) -> tuple[Query, Repository]:
    """Return the smallest query and repository: one file, with the cursor at its start."""
    query = _query(kind, TARGET, "", Cursor(line=0, column=0))
    return query, _view({TARGET: f"{PLANTED} = 1\n"}, query, (), None)


def _query(kind: Kind, path: str, prefix: str, cursor: Cursor, suffix: str | None = None) -> Query:
    function = kind is Kind.FUNCTION
    return Query(
        id=f"tiny/{path}#L{cursor.line}C{cursor.column}",
        benchmark="tiny",
        language=PYTHON,
        kind=kind,
        subkind="slib_runnable" if function else "single-line",
        repo="tiny",
        path=path,
        cursor=cursor,
        prefix=prefix,
        suffix=suffix,
        name="checkout" if function else None,
        signature="def checkout(store: CartStore, user_id, rate):" if function else None,
        docstring="Take the money." if function else None,
        stored=(_STORED,) if prefix and not function else (),
    )


def _view(
    texts: dict[str, str], query: Query, masked: Sequence[tuple[int, int]], ledger: SearchLedger | None
) -> Repository:
    return View(
        name="tiny",
        language=PYTHON,
        texts=texts,
        digest=digest_of(texts),
        query=query,
        masked=masked,
        engines=_NoEngine(tuple(texts)),
        ledger=ledger,
    )


class _NoEngine:
    """Replaces every context engine, since the check starts none. Returns each file's first lines."""

    def __init__(self, paths: tuple[str, ...]) -> None:
        self._paths = paths

    def search(self, engine: str, text: str, top: int) -> Sequence[ScoredPlace]:
        places = [Place(path=path, start=0, end=10_000) for path in self._paths]
        return [ScoredPlace(place=place, score=1 / (1 + at)) for at, place in enumerate(places)][:top]

    def note(self, engine: str, *, returned: int, cut: int) -> None:
        """Note nothing."""
