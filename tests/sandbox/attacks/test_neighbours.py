"""One box takes all the resources it can get. An honest job in another still has enough, as no limit is per user."""

import contextlib
import secrets
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxbench.sandbox.errors import SandboxError
from ctxbench.sandbox.types import Command, Ended, Environment, Job, Limits, Pool
from tests.helpers.sandboxes import BACK_ENDS, real

pytestmark = pytest.mark.slow

_SETTLED = """
libc.prctl(15, b"{name}", 0, 0, 0)
time.sleep(600)
"""
_HEAD = """
import ctypes, fcntl, os, resource, select, signal, socket, threading, time
libc = ctypes.CDLL(None, use_errno=True)
held = []
"""
_MANY = "for _ in range(40):\n    if not os.fork():\n        break\n"
DRAINS = {
    "watches": """
while (handle := libc.inotify_init()) >= 0:
    held.append(handle)
for number in range(9000):
    os.close(os.open(f"f{number}", os.O_CREAT | os.O_WRONLY))
    for handle in held[:25]:
        libc.inotify_add_watch(handle, f"f{number}".encode(), 2)
""",
    "signals and timers": """
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
while not libc.sigqueue(os.getpid(), signal.SIGRTMIN, ctypes.c_void_p(1)):
    pass
while not libc.timer_create(1, None, ctypes.byref(ctypes.c_void_p())):
    pass
""",
    "pipes": _MANY
    + """
try:
    while True:
        held.extend(os.pipe())
        with open(os.devnull):
            fcntl.fcntl(held[-1], 1031, 1 << 17)
except OSError:
    pass
""",
    "descriptors on their way": """
try:
    while True:
        first, second = socket.socketpair()
        first.setblocking(False)
        held.extend((first, second))
        for _ in range(100):
            socket.send_fds(first, [b"x"], [0] * 100)
except OSError:
    pass
""",
    "events": _MANY
    + """
handles = [os.eventfd(0) for _ in range(100)]
try:
    while True:
        held.append(select.epoll())
        for handle in handles:
            held[-1].register(handle)
except OSError:
    pass
""",
    "asynchronous I/O": """
for count in (60000, 5000, 500, 50, 5, 1):
    while not libc.syscall(206, count, ctypes.byref(ctypes.c_ulong(0))):
        pass
""",
    "locked memory": """
import mmap
try:
    while True:
        held.append(mmap.mmap(-1, 1 << 16))
        if libc.mlock(ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(held[-1]))), 1 << 16):
            break
except OSError:
    pass
""",
    "processes": """
try:
    while os.fork():
        pass
except OSError:
    pass
""",
}
NEIGHBOUR = (
    _HEAD
    + """
watching = [libc.inotify_init() for _ in range(8)]
assert min(watching) >= 0, "inotify"
for number in range(500):
    os.close(os.open(f"f{number}", os.O_CREAT | os.O_WRONLY))
    assert libc.inotify_add_watch(watching[0], f"f{number}".encode(), 2) >= 0, "watch"
open("f7", "w").write("x")
assert os.read(watching[0], 4096), "an event"

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGRTMIN})
for number in range(200):
    assert libc.sigqueue(os.getpid(), signal.SIGRTMIN, ctypes.c_void_p(number)) == 0, "signal"
for _ in range(200):
    assert libc.timer_create(1, None, ctypes.byref(ctypes.c_void_p())) == 0, "timer"
assert signal.sigtimedwait({signal.SIGRTMIN}, 1), "the signal"

for _ in range(20):
    read, write = os.pipe()
    os.set_blocking(write, False)
    assert os.write(write, b"x" * 65536) == 65536, "a whole pipe"
    held.extend((read, write))

first, second = socket.socketpair()
socket.send_fds(first, [b"x"], held[:20])
assert len(socket.recv_fds(second, 1, 30)[1]) == 20, "descriptors"

waiting = select.epoll()
for handle in held:
    waiting.register(handle, select.EPOLLIN)
assert waiting.poll(1), "events"

server = socket.create_server(("127.0.0.1", 0))
def serve():
    with server.accept()[0] as peer:
        while data := peer.recv(65536):
            peer.sendall(data)
thread = threading.Thread(target=serve, daemon=True)
thread.start()
with socket.create_connection(server.getsockname()) as client:
    for _ in range(100):
        client.sendall(b"x" * 40000)
        left = 40000
        while left:
            left -= len(client.recv(left))
children = [os.fork() for _ in range(1)]
if not children[-1]:
    os._exit(0)
assert os.wait()[1] == 0
print("all there")
"""
)


@contextlib.contextmanager
def draining(pool: Pool, program: str, name: str) -> Iterator[None]:
    """Run a program that takes all it can in one box; yield while it holds these resources."""
    code = _HEAD + program + _SETTLED.format(name=name)
    ended: list[object] = []

    def run() -> None:
        with contextlib.suppress(SandboxError):
            ended.append(pool.run(Job(action=Command(argv=("python3", "-c", code)), seconds=120.0)))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 60
    while not named(name):
        assert time.monotonic() < deadline and not ended, f"it never came to hold anything: {ended}"
        time.sleep(0.05)
    yield
    assert not ended, f"it held nothing to the end: {ended}"


def named(name: str) -> bool:
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with contextlib.suppress(OSError):
                if (process / "comm").read_text().strip() == name:
                    return True
    return False


@pytest.mark.parametrize("drain", DRAINS)
@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_a_neighbour_of_a_greedy_box_has_enough_resources(back_end: str, drain: str) -> None:
    environment = Environment(name="neighbours")
    sandbox = real(back_end)
    sandbox.prepare(environment, print)
    with (
        sandbox.open(environment, limits=Limits(), width=2) as pool,
        draining(pool, DRAINS[drain], f"hold-{secrets.token_hex(5)}"),
    ):
        outcome = pool.run(Job(action=Command(argv=("python3", "-W", "ignore", "-c", NEIGHBOUR)), seconds=60.0))
        assert (outcome.ended, outcome.output) == (Ended.EXITED, "all there\n"), outcome
