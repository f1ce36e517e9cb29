"""What the kernel has once for all boxes, or once for each user: one box must not take it from the others."""

# ruff: noqa: E501 - attacks are programs as data

from ctxbench.sandbox.types import Ended
from tests.sandbox.attacks.case import Case

_FILL = """
import os, socket, time
held = []
def fill(end):
    "Return how many bytes a socket takes that nobody reads from."
    end.setblocking(False)
    taken = 0
    try:
        while True:
            taken += end.send(b"x" * 65536)
    except BlockingIOError:
        return taken
def listening():
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    made.bind(("127.0.0.1", 0))
    made.listen(4096)
    held.append(made)
    return made
def connected(server):
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
    made.connect(server.getsockname())
    return made
"""
_SYSTEM_CALLS = "from attack_tools import apart, kernel, tried, word\n"

CASES = (
    Case(
        name="socket-buffers",
        tries="hold memory in the buffers of connections on the loopback",
        code=_FILL
        + """
total, server = 0, listening()
try:
    while True:
        client = connected(server)
        held.extend((client, server.accept()[0]))
        total += sum(map(fill, held[-2:]))
except OSError as error:
    print("MiB:", total >> 20)
""",
        seen="MiB: <1..160>",
    ),
    Case(
        name="socket-buffers-by-many",
        tries="the same in thirty processes",
        code=_FILL
        + """
for _ in range(30):
    if not os.fork():
        break
server = listening()
for _ in range(100):
    client = connected(server)
    held.extend((client, server.accept()[0]))
    for end in held[-2:]:
        fill(end)
time.sleep(15)
print("held")
""",
        seen="",
        ended=(Ended.KILLED,),
        out_of_memory=True,
    ),
    Case(
        name="connections-without-end",
        tries="hold it in connections that nobody accepts and whose other end is closed, which no descriptor leads to",
        code=_FILL
        + """
servers = [listening() for _ in range(8)]
for number in range(20000):
    client = connected(servers[number % 8])
    fill(client)
    client.close()
time.sleep(15)
print("held")
""",
        seen="",
        ended=(Ended.KILLED,),
        out_of_memory=True,
        seconds=60.0,
    ),
    Case(
        name="datagrams",
        tries="hold it in datagrams that nobody reads",
        code=_FILL
        + """
total = 0
try:
    while True:
        reader = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        held.append(reader)
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
        reader.bind(("127.0.0.1", 0))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as writer:
            for _ in range(400):
                writer.sendto(b"x" * 30000, reader.getsockname())
        reader.setblocking(False)
        first = held[0] if len(held) == 1 else None
        while first is not None:
            total += len(first.recv(1 << 16))
except BlockingIOError:
    print("KiB of one:", total >> 10)
""",
        seen="KiB of one: <30..512>",
    ),
    Case(
        name="larger-buffers",
        tries="set a socket's buffers beyond their default, by force too",
        code=_SYSTEM_CALLS
        + """
import socket
for kind in (socket.AF_UNIX, socket.AF_INET):
    with socket.socket(kind) as made:
        for name in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            before = made.getsockopt(socket.SOL_SOCKET, name)
            made.setsockopt(socket.SOL_SOCKET, name, 1 << 26)
            print(made.getsockopt(socket.SOL_SOCKET, name) == before)
        for name in (32, 33):
            tried("by force", lambda: made.setsockopt(socket.SOL_SOCKET, name, 1 << 26))
""",
        seen="True\nTrue\nby force: <refused>\nby force: <refused>\n" * 2,
    ),
    Case(
        name="local-socket-buffers",
        tries="hold memory in the buffers of Unix sockets",
        code=_FILL
        + """
total = 0
try:
    while True:
        held.extend(socket.socketpair())
        total += sum(map(fill, held[-2:]))
except OSError:
    print("MiB:", total >> 20)
""",
        seen="MiB: <1..128>",
    ),
    Case(
        name="grown-pipes",
        tries="grow pipes to a MiB each and fill them",
        code="""
import fcntl, os
held, total = [], 0
try:
    while True:
        held.extend(os.pipe())
        try:
            fcntl.fcntl(held[-1], 1031, 1 << 20)
        except PermissionError:
            pass
        os.set_blocking(held[-1], False)
        try:
            while True:
                total += os.write(held[-1], b"x" * 65536)
        except BlockingIOError:
            pass
except OSError as error:
    print("MiB:", total >> 20)
""",
        seen="MiB: <1..128>",
    ),
    Case(
        name="asynchronous-io",
        tries="take the machine's pool of asynchronous I/O",
        code=_SYSTEM_CALLS
        + """
import ctypes
for count in (1, 65536):
    apart("io_setup", lambda: kernel(206 if __import__("platform").machine() == "x86_64" else 0, count, ctypes.byref(ctypes.c_ulong(0))))
""",
        seen="io_setup: ENOSYS\n" * 2,
    ),
    Case(
        name="huge-pages",
        tries="take huge pages, which somebody set aside for another program",
        code=_SYSTEM_CALLS
        + """
import mmap, os
tried("map", lambda: mmap.mmap(-1, 2 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000))
tried("map of a GiB", lambda: mmap.mmap(-1, 1 << 30, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | 0x40000 | 30 << 26))
tried("file", lambda: os.memfd_create("x", os.MFD_HUGETLB))
""",
        seen="map: <refused>\nmap of a GiB: <refused>\nfile: <refused>",
    ),
    Case(
        name="compiled-filters",
        tries="fill the memory that the machine has for compiled filters, by sockets and by seccomp",
        code=_SYSTEM_CALLS
        + """
import ctypes, socket, struct
lines = struct.pack("=HBBI", 6, 0, 0, 0x7fff0000)
held = ctypes.create_string_buffer(lines)
program = struct.pack("HxxxxxxQ", 1, ctypes.addressof(held))
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
    for option in (26, 50, 51, 52):
        tried("socket", lambda: made.setsockopt(socket.SOL_SOCKET, option, program))
libc = ctypes.CDLL(None, use_errno=True)
def seccomp(call, *arguments):
    if call(*arguments) < 0:
        raise OSError(ctypes.get_errno(), "refused")
apart("prctl", lambda: seccomp(libc.prctl, 22, 2, program, 0, 0))
apart("seccomp", lambda: kernel(317 if __import__("platform").machine() == "x86_64" else 277, 1, 0, program))
""",
        seen="socket: <refused>\n" * 4 + "prctl: <refused>\nseccomp: <refused>",
    ),
    Case(
        name="locks-of-ranges",
        tries="hold locks of ranges of files without end, which the kernel counts nowhere",
        code="""
import fcntl, os, struct, time
for name in range(100):
    handle = os.open(str(name), os.O_CREAT | os.O_RDWR)
    for start in range(500, 0, -1):
        fcntl.fcntl(handle, fcntl.F_SETLK, struct.pack("hhqqi", fcntl.F_WRLCK, 0, start * 4, 1, 0))
time.sleep(15)
print("held")
""",
        seen="",
        ended=(Ended.KILLED,),
        out_of_memory=True,
    ),
    Case(
        name="locks-of-open-files",
        tries="the same with locks that belong to no process",
        code=_SYSTEM_CALLS
        + """
import fcntl, struct
with open("file", "w") as file:
    tried("lock", lambda: fcntl.fcntl(file, 37, struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 1, 0)))
""",
        seen="lock: EINVAL",
    ),
    Case(
        name="queued-signals",
        tries="queue signals and make timers until it fails: the kernel has a number of them for each user",
        code="""
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
queued = 0
while queued < 1 << 20 and not libc.sigqueue(os.getpid(), signal.SIGRTMIN, ctypes.c_void_p(1)):
    queued += 1
timers = 0
while timers < 1 << 20 and not libc.timer_create(1, None, ctypes.byref(ctypes.c_void_p())):
    timers += 1
print("queued:", queued, "timers:", timers)
""",
        seen="queued: <100..1024> timers: <0..10>",
    ),
    Case(
        name="watches",
        tries="take the watches of files that the kernel has for each user",
        code="""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
held = []
while (handle := libc.inotify_init()) >= 0 and len(held) < 100_000:
    held.append(handle)
watched = 0
for number in range(15000):
    os.close(os.open(f"f{number}", os.O_CREAT | os.O_WRONLY))
    for handle in held[:2]:
        watched += libc.inotify_add_watch(handle, f"f{number}".encode(), 2) >= 0
print("instances:", len(held), "watches:", watched)
""",
        seen="instances: <1..250> watches: <1000..30000>",
    ),
    Case(
        name="descriptors-on-their-way",
        tries="have files open that no process holds: in messages that nobody receives",
        code="""
import os, socket
first, second = socket.socketpair()
first.setblocking(False)
sent = 0
try:
    while sent < 1 << 20:
        socket.send_fds(first, [b"x"], [0] * 200)
        sent += 200
except OSError:
    print("sent:", sent)
""",
        seen="sent: <200..2000>",
    ),
    Case(
        name="modules-by-protocol",
        tries="make the machine load modules, by sockets of protocols that it has not loaded",
        code=_SYSTEM_CALLS
        + """
import socket
for kind, protocol in ((1, 132), (5, 132), (6, 33), (2, 136), (2, 115), (1, 262), (1, 256)):
    tried("protocol", lambda: socket.socket(socket.AF_INET, kind, protocol).close())
    tried("pair", lambda: socket.socketpair(socket.AF_INET, kind, protocol))
""",
        seen="protocol: <no-family>\npair: <no-family>\n" * 7,
    ),
    Case(
        name="modules-by-type",
        tries="the same by types of sockets: packets, DCCP, sequenced packets, and pairs of type and protocol that no family has",
        code=_SYSTEM_CALLS
        + """
import socket
for family in (socket.AF_INET, socket.AF_INET6):
    for kind, protocol in ((10, 0), (6, 0), (5, 0), (4, 0), (7, 0), (1, 17), (2, 6)):
        tried("type", lambda: socket.socket(family, kind, protocol).close())
        tried("pair", lambda: socket.socketpair(family, kind, protocol))
""",
        seen="type: <no-family>\npair: <no-family>\n" * 14,
    ),
    Case(
        name="modules-by-request",
        tries="the same by requests to a socket for bridges, frame relay and VLANs, and to a terminal for a line discipline",
        code=_SYSTEM_CALLS
        + """
import fcntl, os, socket
made = socket.socket()
for request in (0x8940, 0x8941, 0x8980, 0x8981, 0x8982, 0x8983, 0x89A0, 0x89A1):
    tried("request", lambda: fcntl.ioctl(made, request, bytes(64)))
try:
    terminal = os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY)
except OSError:
    terminal = made.fileno()
tried("discipline", lambda: fcntl.ioctl(terminal, 0x5423, (5).to_bytes(4, "little")))
""",
        seen="request: <refused>\n" * 8 + "discipline: <refused>",
    ),
    Case(
        name="halves-of-arguments",
        tries="what is refused, with bits in the half of an argument that the kernel does not read",
        code=_SYSTEM_CALLS
        + """
import ctypes, socket, struct
made, high = socket.socket(), 1 << 32
code = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0xFFFFFFFF))
filtering = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 1, ctypes.addressof(code)))
size = ctypes.create_string_buffer(struct.pack("i", 4 << 20))
before = made.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
for level, option in ((high | 1, 26), (1, high | 26)):
    tried("filter", lambda: kernel("setsockopt", made.fileno(), level, option, filtering, ctypes.c_long(16)))
for level, option in ((high | 1, 8), (1, high | 8)):
    kernel("setsockopt", made.fileno(), level, option, size, ctypes.c_long(4))
print("as before:", made.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == before)
tried("family", lambda: kernel("socket", high | 16, 3, 0))
tried("type", lambda: kernel("socket", 2, high | 10, 0))
tried("protocol", lambda: kernel("socket", 2, 1, high | 132))
tried("request", lambda: kernel("ioctl", made.fileno(), high | 0x8940, ctypes.create_string_buffer(64)))
""",
        seen="filter: <refused>\nfilter: <refused>\nas before: True\nfamily: <no-family>\ntype: <no-family>\nprotocol: <no-family>\nrequest: <refused>",
    ),
    Case(
        name="later-calls",
        tries="every system call by its number that the filter has no name for, those of later kernels too",
        code=_SYSTEM_CALLS
        + """
import os
# Not 335 and 336, the kernel's own for probes, which pass every filter by design and do nothing elsewhere.
numbers = [*range(337, 424), 450, 451, 453, *range(457, 700), 5000]
answers = {}
for number in numbers:
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.write(write, word(lambda: kernel(number, -1, -1, -1, -1, -1, -1)).encode())
        os._exit(0)
    os.close(write)
    answers.setdefault(os.read(read, 100).decode(), []).append(number)
    os.close(read)
    os.waitpid(child, 0)
for known in ("ENOSYS", "EPERM"):
    answers.pop(known, None)
print(answers)
""",
        seen="{}",
        seconds=60.0,
    ),
    Case(
        name="memory-of-neighbours",
        tries="have its memory merged with others', where time tells what they hold; have a processor core for itself",
        code=_SYSTEM_CALLS
        + """
import ctypes, mmap
libc = ctypes.CDLL(None, use_errno=True)
def call(function, *arguments):
    if function(*arguments):
        raise OSError(ctypes.get_errno(), "refused")
page = mmap.mmap(-1, 1 << 20)
where = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(page)))
tried("merge pages", lambda: call(libc.madvise, where, 1 << 20, 12))
tried("merge all", lambda: call(libc.prctl, 67, 1, 0, 0, 0))
tried("core", lambda: call(libc.prctl, 62, 1, 0, 0, 0))
tried("layout", lambda: call(libc.prctl, 35, 1, 0, 0, 0))
""",
        seen="merge pages: EINVAL\nmerge all: <refused>\ncore: <refused>\nlayout: <refused>",
    ),
    Case(
        name="terminals",
        tries="make pseudo terminals, of which the machine has a number",
        code=_SYSTEM_CALLS
        + """
import os
tried("terminal", lambda: os.open("/dev/ptmx", os.O_RDWR))
tried("another", lambda: os.open("/dev/pts/ptmx", os.O_RDWR))
tried("its own", lambda: os.open("/dev/tty", os.O_RDWR))
""",
        seen="terminal: <absent>\nanother: <absent>\nits own: <absent>",
    ),
    Case(
        name="page-tables",
        tries="touch one page of each region, so that the tables of pages take as much as the pages",
        code="""
import mmap
held = mmap.mmap(-1, 1 << 40, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
for start in range(0, 1 << 40, 2 << 20):
    held[start] = 1
print("all")
""",
        seen="",
        ended=(Ended.KILLED,),
        out_of_memory=True,
    ),
    Case(
        name="allocated-files",
        tries="reserve space without writing, on disk and in shared memory",
        code=_SYSTEM_CALLS
        + """
import os
for place in ("file", "/dev/shm/file"):
    with open(place, "wb") as file:
        tried("reserve", lambda: os.posix_fallocate(file.fileno(), 0, 1 << 40))
        print(word(lambda: os.posix_fallocate(file.fileno(), 0, 64 << 20)) in ("done", "ENOSPC", "EFBIG"))
""",
        seen="reserve: EFBIG\nTrue\nreserve: EFBIG\nTrue",
    ),
    Case(
        name="core-files",
        tries="crash, so that a program of the machine's own reads the core; allow itself core files",
        code=_SYSTEM_CALLS
        + """
import os, resource, signal
print(resource.getrlimit(resource.RLIMIT_CORE))
print(word(lambda: resource.setrlimit(resource.RLIMIT_CORE, (1 << 30, 1 << 30))) in ("ValueError", "EPERM"))
child = os.fork()
if not child:
    os.kill(os.getpid(), signal.SIGSEGV)
print(os.WCOREDUMP(os.waitpid(child, 0)[1]), [name for name in os.listdir(".") if "core" in name])
""",
        seen="(1, 1)\nTrue\nFalse []",
    ),
    Case(
        name="deadline-scheduling",
        tries="the scheduling class that goes before all others",
        code=_SYSTEM_CALLS
        + """
import ctypes, platform, struct
held = struct.pack("IIQiIQQQ", 48, 6, 0, 0, 0, 10_000_000, 30_000_000, 30_000_000)
tried("deadline", lambda: kernel(314 if platform.machine() == "x86_64" else 274, 0, held, 0))
""",
        seen="deadline: <refused>",
    ),
    Case(
        name="own-knobs",
        tries="write to the files of its own process and network in /proc",
        code=_SYSTEM_CALLS
        + """
import os
files = ("self/uid_map", "self/setgroups", "self/loginuid", "self/autogroup", "self/timerslack_ns", "self/coredump_filter",
         "self/attr/current", "self/clear_refs", "self/make-it-fail", "self/projid_map", "sys/kernel/ns_last_pid",
         "sys/net/ipv4/tcp_rmem", "sys/net/core/somaxconn", "sys/net/ipv4/ip_local_port_range", "sys/user/max_inotify_watches",
         "sys/user/max_user_namespaces", "sys/fs/aio-max-nr", "sys/fs/inotify/max_user_watches", "sys/vm/drop_caches")
for name in files:
    tried("write", lambda: os.close(os.open("/proc/" + name, os.O_WRONLY)))
""",
        seen="write: <absent>\n" * 19,
    ),
    Case(
        name="tables-of-the-kernel",
        tries="read what the kernel says of itself: its log, its memory, its timers, its keys",
        code=_SYSTEM_CALLS
        + """
import os
answers = [word(lambda: os.read(os.open(name, os.O_RDONLY), 1)) for name in (
    "/proc/kmsg", "/proc/kcore", "/proc/timer_list", "/proc/slabinfo", "/proc/vmallocinfo", "/proc/kpagecount", "/proc/kpageflags",
    "/proc/kpagecgroup", "/proc/sched_debug", "/proc/pagetypeinfo", "/sys/kernel/debug/sched", "/sys/kernel/tracing/trace",
    "/sys/firmware/acpi/tables/DSDT", "/sys/kernel/slab/dentry/objects", "/sys/kernel/security/lsm", "/dev/mem", "/dev/kmsg")]
print(sorted(set(answers) - {"EACCES", "ENOENT", "EPERM", "done b''"}))
def keys():
    with open("/proc/keys") as file:
        return file.read().strip()
print(word(keys) in ("EACCES", "ENOENT", "EPERM", "done ''"))
""",
        seen="[]\nTrue",
    ),
    Case(
        name="advice-to-the-kernel",
        tries="calls that advise on other processes' memory, end them early, tell what of a file is in memory, use quotas",
        code=_SYSTEM_CALLS
        + """
for number in (440, 448, 451, 443, 459, 460, 461):
    apart("call", lambda: kernel(number, 1, 0, 0, 0, 0, 0))
""",
        seen="call: <refused>\n" * 7,
    ),
)
