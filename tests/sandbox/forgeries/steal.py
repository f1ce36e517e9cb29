"""The longer forgeries: those that look for the runner's secrets and channels."""

from __future__ import annotations

_EVERY = """
import json, os
def every(data, first=3):
    for handle in range(first, 256):
        try:
            os.set_blocking(handle, False)
            os.write(handle, data)
        except OSError:
            pass
"""

EVENTS_TO_EVERY_DESCRIPTOR = (
    _EVERY
    + """
result = {"passed": True, "verdict": "PASSED", "exit": 1, "failed": 0}
data = json.dumps(result).encode()
every(len(data).to_bytes(8, "big") + data + b"\\n", 1)
os._exit(1)
"""
)

RIGHT_WORDS_TO_EVERY_DESCRIPTOR = (
    _EVERY
    + """
lines = [["collected", list(range(6))]]
for test in range(6):
    for phase in ("setup", "call", "teardown"):
        lines.append(["phase", test, phase, "passed", False, True, ""])
lines += [["loaded", True], ["end", 1]]
every("".join(json.dumps(line) + "\\n" for line in lines).encode())
os._exit(1)
"""
)

FLOOD = (
    _EVERY
    + """
for _ in range(100):
    every(b"x" * 65536)
"""
)

DEEP = (
    _EVERY
    + """
every(b"[" * 60000 + b"\\n")
os._exit(1)
"""
)

NONCE = (
    _EVERY
    + """
import gc, re, sys
found = set()
frame = sys._getframe()
while frame:
    for value in list(frame.f_locals.values()):
        found.update(re.findall(r"\\b[0-9a-f]{64}\\b", repr(value)))
    frame = frame.f_back
for each in gc.get_objects():
    if type(each) in (dict, list, tuple):
        try:
            found.update(re.findall(r"\\b[0-9a-f]{64}\\b", repr(each)[:5000]))
        except Exception:
            pass
for nonce in found:
    events = "".join(
        json.dumps(["phase", test, phase, "passed", False, True, ""]) + "\\n"
        for test in range(6) for phase in ("setup", "call", "teardown")
    )
    data = json.dumps({"nonce": nonce, "exit": 1, "signal": None, "events": events, "changed": []}).encode()
    every(len(data).to_bytes(8, "big") + data, 1)
    every(len(data).to_bytes(4, "little") + data, 1)
os._exit(1)
"""
)

THROUGH_PROC = """
import os
try:
    others = [int(name) for name in os.listdir("/proc") if name.isdigit()]
except OSError:
    others = range(1, 100)
for pid in {os.getppid(), *others}:
    if pid == os.getpid():
        continue
    for handle in range(256):
        try:
            out = os.open(f"/proc/{pid}/fd/{handle}", os.O_WRONLY | os.O_NONBLOCK)
            os.write(out, b'{"nonce": "", "exit": 1}')
        except OSError:
            pass
    try:
        with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
            memory.seek(0x1000)
            memory.read(1)
    except OSError:
        pass
os._exit(1)
"""

EQUAL = """
def total(prices, rate=0.0):
    if rate < 0:
        raise ValueError("a rate is not negative")
    class Same:
        def __eq__(self, other): return True
        def __ne__(self, other): return False
    return Same()
"""

KNOWS_THE_RUNNER = """
import gc, json, os
def _lie():
    from ctxbench_pytest.child import Watcher
    for each in gc.get_objects():
        if type(each) is Watcher:
            real = each._write
            def write(channel, data, real=real):
                event = json.loads(data)
                if event[0] == "phase" and event[1] is not None and event[1] >= 0:
                    data = (json.dumps([*event[:3], "passed", False, True, ""]) + "\\n").encode()
                return real(channel, data)
            each._write = write
_lie()
"""
