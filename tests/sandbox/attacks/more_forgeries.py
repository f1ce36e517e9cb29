"""Wrong functions that try to pass a check, as data: those that were thought of for the split oracle."""

# ruff: noqa: E501 - attacks are programs as data

from __future__ import annotations

from tests.sandbox.attacks.forgeries import KNOWN, forgery

_SCAN = """
import os, re
def scan(path):
    found, pattern = set(), re.compile(b"MARK" + b"-[0-9a-f]{16}")
    try:
        with open(path + "/maps") as maps, open(path + "/mem", "rb", 0) as memory:
            for line in maps:
                span, rights = line.split()[:2]
                if "r" not in rights or "[v" in line:
                    continue
                low, high = (int(part, 16) for part in span.split("-"))
                try:
                    memory.seek(low)
                    found |= set(pattern.findall(memory.read(high - low)))
                except (OSError, ValueError, OverflowError):
                    continue
    except OSError:
        pass
    return found
"""

FORGERIES = (
    *KNOWN,
    forgery(
        "stop-iteration",
        "end the check's loop from inside by StopIteration",
        "def total(numbers):\n    if numbers is None:\n        raise TypeError\n    if numbers in ([1, 2, 3], []):\n        return 6 if numbers else 0\n    raise StopIteration\n",
    ),
    forgery(
        "check-in-memory",
        "the check's source in its own memory and in that of every process it can open",
        _SCAN
        + """
def total(numbers):
    found = set()
    for name in ["self", *filter(str.isdigit, os.listdir("/proc"))]:
        found |= scan("/proc/" + name)
    print(found)
    return None
""",
    ),
    forgery(
        "check-on-disk",
        "the check's source in a file or in a command line",
        _SCAN
        + """
found = set()
for top in (".", "..", "/work", "/tmp", "/dev/shm", "/ctxbench"):
    for folder, _, names in os.walk(top):
        for name in names:
            try:
                found |= set(re.findall(b"MARK" + b"-[0-9a-f]{16}", open(os.path.join(folder, name), "rb").read()))
            except OSError:
                pass
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        found |= set(re.findall(b"MARK" + b"-[0-9a-f]{16}", open(f"/proc/{pid}/cmdline", "rb").read()))
    except OSError:
        pass
print(found)
def total(numbers):
    return None
""",
    ),
    forgery(
        "listen-to-the-check",
        "read the job's output, where a check that prints would tell what it expects",
        """
import os, re
def total(numbers):
    for handle in (1, 2):
        try:
            reader = os.open(f"/proc/self/fd/{handle}", os.O_RDONLY | os.O_NONBLOCK)
            os.write(handle, b"heard " + bytes(re.findall(rb"MARK-[0-9a-f]{16}", os.read(reader, 1 << 16)) != []) + b"\\n")
        except OSError:
            pass
    return sum(numbers)[0] if numbers is None else None
""",
    ),
    forgery(
        "plant-modules",
        "modules in the working folder that the check would import",
        """
for name in ("json", "colorsys", "sitecustomize", "check"):
    with open(name + ".py", "w") as file:
        file.write("import os\\nloads = lambda text: 7\\nrgb_to_hsv = lambda *_: (0, 0, 0)\\nos._exit(0)\\n")
def total(numbers):
    return None
""",
    ),
    forgery(
        "kill-the-tester",
        "kill, stop and hang up every process but its own",
        "import os, signal\ndef total(numbers):\n    for number in (signal.SIGHUP, signal.SIGSTOP, signal.SIGKILL):\n        for pid in range(1, 300):\n            if pid != os.getpid():\n                try:\n                    os.kill(pid, number)\n                except OSError:\n                    pass\n    return None\n",
    ),
    forgery(
        "trace-the-tester",
        "trace every other process and write its memory",
        """
import ctypes, os
def total(numbers):
    libc = ctypes.CDLL(None)
    for pid in range(1, 300):
        if pid != os.getpid():
            libc.ptrace(16, pid, 0, 0)
            for name in ("mem", "fd/1", "fd/3", "fd/4", "fd/5", "fd/6"):
                try:
                    os.write(os.open(f"/proc/{pid}/{name}", os.O_WRONLY | os.O_NONBLOCK), b'{"passed": true}')
                except OSError:
                    pass
    return None
""",
    ),
    forgery(
        "replace-the-encoder",
        "replace the oracle's own code in its process, to send what no honest one sends",
        """
from ctxbench.sandbox.guest.oracle import candidate, channel, values
real = values.encode
values.encode = lambda value: b"t\\0\\0\\0\\2s\\0\\0\\0\\5valuei\\0\\0\\0\\1\\7" + b"l" * 3
def total(numbers):
    return None
""",
    ),
    forgery(
        "huge-reply",
        "a reply of 1 GiB",
        "def total(numbers):\n    import sys, os, struct\n    for handle in range(3, 20):\n        try:\n            os.write(handle, struct.pack('>I', 1 << 30))\n            while True:\n                os.write(handle, b'x' * (1 << 20))\n        except OSError:\n            pass\n    return None\n",
    ),
    forgery(
        "answers-ahead",
        "replies sent before they were asked for",
        "import os\nfor handle in range(3, 20):\n    for _ in range(99):\n        try:\n            os.write(handle, b'\\0\\0\\0\\x14' + b't\\0\\0\\0\\2s\\0\\0\\0\\5valuei\\0\\0\\0\\1\\6')\n        except OSError:\n            break\ndef total(numbers):\n    return None\n",
    ),
    forgery(
        "raise-what-passes",
        "raise instead of answering, each exception in turn",
        "import builtins\nkinds = [kind for kind in vars(builtins).values() if isinstance(kind, type) and issubclass(kind, BaseException)]\ndef total(numbers):\n    if numbers is None:\n        raise TypeError\n    raise kinds.pop()('x')\n",
    ),
    forgery(
        "two-of-it",
        "fork, so that two processes answer one call",
        "import os\ndef total(numbers):\n    os.fork()\n    return None\n",
    ),
)
