"""Runs on two Ray nodes of this machine: results equal those of a local run, even after kills."""

import io
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench.home import Home
from ctxbench.harness.store import open_store
from ctxbench.harness.store.work import run_works
from tests.helpers.cli import run_cli
from tests.helpers.mining import local_manifest
from tests.helpers.openai_server import Server, serving
from tests.helpers.plain_user import PROGRAM
from tests.helpers.sandboxes import real
from tests.helpers.sets import make_set

pytestmark = [
    pytest.mark.slow,
    # Ray uses the machine's own addresses, and its threads outlive its shutdown.
    pytest.mark.network,
    pytest.mark.filterwarnings("ignore"),
]
SAMPLES = 60
PATIENCE = 300.0


class TwoNodes:
    """Two raylets with one core each, a home, and a server that both ask."""

    def __init__(
        self, cluster: Any, home: Home, server: Server, samples: str = "demo", more: tuple[str, ...] = ()
    ) -> None:
        self.cluster, self.home, self.server, self.samples, self.more = cluster, home, server, samples, more

    def options(self, db: str) -> list[str]:
        generator = f"openai(model=tiny, url={self.server.url}, endpoint=completions, concurrency=4)"
        options = ["--home", str(self.home.root), "--db", f"sqlite:///{self.home.root / db}.db"]
        options += ["--samples", self.samples, *self.more]
        return ["run", *options, "--strategy", "lc.infile", "--strategy", "lc.repocoder", "--generator", generator]

    def start(self, db: str) -> subprocess.Popen[str]:
        command = [*self.options(db), "--engine", "ray", "--address", self.cluster.address]
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def stored(self, db: str) -> int:
        """Return the number of samples that have results."""
        if not (self.home.root / f"{db}.db").exists():
            return 0
        with open_store(f"sqlite:///{self.home.root / db}.db") as store:
            return sum(run.finished for run in run_works(store))

    def scores(self, db: str) -> Any:
        """Return all scores and texts, without times."""
        options = ["--home", str(self.home.root), "--db", f"sqlite:///{self.home.root / db}.db"]
        scores = run_cli("scores", *options, "--samples", self.samples, "--format", "jsonl")
        assert scores.code == 0, scores.err
        rows = map(json.loads, io.StringIO(scores.out))
        return sorted(
            json.dumps({name: value for name, value in row.items() if "seconds" not in name}, sort_keys=True)
            for row in rows
        )

    def workers(self) -> list[int]:
        """Return the process ids of this cluster's workers only."""
        raylets = [
            process.process.pid
            for node in self.cluster.list_all_nodes()
            for process in node.all_processes.get("raylet", [])
        ]
        return [pid for raylet in raylets for pid in _children(raylet) if "NodeWorker" in _command(pid)]


def _children(pid: int) -> list[int]:
    try:
        files = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return []
    return [int(word) for text in files for word in text.split()]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def wait_for(condition: Callable[[], Any], process: subprocess.Popen[str]) -> bool:
    """Wait until the condition is true; return False if the process ends first."""
    until = time.monotonic() + PATIENCE
    while not condition():
        if process.poll() is not None:
            return False
        assert time.monotonic() < until
        time.sleep(0.2)
    return True


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        from ray.cluster_utils import Cluster

        # The head has no core. Work runs only on the other two nodes, and either of them may be lost.
        head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": 100 << 20}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        yield cluster
        cluster.shutdown()


@pytest.fixture
def two(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TwoNodes]:
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    home = Home(tmp_path / "home")
    make_set(home, per_repo=SAMPLES // 2)
    nodes = [cluster.add_node(num_cpus=1, object_store_memory=100 << 20) for _ in range(2)]
    with serving(answer=_answer) as server:
        yield TwoNodes(cluster, home, server)
    for node in nodes:
        if node in cluster.list_all_nodes():
            cluster.remove_node(node, allow_graceful=False)


def _answer(prompt: Any, _: Any) -> str:
    """Answer slowly, so that a run is still in progress when it is interrupted.

    Python treats the quoted character as the end of a line, but JSON does not.
    """
    time.sleep(0.2)
    return f"apply_tax(cart_{len(str(prompt)) % 7}, '\u2028')"


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out + err


@pytest.mark.long
def test_killing_workers_at_random_loses_and_duplicates_no_results(two: TwoNodes) -> None:
    assert run_cli(*two.options("local")).code == 0
    draw, kills, code = random.Random(1), 0, 1
    while code:
        process = two.start("ray")
        while kills < 10:
            before = two.stored("ray")
            if not wait_for(lambda before=before: two.workers() and two.stored("ray") > before, process):
                break
            if pids := two.workers():
                os.kill(draw.choice(pids), signal.SIGKILL)
                kills += 1
        code, said = finish(process)
        # A unit that lost its worker too often is left to the next command, like any machine fault.
        assert code in (0, 1) and "Traceback" not in said, said
    assert kills >= 3 and said.count(f"scored {SAMPLES}  model-failed 0  missing 0") == 2, said
    assert two.scores("ray") == two.scores("local")


@pytest.mark.long
def test_a_run_continues_after_an_interrupt_and_a_lost_node(two: TwoNodes) -> None:
    assert run_cli(*two.options("local")).code == 0
    process = two.start("ray")
    assert wait_for(lambda: two.stored("ray") > 0, process)
    process.send_signal(signal.SIGINT)
    code, said = finish(process)
    assert code == 130 and "interrupted" in said, said
    kept = two.stored("ray")
    assert 0 < kept < 2 * SAMPLES
    process = two.start("ray")
    assert wait_for(lambda: two.stored("ray") > kept and two.workers(), process)
    two.cluster.remove_node(two.cluster.list_all_nodes()[-1], allow_graceful=False)
    code, said = finish(process)
    assert code == 0 and said.count(f"scored {SAMPLES}  model-failed 0  missing 0") == 2, said
    assert two.scores("ray") == two.scores("local")


def test_doctor_lists_the_resources_of_every_node(two: TwoNodes) -> None:
    asked = [sys.executable, "-c", PROGRAM, "doctor", "--engine", "ray", "--address", two.cluster.address]
    told = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert told.returncode in (0, 1), told.stderr
    heads = [line for line in told.stdout.splitlines() if line.startswith("node ")]
    # Ray may still list a node that an earlier test removed.
    assert len(heads) >= 2 and all("1 core" in line for line in heads), told.stdout
    assert told.stdout.count("bubblewrap") >= 2 and told.stdout.count("docker") >= 2


@pytest.mark.long
def test_nodes_judge_functions_with_only_the_files_that_they_receive(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    real("bubblewrap")
    local_manifest(tmp_path)
    home, sandbox = Home(tmp_path / "home"), ("--sandbox", "bubblewrap")
    build = ("samples", "build", "shop", "--kind", "function", "--repo", str(tmp_path / "demo.toml"))
    built = run_cli(*build, "--home", str(home.root), *sandbox)
    assert built.code == 0, built.err
    with pytest.MonkeyPatch.context() as patch:
        # These nodes cannot download wheels themselves.
        patch.setenv("PIP_NO_INDEX", "1")
        patch.setenv("PIP_CONFIG_FILE", os.devnull)
        patch.delenv("PIP_FIND_LINKS", raising=False)
        nodes = [cluster.add_node(num_cpus=1, object_store_memory=100 << 20) for _ in range(2)]
    try:
        with serving(answer=lambda *_: "    return x * RATE\n") as server:
            two = TwoNodes(cluster, home, server, "shop", sandbox)
            before = set(map(str, Path(tempfile.gettempdir()).glob("ctxbench-node-*")))
            code, said = finish(two.start("ray"))
            # Workers are closed, not killed, so they remove their own folders and the files of their boxes.
            assert before.issuperset(map(str, Path(tempfile.gettempdir()).glob("ctxbench-node-*")))
            assert code == 0 and said.count("scored 4  model-failed 0  missing 0  pass@1 25.0%") == 2, said
            assert run_cli(*two.options("local")).code == 0
            assert two.scores("ray") == two.scores("local")
    finally:
        for node in nodes:
            cluster.remove_node(node, allow_graceful=False)
