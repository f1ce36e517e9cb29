from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from ctxbench.bench.types import Kind
from ctxbench.harness.cells import copies, open_cells
from ctxbench.sandbox.guest import landlock
from ctxbench.strategies.tiny import query_for, view_for
from tests.helpers.extras import missing
from tests.helpers.models import Model


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "lib" / "site-packages"
    (folder / "zqshop" / "sub").mkdir(parents=True)
    (folder / "zqshop" / "sub" / "cart.py").write_text("ANSWER = 'zqx_answer'\n")
    (folder / "zqone.py").write_text("")
    (folder / "zqother").mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".cache" / "uv").mkdir(parents=True)
    importlib.invalidate_caches()
    return folder


def test_installed_copies_of_the_files_are_found(site: Path, tmp_path: Path) -> None:
    cache = tmp_path / ".cache" / "uv"
    assert copies(["src/zqshop/sub/cart.py", "zqone.py", "zqother/x.py"]) == sorted(
        [cache, site / "zqone.py", site / "zqshop"]
    )
    assert copies(["zqshop/sub/cart.py"]) == sorted([cache, site / "zqshop"])
    assert copies(["lib/cart.py"]) == [cache]


@pytest.mark.slow
def test_a_hidden_copy_cannot_be_read_or_imported(site: Path, tmp_path: Path) -> None:
    if not landlock.abi():
        missing("no Landlock on this kernel")
    file = tmp_path / "cheat.py"
    file.write_text(
        "from ctxbench.strategies import *\n@strategy('cheat')\ndef cheat(query: Query, repo: Repository) -> Context:\n"
        "    from zqshop.sub import cart\n    return Context((Snippet(path='a', text=cart.ANSWER),))\n"
    )
    query = query_for(Kind.LINE)
    with open_cells([], 1) as cells:
        assert "zqx_answer" in cells.run(f"{file}@cheat", query, view_for(query), Model()).text
    with (
        open_cells(copies(["zqshop/sub/cart.py"]), 1) as cells,
        pytest.raises(Exception, match="raised (PermissionError|ModuleNotFoundError|ImportError)"),
    ):
        cells.run(f"{file}@cheat", query, view_for(query), Model())
