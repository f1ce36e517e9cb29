"""What a test needs of the machine: in CI what is missing is a failure, elsewhere a skip that says what is missing."""

from __future__ import annotations

import importlib
import os
from typing import Any, NoReturn

import pytest


def missing(said: str) -> NoReturn:
    """Skip the test, or the file, that cannot do without something; in CI, fail: nothing goes untested in silence.

    Args:
        said: what is missing, and if need be where it comes from.
    """
    (pytest.fail if os.environ.get("CI") == "true" else _skip)(said)


def _skip(said: str) -> NoReturn:
    pytest.skip(said, allow_module_level=True)


def needed(module: str, extra: str) -> Any:
    """Return a module; where it is not installed, skip the file or the test that asks; in CI, fail.

    Args:
        module: its name.
        extra: what installs it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        missing(f"the extra `{extra}` is not installed ({error})")
