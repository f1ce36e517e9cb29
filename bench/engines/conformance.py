"""The checks of `ctxbench engine check`, on a tiny repository in a real box or on the engine's server."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ctxbench.bench.engines.box import EngineBox
from ctxbench.bench.engines.recipe import Recipe
from ctxbench.bench.engines.types import EngineRefused, Raised, ScoredPlace, places
from ctxbench.bench.errors import CtxbenchError
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.types import Cursor, Kind, Sample
from ctxbench.sandbox.errors import SandboxError
from ctxbench.sandbox.persistent import with_resident
from ctxbench.sandbox.types import Report, Sandbox

_TARGET, _GONE = "shop/checkout.py", "shop/vouchers.py"
_TREE = {
    "shop/__init__.py": "",
    "shop/cart.py": "class Cart:\n    def __init__(self, user):\n        self.user = user\n        self.lines = []\n",
    "shop/price_rules.py": "def apply_tax(amount, rate=0.2):\n    return amount * (1 + rate)\n\n\n"
    "def apply_discount(amount, percent):\n    return amount * (1 - percent / 100)\n",
    "shop/store.py": "from shop.cart import Cart\nfrom shop.price_rules import apply_tax\n\n\n"
    "def quote(cart: Cart, rate):\n    return apply_tax(cart.total, rate)\n",
    "src/Cart.java": "public class Cart {\n    int total;\n\n    int applyTax(int rate) {\n"
    "        return total * rate;\n    }\n}\n",
    _GONE: "def apply_voucher(cart, voucher_code):\n    return cart.total - voucher_code.amount\n",
    # Thirty lines, or sixty if a reader also ends lines at form feeds.
    "shop/pages.py": "\f\n" * 30 + "def apply_surcharge(amount, percent):\n    return amount\n",
    _TARGET: "from shop.cart import Cart\nfrom shop.price_rules import apply_tax\n\n\n",
}
_BEFORE = _TREE[_TARGET] + "def checkout(cart: Cart, rate):\n    total = apply_tax(cart.total, "
_TOP = 5
_LATER = (_TARGET, "shop/price_rules.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineCheck:
    """The result of one conformance check."""

    name: str
    passed: bool
    detail: str


def check(recipe: Recipe, sandbox: Sandbox | None, report: Report = lambda _: None) -> Iterator[EngineCheck]:
    """Yield the result of each check, until the engine is lost. A remote engine needs no sandbox.

    Raises:
        SandboxUnavailable: if the engine cannot be installed, or the back end is missing.
    """
    if sandbox is not None:
        sandbox.prepare(with_resident(recipe.environment), report)
    boxes: list[EngineBox] = []
    try:
        yield _tried("starts and indexes", lambda: _started(boxes, recipe, sandbox))
        if not boxes:
            return
        box = boxes[0]
        for name, trial in _TRIALS:
            outcome = _tried(name, functools.partial(trial, box, recipe))
            yield outcome
            if not outcome.passed and "lost" in outcome.detail:
                return
        yield _tried("gives the same answer in another box", lambda: _alike(boxes, recipe, sandbox))
        yield _tried("follows updates", lambda: _cut(boxes[0], recipe))
    finally:
        for box in boxes:
            box.end()


def _tried(name: str, trial: Callable[[], str]) -> EngineCheck:
    try:
        return EngineCheck(name=name, passed=True, detail=trial())
    except EngineRefused as refused:
        return EngineCheck(name=name, passed=False, detail=refused.what)
    except Raised as error:
        return EngineCheck(name=name, passed=False, detail=f"the engine raised {error}")
    except SandboxError as error:
        return EngineCheck(name=name, passed=False, detail=f"the engine was lost: {error.what}")
    except (AssertionError, ValueError, CtxbenchError) as error:
        return EngineCheck(name=name, passed=False, detail=str(error))


def _started(boxes: list[EngineBox], recipe: Recipe, sandbox: Sandbox | None) -> str:
    box = EngineBox(recipe, dict(_TREE), sandbox)
    boxes.append(box)
    memory = f", {box.memory // 10**6} MB of memory" if box.memory else ""
    return f"{box.version}: {box.index_seconds:.2f} s, {box.size} bytes on disk{memory}"


def _asked(box: EngineBox, recipe: Recipe, text: str = _BEFORE, top: int = _TOP) -> list[ScoredPlace]:
    line = text.count("\n")
    sample = Sample(
        id="tiny",
        benchmark="tiny",
        language=PYTHON,
        kind=Kind.LINE,
        subkind="single-line",
        repo="tiny",
        path=_TARGET,
        cursor=Cursor(line=line, column=len(text.rpartition("\n")[2])),
        prefix=text,
    )
    answer = box.search(text, sample, top)
    if isinstance(answer, list) and len(answer) > top:
        raise AssertionError(f"the engine returned {len(answer)} places instead of {top}; the others are ignored")
    return places(answer, box.lines, _TARGET, line, top, recipe.spec)


def _answers(box: EngineBox, recipe: Recipe) -> str:
    places = _asked(box, recipe)
    if not places:
        heard = "" if recipe.remote else " ".join(box.ask({"call": "heard"}, box.patience.search).split())
        began = f"; the server's last answer began: {heard}" if heard else ""
        raise AssertionError(f"the engine finds nothing for code that uses other files{began}")
    return f"{len(places)} places, the best in {places[0].place.path}"


def _again(box: EngineBox, recipe: Recipe) -> str:
    if _asked(box, recipe) != _asked(box, recipe):
        raise AssertionError("the same question got two different answers")
    return "the same answer twice"


def _odd(box: EngineBox, recipe: Recipe) -> str:
    odd = (
        "",
        "\n" * 500,
        "\u00e9\u4e2d\u202e '\"\\ $(rm) %s {x} -- -e\n" * 20,
        "x" * 100_000,
        "fee = apply_surcharge(",
    )
    for text in odd:
        _asked(box, recipe, text)
    return f"{len(odd)} unusual texts"


def _single(box: EngineBox, recipe: Recipe) -> str:
    return f"{len(_asked(box, recipe, top=1))} of 1"


def _cut(box: EngineBox, recipe: Recipe) -> str:
    box.update({_GONE: None, "shop/store.py": "from shop.cart import Cart\n"})
    located = _asked(box, recipe, "voucher = apply_voucher(cart, voucher_code)\nquote(", 20)
    if stale := [scored.place for scored in located if scored.place.path == _GONE]:
        raise AssertionError(f"the engine answers with a removed file: {stale[0]}")
    box.update({_GONE: _TREE[_GONE], "shop/store.py": _TREE["shop/store.py"]})
    return "removed code and files are not found"


def _alike(boxes: list[EngineBox], recipe: Recipe, sandbox: Sandbox | None) -> str:
    first = _asked(boxes[0], recipe)
    base = {path: text for path, text in _TREE.items() if sandbox is None or path not in _LATER}
    boxes.append(EngineBox(recipe, base, sandbox, whole=sandbox is None))
    if sandbox is not None:
        if state := boxes[-1].state():
            boxes.append(EngineBox(recipe, base, sandbox, whole=False, state=state))
        boxes[-1].fill(dict(_TREE))
    if _asked(boxes[-1], recipe) != first:
        raise AssertionError("a new box, updated with some files, answers differently from the first one")
    if boxes[-1].based:
        return "the same places, from an updated base"
    return "the same places" + ("" if recipe.remote else "; no update: the whole tree is indexed for each target file")


_TRIALS: tuple[tuple[str, Callable[[EngineBox, Recipe], str]], ...] = (
    ("answers with places", _answers),
    ("gives the same answer twice", _again),
    ("returns no more places than asked for", _single),
    ("accepts unusual texts and files", _odd),
)
