"""Libraries that only an extra installs: in CI one that is missing is a failure, elsewhere a skip."""

from __future__ import annotations

import importlib
import os
from typing import Any

import pytest


def needed(module: str, extra: str) -> Any:
    """Return a module; where it is missing, skip the file or the test that asks; in CI, fail.

    Args:
        module: its name.
        extra: what installs it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        said = f"the extra `{extra}` is not installed ({error})"
        if os.environ.get("CI") == "true":
            raise AssertionError(said) from error
        pytest.skip(said, allow_module_level=True)
