"""Programs that run in a box across many messages: their state, their end and their limits."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ctxbench.sandbox.errors import SandboxLost
from ctxbench.sandbox.persistent import Conversation, Flooded, Overdue, with_resident
from ctxbench.sandbox.types import Environment, Limits, Sandbox
from tests.sandbox.bubblewrap.test_box import gone, with_word

PROGRAM = b'''
import os, select, socket, subprocess, sys, time

HOARD = """
import contextlib, socket, sys, time
sys.stdin.read()
with contextlib.suppress(OSError):
    held = []
    while True:
        held.append(socket.socketpair())
time.sleep(1000)
"""

def flood(channel):
    """Say what nobody asked for, until nobody takes any more of it."""
    channel.setblocking(False)
    full = 0
    while full < 100:
        try:
            channel.send(b"x" * 65536)
            full = 0
        except BlockingIOError:
            full += 1
            time.sleep(0.01)

def serve(channel, name):
    said = []
    lines = channel.makefile("rw", encoding="utf-8")
    for line in lines:
        word = line.strip()
        said.append(word)
        if word == "die":
            print("my last words", flush=True)
            os._exit(3)
        if word == "hang":
            time.sleep(1000)
        if word == "fork":
            while True:
                try:
                    if os.fork() == 0:
                        time.sleep(1000)
                except OSError:
                    break
        if word == "flood":
            while True:
                lines.write("x" * 65536)
        if word == "print":
            print("y" * 1_000_000, flush=True)
        if word in ("hoard and flood", "hoard and hear nothing"):
            command = [sys.executable, "-c", HOARD, name]
            hoards = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(3)]
            lines.write("ready" + chr(10))
            lines.flush()
            if word == "hoard and flood":
                flood(channel)
            else:
                select.select([channel], [], [])
                time.sleep(0.3)
            for child in hoards:
                child.stdin.close()
            time.sleep(1000)
        if word == "call out":
            try:
                socket.create_connection(("192.0.2.1", 80), timeout=2)
            except OSError as error:
                word = type(error).__name__
        lines.write(f"{name} {word} {len(said)} {sorted(os.listdir('.'))}" + chr(10))
        lines.flush()
'''
ENVIRONMENT = with_resident(
    Environment(name="living", tree={"shop/cart.py": b"total = 1\n"}, library={"living_program.py": PROGRAM})
)
LIMITS = Limits(processes=32, open_files=64, result=200_000)


@contextmanager
def talk(sandbox: Sandbox, name: str = "Ann") -> Iterator[Conversation]:
    sandbox.prepare(ENVIRONMENT, lambda _: None)
    with sandbox.converse(ENVIRONMENT, limits=LIMITS) as conversation:
        conversation.begin("living_program:serve", {"name": name})
        yield conversation


def test_a_program_keeps_its_state_between_messages_and_sees_the_tree(real_sandbox: Sandbox) -> None:
    with talk(real_sandbox) as conversation:
        assert conversation.ask(b"hello", 30) == b"Ann hello 1 ['shop']"
        assert conversation.ask(b"print", 30) == b"Ann print 2 ['shop']"
        assert conversation.ask(b"fork", 30) == b"Ann fork 3 ['shop']"
        assert conversation.ask(b"call out", 30).split()[1] in (b"OSError", b"TimeoutError", b"PermissionError")


def test_the_error_for_an_ended_program_shows_its_last_output(real_sandbox: Sandbox) -> None:
    with talk(real_sandbox) as conversation, pytest.raises(SandboxLost, match="exit code 3: my last words"):
        conversation.ask(b"die", 30)


@pytest.mark.slow
def test_a_hanging_program_is_overdue_and_a_flooding_one_is_cut_off(bubblewrap_sandbox: Sandbox) -> None:
    with talk(bubblewrap_sandbox) as conversation, pytest.raises(Overdue, match=r"did not answer in 0\.3 seconds"):
        conversation.ask(b"hang", 0.3)
    with talk(bubblewrap_sandbox) as conversation, pytest.raises(Flooded, match="200000 bytes"):
        conversation.ask(b"flood", 60)


@pytest.mark.slow
def test_the_watchdog_ends_a_program_that_sends_without_a_request(bubblewrap_sandbox: Sandbox) -> None:
    name = f"hoard-{uuid.uuid4().hex}"
    with talk(bubblewrap_sandbox, name) as conversation:
        assert conversation.ask(b"hoard and flood", 30) == b"ready"
        assert with_word(name) and gone(name)
        with pytest.raises(SandboxLost):
            conversation.ask(b"hello", 30)


@pytest.mark.slow
def test_the_watchdog_ends_a_program_that_does_not_read(bubblewrap_sandbox: Sandbox) -> None:
    with talk(bubblewrap_sandbox) as conversation:
        assert conversation.ask(b"hoard and hear nothing", 30) == b"ready"
        with pytest.raises(SandboxLost, match="exceeded the memory, sockets or locks"):
            conversation.ask(b"x" * (4 << 20), 10)


def test_a_missing_program_raises_sandbox_lost(bubblewrap_sandbox: Sandbox) -> None:
    bubblewrap_sandbox.prepare(ENVIRONMENT, lambda _: None)
    with bubblewrap_sandbox.converse(ENVIRONMENT, limits=LIMITS) as conversation:
        conversation.begin("living_program:absent", {})
        with pytest.raises(SandboxLost, match="could not be started"):
            conversation.ask(b"hello", 30)
