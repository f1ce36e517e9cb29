"""The built-in model's version stands for its answers and prices: stored ones are taken up by version."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

import pytest

from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA as JAVA_LANGUAGE
from ctxbench.bench.languages.python import PYTHON as PYTHON_LANGUAGE
from ctxbench.bench.types import Kind
from ctxbench.harness.generators.base import Request, Sampling
from ctxbench.harness.generators.incontext import VERSION, InContext, weights_path
from ctxbench.strategies.api import Prompt
from tests.helpers.incontext import api, prompt, similar

PYTHON = '''\
"""Carts."""

from __future__ import annotations

import itertools
from shop.rules import PriceRules, apply_tax

LIMIT = 12


class CartStore:
    """Keeps carts."""

    def __init__(self, path: str, rules: PriceRules | None = None, *, limit: int = LIMIT) -> None:
        self.path = path
        self.rules = rules or PriceRules({"vat": 0.2, "names": ["a", 'b']})
        self._carts: dict[str, list[float]] = {}

    @property
    def total(self) -> float:
        return sum(itertools.chain.from_iterable(self._carts.values()))

    async def load_cart(self, user, *args, **kwargs):
        if user not in self._carts and not self.closed:  # new ones
            raise KeyError(f"no cart of {user!r}")
        for number, price in enumerate(self._carts[user], start=1):
            if price <= 0 or number >= self.limit:
                continue
            self._carts[user][number - 1] = apply_tax(price * 2, rate=self.rules.rate(user), café="é")
        return [
            item
            for item in self._carts[user]
            if item is not None
        ]

    def put(self, item):
'''
JAVA = """\
package shop;

import java.util.List;
import java.util.Map;

/** Keeps carts. */
public final class CartStore<T extends Item> implements Store {
    private static final int LIMIT = 12;
    private final Map<String, List<T>> carts;

    public CartStore(Map<String, List<T>> carts) {
        this.carts = carts;
    }

    @Override
    public double total(String user) throws NoCart {
        double sum = 0.0;
        for (T item : carts.get(user)) {
            if (item == null || item.price() <= 0) {
                continue; // free
            }
            sum += item.price() * rules.rate(user, "vat", 'x') - (sum >>> 2);
        }
        return items.stream().map(Item::price).filter(price -> price > LIMIT).count();
    }

    int put(Item item) {
"""
WINDOW = """\
def pay(user):
    cart = store.load_cart(user)
    return apply_tax(cart, rate=self.rules.rate(user))
"""


def cases() -> Iterator[tuple[Prompt, str, Language]]:
    """Yield a prompt that ends in each line of both files, the rest of that line, and the language."""
    for language, code in ((PYTHON_LANGUAGE, PYTHON), (JAVA_LANGUAGE, JAVA)):
        lines = code.splitlines(keepends=True)
        for number, line in enumerate(lines):
            shown = "".join(lines[:number]) + line[: len(line) // 2]
            blocks = (similar(("shop/pay.py", WINDOW), ("shop/a.py", code[::2])), api("tax.py", "def vat(user, land)"))
            yield prompt(shown, *blocks[: number % 3]), line[len(line) // 2 : -1], language


@pytest.mark.slow
def test_the_version_stands_for_the_same_answers_and_prices() -> None:
    """If this fails, change the model back or give it another version: stored answers would be another model's."""
    model, digest = InContext(workers=1), hashlib.sha256()
    for language in (PYTHON_LANGUAGE, JAVA_LANGUAGE):
        digest.update(weights_path(language).read_bytes())
    for number, (shown, target, language) in enumerate(cases()):
        kinds = Kind if number % 4 == 0 else (Kind.LINE,)
        sampling = Sampling(max_tokens=60)
        requests = [Request(prompt=shown, language=language, kind=kind, sampling=sampling) for kind in kinds]
        answers = [
            (answer.text, answer.finish, answer.tokens_in, answer.tokens_out) for answer in model.generate(requests)
        ]
        digest.update(json.dumps([answers, model.bits([shown], [target], language)]).encode())
    assert (VERSION, digest.hexdigest()[:16]) == ("1-5dd647a939dc", "80a0bb84112ff89e")
