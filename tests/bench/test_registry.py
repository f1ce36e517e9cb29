"""The registry accepts each name once, from a decorator or an entry point, and gives hints for unknown names."""

import importlib.metadata
from importlib.metadata import EntryPoint

import pytest

from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.bench.registry import Registry


def make(monkeypatch: pytest.MonkeyPatch, *points: EntryPoint) -> Registry[int]:
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: points)
    return Registry("thing", group="ctxbench.things", command="ctxbench thing list")


def test_an_unknown_name_suggests_the_nearest_name(monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(monkeypatch)
    table.add("alpha", 1, origin="here")
    with pytest.raises(UnknownName, match=r"did you mean alpha\?.*ctxbench thing list"):
        table.get("alpah")


def test_a_second_registration_from_another_module_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(monkeypatch)
    table.add("alpha", 1, origin="here")
    table.add("alpha", 2, origin="here")
    with pytest.raises(InputFault, match=r"twice.*rename"):
        table.add("alpha", 3, origin="there")


def test_a_broken_plugin_is_listed_and_fails_only_when_used(monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(monkeypatch, EntryPoint("broken", "no_such_module_anywhere", "ctxbench.things"))
    assert table.names() == ("broken",)
    with pytest.raises(InputFault, match=r"cannot be imported.*repair or uninstall"):
        table.get("broken")


def test_a_plugin_that_registers_nothing_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(monkeypatch, EntryPoint("silent", "json", "ctxbench.things"))
    with pytest.raises(InputFault, match="registered no thing"):
        table.get("silent")


def test_two_packages_cannot_declare_the_same_name(monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(monkeypatch, EntryPoint("a", "json", "g"), EntryPoint("a", "csv", "g"), EntryPoint("b", "json", "g"))
    assert table.names() == ("a", "b"), "one package must not take the names of all others away"
    with pytest.raises(InputFault, match=r"json and csv.*uninstall one"):
        table.get("a")


def test_only_the_declared_module_can_register_a_declared_name(monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(monkeypatch, EntryPoint("alpha", "package.module", "g"))
    with pytest.raises(InputFault, match=r"declared by package.module.*rename"):
        table.add("alpha", 1, origin="elsewhere:function")
    with pytest.raises(InputFault, match="rename"):
        table.add("alpha", 1, origin="package.modules:function")
    assert table.add("alpha", 2, origin="package.module:function") == 2


def test_modules_of_a_declared_package_can_register_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(monkeypatch, EntryPoint("alpha", "package", "g"))
    assert table.add("alpha", 1, origin="package.deep.module:function") == 1
