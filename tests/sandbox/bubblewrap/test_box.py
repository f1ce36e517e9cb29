"""The life of a box: data in both directions, its end, and its complete removal."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ctxbench.sandbox import bubblewrap
from ctxbench.sandbox.bubblewrap import cgroups
from ctxbench.sandbox.bubblewrap.box import BubblewrapBox
from ctxbench.sandbox.errors import SandboxLost
from ctxbench.sandbox.ownership import owner
from tests.sandbox.bubblewrap.driver import launcher

MIB = 1 << 20
Start = Callable[..., BubblewrapBox]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start boxes with code as their first process; end boxes that a test leaves open."""
    boxes: list[BubblewrapBox] = []

    def run(code: str, **asked: Any) -> BubblewrapBox:
        boxes.append(launcher({"cache": str(tmp_path / "cache"), "raw": code, **asked}).start())
        return boxes[-1]

    yield run
    for box in boxes:
        box.end()


def soon(seconds: float = 30.0) -> float:
    return time.monotonic() + seconds


def with_word(word: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if word.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def gone(word: str, seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while with_word(word):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def groups(label: str) -> set[Path]:
    """Return the control groups of a process by its label from `owner`, because pids alone may be reused."""
    name = f"ctxbench-box-{label.replace(':', '-')}-*"
    return {*cgroups.ROOT.glob(name), *cgroups.ROOT.glob(f"*/{name}")}


def test_bytes_go_in_and_come_out(start: Start) -> None:
    box = start("import shutil, sys; shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)")
    data = os.urandom(3 * MIB)
    sender = threading.Thread(target=box.send, args=(data, soon()))
    sender.start()
    back = b""
    while len(back) < len(data):
        piece = box.receive(soon())
        assert 0 < len(piece) <= 64 * 1024
        back += piece
    sender.join()
    assert back == data
    assert box.end() == ""


@pytest.mark.slow
def test_waiting_for_a_silent_box_ends_at_the_deadline(start: Start) -> None:
    box = start("import time; time.sleep(60)")
    began = time.monotonic()
    with pytest.raises(SandboxLost, match="in time"):
        box.receive(time.monotonic() + 0.5)
    with pytest.raises(SandboxLost, match="in time"):
        box.send(bytes(8 * MIB), time.monotonic() + 0.5)
    assert time.monotonic() - began < 10


def test_a_box_that_exits_is_reported_with_its_last_output(start: Start) -> None:
    box = start("import sys; sys.exit('no more')")
    with pytest.raises(SandboxLost, match="exit code 1: no more"):
        box.receive(soon())
    assert "exit code 1: no more" in box.end()
    with pytest.raises(SandboxLost):
        box.send(b"x", soon())


def test_a_box_killed_by_a_signal_is_reported(start: Start) -> None:
    # Signals from within reach the first process of a namespace only if it handles them or caused a fault.
    box = start("import ctypes; ctypes.string_at(0)")
    with pytest.raises(SandboxLost, match=f"signal {int(signal.SIGSEGV)}"):
        box.receive(soon())


def test_long_last_output_does_not_block_and_is_cut(start: Start) -> None:
    box = start(
        "import sys; sys.stderr.write('e' * (4 << 20)); sys.stderr.flush(); print('done', flush=True); sys.exit(3)"
    )
    assert box.receive(soon()) == b"done\n"
    with pytest.raises(SandboxLost, match="exit code 3"):
        box.receive(soon())
    assert 4000 < len(box.end()) < 4300


def test_ending_a_box_wakes_waiting_threads_and_may_be_repeated(start: Start) -> None:
    box = start("import time; print(1, flush=True); time.sleep(60)")
    box.receive(soon())
    caught: list[Exception] = []

    def wait() -> None:
        try:
            box.receive(soon(60))
        except SandboxLost as error:
            caught.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(0.2)
    began = time.monotonic()
    ends = [threading.Thread(target=box.end) for _ in range(4)]
    for each in ends:
        each.start()
    for each in (*ends, waiting):
        each.join(20)
        assert not each.is_alive()
    assert caught and time.monotonic() - began < 10
    assert box.end() == ""
    with pytest.raises(SandboxLost):
        box.receive(soon())


def test_an_ended_box_leaves_no_process_no_group_and_no_descriptor(start: Start) -> None:
    start("print(1)").end()  # the thread that starts boxes stays alive
    before = len(os.listdir("/proc/self/fd"))
    word = f"word-{os.getpid()}-{time.monotonic_ns()}"
    code = f"""
import os, signal, sys, time
'{word}'
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
for _ in range(20):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.close(0); os.close(1); os.close(2)
            time.sleep(600)
        os._exit(0)
print('ready', flush=True)
time.sleep(600)
"""
    box = start(code)
    assert box.receive(soon()) == b"ready\n"
    deadline = soon()
    while (seen := len(with_word(word))) < 15 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert seen >= 15
    box.end()
    assert with_word(word) == []
    assert groups(owner()) == set()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.slow
def test_a_box_ended_during_its_start_leaves_no_process_or_group(start: Start) -> None:
    word = f"word-{os.getpid()}-{time.monotonic_ns()}"
    for step in range(12):
        box = start(f"'{word}'\nimport time; time.sleep(600)")
        time.sleep(step * 0.01)
        assert box.end() == ""
    assert with_word(word) == [] and groups(owner()) == set()


@pytest.mark.slow
def test_a_box_outlives_the_thread_that_started_it(start: Start) -> None:
    made: list[BubblewrapBox] = []
    thread = threading.Thread(target=lambda: made.append(start("import time; time.sleep(1); print('still here')")))
    thread.start()
    thread.join()
    assert made[0].receive(soon()) == b"still here\n"


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_can_start_boxes_too(start: Start) -> None:
    start("print(1)").receive(soon())
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            box = start("print('from a fork')")
            os.write(writing, owner().encode() + b" " + box.receive(soon()))
            box.end()
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        label, _, rest = said.read().decode().partition(" ")
    assert label.startswith(f"{pid}:") and rest == "from a fork\n"
    os.waitpid(pid, 0)
    assert groups(label) == set()


def test_a_box_that_cannot_be_staged_is_reported(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxbench.sandbox.bubblewrap.host.stage", lambda _: "/nowhere-at-all")
    with pytest.raises(SandboxLost, match="could not be staged.*nowhere-at-all"):
        start("print(1)").receive(soon())


@pytest.mark.slow
def test_a_machine_without_a_system_call_filter_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    *start, program = bubblewrap._PROBE
    elsewhere = f"import platform\nplatform.machine = lambda: 'riscv64'\n{program}"
    monkeypatch.setattr(bubblewrap, "_PROBE", (*start, elsewhere))
    assert "no table of system calls for riscv64" in str(bubblewrap.available(tmp_path))


@pytest.mark.slow
def test_memory_and_process_limits_apply_to_the_whole_box(start: Start, as_root: Callable[[], None]) -> None:
    as_root()
    assert cgroups.usable()
    code = """
import os, time
for _ in range(8):
    if os.fork() == 0:
        open('/proc/self/oom_score_adj', 'w').write('1000')
        held = bytearray(b'x' * (20 << 20))
        time.sleep(600)
ended = [os.wait()[1] for _ in range(4)]
print(ended, flush=True)
time.sleep(60)
"""
    box = start(code, limits={"memory": 96 * MIB})
    assert box.receive(soon(60)) == b"[9, 9, 9, 9]\n"
    box.end()
    forks = """
import os, time
number = 0
try:
    while number < 5000:
        if os.fork() == 0: time.sleep(600)
        number += 1
except OSError:
    print(number, flush=True)
time.sleep(60)
"""
    box = start(forks, limits={"processes": 20})
    assert 15 <= int(box.receive(soon(60))) <= 22  # a guest's supervisor and helpers are missing here
