"""A Docker engine that stops and restarts during a run. The tests start a separate engine on its own socket."""

import gc
import os
import shutil
import subprocess
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import patch

import pytest

from ctxbench.sandbox.docker import DockerSandbox
from ctxbench.sandbox.errors import SandboxLost
from ctxbench.sandbox.types import Ended, Limits, Outcome, Pool
from tests.helpers.extras import missing
from tests.helpers.sandboxes import real
from tests.sandbox.attacks import host
from tests.sandbox.robust import environment, sleeper, sleepers, token, until

pytestmark = [
    pytest.mark.slow,
    # Docker's SDK leaves unconnected sockets to the garbage collector, which may run at any time.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """Collect unclosed sockets here. Otherwise they would be reported at the end of the session."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


class Engine:
    """A separate Docker engine for these tests."""

    def __init__(self, folder: Path) -> None:
        self.address = f"unix://{folder}/docker.sock"
        self._folder, self._process = folder, None

    def start(self) -> None:
        where = {"data-root": "data", "exec-root": "exec", "pidfile": "docker.pid"}
        # The engine needs its own network namespace: without a bridge, it would remove the usual engine's docker0.
        argv = ["unshare", "--net", "dockerd", "--host", self.address]
        argv += ["--bridge=none", "--iptables=false", "--ip-masq=false"]
        argv += [f"--{name}={self._folder / place}" for name, place in where.items()]
        log = (self._folder / "log").open("ab")
        self._process = subprocess.Popen(argv, stdout=log, stderr=log, start_new_session=True)
        log.close()
        until(lambda: self.ask("version").returncode == 0, 60)

    def stop(self) -> None:
        """Stop the engine and its containers."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(60)

    def ask(self, *argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["docker", "-H", self.address, *argv], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Start a separate engine, which needs root."""
    real("docker")
    if os.geteuid() != 0 or shutil.which("dockerd") is None:
        missing("an engine of our own needs root and dockerd")
    folder = tmp_path_factory.mktemp("engine")
    own = Engine(folder)
    own.start()
    try:
        yield own
    finally:
        own.stop()
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            if str(folder) in line:
                subprocess.run(["umount", "-l", line.split()[4]], check=False)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def image(engine: Engine) -> str:
    """Copy the usual engine's base image into the separate engine, and return its name."""
    from ctxbench.sandbox.docker import images
    from ctxbench.sandbox.docker.engine import connected

    base = os.environ.get("CTXBENCH_BASE_IMAGE", "") or images.OFFICIAL
    with connected() as client:
        found = images.base_id(client, base, print)
        names = list(client.api.inspect_image(found)["RepoTags"])
    pipe = f"docker save {names[0]} | docker -H {engine.address} load"
    subprocess.run(["sh", "-c", pipe], check=True, capture_output=True, timeout=300)
    return names[0]


def attempt(pool: Pool, number: int) -> Outcome | SandboxLost:
    try:
        return pool.run(sleeper(0.2 + number % 3 / 10))
    except SandboxLost as lost:
        return lost


@pytest.mark.long
def test_jobs_during_an_engine_restart_are_completed_or_lost(engine: Engine, image: str, tmp_path: Path):
    mark = token()
    with patch.dict(os.environ, DOCKER_HOST=engine.address):
        sandbox = DockerSandbox(tmp_path / "cache", base_image=image)
        sandbox.prepare(environment(mark), print)
        with sandbox.open(environment(mark), limits=Limits(), width=2, reuse=5) as pool:
            restart = threading.Thread(target=lambda: (until(lambda: sleepers(mark)), engine.stop(), engine.start()))
            restart.start()
            with ThreadPoolExecutor(2) as workers:
                outcomes = list(workers.map(lambda number: attempt(pool, number), range(12)))
            restart.join()
            done = [outcome for outcome in outcomes if isinstance(outcome, Outcome)]
            lost = [outcome for outcome in outcomes if isinstance(outcome, SandboxLost)]
            assert len(done) + len(lost) == 12
            assert "\n" not in "".join(map(str, lost))
            began = time.monotonic()
            while isinstance(last := attempt(pool, 0), SandboxLost):
                assert time.monotonic() - began < 60, "no job runs after the engine is back"
            assert {(job.ended, job.exit_code, job.output) for job in (*done, last)} == {(Ended.EXITED, 0, "slept\n")}
        until(lambda: not host.processes(mark))
        assert engine.ask("ps", "-aq").stdout == ""


def test_a_stopped_engine_is_a_one_line_error(engine: Engine, image: str, tmp_path: Path):
    mark = token()
    with patch.dict(os.environ, DOCKER_HOST=engine.address):
        sandbox = DockerSandbox(tmp_path / "cache", base_image=image)
        sandbox.prepare(environment(mark), print)
        with sandbox.open(environment(mark), limits=Limits(), width=1, reuse=1) as pool:
            assert pool.run(sleeper(0)).output == "slept\n"
            engine.stop()
            with pytest.raises(SandboxLost) as caught:
                pool.run(sleeper(0))
            assert "\n" not in str(caught.value)
        engine.start()
        assert engine.ask("ps", "-aq").stdout == ""
