"""Checks that a job stays within its limits and cannot reach the network, the machine or trusted processes."""

import contextlib
import secrets
import socket
import time
from collections.abc import Iterator

from ctxbench.sandbox.types import Command, Ended, Job, Pool
from tests.sandbox.conformance.jobs import described, expect, python, refused

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
_WRITES = {
    f"write to {folder}": f"open({folder!r} + '/ctxbench-probe', 'w').close()"
    for folder in ("", "/usr", "/usr/lib", "/etc", "/ctxbench/lib", "/ctxbench/site", "/proc/sys/kernel")
}
_GUEST = {
    "read the guest's memory": "open('/proc/1/mem', 'rb').read(1)",
    "read the guest's environment": "open('/proc/1/environ').read()",
    "list the guest's descriptors": "os.listdir('/proc/1/fd')",
    "open the guest's stdout": "open('/proc/1/fd/1', 'wb').close()",
    "see the guest's root": "os.listdir('/proc/1/root/')",
    "read the supervisor's memory": "open(f'/proc/{os.getppid()}/mem', 'rb').read(1)",
    "list the supervisor's descriptors": "os.listdir(f'/proc/{os.getppid()}/fd')",
}
_CALLS = {
    "make a netlink socket": "socket.socket(16, socket.SOCK_RAW).close()",
    "make a vsock socket": "socket.socket(40, socket.SOCK_STREAM).close()",
    "make a packet socket": "socket.socket(17, socket.SOCK_RAW).close()",
    "make a kernel crypto socket": "socket.socket(38, socket.SOCK_SEQPACKET).close()",
    "enter a user namespace": "if libc.unshare(0x10000000): raise OSError",
    "enter a mount namespace": "if libc.unshare(0x20000): raise OSError",
    "mount": "if libc.mount(b'none', b'/work/job', b'tmpfs', 0, None): raise OSError",
    "trace the parent": "if libc.ptrace(16, os.getppid(), 0, 0): raise OSError",
    "trace itself": "if libc.ptrace(0, 0, 0, 0): raise OSError",
    "become root": "os.setuid(0)",
    "change the root": "os.chroot('.')",
    "make a device": "os.mknod('device', 0o60600, os.makedev(8, 0))",
    "make shared memory": "if libc.shmget(0, 4096, 0o1600) < 0: raise OSError",
    "make a message queue": "if libc.mq_open(b'/probe', 0o102, 0o600, None) < 0: raise OSError",
    "map huge pages": "import mmap; mmap.mmap(-1, 2 << 20, flags=0x40022)",
    "put a filter on a socket": "socket.socket().setsockopt(1, 26, bytes(16))",
    "set the clock": "import time; time.clock_settime(time.CLOCK_REALTIME, 0)",
    "raise its limits": "resource.setrlimit(resource.RLIMIT_NOFILE, (100000, 100000))",
    "raise its priority": "os.nice(-5)",
}
_STATUS = """
import os
wanted = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")
status = dict(line.strip().split(":", 1) for line in open("/proc/self/status"))
odd = {name: status[name].strip() for name in wanted}
right = all(int(odd[name], 16) == 0 for name in wanted[:5] if name != "CapBnd")
print(right and odd["NoNewPrivs"] == "1" and odd["Seccomp"] == "2" and 0 not in os.getresuid() or odd)
"""
_NAMES = """
import socket
names = [line.split(":")[0].strip() for line in open("/proc/net/dev").readlines()[2:]]
print([name for name in names if name != "lo"])
for family, kind, address in [
    (socket.AF_INET, socket.SOCK_STREAM, ("192.0.2.1", 80)),
    (socket.AF_INET, socket.SOCK_DGRAM, ("192.0.2.1", 53)),
    (socket.AF_INET6, socket.SOCK_STREAM, ("2001:db8::1", 80)),
    (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", {port})),
    (socket.AF_UNIX, socket.SOCK_STREAM, "\\0{name}"),
]:
    with socket.socket(family, kind) as made:
        made.settimeout(5)
        try:
            made.connect(address)
            made.send(b"x")
            print("reached", address)
        except OSError:
            pass
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


BOUNDS = {
    "a time-out ends a job with its children": _timeout,
    "output keeps its head and its tail": _truncation,
    "memory is bounded": _memory,
    "processes are bounded": lambda pool: expect(python(pool, _FORKS), "True\n"),
    "the disk is bounded, in bytes and in files": lambda pool: expect(python(pool, _DISK), "True True\n"),
    "a file is bounded": lambda pool: expect(python(pool, _FILE), "True\n"),
    "open files are bounded": lambda pool: expect(python(pool, _OPEN), "True\n"),
}


@contextlib.contextmanager
def _listening() -> Iterator[tuple[int, str]]:
    """Listen on this machine's loopback and on an abstract socket."""
    name = f"ctxbench-{secrets.token_hex(8)}"
    with socket.create_server(("127.0.0.1", 0)) as plain, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0{name}")
        abstract.listen()
        yield plain.getsockname()[1], name


def _network(pool: Pool) -> str:
    with _listening() as (port, name):
        return expect(python(pool, _NAMES.replace("{port}", str(port)).replace("{name}", name)), "[]\n")


def _signals(pool: Pool) -> str:
    program = "import os, signal\nfor number in (9, 15, 19, 2, 1):\n    try: os.kill(1, number)\n"
    return expect(python(pool, program + "    except PermissionError: pass\nprint('tried')"), "tried\n") or expect(
        python(pool, "print('alive')"), "alive\n"
    )


ISOLATION = {
    "there is no network": _network,
    "all but the job's folders is read-only": lambda pool: refused(pool, _WRITES),
    "the trusted processes are closed": lambda pool: refused(pool, _GUEST),
    "dangerous calls are refused": lambda pool: refused(pool, _CALLS),
    "a job has no privileges": lambda pool: expect(python(pool, _STATUS), "True\n"),
    "a job cannot end its box": _signals,
}
