# mypy: ignore-errors
"""Tests of our own for apphelpers 0.33.1. Expectations: the docstring, and the package."""

import logging
import re
from logging.handlers import RotatingFileHandler

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


@pytest.mark.parametrize(("debug", "level"), [(True, logging.DEBUG), (False, logging.INFO)])
def test_logger(loggers, build, monkeypatch, tmp_path, debug, level):
    monkeypatch.setattr(loggers.settings, "DEBUG", debug)
    logger = build(f"ctxbench{debug}", "some.log")
    assert logger is logging.getLogger(f"ctxbench{debug}")
    assert logger.level == level
    [handler] = logger.handlers
    assert isinstance(handler, RotatingFileHandler)
    assert handler.level == level
    assert handler.baseFilename == str((tmp_path / "logs" / "some.log").resolve())
    assert handler.maxBytes > 0
    assert handler.backupCount > 0
    logger.debug("a detail")
    logger.warning("what happened")
    lines = (tmp_path / "logs" / "some.log").read_text().splitlines()
    assert len(lines) == 1 + debug
    assert re.fullmatch(r"\[WARNING\] \d{4}-\d\d-\d\d [\d:,]+: what happened", lines[-1])


def test_logger_by_default(loggers, build, tmp_path):
    before = list(logging.getLogger("app").handlers)
    try:
        logging.getLogger("app").handlers = []
        assert build("app").name == "app"
        assert (tmp_path / "logs" / "app.log").exists()
        assert loggers.build_app_logger() is logging.getLogger("app")
    finally:
        for handler in logging.getLogger("app").handlers:
            handler.close()
        logging.getLogger("app").handlers = before


def test_logger_in_a_folder_that_is_there(build, tmp_path):
    (tmp_path / "logs").mkdir(exist_ok=True)
    (tmp_path / "logs" / "kept.log").write_text("before\n")
    build("ctxbench.kept", logfile="kept.log").error("after")
    assert (tmp_path / "logs" / "kept.log").read_text().splitlines()[0] == "before"
    assert "after" in (tmp_path / "logs" / "kept.log").read_text()
