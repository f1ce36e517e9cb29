# mypy: ignore-errors
"""Tests of our own for apphelpers 0.33.1. Expectations: the docstring, and the package."""

import logging

import pytest


@pytest.fixture
def loggers(tmp_path, monkeypatch):
    """Have the module, in an empty folder: it begins a log where it is imported."""
    monkeypatch.chdir(tmp_path)
    from apphelpers import loggers

    return loggers


@pytest.fixture
def build(loggers):
    made = []

    def one(name, *arguments, **more):
        made.append(loggers.build_app_logger(name, *arguments, **more))
        return made[-1]

    yield one
    for each in made:
        for handler in list(each.handlers):
            handler.close()
            each.removeHandler(handler)


def _lines(folder, name):
    [place] = folder.rglob(name)
    return place.read_text().splitlines()


def test_logger(build, tmp_path):
    logger = build("ctxbench.one", "some.log")
    assert logger is logging.getLogger("ctxbench.one")
    logger.warning("what happened")
    assert [line for line in _lines(tmp_path, "some.log") if "what happened" in line]


def test_logger_keeps_what_is_in_its_file(build, tmp_path):
    build("ctxbench.first", logfile="kept.log").error("before")
    build("ctxbench.second", logfile="kept.log").error("after")
    joined = "\n".join(_lines(tmp_path, "kept.log"))
    assert "before" in joined
    assert "after" in joined


def test_loggers_are_apart(build, tmp_path):
    build("ctxbench.a", "a.log").error("only here")
    build("ctxbench.b", "b.log").error("there")
    assert "there" not in "\n".join(_lines(tmp_path, "a.log"))
    assert "there" in "\n".join(_lines(tmp_path, "b.log"))
