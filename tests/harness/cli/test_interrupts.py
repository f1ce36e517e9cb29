"""Real commands end in time after Ctrl-C, with one line, and leave no process at work."""

import contextlib
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ctxbench.bench.home import Home
from tests.helpers.openai_server import Fault, Server, serving
from tests.helpers.plain_user import PROGRAM
from tests.helpers.sets import make_set
from tests.sandbox.attacks import host

pytestmark = pytest.mark.slow
SECONDS = 3.0
"""The maximum time that a command may take to end."""
ATTEMPTS = 3
"""A busy machine may delay a command once. A command that waits for something is late in every attempt."""
PER_REPO = 300
"""Samples in each of two repositories: more than a fast machine finishes before the interrupt."""
BUSY = '''
from ctxbench.strategies.api import Prompt
from ctxbench.strategies.registry import strategy

@strategy("busy")
def busy(query, repo):
    """Never be done."""
    __import__("ctypes").CDLL(None).prctl(15, b"NAME")  # nothing else of a cell can be seen from outside
    while True:
        pass
'''
BOXED = '''
from ctxbench.strategies.api import Context
from ctxbench.strategies.registry import strategy

@strategy("boxed")
def boxed(query, repo, generate, execute):
    """Wait for a program that does not end."""
    execute("import subprocess; subprocess.run(['sleep', '59.5'])", seconds=60.0)
    return Context(())
'''

MANIFEST = """
name = "shop"
language = "python"
license = "MIT"
version = "1"
sets = []
[[source]]
kind = "local"
path = "shop"
"""


@dataclass
class At:
    """A command, and a check whether it has reached the point of the interrupt."""

    arguments: list[str]
    ready: Callable[[], object]
    variables: dict[str, str] = field(default_factory=dict)


Case = Callable[[Path], AbstractContextManager[At]]
CASES: dict[str, Case] = {}


def case(make: Callable[[Path], Iterator[At]]) -> Case:
    found = contextlib.contextmanager(make)
    CASES[make.__name__.strip("_").replace("_", "-")] = found
    return found


def _run(home: Home, strategy: str, generator: str = "scripted(text=x)", *more: str) -> list[str]:
    make_set(home, per_repo=PER_REPO)
    command = ["run", "--samples", "demo", "--strategy", strategy, "--generator", generator]
    return [*command, "--home", str(home.root), *more]


def _asking(tmp_path: Path, server: Server) -> At:
    home = Home(tmp_path / "home")
    generator = f"openai(model=tiny, url={server.url}, endpoint=completions, concurrency=8)"
    return At(_run(home, "lc.infile", generator), lambda: len(server.calls) >= 8)


@case
def _a_server_that_never_answers(tmp_path: Path) -> Iterator[At]:
    with serving(delay=600) as server:
        yield _asking(tmp_path, server)


@case
def _a_server_that_never_ends_its_answer(tmp_path: Path) -> Iterator[At]:
    with serving(faults=[Fault(drip=0.05)] * 100) as server:
        yield _asking(tmp_path, server)


@case
def _a_server_that_says_later(tmp_path: Path) -> Iterator[At]:
    with serving(faults=[Fault(status=503, headers=(("Retry-After", "600"),))] * 1000) as server:
        at = _asking(tmp_path, server)
        yield At(at.arguments, lambda: len(server.calls) >= 1)


@case
def _a_model_that_computes(tmp_path: Path) -> Iterator[At]:
    home = Home(tmp_path / "home")
    yield At(_run(home, "lc.repocoder", "incontext"), lambda: _rows(home, "generation"))


@case
def _a_strategy_that_never_ends(tmp_path: Path) -> Iterator[At]:
    name, file = f"busy-{int(time.time() * 1000) % 10**9}", tmp_path / "own.py"
    file.write_text(BUSY.replace("NAME", name))
    arguments = _run(Home(tmp_path / "home"), f"{file}@busy")
    yield At(arguments, lambda: _running("comm", f"{name}\n"))


def _running(file: str, content: str) -> bool:
    """Return whether some process's folder in /proc has a file with this content."""
    for place in Path("/proc").glob(f"[0-9]*/{file}"):
        with contextlib.suppress(OSError):
            if place.read_bytes() == content.encode():
                return True
    return False


def _boxed(tmp_path: Path, back_end: str) -> Iterator[At]:
    home, file = Home(tmp_path / "home"), tmp_path / "own.py"
    # The unique sleep time identifies this process among those of other tests.
    seconds = f"59.{int(time.time() * 1000) % 1000000}"
    file.write_text(BOXED.replace("59.5", seconds))
    arguments = _run(home, f"{file}@boxed", "scripted(text=x)", "--sandbox", back_end)
    yield At(arguments, lambda: _running("cmdline", f"sleep\0{seconds}\0"))


@case
def _a_program_in_a_bubblewrap_box(tmp_path: Path) -> Iterator[At]:
    yield from _boxed(tmp_path, "bubblewrap")


@case
def _a_program_in_a_container(tmp_path: Path) -> Iterator[At]:
    yield from _boxed(tmp_path, "docker")


@case
def _an_engine_that_never_answers(tmp_path: Path) -> Iterator[At]:
    with _silent() as (port, met):
        file = tmp_path / "own.py"
        file.write_text(BOXED)
        arguments = _run(Home(tmp_path / "home"), f"{file}@boxed", "scripted(text=x)", "--sandbox", "docker")
        yield At(arguments, met.is_set, {"DOCKER_HOST": f"tcp://127.0.0.1:{port}"})


@case
def _a_database_that_another_process_keeps_locked(tmp_path: Path) -> Iterator[At]:
    home = Home(tmp_path / "home")
    arguments = _run(home, "lc.infile")
    home.root.mkdir(exist_ok=True)
    with contextlib.closing(sqlite3.connect(home.root / "results.db")) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        # From outside, a command that waits for the lock shows no sign of it.
        yield At(arguments, lambda: time.sleep(5) is None)


@case
def _an_index_that_never_answers(tmp_path: Path) -> Iterator[At]:
    with _silent() as (port, met):
        url = f"http://127.0.0.1:{port}/simple"
        variables = {"PIP_INDEX_URL": url, "PIP_TIMEOUT": "600", "PIP_CONFIG_FILE": os.devnull}
        home = Home(tmp_path / "home")
        yield At(["repo", "fetch", "cachetools", "--home", str(home.root)], met.is_set, variables)


@case
def _versions_to_lock(tmp_path: Path) -> Iterator[At]:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "shop.py").write_text('def pay():\n    """Pay."""\n    return 1\n')
    manifest = tmp_path / "shop.toml"
    manifest.write_text(f'{MANIFEST}[tests]\nrequirements = ["attrs"]\n')
    arguments = ["samples", "build", "own", "--kind", "function", "--repo", str(manifest), "--sandbox", "bubblewrap"]
    with _silent() as (port, met):
        variables = {"PIP_INDEX_URL": f"http://127.0.0.1:{port}/simple", "PIP_CONFIG_FILE": os.devnull}
        yield At([*arguments, "--home", str(tmp_path / "home")], met.is_set, variables)


@case
def _many_predictions_to_score(tmp_path: Path) -> Iterator[At]:
    file = tmp_path / "predictions.jsonl"
    line = '{"id": "%d", "prompt": "x = ", "prediction": "%s", "ground_truth": "%s"}\n'
    long = "apply_tax(cart, rate) + " * 60
    file.write_text("".join(line % (number, long, long[5:]) for number in range(40_000)))
    arguments = ["score", str(file), "--profile", "all", "--language", "python", "--out", str(tmp_path / "out")]
    yield At(arguments, lambda: not time.sleep(4))


@case
def _samples_in_the_making(tmp_path: Path) -> Iterator[At]:
    tree = tmp_path / "shop" / "shop"
    tree.mkdir(parents=True)
    (tree / "__init__.py").write_text("")
    for number in range(400):
        lines = [f"from shop import m{number - 1}", "", *(f"def f{n}(x):\n    return x + {n}\n" for n in range(400))]
        (tree / f"m{number}.py").write_text("\n".join(lines))
    manifest = tmp_path / "shop.toml"
    manifest.write_text(MANIFEST)
    home = tmp_path / "home"
    arguments = ["samples", "build", "own", "--repo", str(manifest), "--home", str(home)]
    yield At(arguments, (home / "repos" / "shop").exists)


@contextlib.contextmanager
def _silent() -> Iterator[tuple[int, threading.Event]]:
    """Listen without answering, and set the event when a client connects."""
    met = threading.Event()
    taken = []

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                taken.append(server.accept())
                met.set()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield server.getsockname()[1], met
        finally:
            # Closing the server does not wake a thread that waits in accept.
            server.shutdown(socket.SHUT_RDWR)
            for connection, _ in taken:
                connection.close()


def _rows(home: Home, table: str) -> list[object]:
    file = home.root / "results.db"
    if not file.exists():
        return []
    with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        try:
            return connection.execute(f"SELECT 1 FROM {table}").fetchall()
        except sqlite3.OperationalError:
            return []


@contextlib.contextmanager
def started(at: At, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a command and wait until it reaches the point of the interrupt."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *at.arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "CTXBENCH_ATTACK": str(tmp_path), **at.variables},
    ) as process:
        try:
            until = time.monotonic() + 120
            while not at.ready():
                assert process.poll() is None, process.communicate()
                assert time.monotonic() < until
                time.sleep(0.05)
            assert process.poll() is None, process.communicate()
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def check_interrupt(
    name: str, tmp_path: Path, seconds: float, interrupt: Callable[[subprocess.Popen[str]], None]
) -> None:
    """Check that an interrupted command ends within these seconds, prints one line, and leaves no process at work."""
    taken: list[float] = []
    while not taken or taken[-1] >= seconds:
        assert len(taken) < ATTEMPTS, taken
        folder = tmp_path / f"attempt{len(taken)}"
        folder.mkdir()
        with CASES[name](folder) as at, started(at, folder) as process:
            interrupt(process)
            taken.append(_seconds_to_end(process, folder))


def _seconds_to_end(process: subprocess.Popen[str], folder: Path) -> float:
    began = time.monotonic()
    err = process.communicate(timeout=60)[1]
    took = time.monotonic() - began
    lines = [line for line in err.splitlines() if line]
    assert process.returncode == 130, (process.returncode, took, err)
    assert lines[-1].startswith("ctxbench: interrupted")
    for word in ("Traceback", "Exception", "Error", "Warning", "ctxbench: "):
        assert not any(word in line for line in lines[:-1]), err
    until = time.monotonic() + 30
    while host.processes(str(folder)) and time.monotonic() < until:
        time.sleep(0.1)
    assert not host.processes(str(folder))
    return took


def interrupt_all(process: subprocess.Popen[str]) -> None:
    """Interrupt every process of the group with its workers and helpers, as a terminal does."""
    os.killpg(process.pid, signal.SIGINT)


def interrupt_twice(process: subprocess.Popen[str]) -> None:
    interrupt_all(process)
    time.sleep(0.3)
    if process.poll() is None:
        interrupt_all(process)


@pytest.mark.parametrize("name", CASES)
def test_an_interrupt_from_the_terminal_ends_a_command_in_time(name: str, tmp_path: Path) -> None:
    check_interrupt(name, tmp_path, SECONDS, interrupt_all)


@pytest.mark.parametrize("name", ["a-model-that-computes", "an-index-that-never-answers", "samples-in-the-making"])
def test_an_interrupt_of_the_command_alone_ends_its_helpers(name: str, tmp_path: Path) -> None:
    check_interrupt(name, tmp_path, SECONDS, lambda process: process.send_signal(signal.SIGINT))


SLOW_TO_END = [
    "a-server-that-never-answers",
    "a-strategy-that-never-ends",
    "a-program-in-a-container",
    "a-database-that-another-process-keeps-locked",
]


@pytest.mark.parametrize("name", SLOW_TO_END)
def test_a_second_interrupt_ends_a_command_at_once(name: str, tmp_path: Path) -> None:
    check_interrupt(name, tmp_path, 1.0, interrupt_twice)
