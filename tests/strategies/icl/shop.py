"""Two small repositories, and a search that ranks functions by the words that they share with the query."""

import dataclasses
import re

from ctxbench.bench.languages.java import JAVA as JAVA_LANGUAGE
from ctxbench.bench.languages.python import PYTHON as PYTHON_LANGUAGE
from ctxbench.bench.repository import View, digest_of
from ctxbench.bench.retrieval.units import Hit
from ctxbench.bench.types import Cursor, Kind, Place, Query
from ctxbench.strategies.api import Prompt
from ctxbench.strategies.icl.source import read_file
from ctxbench.strategies.registry import resolve

RULES = '''\
# A licence
# of two lines.
"""Rules that turn a sum into a price."""

import math

RATE = 0.2

if math is not None:

    def apply_tax(amount, rate=RATE):
        """Add the tax to an amount."""
        return amount * (1 + rate)


class Rules:
    """All of them."""

    places = 2

    def __init__(self, rate):
        self.rate = rate

    # Rounds up.
    @property
    def step(self):
        """Return the smallest coin."""

        def power(number):
            return 10**-number

        return power(self.places)


def apply_discount(amount, percent):
    """Take a discount off an amount."""
    return amount * (1 - percent / 100)
'''
STORE = '''\
"""Where carts are kept."""


def load_cart(user):
    """Return the cart of a user."""
    return {}
'''
CHECKOUT = '''\
"""Paying."""
from shop.rules import apply_tax


def refund(store, user):
    """Give the money back."""
    return -store[user]


# Takes the money.
@log
def checkout(store, user, rate):
    """Take the money of a user.

    Add the tax to the cart.
    """
    secret = store.load(user)
    return secret


def close(store):
    """Close the store."""
    store.close()
'''
PYTHON = {"shop/checkout.py": CHECKOUT, "shop/rules.py": RULES, "shop/store.py": STORE}
JAVA = {
    "src/Till.java": """\
package shop;

/** Takes money. */
class Till {
    private Rules rules;

    Till(Rules rules) {
        this.rules = rules;
    }

    /**
     * Take the money.
     *
     * @param amount to pay
     */
    @Deprecated
    double pay(double amount) throws Broke {
        double secret = rules.tax(amount);
        return secret;
    }

    int count() {
        return 0;
    }
}
""",
    "src/Rules.java": """\
/* A licence. */
package shop;

import java.util.List;

/** Rules. */
class Rules {
    static final double RATE = 0.2;

    static {
        System.setProperty("a", "{");
    }

    Rules() {
    }

    /** Add the tax to an amount to pay. */
    double tax(double amount) {
        return amount * (1 + RATE);
    }

    double tax(double amount, double rate) {
        return amount * (1 + rate);
    }

    interface Part {
        int size();
    }

    enum Coin { CENT, EURO; int worth() { return 1; } }
}
""",
}


def query(**changes: object) -> Query:
    before, after = CHECKOUT.split("    secret = store.load(user)\n    return secret\n")
    made = Query(
        id="shop/shop/checkout.py::checkout",
        benchmark="own",
        language=PYTHON_LANGUAGE,
        kind=Kind.FUNCTION,
        subkind="project_runnable",
        repo="shop",
        path="shop/checkout.py",
        cursor=Cursor(line=before.count("\n"), column=0),
        prefix=before,
        suffix=after,
        name="checkout",
        signature="def checkout(store, user, rate):",
        docstring="Take the money of a user.\n\nAdd the tax to the cart.",
    )
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


def java_query(**changes: object) -> Query:
    before, after = JAVA["src/Till.java"].split("        double secret = rules.tax(amount);\n        return secret;\n")
    made = query(
        id="shop/src/Till.java::Till.pay",
        language=JAVA_LANGUAGE,
        path="src/Till.java",
        cursor=Cursor(line=before.count("\n"), column=0),
        prefix=before,
        suffix=after,
        name="Till.pay",
        signature="double pay(double amount) throws Broke",
        docstring="Take the money.\n\n@param amount to pay",
    )
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


class Shelf(View):
    """A view that ranks functions by the share of their words that occur in the query."""

    def __init__(self, about: Query, files: dict[str, str]) -> None:
        super().__init__(name="shop", language=about.language, texts=files, digest=digest_of(files), query=about)
        self._about = about
        self.asked: list[tuple[str, str, str, int]] = []

    def search(self, text: str, *, unit: str = "function", ranker: str = "minilm", top: int = 10) -> tuple[Hit, ...]:
        self.asked.append((text, unit, ranker, top))
        wanted = _words(text)
        hits = []
        for path in self.files():
            file = read_file(self, path, self._about)
            lines = self.read(path).split("\n")
            for one in self.language.outline(file.lines.text).functions:
                numbers = file.numbers(one)
                code = "\n".join(lines[numbers.start : numbers.stop])
                place = Place(path=path, start=numbers.start, end=numbers.stop)
                score = len(wanted & _words(code)) / len(_words(code))
                if not one.inside and one.has_body and score:
                    hits.append(Hit(place=place, text=code, score=score, name=one.qualified))
        return tuple(sorted(hits, key=lambda hit: (-hit.score, hit.place))[:top])


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+", text.lower()))


class Model:
    """A model that returns the given answers in turn and records its prompts."""

    def __init__(self, *answers: str, instructs: bool = True) -> None:
        self.answers, self.instructs, self.summarises = list(answers), instructs, instructs
        self.asked: list[tuple[str, int, str]] = []

    def __call__(self, prompt: Prompt, *, role: str = "draft", max_tokens: int = 128) -> str:
        self.asked.append((role, max_tokens, prompt.text))
        return self.answers.pop(0)


def prompt_of(
    spec: str, about: Query | None = None, files: dict[str, str] | None = None, model: Model | None = None
) -> Prompt:
    """Return the prompt that a strategy builds for a query, by default in the Python repository."""
    about = about or query()
    default = PYTHON if about.language == PYTHON_LANGUAGE else JAVA
    return resolve(spec)(about, Shelf(about, default if files is None else files), model or Model())
