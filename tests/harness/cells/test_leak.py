"""No strategy can see the answer. A planted strategy tries in a cell, and without one to show that its probes work."""

import contextlib
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxbench.bench.files import sha256
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.masking import unmasked
from ctxbench.bench.repositories.snapshot import Snapshot
from ctxbench.bench.repositories.snapshot import load as load_snapshot
from ctxbench.bench.repository import Repository, view
from ctxbench.bench.types import Cursor, Query, Reference
from ctxbench.harness.cells import Cells, open_cells
from ctxbench.sandbox.guest import landlock
from tests.harness.cells.confined import switch_off
from tests.helpers.extras import missing
from tests.helpers.models import Model
from tests.helpers.samples import make_sample

pytestmark = pytest.mark.slow

ANSWER = "zqx_" + sha256("answer")[:12]
TOOL = "zqx_" + sha256("masked import")[:12]
CHECKOUT = f'''"""Paying."""
from shop.tools import {TOOL}


def checkout(store, user_id, rate):
    cart = store.load(user_id)
    total = {ANSWER}(cart.total, rate)
    return total


def later():
    return "the end of the file"
'''
CURSOR = Cursor(line=6, column=12)
MASKED = ((1, 2),)

if not landlock.abi():
    missing("no Landlock on this kernel")


class World:
    """A home with answers, one sample for the planted strategy, and a later sample in the same file."""

    def __init__(self, root: Path) -> None:
        self.home = root / "project" / ".ctxbench"
        repo = self.home / "repos" / "demo" / "key"
        (repo / "shop").mkdir(parents=True)
        (repo / "shop" / "checkout.py").write_text(CHECKOUT)
        (repo / "shop" / "store.py").write_text("def load(user_id):\n    return user_id\n")
        samples = self.home / "samples" / "set"
        samples.mkdir(parents=True)
        (samples / "references.jsonl").write_text(f'{{"id": "x", "target": "{ANSWER}(cart.total, rate)"}}\n')
        with contextlib.closing(sqlite3.connect(self.home / "results.db")) as database:
            database.execute("create table reference (target text)")
            database.execute("insert into reference values (?)", (ANSWER + TOOL,))
            database.commit()
        self.snapshot: Snapshot = load_snapshot("demo", repo, PYTHON)
        self.reference = Reference(id="x", target=f"{ANSWER}(cart.total, rate)", original_import=TOOL)
        lines = CHECKOUT.split("\n")
        self.query = self._query("\n".join([lines[0], "", *lines[2:6], lines[6][:12]]), CURSOR)
        self.later = self._query("\n".join([*lines[:11], ""]), Cursor(line=11, column=0))
        self.file = root / "project" / "planted.py"
        shutil.copy(Path(__file__).with_name("planted.py"), self.file)
        (root / "project" / "port").write_text("9")
        sample = make_sample(prefix=self.query.prefix, cursor=CURSOR, masked=MASKED)
        self.unmasked = unmasked(sample, self.snapshot).query()

    def _query(self, prefix: str, cursor: Cursor) -> Query:
        sample_id = f"demo/shop/checkout.py#L{cursor.line}C{cursor.column}"
        return make_sample(id=sample_id, prefix=prefix, cursor=cursor).query()

    def view(self, query: Query) -> Repository:
        return view(self.snapshot, query, MASKED if query is self.query else ())

    def spec(self, **arguments: object) -> str:
        given = "".join(f", {key}={str(value).lower()}" for key, value in arguments.items())
        return f"{self.file}@planted(home='{self.home}'{given})"

    def plant(self, cells: Cells, query: Query, **arguments: object) -> str:
        return cells.run(self.spec(**arguments), query, self.view(query), Model()).text


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def served(world: World) -> Iterator[None]:
    """Start a server on this machine that sends the answer to every client."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        (world.file.parent / "port").write_text(str(server.getsockname()[1]))

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    peer, _ = server.accept()
                    peer.sendall(world.reference.target.encode())
                    peer.close()

        threading.Thread(target=serve, daemon=True).start()
        yield
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)


def test_no_strategy_can_see_the_answer(world: World, served: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXBENCH_NOTE", ANSWER)
    with (
        (world.home / "samples/set/references.jsonl").open() as kept_open,
        open_cells([world.home], 2) as cells,
    ):
        assert "landlock" in cells.describe()["isolation"]
        assert world.plant(cells, world.later, leave=True) == "left"
        text = world.plant(cells, world.query)
        unmasked_text = world.plant(cells, world.unmasked)
        assert kept_open.readable()
    assert text.endswith(world.query.prefix)
    assert ANSWER not in text, text
    assert TOOL not in text, text
    # A strategy that sees the masked lines finds only those.
    assert unmasked_text.endswith(world.unmasked.prefix) and TOOL in world.unmasked.prefix
    assert ANSWER not in unmasked_text, unmasked_text
    assert "zqx_attached" not in text and "zqx_opened" not in text, text
    assert "searches: []" in text, text


WRAPPER = """
import gc
from ctxbench.strategies import Block, BlockKind, Inner, Prompt, Query, Repository, resolve, strategy
from ctxbench.strategies.api import Generate

@strategy("wrapper")
def wrapper(query: Query, repo: Repository, generate: Generate, *, inner: Inner = "lc.infile") -> Prompt:
    found = set()
    made = resolve(inner)(query, repo, generate)
    for text in (made.text, query.prefix, "zqx"):
        for unit in ("usage", "summary", "function"):
            found |= {hit.text + hit.matched for hit in repo.search(text, unit=unit, ranker="bm25", top=10_000)}
    found |= {one for one in gc.get_objects() if isinstance(one, str)}
    noted = sorted(one for one in found if "zqx_" in one)
    return Prompt(blocks=(Block(kind=BlockKind.TEXT, text="\\n".join(noted) + "\\n"), *made.blocks))
"""


def test_a_wrapper_cannot_see_the_answer_through_searches_or_its_inner_strategy(world: World) -> None:
    mine = world.file.with_name("wrapper.py")
    mine.write_text(WRAPPER)
    rankers = ("bm25", "jaccard", "hashed")
    with open_cells([world.home], 2) as cells:
        repo = world.view(world.query)
        specs = [f"{mine}@wrapper(inner=lc.repocoder)"]
        specs += [f"aim({inner}, encoder={one})" for inner in ("lc.infile", "lc.repocoder") for one in rankers]
        specs += [f"aim({world.spec()}, encoder=bm25)", f"{mine}@wrapper(inner={world.spec()})"]
        for spec in specs:
            text = cells.run(spec, world.query, repo, Model(lambda *_: "load(user_id)")).text
            assert text.endswith(world.query.prefix), spec
            assert ANSWER not in text and TOOL not in text, (spec, text)
        # The same wrapper does find the answer in the lines before a later cursor of the file.
        assert ANSWER in cells.run(specs[0], world.later, world.view(world.later), Model()).text


def test_the_planted_strategy_finds_the_answer_without_isolation(world: World) -> None:
    """The strategy runs in a new process, so that its search meets no larger heap than in a run."""
    script = (
        "from pathlib import Path\nfrom tests.harness.cells.test_leak import World\n"
        "from ctxbench.harness.cells import InlineCells\nimport sys\n"
        "world = World(Path(sys.argv[1]))\nprint(world.plant(InlineCells(), world.query, cell=False))\n"
    )
    root = world.home.parents[1] / "again"
    text = subprocess.run(
        [sys.executable, "-c", script, str(root)], capture_output=True, text=True, check=True, timeout=100
    ).stdout
    found = {line.partition(":")[0] for line in text.splitlines() if ANSWER in line}
    assert found >= {"attributes", "garbage_collector", "frames", "home_files", "links", "own_memory"}, text
    assert not found & {"path_tricks", "similar_windows", "searches"}, text
    assert any(TOOL in line for line in text.splitlines())


def test_a_cell_without_landlock_has_no_answer_in_memory(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the process boundary alone, a cell cannot read the memory of the trusted process."""
    switch_off(world.file.parent, monkeypatch, namespaces=True, landlock=True)
    with open_cells([world.home], 1) as cells:
        assert cells.describe()["isolation"] == "process"
        text = world.plant(cells, world.query, cell=False)
    found = {line.partition(":")[0] for line in text.splitlines() if ANSWER in line}
    inside = {"attributes", "garbage_collector", "frames", "modules", "closures", "environment", "own_memory"}
    assert not found & (
        inside | {"path_tricks", "similar_windows", "searches", "open_descriptors", "left_by_others"}
    ), text
    assert "home_files" in found


@pytest.mark.parametrize("confined", ["namespaces", "landlock"])
def test_a_killed_run_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, confined: str) -> None:
    slow = tmp_path / "slow.py"
    slow.write_text(
        "import time, os, pathlib\nfrom ctxbench.strategies import *\n"
        "@strategy('slow')\ndef slow(query: Query, repo: Repository) -> Context:\n"
        "    if os.fork() == 0: os.setsid()\n"
        "    time.sleep(600)\n"
    )
    if confined == "landlock":
        (tmp_path / "off").mkdir()
        switch_off(tmp_path / "off", monkeypatch, namespaces=True)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path / "off"))
    script = (
        "import sys, threading\nfrom ctxbench.harness.cells import open_cells\nfrom ctxbench.strategies.tiny import *\n"
        "from tests.helpers.models import Model\n"
        "q = query_for(Kind.LINE)\nwith open_cells([], 1) as cells:\n"
        "    print(cells.describe()['isolation'], flush=True)\n"
        f"    cells.run('{slow}@slow', q, view_for(q), Model())\n"
    )
    run = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    servers = 4 if "namespaces" in run.stdout.readline() else 1
    _until(lambda: len(_descendants(run.pid)) >= servers + 2)
    family = {run.pid, *_descendants(run.pid)}
    run.kill()
    run.wait()
    run.stdout.close()
    _until(lambda: not any(_alive(pid) for pid in family))


def _descendants(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            if int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                found += [int(entry.name), *_descendants(int(entry.name))]
    return found


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _until(done: object, seconds: float = 10) -> None:
    import time

    end = time.monotonic() + seconds
    while not done():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.02)
