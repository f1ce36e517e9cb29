"""A tiny repository, as text, for the conformance check: five files and a planted answer."""

from __future__ import annotations

from collections.abc import Sequence

from ctxbench.bench.engines.types import ScoredPlace
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.repository import Repository, View, digest_of
from ctxbench.bench.types import Cursor, Kind, Place, Query, StoredContext, StoredSnippet

OTHER = "zq_another_answer"
"""What may stand in its place; see `view_for`."""
PLANTED = "zq_planted_answer"
"""Stands after the cursor in the target file and nowhere else; no prompt may hold it."""
TARGET = "shop/checkout.py"

_CART = '''\
"""The cart of a customer."""


class Cart:
    """What a customer is about to buy."""

    def __init__(self, user):
        self.user = user
        self.lines = []

    def add(self, item, count=1):
        """Put an item into the cart."""
        for line in self.lines:
            if line.item == item:
                line.count += count
                return line
        self.lines.append(Line(item, count))
        return self.lines[-1]

    @property
    def total(self):
        """The sum of all lines, before tax."""
        return sum(line.item.price * line.count for line in self.lines)


class Line:
    """An item and how many of it."""

    def __init__(self, item, count):
        self.item = item
        self.count = count
'''

_PRICES = '''\
"""Rules that turn a sum into a price."""

DEFAULT_RATE = 0.2


def apply_tax(amount: float, rate: float = DEFAULT_RATE) -> float:
    """Add the tax to an amount."""
    return amount * (1 + rate)


def apply_discount(amount: float, percent: float) -> float:
    """Take a discount off an amount."""
    if not 0 <= percent <= 100:
        raise ValueError(percent)
    return amount * (1 - percent / 100)
'''

_STORE = '''\
"""Where carts are kept."""
from shop.cart import Cart
from shop.price_rules import apply_tax


class CartStore:
    """Carts by user."""

    def __init__(self):
        self._carts = {}

    def load(self, user_id):
        """Return the cart of a user, a new one if there is none."""
        return self._carts.setdefault(user_id, Cart(user_id))

    def quote(self, user_id, rate):
        """Say what a user would have to pay."""
        cart = self.load(user_id)
        total = apply_tax(cart.total, rate)
        return round(total, 2)
'''

_BEFORE = '''\
"""Paying."""


from shop.store import CartStore


def checkout(store: CartStore, user_id, rate):
    """Take the money."""
    cart = store.load(user_id)
    total = '''

_AFTER = f"""{PLANTED}(cart.total, rate)
    receipt = {PLANTED}.receipt(total)
    store.clear(user_id)
    return {PLANTED}, receipt
"""

_OTHER_FUNCTION = """

def refund(store: CartStore, user_id):
    \"\"\"Give the money back.\"\"\"
    return -store.quote(user_id, 0)
"""

_TEXTS = {
    "shop/__init__.py": "",
    "shop/cart.py": _CART,
    TARGET: _BEFORE.replace('"""Paying."""\n\n', f'"""Paying."""\nimport {PLANTED}\n') + _AFTER + _OTHER_FUNCTION,
    "shop/price_rules.py": _PRICES,
    "shop/store.py": _STORE,
}
_MASKED = ((1, 2),)
_STORED = StoredContext(
    name="rg1_bm25",
    snippets=(
        StoredSnippet(path="shop/store.py", text="".join(_STORE.splitlines(keepends=True)[8:]), score=2.5),
        StoredSnippet(path="shop/price_rules.py", text=_PRICES, score=1.5),
    ),
)


def query_for(kind: Kind) -> Query:
    """Return a query of that kind about the target file."""
    prefix, suffix = _BEFORE, None
    if kind is Kind.FUNCTION:
        documented = '"""Take the money."""\n'
        prefix, suffix = prefix[: prefix.index(documented) + len(documented)], _OTHER_FUNCTION
    line, column = prefix.count("\n"), len(prefix.rpartition("\n")[2])
    return _query(kind, TARGET, prefix, Cursor(line=line, column=column), suffix)


def view_for(query: Query, answer: str = PLANTED) -> Repository:
    """Return the repository as that query's strategy sees it.

    Args:
        query: one of `query_for`.
        answer: `OTHER` for a repository that differs in nothing but what is hidden: other names, more of them, and a
            function inside.
    """
    texts = _TEXTS
    if answer != PLANTED:
        hidden = (
            f"{answer}()\n\n    def {answer}():\n        return cart.total\n\n    {_AFTER.replace(PLANTED, answer)}"
        )
        whole = _TEXTS[TARGET].replace(_AFTER, hidden).replace(PLANTED, answer)
        texts = {**_TEXTS, TARGET: whole}
    return _view(texts, query, _MASKED)


def bare_case(kind: Kind) -> tuple[Query, Repository]:
    """Return the poorest case: one file, the cursor at its very start."""
    query = _query(kind, TARGET, "", Cursor(line=0, column=0))
    return query, _view({TARGET: f"{PLANTED} = 1\n"}, query, ())


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


def _view(texts: dict[str, str], query: Query, masked: tuple[tuple[int, int], ...]) -> Repository:
    return View(
        name="tiny",
        language=PYTHON,
        texts=texts,
        digest=digest_of(texts),
        query=query,
        masked=masked,
        engines=_NoEngine(tuple(texts)),
    )


class _NoEngine:
    """Stands in for every context engine, of which a check of a strategy starts none: the first lines of each file."""

    def __init__(self, paths: tuple[str, ...]) -> None:
        self._paths = paths

    def search(self, engine: str, text: str, top: int) -> Sequence[ScoredPlace]:
        """Return places, also at the end of the target file."""
        places = [Place(path=path, start=0, end=10_000) for path in self._paths]
        return [ScoredPlace(place=place, score=1 / (1 + at)) for at, place in enumerate(places)][:top]

    def note(self, engine: str, *, returned: int, cut: int) -> None:
        """Note nothing."""
