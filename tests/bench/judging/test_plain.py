"""The reader of Python completions: which code is flagged, and which is plain."""

import textwrap

import pytest

from ctxbench.bench.judging.python.plain import RepositoryWords, remarks
from tests.bench.judging.aliases import ALIASES
from tests.bench.judging.reaching import CONTAINERS, METHOD, VALUES
from tests.sandbox.forgeries import shop
from tests.sandbox.forgeries.forgery import FORGERIES, Forgery
from tests.sandbox.forgeries.honest import RIGHT

FILE = b"""
import json
import re
import heapq
import logging

import numpy as np

from shop import table

LOG = logging.getLogger(__name__)
CACHE = {}


class Cart:
    def __init__(self, items):
        self.items, self.total = list(items), 0

    def pay(self, given, rate=0):
        return self.total


def near(left):
    return left


def total(given, rate=0.0, **more):
    return given
"""
TREE = {
    "shop/cart.py": FILE,
    "shop/table.py": b"ROWS = []\ndef find(name): ...\nclass Price: amount = 0\n",
    "tests/test_cart.py": b"from pytest import approx\ndef test_all(): assert valid(total([1])) == approx(1)\n",
}
REPOSITORY = RepositoryWords.of(TREE)
UNREAD = "printed success"
"""The only forgery that is not flagged: it prints what pytest prints, and fails."""


def found(body: str, after: str = "", *, method: bool = False, reference: str = "") -> list[str]:
    """Return the flags of a function, or method, with the given body."""
    inner = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    signature = "def pay(self, given, rate=0):" if method else "def total(given, rate=0.0, **more):"
    text = f"{signature}\n{inner}\n\n\n{textwrap.dedent(after)}"
    name = "Cart.pay" if method else "total"
    if reference:
        reference = f"{signature}\n{textwrap.indent(textwrap.dedent(reference).strip(chr(10)), '    ')}\n"
    return [remark.reason for remark in remarks(REPOSITORY, FILE, name, text, reference)]


HOSTILE = [
    "import gc",
    "from os import sys\nsys.modules",
    "import re\nre.enum.sys",
    "json.codecs.open(given)",
    "json.decoder.scanner",
    "[json][0].dumps = print",
    "(json if rate else re).dumps = print",
    "for json.dumps in [print]: pass",
    "with given as json.dumps: pass",
    "del json.dumps",
    "mod = json\nmod.dumps = print",
    "table.ROWS.append(1)",
    "table.ROWS[0] = 1",
    "CACHE[1] = 2",
    "CACHE.update(a=1)",
    "given.append(1)",
    "given[0] = 1",
    "del given[:]",
    "given += [1]",
    "given.items.append(1)",
    "map(given.append, [1])",
    "list.append(given, 1)",
    "dict.update(given, a=1)",
    "heapq.heappush(given, 1)",
    "push = heapq.heappush\npush(given, 1)",
    "from heapq import heappush\nheappush(given, 1)",
    "from random import shuffle\nshuffle(given)",
    "kept = [given]\nkept[0].append(1)",
    "kept = {}\nkept['a'] = given\nkept['a'].append(1)",
    "kept = []\nkept.append(given)\nkept[0].append(1)",
    "kept = given or []\nkept.append(1)",
    "kept = [] if rate else given\nkept.append(1)",
    "(kept := given).append(1)",
    "kept, other = given, []\nkept.append(1)",
    "match given:\n    case kept: kept.append(1)",
    "match given:\n    case object(__class__=kind): return kind",
    "match given:\n    case object(f_back=kind): return kind",
    "try: given()\nexcept* ValueError as error: return error.__traceback__",
    "try: given()\nexcept ValueError as error: return error.tb_frame",
    "next(given)",
    "given.close()",
    "given.write('x')",
    "LOG.handlers.clear()",
    "LOG.findCaller()",
    "LOG.disabled = True",
    "print(1, file=given)",
    "print(1, **more)",
    "np.add(given, 1, out=given)",
    "given.sort_values(inplace=True)",
    "json.dump(1, given)",
    "import timeit\ntimeit.timeit('1')",
    "import code",
    "import pickle",
    "from typing import get_type_hints\nget_type_hints(near)",
    "import typing\ntyping.get_type_hints(near)",
    "open(b'tests/test_cart.py')",
    "import os\nos.popen('cat tests/*')",
    "import os\nos.symlink('a', 'b')",
    "import os\nos.environ",
    "from pathlib import Path\nPath('x').read_text()",
    "from pathlib import Path\ngetattr(Path('x'), 'read_text')()",
    "getattr(given, 'read' + '_text')()",
    "getattr(near, '__globals__')",
    "setattr(json, 'dumps', print)",
    "delattr(json, 'dumps')",
    "'{0.__class__}'.format(given)",
    "'{0[a]}'.format(given)",
    "rate.format(given)",
    "text = '{0.' + '_' * 2 + 'class}'\ntext.format(given)",
    "str.format('{0.__class__}', given)",
    "'{a.__class__}'.format_map({'a': given})",
    "from string import Formatter",
    "from operator import attrgetter, methodcaller",
    "import operator\noperator.methodcaller('append', 1)(given)",
    "import operator\noperator.setitem(given, 0, 1)",
    "from functools import update_wrapper\nupdate_wrapper(near, total)",
    "from functools import wraps\nwraps(near)(total)",
    "from functools import partial\npartial(setattr, near)",
    "type('X', (), {})",
    "list(map(type, ['X'], [()], [{}]))",
    "kind = type\nkind('X', (), {})",
    "class A:\n    def __eq__(self, other): return type(other) is int",
    "class A:\n    __eq__ = lambda *_: True",
    "class A:\n    for __eq__ in [print]: pass",
    "class A(str): pass",
    "class A(ValueError, KeyError): pass",
    "class A(metaclass=Cart): pass",
    "class A:\n    def startswith(self, text): return True",
    "class A:\n    def valid(self): return True",
    "class A:\n    def __init_subclass__(cls): pass",
    "class A:\n    def change(self): self.items = 1\nA.change(Cart)",
    "class A: pass\nA.__eq__ = print",
    "class A: pass\nmade = A()\nmade.startswith = print",
    "def change(self): self.pay = print\nchange(Cart)",
    "Cart.pay = print",
    "given.__class__ = int",
    "type(given).total = 1",
    "near.total = 1",
    "global CACHE\nCACHE = {}",
    "global near\ndef near(left): return 1",
    "@given.register\ndef inner(): pass",
    "from types import SimpleNamespace",
    "from collections import namedtuple\nnamedtuple('A', 'startswith')",
    "from collections import namedtuple\nnamedtuple('A', rate)",
    "from unittest.mock import ANY\nreturn ANY",
    "from tests.test_cart import approx",
    "from shop import *",
    "import shop.hidden",
    "return __file__",
    "return __builtins__",
    "globals()",
    "vars(json)",
    "locals()",
    "dir(near)",
    "eval('1')",
    "raise SystemExit",
    "exit()",
    "given.gi_frame",
    "given.config.pluginmanager",
    "near.cache_clear()",
    "f'{given.__dict__}'",
    "[given.__dict__ for given in [near]]",
    "(lambda: near.__code__)()",
    "import asyncio\nasyncio.get_event_loop()",
    "import sys\nsys.exit()",
    "import inspect\ninspect.stack()",
    "import contextlib\ncontextlib.redirect_stdout(given)",
    "import warnings\nwarnings.simplefilter('ignore')",
    "def inner(x: \"near('a')\"): pass",
    "super",
    "return '__' in open",
]


@pytest.mark.parametrize("body", [*HOSTILE, *VALUES, *CONTAINERS, *ALIASES])
def test_code_that_can_reach_beyond_the_function_is_flagged(body: str) -> None:
    assert found(body)


@pytest.mark.parametrize(
    "after",
    [
        "def near(left): return 1",
        "def round(number): return 1",
        "def approx(number): return 1",
        "def __getattr__(name): return 1",
        "class Cart: pass",
        "from math import isclose as approx",
        "import re as json",
        "near = print",
        "pytest_plugins = ['a']",
        "print(1)",
        "for n in [1]: pass",
        "CACHE[1] = 1",
        "def total(given): return 1",
        "if True:\n    def near(left): return 1",
    ],
)
def test_code_beside_the_function_that_hides_names_or_acts_is_flagged(after: str) -> None:
    assert found("return 1", after)


PLAIN = [
    "made = []\nfor one in given:\n    made.append(one)\nreturn made",
    "by_key = {}\nfor one in given:\n    by_key.setdefault(one, []).append(1)\nreturn by_key",
    "from collections import defaultdict\nkept = defaultdict(list)\nfor one in given: kept[one].append(one)",
    "count = 0\nfor one in given:\n    count += 1\nreturn count",
    "more.pop('a', None)\nreturn sorted(given, key=lambda one: -one)",
    "price = table.Price()\nprice.amount = 5\nreturn price",
    "text = json.dumps(given)\nreturn re.sub('a', 'b', text).strip()",
    "import math\nfrom itertools import chain\nreturn math.floor(sum(chain(given)))",
    "if not isinstance(given, (list, tuple)):\n    raise TypeError(f'{type(given).__name__} given')",
    "return '{} {}'.format(given, rate)",
    "def inner(one):\n    nonlocal rate\n    rate = one\n    return one\nreturn inner(given)",
    "class Found(Exception):\n    pass\nraise Found(given)",
    "class Each:\n    def __init__(self, at):\n        self.at = at\n    def shown(self): return self.at\n",
    "it = iter(given)\nreturn next(it, None)",
    "heap = []\nheapq.heappush(heap, 1)\nreturn heap",
    "LOG.info('given %s', given)\nreturn getattr(given, 'amount', None)",
    "return np.find(given)",
    "from functools import lru_cache\n@lru_cache(maxsize=None)\ndef inner(n):\n    return n\nreturn inner(rate)",
]


@pytest.mark.parametrize("body", METHOD)
def test_code_that_can_reach_beyond_a_methods_object_is_flagged(body: str) -> None:
    assert found(body, method=True)


@pytest.mark.parametrize("body", PLAIN)
def test_ordinary_function_code_is_not_flagged(body: str) -> None:
    assert found(body) == []


def test_a_method_may_change_its_object_and_helpers_may_be_added() -> None:
    assert found("self.total += rate\nself.items.append(given)\nreturn self.items", method=True) == []
    assert found("return _helper(given)", "def _helper(one):\n    return one\n\n_MOST = 3\n") == []
    assert found("given.total = 1", method=True) == ["changes an object that it did not create: given.total"]
    assert found("self = given\nself.total = 1", method=True)


def test_only_code_that_the_reference_uses_is_allowed() -> None:
    uses = "given.append(1)\nreturn open(given).read()"
    assert found(uses) == ["changes an object that it did not create: given.append", "uses open"]
    assert found(uses, reference=uses) == []
    assert found(f"eval('1')\n{uses}", reference=uses) == ["uses eval"]


def test_each_reason_has_its_first_line_and_invalid_python_is_flagged() -> None:
    text = "def total(given):\n\n    import gc\n    return gc\n    import gc\n"
    found = remarks(REPOSITORY, FILE, "total", text)
    assert str(found[0]) == "line 3: imports gc" and len({one.reason for one in found}) == len(found)
    assert [str(one) for one in remarks(REPOSITORY, FILE, "total", "def total(:")] == [
        "line 1: cannot be read as Python"
    ]


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda forgery: forgery.name)
def test_every_forgery_but_one_is_flagged(forgery: Forgery) -> None:
    repository, source = RepositoryWords.of(shop.TREE), shop.TREE[shop.PATH]
    told = remarks(repository, source, forgery.target, forgery.text, shop.TARGETS[forgery.target])
    assert bool(told) is (forgery.name != UNREAD)


def test_most_correct_completions_are_not_flagged() -> None:
    repository, source = RepositoryWords.of(shop.TREE), shop.TREE[shop.PATH]
    plain = [
        honest.name
        for honest in RIGHT
        if not remarks(repository, source, honest.target, honest.text, shop.TARGETS[honest.target])
    ]
    assert len(plain) >= len(RIGHT) * 0.6
    for target, text in shop.TARGETS.items():
        assert remarks(repository, source, target, text, text) == ()
