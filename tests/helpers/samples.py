"""Small samples for tests with default fields."""

from typing import Any

from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.types import Cursor, Kind, Query, Reference, Sample


def make_sample(**changes: Any) -> Sample:
    fields: dict[str, Any] = {
        "id": "demo/shop/checkout.py#L3C12",
        "benchmark": "ctxbench",
        "language": PYTHON,
        "kind": Kind.LINE,
        "subkind": "single-line",
        "repo": "demo",
        "path": "shop/checkout.py",
        "cursor": Cursor(line=3, column=12),
        "prefix": "\n\ndef pay(user):\n    total = ",
    }
    return Sample(**{**fields, **changes})


def make_query(**changes: Any) -> Query:
    return make_sample(**changes).query()


def make_reference(**changes: Any) -> Reference:
    return Reference(**{"id": "demo/shop/checkout.py#L3C12", "target": "apply_tax(user.cart, rate)", **changes})
