"""Checks that a job leaves nothing for the next, and that jobs run beside each other."""

from __future__ import annotations

import threading
import time

from ctxbench.sandbox.conformance.asking import described, expect, python
from ctxbench.sandbox.types import Ended, Outcome, Pool

_LITTER = """
import ctypes, os, subprocess, sys
for folder in (".", os.environ["HOME"], os.environ["TMPDIR"], "/dev/shm"):
    open(os.path.join(folder, "litter"), "w").close()
open("words/one.py", "w").write("WORD = 'forged'")
os.mkdir("closed")
open("closed/inside", "w").close()
os.chmod("closed", 0)
os.mkdir(b"odd\\xff\\n\\x1b")
os.symlink("/", "link")
os.mkfifo("pipe")
here = os.open(".", os.O_RDONLY)
for depth in range(1000):
    os.mkdir("deep", dir_fd=here)
    below = os.open("deep", os.O_RDONLY, dir_fd=here)
    os.close(here)
    here = below
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        subprocess.Popen(["sleep", "60"])
        while True:
            pass
    os._exit(0)
print("littered")
"""
_LOOK = """
import os
sys_processes = []
for name in os.listdir("/proc"):
    if name.isdecimal() and int(name) not in (1, os.getpid(), os.getppid()):
        sys_processes.append(name)
litter = [where for where in (".", os.environ["HOME"], os.environ["TMPDIR"], "/dev/shm") for _ in os.listdir(where)]
import one
print(sorted(os.listdir(".")), [where for where in litter if where != "."], sys_processes, one.WORD)
"""
_CLEAN = "['run.sh', 'words'] [] [] from the tree\n"
_BOMB = """
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    try:
        os.fork()
    except OSError:
        pass
"""


def _clean(pool: Pool) -> str:
    for _ in range(2):  # two boxes may be open
        fault = expect(python(pool, _LITTER), "littered\n") or expect(python(pool, _LOOK), _CLEAN)
        if fault:
            return fault
    return expect(python(pool, _LOOK), _CLEAN)


def _reused(pool: Pool) -> str:
    """Jobs that do nothing wrong must not cost a box each."""
    program = "print(open('/proc/1/stat').read().rsplit(')', 1)[1].split()[19])"
    for folder in ("/dev/shm", "."):  # noqa: S108 - the box's own
        python(pool, f"open('{folder}/litter', 'w').close()")
    boxes = {python(pool, program).output for _ in range(6)}
    if not all(name.strip().isdecimal() for name in boxes):
        return f"no box said since when it runs: {boxes}"
    return "" if len(boxes) <= 3 else f"six jobs in a row had {len(boxes)} boxes"


def _bomb(pool: Pool) -> str:
    outcome = python(pool, _BOMB, seconds=1.0)
    if outcome.ended is not Ended.TIMED_OUT:
        return described(outcome)
    for _ in range(3):
        fault = expect(python(pool, _LOOK), _CLEAN)
        if fault:
            return fault
    return ""


def _everyone(pool: Pool) -> str:
    outcome = python(pool, "import os\nos.kill(-1, 9)\nprint('lonely')")
    fair = (
        outcome.ended in (Ended.WRECKED, Ended.KILLED) or outcome.output == "lonely\n" or "Permission" in outcome.output
    )
    return ("" if fair else described(outcome)) or expect(python(pool, "print('alive')"), "alive\n")


def _beside(pool: Pool) -> str:
    """Two jobs at once, which must not see each other's files or processes."""
    program = "import os, time\nopen(os.environ['TMPDIR'] + '/mine', 'x').close()\ntime.sleep(1.5)\n" + _LOOK
    outcomes: list[Outcome] = []
    threads = [threading.Thread(target=lambda: outcomes.append(python(pool, program))) for _ in range(2)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(outcomes) < 2:
        return "a job of two had no outcome"
    if any("[] from the tree" not in outcome.output for outcome in outcomes):
        return " and ".join(described(outcome) for outcome in outcomes)
    took = time.monotonic() - began
    return "" if took < 20 else f"two jobs of 1.5 s took {took:.1f} s"


CHECKS = {
    "a box is used again": _reused,
    "nothing is left for the next job": _clean,
    "a fork bomb ends with its job": _bomb,
    "a job that kills all that it can harms itself only": _everyone,
    "jobs run side by side, apart": _beside,
}
FRESH = {"fresh boxes are clean": _clean, "fresh boxes survive a fork bomb": _bomb}
