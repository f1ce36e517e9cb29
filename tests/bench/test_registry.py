"""Names come in once, by decorator or entry point, and unknown ones get a hint."""

import importlib.metadata
from importlib.metadata import EntryPoint

import pytest

from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.bench.registry import Registry


def make(monkeypatch: pytest.MonkeyPatch, *points: EntryPoint) -> Registry[int]:
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: points)
    return Registry("thing", group="ctxbench.things", command="ctxbench thing list")


def test_unknown_name_suggests_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(monkeypatch)
    table.add("alpha", 1, origin="here")
    with pytest.raises(UnknownName, match=r"did you mean alpha\?.*ctxbench thing list"):
        table.get("alpah")


def test_second_registration_from_elsewhere_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(monkeypatch)
    table.add("alpha", 1, origin="here")
    table.add("alpha", 2, origin="here")
    with pytest.raises(InputFault, match=r"twice.*rename"):
        table.add("alpha", 3, origin="there")


def test_broken_plugin_is_listed_and_fatal_only_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(monkeypatch, EntryPoint("broken", "no_such_module_anywhere", "ctxbench.things"))
    assert table.names() == ("broken",)
    with pytest.raises(InputFault, match=r"cannot be imported.*repair or uninstall"):
        table.get("broken")


def test_plugin_that_registers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(monkeypatch, EntryPoint("silent", "json", "ctxbench.things"))
    with pytest.raises(InputFault, match="registered no thing"):
        table.get("silent")


def test_two_packages_with_one_name(monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(monkeypatch, EntryPoint("a", "json", "g"), EntryPoint("a", "csv", "g"), EntryPoint("b", "json", "g"))
    assert table.names() == ("a", "b"), "one package must not take the names of all others away"
    with pytest.raises(InputFault, match=r"json and csv.*uninstall one"):
        table.get("a")


def test_nobody_stands_in_for_a_declared_name(monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(monkeypatch, EntryPoint("alpha", "package.module", "g"))
    with pytest.raises(InputFault, match=r"declared by package.module.*rename"):
        table.add("alpha", 1, origin="elsewhere:function")
    with pytest.raises(InputFault, match="rename"):
        table.add("alpha", 1, origin="package.modules:function")
    assert table.add("alpha", 2, origin="package.module:function") == 2


def test_a_declared_package_may_register_in_its_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(monkeypatch, EntryPoint("alpha", "package", "g"))
    assert table.add("alpha", 1, origin="package.deep.module:function") == 1
