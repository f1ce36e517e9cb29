# mypy: ignore-errors
"""Tests of our own for infrared 2.0.0rc1: for its inspector, settings and services; see `conftest`.

Expectations: the docstrings, and the package.
"""

import pytest
import yaml
from infrared.core.inspector.helper import SpecDictHelper
from infrared.core.inspector.inspector import SpecParser
from infrared.core.services import CoreServices, ServiceName
from infrared.core.settings import VarsDictManager
from infrared.core.utils.exceptions import IRRequiredArgsMissingException

SPEC = {
    "subparsers": {
        "virsh": {
            "options": {
                "host": {"required": True},
                "port": {"type": "int", "default": 22},
                "verbose": {"action": "count", "default": 0},
                "dry": {"action": "store_true"},
                "quick": {"action": "store_true", "silent": ["host", "key"]},
                "answers": {"silent": ["key"]},
                "key": {"required_when": "mode == remote"},
                "mode": {"default": "local"},
            }
        },
        "ospd": {"options": {"version": {"required": True, "default": None}, "plain": {}}},
        "bare": {},
    }
}


@pytest.fixture
def parser():
    made = SpecParser.__new__(SpecParser)
    made.spec_helper = SpecDictHelper(SPEC)
    return made


def test_defaults_of_a_specification(parser):
    assert parser.get_spec_defaults() == {
        "virsh": {"port": 22, "verbose": 0, "dry": False, "quick": False, "mode": "local"}
    }


def test_a_default_that_is_given_goes_before_that_of_a_switch(parser):
    parser.spec_helper = SpecDictHelper(
        {"subparsers": {"a": {"options": {"x": {"action": "store_true", "default": True}, "y": {"action": "append"}}}}}
    )
    assert parser.get_spec_defaults() == {"a": {"x": True}}
    parser.spec_helper = SpecDictHelper({})
    assert parser.get_spec_defaults() == {}


@pytest.mark.parametrize(
    ("arguments", "silent"),
    [
        ({}, set()),
        ({"virsh": {}}, set()),
        ({"virsh": {"quick": True}}, {"host", "key"}),
        ({"virsh": {"quick": False}}, set()),
        ({"virsh": {"quick": True, "answers": "x"}}, {"host", "key"}),
        ({"virsh": {"answers": "x", "unknown": 1, "host": "h"}}, {"key"}),
        ({"ospd": {"quick": True}}, set()),
    ],
)
def test_silent_arguments(parser, arguments, silent):
    found = parser.get_silent_args(arguments)
    assert isinstance(found, list)
    assert len(found) == len(silent)
    assert set(found) == silent


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"virsh": {"mode": "remote"}}, ["key"]),
        ({"virsh": {"mode": "remote", "key": "k"}}, []),
        ({"virsh": {"mode": "local"}}, []),
        ({"virsh": {}}, []),
        ({}, []),
        ({"ospd": {"mode": "remote"}}, []),
    ],
)
def test_conditionally_required_arguments(parser, arguments, expected):
    options = parser.spec_helper.get_parser_option_specs("virsh")
    assert parser._get_conditionally_required_args("virsh", options, arguments) == expected
    assert parser._get_conditionally_required_args("virsh", [], arguments) == []


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        ({"virsh": {}}, {"virsh": ["host"]}),
        ({"virsh": {"mode": "remote"}}, {"virsh": ["host", "key"]}),
        ({"virsh": {"mode": "remote", "host": "h"}}, {"virsh": ["key"]}),
        ({"virsh": {"host": "h"}, "ospd": {}}, {"ospd": ["version"]}),
        ({"virsh": {}, "ospd": {"plain": 1}}, {"virsh": ["host"], "ospd": ["version"]}),
        ({"virsh": {"answers": "x", "mode": "remote"}}, {"virsh": ["host"]}),
    ],
)
def test_arguments_that_are_missing(parser, arguments, missing):
    with pytest.raises(IRRequiredArgsMissingException) as caught:
        parser.validate_requires_args(arguments)
    assert caught.value.missing_args == missing


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"bare": {}},
        {"virsh": {"host": "h"}},
        {"virsh": {"quick": True, "mode": "remote"}},
        {"virsh": {"host": "h", "mode": "remote", "key": "k"}, "ospd": {"version": None}},
    ],
)
def test_no_argument_is_missing(parser, arguments):
    assert parser.validate_requires_args(arguments) is None


def test_arguments_become_numbers(parser):
    values = {"port": "22", "verbose": "3", "host": "5", "dry": "True"}
    assert parser._convert_non_cli_args("virsh", values) is None
    assert values == {"port": 22, "verbose": 3, "host": "5", "dry": "True"}
    with pytest.raises(ValueError):
        parser._convert_non_cli_args("virsh", {"port": "many"})
    nothing = {}
    parser._convert_non_cli_args("bare", nothing)
    assert nothing == {}


@pytest.fixture
def _older_yaml(monkeypatch):
    """Have `yaml.load` ask for no loader, as it did."""
    load = yaml.load

    def older(stream, *loader, **named):
        return load(stream, *loader, **named) if loader or named else load(stream, yaml.SafeLoader)

    monkeypatch.setattr(yaml, "load", older)


def test_extra_variables():
    held = {"a": {"x": "1"}, "b": "2"}
    assert VarsDictManager.merge_extra_vars(held, ["a.y=3", "b=4", "c.d.e=5", "f="]) is None
    assert held == {"a": {"x": "1", "y": "3"}, "b": "4", "c": {"d": {"e": "5"}}, "f": ""}


@pytest.mark.parametrize("nothing", [None, []])
def test_no_extra_variables(nothing):
    held = {"a": 1}
    VarsDictManager.merge_extra_vars(held, nothing)
    VarsDictManager.merge_extra_vars(held)
    assert held == {"a": 1}


@pytest.mark.usefixtures("_older_yaml")
def test_extra_variables_of_a_file(tmp_path):
    place = tmp_path / "more.yml"
    place.write_text("a: {y: 3, l: [1, 2]}\nb: new\nc: [5]\n")
    held = {"a": {"x": 1, "l": [2, 9]}, "b": "old"}
    VarsDictManager.merge_extra_vars(held, [f"@{place}", "b=last"])
    assert held == {"a": {"x": 1, "y": 3, "l": [2, 9, 1]}, "b": "last", "c": [5]}


@pytest.mark.parametrize("wrong", ["no sign", "", "a.b"])
def test_extra_variables_are_assignments(wrong):
    # The package names an exception that it has not: any will do.
    held = {"a": 1}
    with pytest.raises(Exception, match=r".*"):
        VarsDictManager.merge_extra_vars(held, [wrong])
    assert held == {"a": 1}


def test_plugins_manager(monkeypatch):
    first, other = object(), object()
    monkeypatch.setattr(
        CoreServices, "_SERVICES", {ServiceName.PLUGINS_MANAGER: first, ServiceName.PROFILE_MANAGER: other}
    )
    assert CoreServices.plugins_manager() is first


def test_plugins_manager_sets_services_up_when_there_is_none(monkeypatch):
    made = object()
    monkeypatch.setattr(CoreServices, "_SERVICES", {})
    monkeypatch.setattr(
        CoreServices,
        "setup",
        classmethod(lambda cls, *more: cls.register_service(ServiceName.PLUGINS_MANAGER, made)),
    )
    assert CoreServices.plugins_manager() is made
    assert CoreServices.plugins_manager() is made
