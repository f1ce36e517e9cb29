"""Requirements of tests on the machine, and what happens if one is missing."""

import importlib
import os
from typing import Any, NoReturn

import pytest

COMPLETE = "CTXBENCH_TESTS_COMPLETE"
"""Environment variable that forbids skips because of a missing program or privilege. Our CI sets it."""


def missing(said: str) -> NoReturn:
    """Skip the test or the file that requires something missing. If tests must be complete, fail."""
    (pytest.fail if os.environ.get(COMPLETE) == "1" else absent)(said)


def absent(said: str) -> NoReturn:
    """Skip the test or the file that requires something optional."""
    pytest.skip(said, allow_module_level=True)


def needed(module: str, extra: str) -> Any:
    """Import a module that the extra `extra` installs. If it is missing, act as `missing`."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        missing(f"the extra `{extra}` is not installed ({error})")
