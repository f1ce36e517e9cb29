"""Interrupts that arrive while workers start."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ctxbench.bench.concurrency import uninterrupted, without_main

SLEEPER = "print('up', flush=True); import time; time.sleep(0.3); print('lived', flush=True)"


def start() -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", SLEEPER], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("in_thread", [False, True])
def test_processes_started_in_the_block_ignore_interrupts(in_thread: bool) -> None:
    made: list[subprocess.Popen[str]] = []

    def work() -> None:
        with uninterrupted():
            made.append(start())

    if in_thread:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    else:
        work()
    [process] = made
    assert process.stdout is not None and process.stdout.readline() == "up\n"
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (0, "lived\n", "")


FIRST_POOL = """
import multiprocessing, signal
from concurrent.futures import ProcessPoolExecutor
from ctxbench.bench.concurrency import uninterrupted

def blocked(_):
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])

if __name__ == "__main__":
    with uninterrupted():
        pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
        print(list(pool.map(blocked, [0])))
    pool.shutdown()
"""


def test_workers_of_the_first_pool_ignore_interrupts(tmp_path: Path) -> None:
    """The first pool starts multiprocessing's resource tracker. Starting the tracker unblocks interrupts."""
    file = tmp_path / "pool.py"
    file.write_text(FIRST_POOL)
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, check=True)
    assert done.stdout == "[True]\n"


def test_an_interrupt_is_delivered_after_the_block() -> None:
    seen: list[str] = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append("interrupt"))
    try:
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            assert seen == []
        assert seen == ["interrupt"]
    finally:
        signal.signal(signal.SIGINT, before)


def test_the_main_module_is_hidden_until_the_last_block_ends() -> None:
    main = sys.modules["__main__"]
    own, entered, leave = main.__spec__, threading.Event(), threading.Event()

    def work() -> None:
        with without_main():
            entered.set()
            leave.wait(20)

    thread = threading.Thread(target=work)
    with without_main():
        thread.start()
        assert entered.wait(20) and main.__spec__ is not own
    assert main.__spec__ is not own
    leave.set()
    thread.join()
    assert main.__spec__ is own


UNGUARDED = """
print("begins", flush=True)
from ctxbench.bench.concurrency import starting_workers
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
    with starting_workers():
        counts = pool.map(len, [[], []])
    print(*counts)
"""


@pytest.mark.slow
def test_workers_do_not_run_the_script_that_starts_them(tmp_path: Path) -> None:
    file = tmp_path / "unguarded.py"
    file.write_text(UNGUARDED)
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "begins\n0 0\n"
