from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxbench.bench.home import Home
from ctxbench.harness.store import Store, open_store


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def store(home: Home) -> Iterator[Store]:
    with open_store(home.database) as opened:
        yield opened
