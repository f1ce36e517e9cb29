"""Checks of limits, each tried from within."""

from __future__ import annotations

import time

from ctxbench.sandbox.conformance.asking import described, expect, python
from ctxbench.sandbox.types import Command, Ended, Job, Pool

_FORKS = """
import os, time
made = 0
try:
    while made < 500:
        if os.fork() == 0:
            time.sleep(30)
            os._exit(0)
        made += 1
except OSError:
    pass
print(10 <= made <= 32 or made)
"""
_DISK = """
import os
written, made = 0, 0
try:
    for name in range(100):
        with open(f"fill{name}", "wb", 0) as file:
            for _ in range(7):
                written += file.write(bytes(1 << 20))
except OSError:
    pass
for name in range(100):
    if os.path.exists(f"fill{name}"):
        os.unlink(f"fill{name}")
try:
    for made in range(5000):
        os.mkdir(f"folder{made}")
except OSError:
    pass
print(8 << 20 <= written <= 16 << 20 or written, 1000 <= made <= 2000 or made)
"""
_FILE = """
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
size = 0
try:
    with open("one", "wb", 0) as file:
        while size < 64 << 20:
            size += file.write(bytes(1 << 20))
except OSError:
    pass
print(size == 8 << 20 or size)
"""
_OPEN = """
import os
held = []
try:
    while len(held) < 1000:
        held.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
print(40 <= len(held) <= 64 or len(held))
"""


def _timeout(pool: Pool) -> str:
    began = time.monotonic()
    outcome = pool.run(
        Job(action=Command(argv=("sh", "-c", "trap '' TERM; echo begun; sleep 60 & setsid sleep 60")), seconds=1.0)
    )
    if outcome.ended is not Ended.TIMED_OUT or outcome.output != "begun\n" or outcome.exit_code is not None:
        return described(outcome)
    took = time.monotonic() - began
    return "" if 1.0 <= outcome.seconds < 10 and took < 20 else f"it took {outcome.seconds:.1f} s, {took:.1f} s in all"


def _truncation(pool: Pool) -> str:
    outcome = python(pool, "import sys\nprint('first')\nfor n in range(1_000_000): print(n)\nprint('last')")
    fits = outcome.output.startswith("first\n0\n1\n") and outcome.output.endswith("999999\nlast\n")
    fits = fits and outcome.truncated and len(outcome.output) < 8 * 1024 + 200 and outcome.exit_code == 0
    return "" if fits else f"{len(outcome.output)} characters kept, truncated: {outcome.truncated}"


def _memory(pool: Pool) -> str:
    outcome = python(pool, "held = []\nwhile True: held.append(bytearray(4 << 20))")
    if not outcome.out_of_memory or outcome.ended is not Ended.KILLED:
        return described(outcome)
    child = "import os\npid = os.fork()\nheld = []\nwhile not pid: held.append(bytearray(4 << 20))\n"
    outcome = python(pool, child + "print(os.waitpid(pid, 0)[1])")
    if not outcome.out_of_memory:
        return f"in a child: {described(outcome)}"
    fits = python(pool, "held = bytearray(100 << 20); print('fits')")
    return expect(fits, "fits\n") or ("out of memory was said of a job that fits" if fits.out_of_memory else "")


CHECKS = {
    "a time-out ends a job with its children": _timeout,
    "output keeps its head and its tail": _truncation,
    "memory is bounded": _memory,
    "processes are bounded": lambda pool: expect(python(pool, _FORKS), "True\n"),
    "the disk is bounded, in bytes and in files": lambda pool: expect(python(pool, _DISK), "True True\n"),
    "a file is bounded": lambda pool: expect(python(pool, _FILE), "True\n"),
    "open files are bounded": lambda pool: expect(python(pool, _OPEN), "True\n"),
}
