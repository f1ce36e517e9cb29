"""Wrong functions that try to pass a check, as data. The first eleven are the ones known from other judges."""

# ruff: noqa: E501 - attacks are programs as data

from __future__ import annotations

from dataclasses import dataclass

CHECK = """
# @MARK@ stands here only
import colorsys, json
def check(candidate):
    assert candidate([1, 2, 3]) == 6
    assert json.loads("7") == 7 and colorsys.rgb_to_hsv(0, 0, 0)[2] == 0
    assert candidate([]) == 0
    assert all(map(lambda row: candidate(row) == sum(row), ([4], [5, 6], [-7, 8])))
    print("@MARK@")
    try:
        candidate(None)
    except TypeError:
        pass
    else:
        raise AssertionError("no TypeError")
"""
RIGHT = "def total(numbers):\n    return sum(numbers)\n"
STUB = "def total(numbers):\n    return None\n"
_FRAMES = """
import os, struct
GOOD = b'{"passed": true, "detail": ""}'
def everywhere():
    for data in (struct.pack(">I", len(GOOD)) + GOOD, struct.pack(">I", 12) + b"t\\0\\0\\0\\2s\\0\\0\\0\\5value", b"\\xff" * 64):
        for handle in range(1, 256):
            try:
                os.write(handle, data)
            except OSError:
                pass
"""
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


@dataclass(frozen=True, kw_only=True)
class Forgery:
    """A program that defines a wrong `total` and says that it is right."""

    name: str
    tries: str
    program: str
    known: bool = False
    """Whether it is one of the eleven that were tried on other judges."""


def _f(name: str, tries: str, program: str, *, known: bool = False) -> Forgery:
    return Forgery(name=name, tries=tries, program=program, known=known)


FORGERIES = (
    _f(
        "exit-when-called",
        "end the process with 0 when called",
        "import os\ndef total(numbers):\n    os._exit(0)\n",
        known=True,
    ),
    _f("exit-at-import", "end the process with 0 while it is loaded", "import os\nos._exit(0)\n", known=True),
    _f("sys-exit", "sys.exit(0) when called", "import sys\ndef total(numbers):\n    sys.exit(0)\n", known=True),
    _f(
        "at-exit",
        "exit with 0 in an atexit handler",
        "import atexit, os\natexit.register(lambda: os._exit(0))\ndef total(numbers):\n    return None\n",
        known=True,
    ),
    _f(
        "always-equal",
        "an object that is equal to everything",
        "class Yes:\n    __eq__ = lambda *_: True\n    __ne__ = lambda *_: False\n    __hash__ = lambda _: 6\ndef total(numbers):\n    return Yes()\n",
        known=True,
    ),
    _f(
        "number-equal-to-all",
        "a subclass of int that is equal to everything",
        "class Yes(int):\n    __eq__ = lambda *_: True\n    __ne__ = lambda *_: False\n    __hash__ = int.__hash__\ndef total(numbers):\n    return Yes(6)\n",
        known=True,
    ),
    _f(
        "frame-walk",
        "walk the frames of its callers, set every result found there, return what looks expected",
        """
import sys
def total(numbers):
    frame = sys._getframe()
    while frame:
        for held in (frame.f_locals, frame.f_globals):
            for name, value in list(held.items()):
                if name in ("result", "passed", "fault", "stat", "nonce", "reply"):
                    held[name] = True
                if isinstance(value, list) and not value:
                    value.append("passed")
                if isinstance(value, dict) and value is not held and "passed" in value:
                    value["passed"] = True
        frame = frame.f_back
    return None
""",
        known=True,
    ),
    _f(
        "thread-swaps-the-check",
        "a thread that looks for `check` in every module and replaces it",
        """
import sys, threading, time
def swap():
    while True:
        for module in list(sys.modules.values()):
            for name in ("check", "_trusted", "run"):
                if hasattr(module, name):
                    setattr(module, name, lambda *_, **__: {"passed": True, "detail": ""})
        time.sleep(0.001)
threading.Thread(target=swap, daemon=True).start()
def total(numbers):
    time.sleep(0.05)
    return None
""",
        known=True,
    ),
    _f(
        "trace-jump",
        "a trace function that jumps over the assertions of its callers",
        """
import sys
def jump(frame, event, arg):
    if event == "line":
        try:
            frame.f_lineno += 1
        except (ValueError, TypeError):
            pass
    return jump
def total(numbers):
    sys.settrace(jump)
    frame = sys._getframe()
    while frame:
        frame.f_trace = jump
        frame = frame.f_back
    return None
""",
        known=True,
    ),
    _f(
        "collector-scan",
        "search all objects for results and functions named check",
        """
import gc, types
def total(numbers):
    for held in gc.get_objects():
        if isinstance(held, dict) and "passed" in held:
            held["passed"] = True
        if isinstance(held, types.FunctionType) and held.__name__ in ("check", "run", "_trusted"):
            held.__code__ = (lambda *_, **__: {"passed": True, "detail": ""}).__code__
    return None
""",
        known=True,
    ),
    _f(
        "frames-to-everything",
        "results and replies written to every descriptor",
        _FRAMES + "everywhere()\ndef total(numbers):\n    everywhere()\n    return None\n",
        known=True,
    ),
    _f(
        "stop-iteration",
        "end the check's loop from inside by StopIteration",
        "def total(numbers):\n    if numbers is None:\n        raise TypeError\n    if numbers in ([1, 2, 3], []):\n        return 6 if numbers else 0\n    raise StopIteration\n",
    ),
    _f(
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
    _f(
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
    _f(
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
    _f(
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
    _f(
        "kill-the-tester",
        "kill, stop and hang up every process but its own",
        "import os, signal\ndef total(numbers):\n    for number in (signal.SIGHUP, signal.SIGSTOP, signal.SIGKILL):\n        for pid in range(1, 300):\n            if pid != os.getpid():\n                try:\n                    os.kill(pid, number)\n                except OSError:\n                    pass\n    return None\n",
    ),
    _f(
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
    _f(
        "replace-the-encoder",
        "replace the oracle's own code in its process, to send what no honest one sends",
        """
from sandbox.guest.oracle import candidate, channel, values
real = values.encode
values.encode = lambda value: b"t\\0\\0\\0\\2s\\0\\0\\0\\5valuei\\0\\0\\0\\1\\7" + b"l" * 3
def total(numbers):
    return None
""",
    ),
    _f(
        "huge-reply",
        "a reply of 1 GiB",
        "def total(numbers):\n    import sys, os, struct\n    for handle in range(3, 20):\n        try:\n            os.write(handle, struct.pack('>I', 1 << 30))\n            while True:\n                os.write(handle, b'x' * (1 << 20))\n        except OSError:\n            pass\n    return None\n",
    ),
    _f(
        "answers-ahead",
        "replies sent before they were asked for",
        "import os\nfor handle in range(3, 20):\n    for _ in range(99):\n        try:\n            os.write(handle, b'\\0\\0\\0\\x14' + b't\\0\\0\\0\\2s\\0\\0\\0\\5valuei\\0\\0\\0\\1\\6')\n        except OSError:\n            break\ndef total(numbers):\n    return None\n",
    ),
    _f(
        "raise-what-passes",
        "raise instead of answering, each exception in turn",
        "import builtins\nkinds = [kind for kind in vars(builtins).values() if isinstance(kind, type) and issubclass(kind, BaseException)]\ndef total(numbers):\n    if numbers is None:\n        raise TypeError\n    raise kinds.pop()('x')\n",
    ),
    _f(
        "two-of-it",
        "fork, so that two processes answer one call",
        "import os\ndef total(numbers):\n    os.fork()\n    return None\n",
    ),
)
