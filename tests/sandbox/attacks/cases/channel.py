"""The channel to the pool: forged frames, and output that would confuse its reader."""

# ruff: noqa: E501 - attacks are programs as data

from ctxbench.sandbox.types import Ended
from tests.sandbox.attacks.case import Case

_FRAMES = """
import json, os, struct
def frame(kind, head, *blobs):
    text = json.dumps(head).encode()
    data = struct.pack(">I", len(text)) + text + b"".join(blobs)
    return kind + struct.pack(">I", len(data)) + data
GOOD = b'{"passed": true}'
FORGED = (frame(b"O", {"ended": "exited", "exit_code": 0, "signal": None, "cpu_seconds": 0, "peak_bytes": 0, "seconds": 0,
                       "out_of_memory": False, "left_out": 0, "sizes": [0, 0, len(GOOD)]}, GOOD)
          + frame(b"E", {"trouble": ""}) + frame(b"G", {"protocol": 1, "fault": ""}) + struct.pack(">I", len(GOOD)) + GOOD)
def everywhere(data):
    for handle in range(3, 256):
        try:
            os.write(handle, data)
        except OSError:
            pass
"""

CASES = (
    Case(
        name="forged-frames",
        tries="write frames of an outcome to every descriptor, then end with 3",
        code=_FRAMES + "everywhere(FORGED)\nraise SystemExit(3)\n",
        seen="",
        exit_code=3,
    ),
    Case(
        name="forged-frames-on-stdout",
        tries="the same on stdout and stderr",
        code=_FRAMES + "os.write(1, FORGED)\nos.write(2, FORGED)\nraise SystemExit(3)\n",
        seen="*",
        exit_code=3,
    ),
    Case(
        name="forged-frames-by-proc",
        tries="the same through other processes' descriptors, opened again by /proc",
        code=_FRAMES
        + """
for pid in range(1, 400):
    for handle in range(0, 12):
        if pid == os.getpid():
            continue
        try:
            os.write(os.open(f"/proc/{pid}/fd/{handle}", os.O_WRONLY | os.O_NONBLOCK), FORGED)
            print("written", pid, handle)
        except OSError:
            pass
raise SystemExit(3)
""",
        seen="",
        exit_code=3,
    ),
    Case(
        name="terminal",
        tries="bytes that are no text, escapes for a terminal, an unfinished character",
        code="import os\nos.write(1, bytes(range(256)) * 4 + b'\\033]0;x\\007\\xf0\\x9f')\n",
        seen="*",
    ),
    Case(
        name="one-endless-line",
        tries="a line without an end, in many small pieces",
        code="import os\nfor _ in range(100_000):\n    os.write(1, b'x' * 7)\n",
        seen="*",
        truncated=True,
    ),
    Case(
        name="close-everything",
        tries="close every descriptor and go on",
        code="import os, time\nos.closerange(0, 1024)\ntime.sleep(0.3)\nos._exit(3)\n",
        seen="",
        exit_code=3,
    ),
    Case(
        name="output-held-open",
        tries="end while a child holds the output open and goes on writing",
        code="""
import os, time
if not os.fork():
    os.setsid()
    while True:
        os.write(1, b"late ")
        time.sleep(0.01)
time.sleep(0.1)
os._exit(3)
""",
        seen="*",
        exit_code=3,
        ended=(Ended.EXITED,),
    ),
)
