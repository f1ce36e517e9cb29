# mypy: ignore-errors
"""Tests of our own for neutron-lib 3.0.0. Expectations: the docstring, and the package."""

import pytest
from neutron_lib.agent.common.utils import _replace_register


@pytest.mark.parametrize(
    ("flow", "number", "key", "expected"),
    [
        ({"port": 5}, 6, "port", {"reg6": 5}),
        ({"port": 5, "table": 1}, 0, "port", {"table": 1, "reg0": 5}),
        ({"table": 1}, 6, "port", {"table": 1}),
        ({}, 6, "port", {}),
        ({"port": None}, 5, "port", {"reg5": None}),
        ({"port": 5, "reg6": 1}, 6, "port", {"reg6": 5}),
    ],
)
def test_replace_register(flow, number, key, expected):
    assert _replace_register(flow, number, key) is None
    assert flow == expected
