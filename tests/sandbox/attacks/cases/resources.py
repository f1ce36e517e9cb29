"""Using up the machine: processes, memory, disk, inodes, output, time."""

from ctxbench.sandbox.types import Ended
from tests.sandbox.attacks.case import Case

CASES = (
    Case(
        name="fork-bomb",
        tries="fork until it fails; the children stay",
        code="""
import errno, os, time
forks = 0
while True:
    try:
        child = os.fork()
    except OSError as error:
        print("forks:", forks, errno.errorcode[error.errno])
        break
    if not child:
        time.sleep(60)
    forks += 1
""",
        seen="forks: <5..64> EAGAIN",
    ),
    Case(
        name="fork-bomb-without-end",
        tries="children that fork again, for ever",
        code="import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass\n",
        seen="",
        ended=(Ended.TIMED_OUT,),
        seconds=2.0,
    ),
    Case(
        name="thread-bomb",
        tries="start threads until it fails",
        code="""
import threading, time
count = 0
try:
    while True:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        count += 1
except RuntimeError:
    print("threads:", count, flush=True)
import os
os._exit(0)
""",
        seen="threads: <5..64>",
    ),
    Case(
        name="memory-bomb",
        tries="take memory without end",
        code="""
held = []
try:
    while True:
        held.append(bytearray(16 << 20))
except MemoryError:
    held.clear()
    raise SystemExit(7)
""",
        seen="",
        ended=(Ended.KILLED, Ended.EXITED),
        out_of_memory=True,
    ),
    Case(
        name="memory-bomb-in-a-child",
        tries="the same in a child; the parent lives on",
        code="""
import os
child = os.fork()
if not child:
    held = []
    try:
        while True:
            held.append(bytearray(16 << 20))
    except MemoryError:
        os._exit(7)
_, status = os.waitpid(child, 0)
print("child ended:", status == 9 or status == 7 << 8)
""",
        seen="child ended: True",
    ),
    Case(
        name="memory-by-many",
        tries="eight children that take 200 MiB each, of a box with 512",
        code="""
import os, time
read, write = os.pipe()
children = []
for number in range(8):
    children.append(os.fork())
    if not children[-1]:
        try:
            held = bytearray(b"x") * (200 << 20)
            os.write(write, bytes([number]))
            time.sleep(60)
        finally:
            os._exit(0)
time.sleep(4)
os.set_blocking(read, False)
try:
    took = os.read(read, 100)
except BlockingIOError:
    took = b""
# One that took its share may be killed for the next one's: what counts is who holds it at once.
print("held:", sum(os.waitpid(children[number], os.WNOHANG) == (0, 0) for number in took))
""",
        seen="held: <0..2>",
        ended=(Ended.EXITED,),
    ),
    Case(
        name="disk-fill",
        tries="write files until the disk is full",
        code="""
import errno
written = 0
try:
    for index in range(64):
        with open(f"f{index}", "wb", buffering=0) as file:
            for _ in range(16):
                written += file.write(b"x" * (1 << 20))
except OSError as error:
    print("MiB:", written >> 20, errno.errorcode[error.errno])
""",
        seen="MiB: <30..64> ENOSPC",
    ),
    Case(
        name="shared-memory-fill",
        tries="write to /dev/shm until it is full",
        code="""
import errno
written = 0
try:
    for index in range(64):
        with open(f"/dev/shm/f{index}", "wb", buffering=0) as file:
            for _ in range(16):
                written += file.write(b"x" * (1 << 20))
except OSError as error:
    print("MiB:", written >> 20)
""",
        seen="MiB: <0..64>",
    ),
    Case(
        name="inode-fill",
        tries="make empty files until it fails",
        code="""
import errno, os
made = 0
try:
    for made in range(1_000_000):
        os.close(os.open(f"n{made}", os.O_CREAT | os.O_WRONLY))
except OSError as error:
    print("files:", made, errno.errorcode[error.errno])
""",
        seen="files: <100..20000> ENOSPC",
    ),
    Case(
        name="huge-sparse-file",
        tries="a file of 1 TiB that holds nothing",
        code="from attack_tools import tried\ntried('sparse', lambda: open('s', 'wb').truncate(1 << 40))\n",
        seen="sparse: EFBIG",
    ),
    Case(
        name="endless-output",
        tries="1 GiB to stdout",
        code="import os\nfor _ in range(1 << 14):\n    os.write(1, b'x' * (1 << 16))\n",
        seen="*",
        truncated=True,
        seconds=60.0,
    ),
    Case(
        name="open-files",
        tries="open files until it fails",
        code="""
import errno, os
held = []
try:
    while True:
        held.append(os.open("/dev/null", os.O_RDONLY))
except OSError as error:
    print("files:", len(held), errno.errorcode[error.errno])
""",
        seen="files: <50..256> EMFILE",
    ),
    Case(
        name="raise-limits",
        tries="raise its own hard limits",
        code="""
import resource
from attack_tools import word
came = set()
for name in ("NOFILE", "NPROC", "FSIZE", "CORE", "AS", "DATA"):
    kind = getattr(resource, f"RLIMIT_{name}")
    if resource.getrlimit(kind)[1] != resource.RLIM_INFINITY:
        came.add(word(lambda kind=kind: resource.setrlimit(kind, (resource.RLIM_INFINITY,) * 2)))
print(came <= {"ValueError", "EPERM"}, len(came) > 0)
print("core:", resource.getrlimit(resource.RLIMIT_CORE)[1])
""",
        seen="True True\ncore: 1",
    ),
    Case(
        name="busy-for-ever",
        tries="eight processes that compute without end",
        code="import os\nfor _ in range(3):\n    os.fork()\nwhile True:\n    pass\n",
        seen="",
        ended=(Ended.TIMED_OUT,),
        seconds=2.0,
    ),
    Case(
        name="deaf-to-signals",
        tries="ignore every signal and never end",
        code="""
import signal
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
while True:
    signal.pause()
""",
        seen="",
        ended=(Ended.TIMED_OUT,),
        seconds=2.0,
    ),
    Case(
        name="stopped-for-ever",
        tries="stop itself",
        code="import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\n",
        seen="",
        ended=(Ended.TIMED_OUT,),
        seconds=2.0,
    ),
)
