"""Results of calls that are no result: too large, too deep, no JSON, written by somebody else."""

# ruff: noqa: E501 - attacks are programs as data

from ctxbench.sandbox.types import Ended
from tests.sandbox.attacks.case import Case

_WRITE = """
import os, struct
def everywhere(data, framed=True):
    data = struct.pack(">I", len(data)) + data if framed else data
    for handle in range(3, 256):
        try:
            os.set_blocking(handle, True)
            view = memoryview(data)
            while view:
                view = view[os.write(handle, view):]
        except OSError:
            pass
"""


def _raw(name: str, tries: str, data: str, *, result: object = None) -> Case:
    return Case(
        name=name,
        tries=tries,
        call=True,
        code=f"{_WRITE}everywhere({data})\nos._exit(0)\n",
        seen="",
        result=result,
    )


CASES = (
    Case(
        name="huge-result",
        tries="return 64 MiB",
        call=True,
        code="result = 'x' * (64 << 20)\n",
        seen="*",
        result=None,
    ),
    Case(
        name="deep-result",
        tries="return lists 100,000 deep",
        call=True,
        code="result = []\nfor _ in range(100_000):\n    result = [result]\n",
        seen="*",
        result=None,
    ),
    Case(
        name="object-as-result",
        tries="return what is no JSON",
        call=True,
        code="result = {1: object()}\n",
        seen="*",
        result=None,
    ),
    Case(
        name="nan-as-result",
        tries="return NaN, which is no JSON but what Python writes",
        call=True,
        code="result = {'passed': float('nan')}\n",
        seen="*",
        result=None,
    ),
    _raw("deep-json", "JSON 200,000 deep, written raw", "b'[' * 200_000 + b']' * 200_000"),
    _raw("nan-json", "NaN and Infinity, written raw", "b'[NaN, Infinity]'"),
    _raw(
        "double-keys",
        "an object with one key twice: the last one counts",
        'b\'{"passed": false, "passed": true}\'',
        result={"passed": True},
    ),
    _raw("no-text-as-json", "JSON that is not UTF-8", "b'\"\\xff\\xfe\"'"),
    _raw("surrogates", "JSON with half a character, which no file takes", "b'\"\\\\ud800\"'", result="?"),
    _raw("long-number", "a number of a million digits", "b'9' * 900_000"),
    _raw(
        "two-results",
        "a result, and another behind it",
        "struct.pack('>I', 1) + b'1' + struct.pack('>I', 1) + b'2', False",
    ),
    _raw("half-a-result", "a length, and less than it says", "struct.pack('>I', 100) + b'[1, 2', False"),
    _raw("endless-result", "more than a result may be", "struct.pack('>I', 0xFFFFFFFF) + b'x' * (8 << 20), False"),
    Case(
        name="result-of-a-child",
        tries="return nothing, leave a child that writes a result later",
        call=True,
        code=_WRITE
        + "import time\nif not os.fork():\n    os.setsid()\n    time.sleep(1)\n    everywhere(b'1')\n    os._exit(0)\nos._exit(0)\n",
        seen="",
        result=None,
    ),
    Case(
        name="exit-in-a-call",
        tries="end the process of a call with 0 before it returns",
        call=True,
        code="import os\nos._exit(0)\n",
        seen="",
        result=None,
    ),
    Case(
        name="killed-in-a-call",
        tries="kill the process of a call",
        call=True,
        code="import os\nos.kill(os.getpid(), 9)\n",
        seen="",
        result=None,
        ended=(Ended.KILLED,),
    ),
)
