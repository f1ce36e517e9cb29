"""Small repositories as text, and a model that answers from a list."""

from ctxbench.bench.languages.java import JAVA as JAVA_LANGUAGE
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Cursor, Kind, Query
from ctxbench.strategies.api import Prompt
from tests.helpers.views import make_view


class Scripted:
    """A model that returns the given answers in turn and records its prompts."""

    def __init__(self, *answers: str, instructs: bool = True) -> None:
        self.answers, self.instructs, self.summarises = list(answers), instructs, instructs
        self.asked: list[Prompt] = []
        self.calls: list[tuple[str, int]] = []

    def __call__(self, prompt: Prompt, *, role: str = "draft", max_tokens: int = 128) -> str:
        self.asked.append(prompt)
        self.calls.append((role, max_tokens))
        return self.answers.pop(0)


def case(
    files: dict[str, str], path: str, before: str, *, name: str = "demo-main", after: str | None = None
) -> tuple[Query, Repository]:
    """Return a query with its cursor at the end of `before` in `path`, and its view.

    Args:
        files: the repository without the target file.
        path: the target file.
        before: the target file's text up to the cursor.
        name: the repository's name.
        after: the text after the body, for a function sample.
    """
    language = JAVA_LANGUAGE if path.endswith(".java") else PYTHON
    query = Query(
        id=f"{name}/{path}",
        benchmark="test",
        language=language,
        kind=Kind.LINE if after is None else Kind.FUNCTION,
        subkind="single-line" if after is None else "slib_runnable",
        repo=name,
        path=path,
        cursor=Cursor(line=before.count("\n"), column=len(before.rpartition("\n")[2])),
        prefix=before,
        suffix=after,
    )
    hidden = "zq_hidden()\n" if after is None else f"    zq_hidden()\n{after}"
    whole = dict(sorted({**files, path: before + hidden}.items()))
    return query, make_view(query, whole, name=name, language=language)


SHOP = {
    "shop/cart.py": "cart = load_cart(user)\ntotal = price_rules.apply_tax(cart.total, rate)\n",
    "shop/price_rules.py": (
        "def apply_tax(amount: float, rate: float = 0.2) -> float:\n    return amount * (1 + rate)\n"
    ),
    "shop/store.py": (
        "class CartStore:\n"
        "    def load(self, user_id):\n"
        '        """Load the cart of a user."""\n'
        "        return self.carts[user_id]\n"
    ),
}
CHECKOUT = "def checkout(store, user_id, rate):\n    cart = store.load(user_id)\n    total = "

JAVA = {
    "com/acme/shop/Cart.java": """\
package com.acme.shop;

/** What a customer is about to buy. */
public class Cart extends Base {
    private int total;

    public Cart(String owner) {
        super(owner);
    }

    // Adds one item.
    public void addItem(String itemId, int quantity) {
        total += quantity;
    }

    public Invoice checkout(Card card, boolean express) throws PayException {
        return new Invoice(total);
    }
}
""",
    "com/acme/shop/Invoice.java": """\
package com.acme.shop;

public class Invoice {
    private final int sum;

    public Invoice(int sum) {
        this.sum = sum;
    }

    public int sum() {
        return sum;
    }
}
""",
}
PAY = """\
package com.acme.pay;

import com.acme.shop.Cart;
import com.acme.shop.*;

public class Pay {
    public int pay(Cart cart, Card card) {
        Invoice invoice = """
