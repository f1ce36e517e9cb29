# mypy: ignore-errors
"""Tests of our own for infrared 2.0.0rc1: for the two modules of it that Python 3 can import.

Expectations: the docstrings, and the package.
"""

import copy

import pytest
from infrared.core.inspector.helper import SpecDictHelper
from infrared.core.utils.dict_utils import dict_insert
from infrared.core.utils.exceptions import SpecParserException


@pytest.mark.parametrize(
    ("given", "value", "keys", "expected"),
    [
        ({}, "v", ["a"], {"a": "v"}),
        ({}, "v", ["a", "b", "c"], {"a": {"b": {"c": "v"}}}),
        ({"a": 1}, 2, ["a"], {"a": 2}),
        ({"a": {"x": 1}}, 2, ["a", "b"], {"a": {"x": 1, "b": 2}}),
        ({"a": {"x": 1}}, 2, ["a"], {"a": 2}),
        (
            {"a": {"x": 1, "z": {"p": 1}}},
            {"y": 2, "z": {"q": 2}},
            ["a"],
            {"a": {"x": 1, "y": 2, "z": {"p": 1, "q": 2}}},
        ),
        ({"a": 1}, {"y": 2}, ["a"], {"a": {"y": 2}}),
        ({"a": {"b": {"x": 1}}}, {"x": 2}, ["a", "b"], {"a": {"b": {"x": 2}}}),
        ({"a": None}, None, ["b"], {"a": None, "b": None}),
    ],
)
def test_dict_insert(given, value, keys, expected):
    assert dict_insert(given, value, *keys) is None
    assert given == expected


def test_dict_insert_into_nothing():
    assert dict_insert(None, 1, "a") is None
    held = {"a": None}
    assert dict_insert(held, 1, "a", "b") is None
    assert held == {"a": None}


SPEC = {
    "shared_groups": [
        {"title": "shared", "options": {"debug": {"help": "d"}}},
        {"title": "other", "options": {"quiet": {"help": "q"}}},
    ],
    "subparsers": {
        "virsh": {
            "include_groups": ["shared"],
            "groups": [{"title": "own", "options": {"host": {"required": True}, "port": {"type": "int"}}}],
            "options": {"plain": {"default": 1}},
        },
        "bare": {"options": {"debug": {"help": "another"}}},
        "empty": {},
        "both": {"include_groups": ["other", "shared"]},
    },
}


@pytest.fixture
def helper():
    return SpecDictHelper(copy.deepcopy(SPEC))


def test_options_of_a_command(helper):
    assert helper.get_parser_option_specs("virsh") == [
        {"name": "host", "required": True},
        {"name": "port", "type": "int"},
        {"name": "debug", "help": "d"},
        {"name": "plain", "default": 1},
    ]
    assert helper.get_parser_option_specs("bare") == [{"name": "debug", "help": "another"}]
    assert helper.get_parser_option_specs("empty") == []
    assert helper.get_parser_option_specs("unknown") == []
    assert [each["name"] for each in helper.get_parser_option_specs("both")] == ["quiet", "debug"]


def test_one_option(helper):
    assert helper.get_option_spec("virsh", "port") == {"name": "port", "type": "int"}
    assert helper.get_option_spec("virsh", "debug") == {"name": "debug", "help": "d"}
    assert helper.get_option_spec("bare", "debug") == {"name": "debug", "help": "another"}
    for command, name in [("virsh", "quiet"), ("empty", "debug"), ("unknown", "debug"), ("virsh", None)]:
        assert helper.get_option_spec(command, name) is None


def test_groups_are_included(helper):
    parser = {"name": "p", "include_groups": ["other", "shared"], "groups": [{"title": "first"}]}
    assert helper._include_groups(parser) is None
    assert parser["groups"] == [{"title": "first"}, SPEC["shared_groups"][1], SPEC["shared_groups"][0]]


def test_included_groups_are_copies(helper):
    parser = {"name": "p", "include_groups": ["shared"]}
    helper._include_groups(parser)
    parser["groups"][0]["options"]["debug"]["help"] = "changed"
    assert helper.spec_dict["shared_groups"] == SPEC["shared_groups"]


def test_nothing_to_include(helper):
    for parser in ({"name": "p"}, {"name": "p", "include_groups": []}):
        before = copy.deepcopy(parser)
        helper._include_groups(parser)
        assert parser == before


def test_a_group_that_is_not_shared(helper):
    # The package names the exception, and hands it fewer arguments than it takes: a TypeError comes of that.
    parser = {"name": "the parser", "include_groups": ["shared", "unknown"]}
    with pytest.raises((SpecParserException, TypeError)):
        helper._include_groups(parser)
    with pytest.raises((SpecParserException, TypeError)):
        SpecDictHelper({"name": "main", "include_groups": ["none is shared"]})
