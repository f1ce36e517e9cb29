"""What a test needs of the machine, and what happens where it is missing."""

import importlib
import os
from typing import Any, NoReturn

import pytest

COMPLETE = "CTXBENCH_TESTS_COMPLETE"
"""The variable under which nothing may be skipped for want of a program or a privilege; our own CI sets it."""


def missing(said: str) -> NoReturn:
    """Skip the test, or the file, that cannot do without something; where tests must be complete, fail.

    Args:
        said: what is missing, and if need be where it comes from.
    """
    (pytest.fail if os.environ.get(COMPLETE) == "1" else absent)(said)


def absent(said: str) -> NoReturn:
    """Skip the test, or the file, that needs what no machine has to have."""
    pytest.skip(said, allow_module_level=True)


def needed(module: str, extra: str) -> Any:
    """Return a module; where it is not installed, skip the file or the test that asks, or fail, as `missing` says.

    Args:
        module: its name.
        extra: what installs it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        missing(f"the extra `{extra}` is not installed ({error})")
