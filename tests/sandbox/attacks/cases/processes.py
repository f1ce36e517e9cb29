"""Processes that outlive their job, and signals to those that are not the job's."""

# ruff: noqa: E501 - attacks are programs as data

from ctxbench.sandbox.types import Ended
from tests.sandbox.attacks.case import Case

CASES = (
    Case(
        name="daemon",
        tries="a child that leaves session and group and stays when the job ends, its output open",
        code="""
import os, time
if not os.fork():
    os.setsid()
    if not os.fork():
        time.sleep(600)
    os._exit(0)
print("gone")
""",
        seen="gone",
    ),
    Case(
        name="stray-sleepers",
        tries="forty sleepers in sessions of their own that ignore signals",
        code="""
import os, signal, time
for _ in range(40):
    if not os.fork():
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        os.closerange(0, 64)
        time.sleep(600)
print("gone")
""",
        seen="gone",
    ),
    Case(
        name="orphans-that-fork",
        tries="children that go on forking while the job ends",
        code="""
import os, time
for _ in range(4):
    if not os.fork():
        while True:
            try:
                if os.fork():
                    os._exit(0)
            except OSError:
                pass
time.sleep(0.2)
print("gone")
""",
        seen="gone",
    ),
    Case(
        name="kill-everybody",
        tries="kill(-1)",
        code="""
import os, signal
from attack_tools import word
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGSTOP, signal.SIGKILL):
    came = word(lambda: os.kill(-1, number))
    print(came in ("done", "EPERM", "ESRCH"))
""",
        seen="True\nTrue\nTrue\nTrue",
    ),
    Case(
        name="kill-the-first-process",
        tries="every signal to process 1, the guest",
        code="""
import os, signal
from attack_tools import word
print({word(lambda number=number: os.kill(1, number)) for number in sorted(signal.valid_signals())} <= {"EPERM", "done"})
print("alive")
""",
        seen="True\nalive",
    ),
    Case(
        name="stop-the-supervisor",
        tries="stop and kill every process but its own",
        code="""
import os, signal
from attack_tools import word
own = os.getpid()
came = {word(lambda pid=pid, number=number: os.kill(pid, number))
        for number in (signal.SIGSTOP, signal.SIGKILL) for pid in range(2, 500) if pid != own}
print(sorted(came - {"ESRCH", "EPERM"}))
""",
        seen="[]",
    ),
    Case(
        name="kill-its-group",
        tries="kill its own process group",
        code="import os, signal\nos.killpg(0, signal.SIGKILL)\n",
        seen="",
        ended=(Ended.KILLED,),
    ),
    Case(
        name="supervisor-by-handle",
        tries="a signal to its parent through a pidfd",
        code="""
import os, signal
from attack_tools import tried
def send(pid):
    signal.pidfd_send_signal(os.pidfd_open(pid), signal.SIGKILL)
tried("parent", lambda: send(os.getppid()))
""",
        seen="parent: <refused>",
    ),
    Case(
        name="higher-priority",
        tries="a higher priority and real-time scheduling",
        code="""
import os
from attack_tools import tried
tried("nice", lambda: os.nice(-10))
tried("priority", lambda: os.setpriority(os.PRIO_PROCESS, 0, -20))
tried("fifo", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))
""",
        seen="nice: <refused>\npriority: <refused>\nfifo: <refused>",
    ),
    Case(
        name="signals-by-files",
        tries="make the kernel kill the supervisor, as the owner of a pipe that something is written to",
        code="""
import fcntl, os, signal, time
from attack_tools import word
for pid in (os.getppid(), 1, -1):
    read, write = os.pipe()
    for act in (lambda: fcntl.fcntl(read, fcntl.F_SETOWN, pid), lambda: fcntl.fcntl(read, 10, signal.SIGKILL),
                lambda: fcntl.fcntl(read, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)):
        word(act)
    os.write(write, b"x")
time.sleep(0.5)
print("here")
""",
        seen="here",
    ),
    Case(
        name="limits-of-others",
        tries="set limits for the guest and the supervisor, which later jobs would inherit",
        code="""
import os, resource
from attack_tools import tried
for pid in (os.getppid(), 1):
    for kind, value in ((resource.RLIMIT_NOFILE, 16), (resource.RLIMIT_FSIZE, 1), (resource.RLIMIT_CPU, 1)):
        tried("limit", lambda: resource.prlimit(pid, kind, (value, value)))
tried("its own", lambda: resource.prlimit(0, resource.RLIMIT_CPU, (50, 50)))
""",
        seen="limit: <refused>\n" * 6 + "its own: done (-1, -1)",
    ),
    Case(
        name="priority-of-others",
        tries="give the guest and the supervisor the last place in the queues for processors and disks, or one processor",
        code="""
import ctypes, os, platform
from attack_tools import kernel, tried
ioprio = 251 if platform.machine() == "x86_64" else 30
for pid in (os.getppid(), 1):
    tried("nice", lambda: os.setpriority(os.PRIO_PROCESS, pid, 19))
    tried("idle", lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0)))
    tried("processor", lambda: os.sched_setaffinity(pid, {min(os.sched_getaffinity(0))}))
    tried("disk", lambda: kernel(ioprio, 1, pid, 3 << 13))
tried("nice for all", lambda: os.setpriority(os.PRIO_USER, 0, 19))
tried("disk for all", lambda: kernel(ioprio, 3, os.getuid(), 3 << 13))
tried("its own", lambda: os.setpriority(os.PRIO_PROCESS, 0, 5))
""",
        seen=("nice: <refused>\nidle: <refused>\nprocessor: <refused>\ndisk: <refused>\n" * 2)
        + "nice for all: <refused>\ndisk for all: <refused>\nits own: done",
    ),
    Case(
        name="spared-by-the-killer",
        tries="lower its rank in the queue of the kernel's memory killer",
        code="""
from attack_tools import tried
def write(path):
    with open(path, "w") as file:
        file.write("-1000")
tried("self", lambda: write("/proc/self/oom_score_adj"))
print("rank", open("/proc/self/oom_score_adj").read().strip())
""",
        seen="self: <refused>\nrank 1000",
    ),
)
