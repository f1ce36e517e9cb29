"""A guest that runs the Python code it is sent as the box's first process, to show what the box itself allows.

The real guest confines jobs further. With it, a test could not tell whether the box or the guest refused a call.
"""

import json
import struct
import time
from typing import Any

from ctxbench.sandbox.docker.box import DockerBox

GUEST = b"""
import json, os, struct, sys

def read(size):
    data = b""
    while len(data) < size:
        part = os.read(0, size - len(data))
        if not part:
            sys.exit("the end of stdin")
        data += part
    return data

while True:
    code = read(struct.unpack(">L", read(4))[0])
    space = {}
    try:
        exec(code, space)
        said = {"value": space.get("value")}
    except Exception as error:
        said = {"error": f"{type(error).__name__}: {error}"}
    data = json.dumps(said).encode()
    data = struct.pack(">L", len(data)) + data
    while data:
        data = data[os.write(1, data):]
"""
"""A program that reads a length and that many bytes of Python code, and answers with the variable ``value``."""


def run(box: DockerBox, code: str, seconds: float = 30.0) -> Any:
    """Run Python code in the box; return its variable ``value``, or the error's text."""
    deadline = time.monotonic() + seconds
    data = code.encode()
    box.send(struct.pack(">L", len(data)) + data, deadline)
    got = b""
    while len(got) < 4 or len(got) < 4 + struct.unpack(">L", got[:4])[0]:
        got += box.receive(deadline)
    said = json.loads(got[4:])
    return said["error"] if "error" in said else said["value"]
