"""The files of a home folder."""

from pathlib import Path

import pytest

from ctxbench.bench.home import Home
from ctxbench.harness.store import open_store
from ctxbench.harness.store.store import exists


@pytest.mark.parametrize("name", ["feature%2Flogin", "a%20b", "q?1", "100%", "h?a#b%20 c", "ü&=+"])
def test_a_home_with_special_characters_contains_its_database(name: str, tmp_path: Path) -> None:
    home = Home(tmp_path / name)
    with open_store(home.database) as store, store.run_lock("some-run"):
        assert exists(home.database)
    assert (home.root / "results.db").is_file() and [path.name for path in tmp_path.iterdir()] == [name]
