"""The levels of functions, name by name."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import pytest

from ctxbench.bench.functions.mining import Level, Project, Spot
from ctxbench.bench.functions.python.static import read_functions, uses_at
from ctxbench.bench.home import Home
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.repositories.manifest import RepoManifest, TestSuite
from ctxbench.bench.repositories.sources import LocalSource
from ctxbench.bench.types import Cursor, Use
from tests.helpers.trees import make_snapshot

HEAD = """
import os
import json as j
import numpy as np
from itertools import *
from .store import Store, load_all
from . import rules
from .compat import yaml
try:
    import tomllib
except ImportError:
    tomllib = None

LIMIT = 3
limit_of = os.cpu_count


def helper(x):
    return -x


class Base:
    size = 1
"""
FILES = {
    "shop/__init__.py": "",
    "shop/store.py": "class Store: ...\ndef load_all(): ...\n",
    "shop/rules.py": "def round_up(x): ...\n",
    "shop/compat.py": "import yaml\n",
    "tests/test_shop.py": 'def helper():\n    """Documented, but a test."""\n    return 1\n',
}


def project(tmp_path: Path, files: dict[str, str]) -> Project:
    manifest = RepoManifest(
        name="demo",
        language=PYTHON,
        license="MIT",
        version="1",
        sources=(LocalSource(path=str(tmp_path)),),
        exclude=("examples/*",),
        tests=TestSuite(paths=("tests",)),
    )
    read = make_snapshot(tmp_path, files)
    return Project(manifest=manifest, root=tmp_path, snapshot=read, home=Home(tmp_path), lock=lambda *_: ())


def level_of(tmp_path: Path, body: str, *, method: bool = False) -> tuple[Level, tuple[Use, ...]]:
    function = f'def asked({"self, " * method}x, y=1):\n    """Do."""\n' + indent(dedent(body), "    ")
    text = HEAD + "\n\n" + (f"class Cart(Base):\n{indent(function, '    ')}" if method else function) + "\n"
    found = read_functions(project(tmp_path, {**FILES, "shop/pay.py": text}))
    (known,) = [each for each in found.functions if each.definition.name.endswith("asked")]
    return known.level, known.uses


@pytest.mark.parametrize(
    ("body", "level"),
    [
        ("return x + y", Level.SELF_CONTAINED),
        ("return sorted(len(each) for each in x)", Level.SELF_CONTAINED),
        ("helper = x\nreturn helper", Level.SELF_CONTAINED),
        ("def helper(z): return z\nreturn helper(x)", Level.SELF_CONTAINED),
        ("return asked(x - 1) if x else 0", Level.SELF_CONTAINED),
        ("return x.load_all(Store=1)", Level.SELF_CONTAINED),
        ("return os.path.join(x, j.dumps(y))", Level.SLIB),
        ("import re\nreturn re.sub(x, y)", Level.SLIB),
        ("return tomllib.loads(x)", Level.SLIB),
        ("return chain(x)", Level.SLIB),
        ("return f'{os.sep}'", Level.SLIB),
        ("return np.zeros(x)", Level.PLIB),
        ("from lxml import etree\nreturn etree.parse(os.fspath(x))", Level.PLIB),
        ("return helper(x)", Level.FILE),
        ("return LIMIT + np.one", Level.FILE),
        ("return limit_of()", Level.FILE),
        ("return Base().size", Level.FILE),
        ("return [Store for _ in helper(x)]", Level.PROJECT),
        ("return rules.round_up(x)", Level.PROJECT),
        ("from shop.store import Store as S\nreturn S()", Level.PROJECT),
        ("return yaml.load(x)", Level.PROJECT),
    ],
)
def test_levels_of_functions(tmp_path: Path, body: str, level: Level) -> None:
    assert level_of(tmp_path, body)[0] is level


@pytest.mark.parametrize(
    ("body", "level"),
    [
        ("return x", Level.SELF_CONTAINED),
        ("return self.size + np.one", Level.CLASS),
        ("return len(self)", Level.CLASS),
        ("return super().asked(x)", Level.CLASS),
        ("return Cart(x)", Level.CLASS),
        ("return self.size + LIMIT", Level.FILE),
        ("return self.put(Store())", Level.PROJECT),
    ],
)
def test_levels_of_methods(tmp_path: Path, body: str, level: Level) -> None:
    assert level_of(tmp_path, body, method=True)[0] is level


def test_uses_are_the_projects_names_that_the_body_reads(tmp_path: Path) -> None:
    _, uses = level_of(tmp_path, "s = Store()\nreturn s, rules.round_up(Store), os.sep")
    assert uses == (
        Use(name="Store", module="shop.store", kind="class"),
        Use(name="rules", module="shop.rules", kind="module"),
        Use(name="rules.round_up", module="shop.rules", kind="function"),
    )


def test_signature_and_decorators_are_given_and_need_nothing(tmp_path: Path) -> None:
    text = HEAD + '\n@load_all\ndef asked(x: Store = LIMIT) -> Store:\n    """Do."""\n    return x\n'
    found = read_functions(project(tmp_path, {**FILES, "shop/pay.py": text}))
    assert [(each.level, each.uses) for each in found.functions] == [(Level.SELF_CONTAINED, ())]


@pytest.mark.parametrize(("place", "names"), [("tests/old.py", ["join", "first"]), ("old.py", ["first"])])
def test_a_body_that_stands_in_a_file_of_another_python_is_elsewhere(
    tmp_path: Path, place: str, names: list[str]
) -> None:
    text = 'def join(items, by):\n    """Join."""\n    items = list(items)\n    return by.join(items)\n'
    apart = 'def first(items):\n    """Find."""\n    return items[0]\n'
    old = text.replace("    ", "\t") + 'print "two"\n'
    found = read_functions(project(tmp_path, {"shop/text.py": text + apart, place: old}))
    assert [function.definition.name for function in found.functions] == names
    assert found.drops["body_elsewhere"] == 2 - len(names)


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    same = 'def {}(x):\n    """Do."""\n    return [x, x]\n'
    found = read_functions(
        project(
            tmp_path,
            {
                **FILES,
                "shop/one.py": same.format("one"),
                "shop/two.py": same.format("two") + 'def three(x):\n    """Do."""\n    return x\n',
                "shop/broken.py": "def f(:\n",
                "examples/use.py": 'def four(x):\n    """Do."""\n    return (x, 5)\n',
                "shop/five.py": 'def five(x):\n    """Do."""\n    return x, 5\n',
            },
        )
    )
    assert [each.definition.name for each in found.functions] == ["three"]
    assert dict(found.drops) == {"body_elsewhere": 3}, "copies in files that give no samples are seen too"
    assert found.hidden == ("tests/",)
    assert {key: found.counts[f"left_out_{key}"] for key in ("test", "excluded", "syntax_error")} == {
        "test": 1,
        "excluded": 1,
        "syntax_error": 1,
    }


def test_what_a_function_that_others_chose_needs(tmp_path: Path) -> None:
    text = HEAD + "\n\ndef bare(x):\n    return rules.round_up(load_all(x))\n"
    made = project(tmp_path, {**FILES, "shop/pay.py": text})
    start = made.snapshot.texts["shop/pay.py"].partition("def bare")[0].count("\n")
    uses = uses_at(made)
    spot = Spot(path="shop/pay.py", name="bare", start=start, cursor=Cursor(line=start + 1, column=0), end=start + 2)
    assert {use.name for use in uses(spot)} == {"rules", "rules.round_up", "load_all"}, "it has no docstring"
    nowhere = Spot(path="shop/pay.py", name="x", start=0, cursor=Cursor(line=1, column=0), end=2)
    assert uses(nowhere) == ()
