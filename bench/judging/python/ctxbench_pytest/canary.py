"""Tests that must fail, made in memory inside the modules of real tests: who reports them as passed, lies."""

from __future__ import annotations

import ast
import types
import unittest
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from _pytest.assertion.rewrite import rewrite_asserts
from _pytest.unittest import TestCaseFunction, UnitTestCase

_SOURCE = """
def {name}({me}):
    left, right = {left}, {right}
    assert left == right
"""


def make(canaries: Sequence[dict[str, Any]], items: Sequence[pytest.Item]) -> Iterator[tuple[int, pytest.Item]]:
    """Yield each canary with its place among `items` and the canaries before it.

    One that is a method of a TestCase becomes a function where no item is one.
    """
    cased = any(isinstance(item, TestCaseFunction) for item in items)
    modules = [item.getparent(pytest.Module) for item in items]
    for number, description in enumerate(canaries):
        count = len(items) + number
        place = min(count, int(description["place"] * (count + 1)))
        near = modules[min(place, len(modules) - 1)] if modules else None
        if near is not None:
            yield place, (_method if description["unittest"] and cased else _function)(description, near)


def _compiled(description: dict[str, Any], me: str, module: pytest.Module) -> types.FunctionType:
    source = _SOURCE.format(
        name=description["name"], me=me, left=int(description["left"]), right=int(description["right"])
    )
    tree = ast.parse(source)
    path = str(module.path)
    rewrite_asserts(tree, source.encode(), path, module.config)
    space: dict[str, Any] = {"__name__": module.obj.__name__, "__file__": path}
    exec(compile(tree, path, "exec", dont_inherit=True), space)  # noqa: S102 - our own four lines
    function: types.FunctionType = space[description["name"]]
    return function


def _function(description: dict[str, Any], module: pytest.Module) -> pytest.Item:
    setattr(module.obj, description["name"], _compiled(description, "", module))
    item: pytest.Item = pytest.Function.from_parent(module, name=description["name"])
    return item


def _method(description: dict[str, Any], module: pytest.Module) -> pytest.Item:
    name = "".join(part.capitalize() for part in description["name"].split("_"))
    space = {description["name"]: _compiled(description, "self", module), "__module__": module.obj.__name__}
    setattr(module.obj, name, type(name, (unittest.TestCase,), space))
    case = UnitTestCase.from_parent(module, name=name)
    items = list(case.collect())
    item: pytest.Item = next(item for item in items if isinstance(item, TestCaseFunction))
    return item
