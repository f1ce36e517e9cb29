"""Notes left for the next job in the same box, and plants that would run in it."""

# ruff: noqa: E501 - attacks are programs as data

from tests.sandbox.attacks.case import Case

_PLACES = """
import os
PLACES = [".", "..", os.environ["HOME"], os.environ.get("TMPDIR", "."), "/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run", "/work", "/run/lock", "/"]
"""

CASES = (
    Case(
        name="notes-in-folders",
        tries="a note in every folder that takes it",
        code=_PLACES
        + """
for place in PLACES:
    try:
        open(os.path.join(place, "note-@TOKEN@"), "w").write("hello")
    except OSError:
        pass
print("left")
""",
        seen="left",
        then=_PLACES
        + "print([place for place in PLACES if os.path.exists(os.path.join(place, 'note-@TOKEN@'))], sorted(os.listdir('/dev/shm')))\n",
        then_seen="[] []",
    ),
    Case(
        name="shared-memory",
        tries="System V shared memory, semaphores, message queues, POSIX queues",
        code="from attack_tools import calls\ncalls('shmget', 4242, 4096, 0o1777, 0, 0, 0)\ncalls('semget', 4242, 1, 0o1777)\n"
        "calls('msgget', 4242, 0o1777)\ncalls('mq_open', 0, 0, 0, 0)\n",
        seen="shmget: <refused>\nsemget: <refused>\nmsgget: <refused>\nmq_open: <refused>",
    ),
    Case(
        name="socket-that-stays",
        tries="a server on a socket that outlives the job",
        code="""
import os, socket, time
read, write = os.pipe()
if not os.fork():
    os.setsid()
    server = socket.socket(socket.AF_UNIX)
    try:
        server.bind("\\0note-@TOKEN@")
        server.listen()
    finally:
        os.write(write, b"x")
    time.sleep(600)
os.read(read, 1)
print("left")
""",
        seen="left",
        then="""
import socket
from attack_tools import tried
tried("abstract", lambda: socket.socket(socket.AF_UNIX).connect("\\0note-@TOKEN@"))
""",
        then_seen="abstract: <unreachable>",
    ),
    Case(
        name="library",
        tries="change, add or shadow a module of the library, the requirements, the interpreter",
        code="""
import os, sys, sysconfig
from attack_tools import word
places = [path for path in sys.path if path and not path.startswith(os.getcwd())]
made = []
for place in (*places, "/ctxbench", "/ctxbench/lib/sandbox/guest", "/ctxbench/lib/__pycache__", sysconfig.get_path("purelib")):
    for name in ("sitecustomize.py", "x.pth", "json.py"):
        if word(lambda: open(os.path.join(place, name), "w")).startswith("done"):
            made.append(place)
for act in (lambda: os.rename("/ctxbench/lib", "/ctxbench/old"), lambda: os.chmod("/ctxbench/lib", 0o777),
            lambda: os.utime("/ctxbench/lib"), lambda: os.remove("/ctxbench/lib/attack_tools.py"),
            lambda: os.truncate("/ctxbench/lib/attack_tools.py", 0)):
    if word(act).startswith("done"):
        made.append("changed")
print(made)
""",
        seen="[]",
    ),
    Case(
        name="start-files",
        tries="files that Python runs by itself at its start: usercustomize, .pth, PYTHONSTARTUP",
        code="""
import os, site
for folder in {os.environ["HOME"], "..", ".", os.environ.get("TMPDIR", ".")}:
    for path in (".local/lib/python3.11/site-packages/usercustomize.py", ".pythonrc", "sitecustomize.py", "usercustomize.py", "json.py"):
        try:
            os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
            open(os.path.join(folder, path), "w").write("print('planted')")
        except OSError:
            pass
print("left")
""",
        seen="left",
        then="import json\nprint('clean')\n",
        then_seen="clean",
    ),
    Case(
        name="modules-of-the-guest",
        tries="change modules in memory, in a process that the next job is forked beside",
        call=True,
        code="""
import builtins, json, os, sys
json.dumps = lambda value: "planted"
builtins.print = None
sys.modules["os"].getpid = lambda: 1
os.environ["PLANTED"] = "1"
result = 1
""",
        seen="",
        result=None,
        then="import os\nprint(os.environ.get('PLANTED'), os.getpid() != 1)\n",
        then_seen="None True",
    ),
    Case(
        name="locks",
        tries="a lock on a file of the image that stays taken",
        code="""
import fcntl, os
for path in ("/ctxbench/lib/attack_tools.py", "/etc/passwd", "/dev/null"):
    try:
        fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        pass
if not os.fork():
    os.setsid()
    import time
    time.sleep(600)
print("left")
""",
        seen="left",
        then="""
import fcntl, os
from attack_tools import tried
tried("lock", lambda: fcntl.flock(os.open("/ctxbench/lib/attack_tools.py", os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB))
""",
        then_seen="lock: done",
    ),
    Case(
        name="notes-in-attributes",
        tries="a note in the extended attributes of a folder that stays",
        code=_PLACES
        + """
for place in [*PLACES, "/ctxbench", "/ctxbench/lib", "/dev", "/dev/null", "/proc/self", "/etc/passwd"]:
    for name in ("user.note", "trusted.note"):
        try:
            os.setxattr(place, name, b"hello")
        except OSError:
            pass
print("left")
""",
        seen="left",
        then=_PLACES
        + """
found = []
for place in [*PLACES, "/ctxbench", "/ctxbench/lib", "/dev", "/dev/null", "/proc/self", "/etc/passwd"]:
    try:
        found += [(place, name) for name in os.listxattr(place) if "note" in name]
    except OSError:
        pass
print(found)
""",
        then_seen="[]",
    ),
    Case(
        name="notes-in-times",
        tries="a note in the times and in the rights of a folder that stays",
        code=_PLACES
        + """
for place in [*PLACES, "/ctxbench", "/ctxbench/lib", "/dev", "/dev/null", "/dev/pts", "/etc/passwd"]:
    for act in (lambda: os.utime(place, (4242424242, 434343)), lambda: os.chmod(place, 0o751)):
        try:
            act()
        except OSError:
            pass
print("left")
""",
        seen="left",
        then=_PLACES
        + """
found = []
for place in [*PLACES, "/ctxbench", "/ctxbench/lib", "/dev", "/dev/null", "/dev/pts", "/etc/passwd"]:
    try:
        held = os.stat(place)
    except OSError:
        continue
    if int(held.st_atime) == 4242424242 or int(held.st_mtime) == 434343 or held.st_mode & 0o777 == 0o751:
        found.append(place)
print(found)
""",
        then_seen="[]",
    ),
    Case(
        name="notes-in-flags",
        tries="a note in the flags of a folder that stays, those of chattr",
        code=_PLACES
        + """
import fcntl, struct
for place in PLACES:
    try:
        fcntl.ioctl(os.open(place, os.O_RDONLY), 0x40086602, struct.pack("Q", 0xC0))
    except OSError:
        pass
print("left")
""",
        seen="left",
        then=_PLACES
        + """
import fcntl, struct
found = []
for place in ["/work", "/dev/shm", *PLACES]:
    try:
        if struct.unpack("Q", fcntl.ioctl(os.open(place, os.O_RDONLY), 0x80086601, bytes(8)))[0] & 0xC0:
            found.append(place)
    except OSError:
        pass
print(found)
""",
        then_seen="[]",
    ),
    Case(
        name="notes-in-ports",
        tries="a note in the ports of closed connections, which the kernel remembers for a minute",
        code="""
import socket
for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    for port in (24242, 24243):
        try:
            server = socket.socket(family)
            server.bind((host, port))
            server.listen()
            client = socket.create_connection((host, port))
        except OSError:
            continue
        peer = server.accept()[0]
        peer.close()
        client.recv(1)
        client.close()
        server.close()
print("left")
""",
        seen="left",
        then="""
import os, socket
tables = [path for path in ("/proc/net/tcp", "/proc/net/tcp6") if os.path.exists(path)]
print([line for path in tables for line in open(path).readlines()[1:]])
for port in (24242, 24243):
    socket.socket().bind(("127.0.0.1", port))
print("free")
""",
        then_seen="[]\nfree",
    ),
)
