"""Programs that live in a box: they keep their state from message to message, and end by their own doing alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ctxbench.sandbox.errors import SandboxLost
from ctxbench.sandbox.living import Conversation, Flooded, Overdue, living
from ctxbench.sandbox.types import Environment, Limits, Sandbox

PROGRAM = b"""
import os, socket, time

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
        if word == "call out":
            try:
                socket.create_connection(("192.0.2.1", 80), timeout=2)
            except OSError as error:
                word = type(error).__name__
        lines.write(f"{name} {word} {len(said)} {sorted(os.listdir('.'))}" + chr(10))
        lines.flush()
"""
ENVIRONMENT = living(
    Environment(name="living", tree={"shop/cart.py": b"total = 1\n"}, library={"living_program.py": PROGRAM})
)
LIMITS = Limits(processes=32, result=200_000)


@contextmanager
def talk(sandbox: Sandbox) -> Iterator[Conversation]:
    sandbox.prepare(ENVIRONMENT, lambda _: None)
    with sandbox.converse(ENVIRONMENT, limits=LIMITS) as conversation:
        conversation.begin("living_program:serve", {"name": "Ann"})
        yield conversation


def test_it_keeps_its_state_and_sees_the_tree(real_sandbox: Sandbox) -> None:
    with talk(real_sandbox) as conversation:
        assert conversation.ask(b"hello", 30) == b"Ann hello 1 ['shop']"
        assert conversation.ask(b"print", 30) == b"Ann print 2 ['shop']"
        assert conversation.ask(b"fork", 30) == b"Ann fork 3 ['shop']"
        assert conversation.ask(b"call out", 30).split()[1] in (b"OSError", b"TimeoutError", b"PermissionError")


def test_its_end_is_told_with_its_last_words(real_sandbox: Sandbox) -> None:
    with talk(real_sandbox) as conversation, pytest.raises(SandboxLost, match="exit code 3: my last words"):
        conversation.ask(b"die", 30)


@pytest.mark.slow
def test_one_that_hangs_is_late_and_one_that_floods_is_cut_off(bubblewrap_sandbox: Sandbox) -> None:
    with talk(bubblewrap_sandbox) as conversation, pytest.raises(Overdue, match=r"no answer in 0\.3 seconds"):
        conversation.ask(b"hang", 0.3)
    with talk(bubblewrap_sandbox) as conversation, pytest.raises(Flooded, match="200000 bytes"):
        conversation.ask(b"flood", 60)


def test_a_program_that_is_not_there_is_a_lost_box(bubblewrap_sandbox: Sandbox) -> None:
    bubblewrap_sandbox.prepare(ENVIRONMENT, lambda _: None)
    with bubblewrap_sandbox.converse(ENVIRONMENT, limits=LIMITS) as conversation:
        conversation.begin("living_program:absent", {})
        with pytest.raises(SandboxLost, match="could not be started"):
            conversation.ask(b"hello", 30)
