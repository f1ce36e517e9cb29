"""Cells as they are where the kernel grants less."""

from pathlib import Path

import pytest

from tests.harness.cells.confined import switch_off


@pytest.fixture
def without_namespaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have cells without namespaces, as in most containers."""
    folder = tmp_path / "less"
    folder.mkdir()
    switch_off(folder, monkeypatch, namespaces=True)
