# mypy: ignore-errors
"""Tests of our own for zope.interface 5.4.0: for what runs only while it is imported. Expectations: the docstrings."""

import sys
from types import ModuleType

import pytest
import zope.interface
from zope.interface import _compat

NAME = "_zope_interface_coptimizations"


@pytest.fixture(params=[None, "", "0", "1", "x"])
def pure(request, monkeypatch):
    if request.param is None:
        monkeypatch.delenv("PURE_PYTHON", raising=False)
    else:
        monkeypatch.setenv("PURE_PYTHON", request.param)
    return request.param


@pytest.fixture(params=[False, True])
def built(request, monkeypatch):
    """Have the C module, or not; nothing is compiled."""
    made = ModuleType(f"zope.interface.{NAME}") if request.param else None
    monkeypatch.setitem(sys.modules, f"zope.interface.{NAME}", made)
    if made is None:
        monkeypatch.delattr(zope.interface, NAME, raising=False)
    else:
        monkeypatch.setattr(zope.interface, NAME, made, raising=False)
    return made


def test_required(pure):
    assert bool(_compat._c_optimizations_required()) is (pure == "0")


def test_ignored(pure):
    # "The opposite" leaves open what holds while the variable is not set.
    if pure is not None:
        assert bool(_compat._c_optimizations_ignored()) is (pure != "0")


def test_available(pure, built):
    if built is None and pure == "0":
        with pytest.raises(ImportError):
            _compat._c_optimizations_available()
    elif built is None:
        assert not _compat._c_optimizations_available()
    else:
        assert _compat._c_optimizations_available() is built


def test_attempted(pure, monkeypatch):
    monkeypatch.delattr(sys, "pypy_version_info", raising=False)
    monkeypatch.setattr(_compat, "_c_optimizations_ignored", lambda: pure not in {None, "0"})
    assert bool(_compat._should_attempt_c_optimizations()) is (pure in {None, "0"})


def test_attempted_on_pypy_only_if_required(pure, monkeypatch):
    monkeypatch.setattr(sys, "pypy_version_info", (7, 3, 9), raising=False)
    assert bool(_compat._should_attempt_c_optimizations()) is (pure == "0")
