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
FRAMES = """
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


@dataclass(frozen=True, kw_only=True)
class Forgery:
    """A program that defines a wrong `total` and says that it is right."""

    name: str
    tries: str
    program: str
    known: bool = False
    """Whether it is one of the eleven that were tried on other judges."""


def forgery(name: str, tries: str, program: str, *, known: bool = False) -> Forgery:
    return Forgery(name=name, tries=tries, program=program, known=known)


KNOWN = (
    forgery(
        "exit-when-called",
        "end the process with 0 when called",
        "import os\ndef total(numbers):\n    os._exit(0)\n",
        known=True,
    ),
    forgery("exit-at-import", "end the process with 0 while it is loaded", "import os\nos._exit(0)\n", known=True),
    forgery("sys-exit", "sys.exit(0) when called", "import sys\ndef total(numbers):\n    sys.exit(0)\n", known=True),
    forgery(
        "at-exit",
        "exit with 0 in an atexit handler",
        "import atexit, os\natexit.register(lambda: os._exit(0))\ndef total(numbers):\n    return None\n",
        known=True,
    ),
    forgery(
        "always-equal",
        "an object that is equal to everything",
        "class Yes:\n    __eq__ = lambda *_: True\n    __ne__ = lambda *_: False\n    __hash__ = lambda _: 6\ndef total(numbers):\n    return Yes()\n",
        known=True,
    ),
    forgery(
        "number-equal-to-all",
        "a subclass of int that is equal to everything",
        "class Yes(int):\n    __eq__ = lambda *_: True\n    __ne__ = lambda *_: False\n    __hash__ = int.__hash__\ndef total(numbers):\n    return Yes(6)\n",
        known=True,
    ),
    forgery(
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
    forgery(
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
    forgery(
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
    forgery(
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
    forgery(
        "frames-to-everything",
        "results and replies written to every descriptor",
        FRAMES + "everywhere()\ndef total(numbers):\n    everywhere()\n    return None\n",
        known=True,
    ),
)
