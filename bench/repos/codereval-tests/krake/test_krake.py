# mypy: ignore-errors
"""Tests of our own for Krake 1.0.0; its own need a server's worth of packages.

Expectations: the docstrings, and the package.
"""

import copy
from types import SimpleNamespace

import pytest
from krake.controller.kubernetes import hooks
from krake.data import core
from marshmallow import ValidationError

GOOD = ["a", "Z9", "0", "a-b", "a_b.c", "a" * 63, "a--b"]
BAD = ["", "-a", "a-", "a b", ".", "a" * 64, "é", "a$", "a\n", "a/"]
PREFIXED = ["example.org/name", "a/b", "a" * 253 + "/" + "b" * 63]
NO_PREFIX = ["/a", "a//b", "-a/b", "a/b/c", "a" * 254 + "/b", "a/" + "b" * 64]


@pytest.mark.parametrize("key", GOOD + PREFIXED)
def test_keys_that_are_good(key):
    assert core.validate_key(key) is None


@pytest.mark.parametrize("key", [*(each for each in BAD if each != "a\n"), *NO_PREFIX])
def test_keys_that_are_bad(key):
    with pytest.raises(ValidationError):
        core.validate_key(key)


@pytest.mark.parametrize("value", GOOD)
def test_values_that_are_good(value):
    assert core.validate_value(value) is None


@pytest.mark.parametrize("value", BAD + PREFIXED)
def test_values_that_are_bad(value):
    with pytest.raises(ValidationError):
        core.validate_value(value)


def test_labels_that_are_good():
    assert core._validate_labels({}) is None
    assert core._validate_labels({"a": "b", "example.org/a": "c"}) is None


def test_labels_tell_every_fault():
    with pytest.raises(ValidationError) as caught:
        core._validate_labels({"good": "good", "key": ["value"], "$$": "good", True: True, "other": "a/b"})
    messages = caught.value.messages
    assert [list(each) for each in messages] == [["['value']"], ["$$"], ["True"], ["True"], ["a/b"]]
    assert all(isinstance(said, str) and said for each in messages for said in each.values())


@pytest.fixture
def _unbuilt(monkeypatch):
    monkeypatch.setattr(core, "_resource_name_regex", None)
    monkeypatch.setattr(core, "_resource_name_pattern", None)


@pytest.mark.usefixtures("_unbuilt")
@pytest.mark.parametrize("name", ["a", "a" * 255, "a:b", "a.b-c_d", "A1", "__"])
def test_resource_names_that_are_good(name):
    assert core._get_resource_name_regex().fullmatch(name)


@pytest.mark.usefixtures("_unbuilt")
@pytest.mark.parametrize("name", ["", "a" * 256, "-a", "a-", "a b", "a/b", "é", ":a", "a:"])
def test_resource_names_that_are_bad(name):
    assert not core._get_resource_name_regex().fullmatch(name)


@pytest.mark.usefixtures("_unbuilt")
def test_the_expression_of_resource_names_is_built_once():
    first = core._get_resource_name_regex()
    assert first is not None
    assert core._get_resource_name_regex() is first
    assert core._resource_name_regex is first
    core._resource_name_regex = "built before"
    assert core._get_resource_name_regex() == "built before"


def test_hooks_register_their_handlers():
    listen = hooks.HookDispatcher()

    @listen.on("first")
    def one():
        return 1

    @listen.on("first")
    def two():
        return 2

    @listen.on("second")
    def three():
        return 3

    assert (one(), two(), three()) == (1, 2, 3)
    assert dict(listen.registry) == {"first": [one, two], "second": [three]}


SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "labels": {"app": "x"}},
    "spec": {"type": "NodePort", "ports": [{"port": 80, "protocol": "TCP"}, 5], "nothing": [], "selector": {}},
}
CONTROL = "observer_schema_list_min_length", "observer_schema_list_max_length"


def counted(number):
    return dict.fromkeys(CONTROL, number)


SPEC = {
    "type": None,
    "ports": [{"port": None, "protocol": None}, None, counted(2)],
    "nothing": [counted(0)],
    "selector": {},
}


def test_observer_schema_of_a_part():
    given = copy.deepcopy(SERVICE)
    assert hooks.generate_default_observer_schema_dict(given) == {
        "apiVersion": None,
        "kind": None,
        "metadata": {"name": None, "labels": {"app": None}},
        "spec": SPEC,
    }
    assert given == SERVICE
    assert hooks.generate_default_observer_schema_dict({}) == {}


def test_observer_schema_of_a_resource():
    made = hooks.generate_default_observer_schema_dict(SERVICE, first_level=True)
    assert made == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "labels": {"app": None}},
        "spec": SPEC,
    }


def test_observer_schema_of_a_load_balancer():
    balanced = {**SERVICE, "spec": {"type": "LoadBalancer"}}
    made = hooks.generate_default_observer_schema_dict(balanced, first_level=True)
    assert made["status"] == {"load_balancer": {"ingress": None}}
    assert made["spec"] == {"type": None}
    assert "status" not in hooks.generate_default_observer_schema_dict(balanced)
    bare = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    assert hooks.generate_default_observer_schema_dict(bare, first_level=True) == bare
    empty = {**bare, "spec": {"a": 1}}
    assert hooks.generate_default_observer_schema_dict(empty, first_level=True) == {**bare, "spec": {"a": None}}


def _app(manifest, schema):
    return SimpleNamespace(
        spec=SimpleNamespace(manifest=manifest, observer_schema=schema),
        status=SimpleNamespace(mangled_observer_schema=None),
    )


def test_observer_schema_of_an_application():
    own = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "own"}, "spec": {"a": None}}
    manifest = [{**own, "spec": {"a": 1, "b": 2}}, SERVICE]
    app = _app(manifest, [own])
    assert hooks.generate_default_observer_schema(app) is None
    expected = hooks.generate_default_observer_schema_dict(SERVICE, first_level=True)
    assert app.status.mangled_observer_schema == [own, expected]
    assert app.spec.observer_schema == [own]
    app.status.mangled_observer_schema[0]["spec"]["a"] = "changed"
    assert own["spec"] == {"a": None}


def test_observer_schema_of_an_application_without_resources():
    app = _app([], [])
    hooks.generate_default_observer_schema(app)
    assert app.status.mangled_observer_schema == []


def test_last_applied_gets_what_is_observed():
    last = {"kept": "old", "inner": {"a": 1}}
    schema = {
        "kept": None,
        "newer_field": None,
        "inner": {"a": None, "b": None},
        "made": {"c": None},
        "items": [{"d": None}, None, counted(2)],
    }
    response = {
        "kept": "new",
        "newer_field": 5,
        "unobserved": 6,
        "inner": {"a": 10, "b": 11},
        "made": {"c": 12, "x": 13},
        "items": [{"d": 14, "y": 15}, "text", "more"],
    }
    before = copy.deepcopy((schema, response))
    hooks.update_last_applied_manifest_dict_from_resp(last, schema, response)
    assert last == {
        "kept": "old",
        "newer_field": 5,
        "inner": {"a": 1, "b": 11},
        "made": {"c": 12},
        "items": [{"d": 14}, "text"],
    }
    assert (schema, response) == before


@pytest.mark.parametrize("schema", [{"a": None}, {"a": {}}, {"a": [counted(0)]}, {"b": {"a": None}}])
def test_what_is_observed_must_be_in_the_response(schema):
    with pytest.raises(KeyError):
        hooks.update_last_applied_manifest_dict_from_resp({}, schema, {"b": {}})


def test_last_applied_list():
    update = hooks.update_last_applied_manifest_list_from_resp
    last = ["old", {"a": 1}]
    update(
        last, [None, {"a": None, "b": None}, {"c": None}, None, counted(4)], ["new", {"a": 5, "b": 6}, {"c": 7}, 8, 9]
    )
    assert last == ["old", {"a": 1, "b": 6}, {"c": 7}, 8]


def test_last_applied_list_in_a_list():
    update = hooks.update_last_applied_manifest_list_from_resp
    last = [[1]]
    update(last, [[None, None, counted(2)], [None, counted(1)], counted(2)], [[10, 11], [12]])
    assert last == [[1, 11], [12]]


@pytest.mark.parametrize("response", [[], ["x"]])
def test_last_applied_list_may_be_longer_than_the_response(response):
    last = []
    hooks.update_last_applied_manifest_list_from_resp(last, [None, {"a": None}, None, counted(3)], response)
    assert last == response


def test_the_control_entry_is_not_observed():
    last = []
    hooks.update_last_applied_manifest_list_from_resp(last, [counted(1)], ["x"])
    assert last == []
