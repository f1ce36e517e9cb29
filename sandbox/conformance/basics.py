"""Checks of a job's inputs and outcome."""

from __future__ import annotations

from ctxbench.sandbox.conformance.asking import described, expect, python
from ctxbench.sandbox.types import Call, Check, Command, Ended, Job, Outcome, Pool

LIBRARY = '''
"""Functions that the conformance list calls."""
import os, sys

def answer(arguments):
    import one
    print("printed")
    return {"arguments": arguments, "word": one.WORD, "here": sorted(os.listdir("."))}

def large(arguments):
    return "x" * arguments["size"]

def raises(arguments):
    raise ValueError("on purpose")

def leaves(arguments):
    print("last words", end="")
    sys.exit(7)

def odd(arguments):
    return object()
'''
_ENVIRONMENT = """
import os, tempfile
for name in ("HOME", "TMPDIR"):
    open(os.path.join(os.environ[name], "probe"), "w").close()
open("probe", "w").close()
with tempfile.TemporaryFile() as file:
    file.write(b"x")
print(os.environ["CTXBENCH_PROBE"], os.environ["LANG"], sorted(os.environ.get("PYTHONHASHSEED", "")))
import one
print(one.WORD)
"""


def _call(pool: Pool, function: str, **arguments: object) -> Outcome:
    return pool.run(Job(action=Call(function=f"ctxbench_probe:{function}", arguments=arguments)))


def _output(pool: Pool) -> str:
    script = "echo to stdout; echo to stderr >&2; echo again; exit 3"
    return expect(
        pool.run(Job(action=Command(argv=("sh", "-c", script)))), "to stdout\nto stderr\nagain\n", exit_code=3
    )


def _signal(pool: Pool) -> str:
    outcome = python(pool, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    return "" if outcome.ended is Ended.KILLED and outcome.signal == 11 else described(outcome)


def _missing(pool: Pool) -> str:
    outcome = pool.run(Job(action=Command(argv=("no-such-program",))))
    return "" if outcome.exit_code == 127 and "no-such-program" in outcome.output else described(outcome)


def _no_input(pool: Pool) -> str:
    return expect(python(pool, "import sys; print(repr(sys.stdin.read()))"), "''\n")


def _files(pool: Pool) -> str:
    program = "import os; print(open('words/two.txt').read(), open('new/deep.txt').read(), os.path.exists('run.sh'))"
    changed = python(pool, program, files={"words/two.txt": b"changed", "new/deep.txt": b"new"})
    return expect(changed, "changed new True\n") or expect(
        pool.run(Job(action=Command(argv=("sh", "-c", "./run.sh; cat words/two.txt")))), "ran\ntwo\n"
    )


def _surroundings(pool: Pool) -> str:
    return expect(python(pool, _ENVIRONMENT), "a value C.UTF-8 ['0']\nfrom the tree\n")


def _result(pool: Pool) -> str:
    outcome = _call(pool, "answer", text="é", number=[1, None, 2.5])
    expected = {
        "arguments": {"text": "é", "number": [1, None, 2.5]},
        "word": "from the tree",
        "here": ["run.sh", "words"],
    }
    return expect(outcome, "printed\n") or ("" if outcome.result == expected else f"result {outcome.result!r}")


def _no_result(pool: Pool) -> str:
    small, large = _call(pool, "large", size=60_000), _call(pool, "large", size=70_000)
    if small.result != "x" * 60_000 or large.result is not None:
        return "a result within the limit was lost, or one over it came"
    for function, words, code in (
        ("raises", "ValueError: on purpose", 1),
        ("leaves", "last words", 7),
        ("odd", "not JSON", 1),
    ):
        outcome = _call(pool, function)
        if outcome.result is not None or outcome.exit_code != code or words not in outcome.output:
            return f"{function}: {described(outcome)}"
    return ""


def _check(pool: Pool) -> str:
    check = "def check(candidate):\n    assert candidate(2) == 3\n"
    for program, passes in (("def f(x):\n    return x + 1\n", True), ("def f(x):\n    return x\n", False)):
        outcome = pool.run(Job(action=Check(program=program, entry="f", check=check)))
        if not isinstance(outcome.result, dict) or outcome.result.get("passed") is not passes:
            return f"{program!r}: result {outcome.result!r}, {described(outcome)}"
    return ""


def _measured(pool: Pool) -> str:
    program = "import time\nheld = bytearray(60 << 20)\nend = time.process_time() + 0.3\n"
    outcome = python(pool, program + "while time.process_time() < end: pass\n")
    fits = 0.25 < outcome.cpu_seconds < 3 and 0.3 <= outcome.seconds < 15 and 60 << 20 < outcome.peak_bytes < 180 << 20
    return "" if fits else f"{outcome.cpu_seconds} s of CPU, {outcome.seconds} s, {outcome.peak_bytes} bytes"


CHECKS = {
    "output and exit code come back": _output,
    "a signal is told from an exit": _signal,
    "a missing program is code 127": _missing,
    "stdin is empty": _no_input,
    "the tree is there, a job's files lie over it": _files,
    "home, temporary folder, variables and import path are set": _surroundings,
    "what a call returns comes back": _result,
    "no result comes of what has none": _no_result,
    "a check passes and fails": _check,
    "time and memory are measured": _measured,
}
