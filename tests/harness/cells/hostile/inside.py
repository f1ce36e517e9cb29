"""A strategy that runs the code of a case from ``cases.json`` beside it. Only the leaving cell receives the note."""

# ruff: noqa: F401 - for the cases

import contextlib
import ctypes
import errno
import fcntl
import glob
import json
import mmap
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ctxbench.strategies import Block, BlockKind, Prompt, Query, Repository, strategy
from ctxbench.strategies.api import Generate
from ctxbench.strategies.layout import infile_prompt

HERE = Path(__file__).resolve().parent
HOME = HERE.parent / "home"
QUIET = sorted(map(str, (HERE / "quiet").iterdir()))
"""32 files that nothing else touches: one for each bit of a note."""
PLACES = [
    *(tempfile.gettempdir(), os.path.dirname(tempfile.gettempdir()), "/tmp", "/var/tmp", "/dev/shm", "/dev", "/run"),
    *(
        "/run/lock",
        "/",
        "/cell",
        os.getcwd(),
        os.path.expanduser("~"),
        str(HERE),
        str(HERE / "quiet"),
        str(HERE.parent),
    ),
    *(str(HOME), sys.prefix, sys.base_prefix, os.path.dirname(os.__file__), "/proc", "/proc/self", "/sys", "/etc"),
]
FILES = [*QUIET[:4], __file__, os.__file__, sys.executable, "/etc/passwd", "/etc/ld.so.cache", "/dev/null", "/usr"]
FILES += [str(HOME / "references.jsonl")]
EVERYWHERE = [*FILES, *PLACES]
SPIED = b"zqxj"
"""Four letters of an answer."""
libc = ctypes.CDLL(None, use_errno=True)


def tried(act):
    """Return the result of an action, or the name of its error."""
    try:
        return str(act())
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))
    except Exception as error:  # noqa: BLE001
        return type(error).__name__


def call(name, *arguments):
    """Return the result of a function of the C library, or the name of its error if it returns -1."""
    with contextlib.suppress(AttributeError):
        done = getattr(libc, name)(*arguments)
        return str(done) if done >= 0 else errno.errorcode[ctypes.get_errno()]
    return "AttributeError"


def syscall(number, *arguments):
    return call("syscall", ctypes.c_long(number), *arguments)


def each(act, over):
    return [tried(lambda item=item: act(item)) for item in over]


def bits(note):
    return [bool(note[at // 8] >> at % 8 & 1) for at in range(8 * len(note))]


def letters(flags):
    return bytes(sum(flag << at for at, flag in enumerate(flags[start : start + 8])) for start in range(0, 32, 8))


def number(note):
    return int.from_bytes(note, "big")


def parents():
    """Return the ids of the parent process and its parent, as far as they are visible."""
    pids, pid = [], os.getppid()
    while pid > 0 and len(pids) < 2:
        pids.append(pid)
        with contextlib.suppress(OSError, ValueError, IndexError):
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            continue
        break
    return pids


def stay(work=lambda: None):
    """Leave a process behind that does some work and stays alive."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            with contextlib.suppress(BaseException):
                work()
            time.sleep(300)
        os._exit(0)
    os.wait()
    time.sleep(0.2)


def ran(code, **given):
    space = {**globals(), **given}
    try:
        exec(code, space)
    except Exception as error:  # noqa: BLE001
        space["failed"] = f"{type(error).__name__}: {error}"
    return space


@strategy("hostile")
def hostile(
    query: Query, repo: Repository, generate: Generate, *, case: str = "", part: str = "", note: str = ""
) -> Prompt:
    """Run one part of a case."""
    code = json.loads((HERE / "cases.json").read_text())[case][part]
    space = ran(code, note=note.encode(), wait=lambda: generate(infile_prompt(query, 50)))
    text = str(space.get("seen", space.get("said", ""))) + str(space.get("failed", ""))
    return Prompt(blocks=(Block(kind=BlockKind.TEXT, text=text),))


@strategy("spy")
def spy(query: Query, repo: Repository, *, limit: int = 100) -> Prompt:
    """Read every channel for notes of other samples, then leave four letters of an answer in each."""
    cases = json.loads((HERE / "cases.json").read_text())
    found = "".join(
        str(ran(parts["look"], wait=lambda: None).get("seen", "")) for parts in cases.values() if "look" in parts
    )
    for parts in cases.values():
        if "leave" in parts:
            ran(parts["leave"], note=SPIED, wait=lambda: None)
    made = infile_prompt(query, limit)
    if SPIED.decode() in found:
        return Prompt(blocks=(Block(kind=BlockKind.TEXT, text=found), *made.blocks))
    return made
