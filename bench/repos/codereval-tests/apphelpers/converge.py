# mypy: ignore-errors
"""Stands in for converge, of which the index has no wheel: the settings that apphelpers' loggers read."""

from types import SimpleNamespace

settings = SimpleNamespace(DEBUG=False, APP_MODE="test", API_LOGGER=SimpleNamespace(ENABLED=False))
