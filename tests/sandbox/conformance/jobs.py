"""Checks of a job's inputs, outcome and leftovers, and of jobs that run side by side."""

import threading
import time
from collections.abc import Mapping

from ctxbench.sandbox.types import Call, Command, Ended, Job, Outcome, Pool

SECONDS = 30.0
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
_LITTER = """
import ctypes, os, subprocess, sys
for folder in (".", os.environ["HOME"], os.environ["TMPDIR"], "/dev/shm"):
    open(os.path.join(folder, "litter"), "w").close()
open("words/one.py", "w").write("WORD = 'forged'")
os.mkdir("closed")
open("closed/inside", "w").close()
os.chmod("closed", 0)
os.mkdir(b"odd\\xff\\n\\x1b")
os.symlink("/", "link")
os.mkfifo("pipe")
here = os.open(".", os.O_RDONLY)
for depth in range(1000):
    os.mkdir("deep", dir_fd=here)
    below = os.open("deep", os.O_RDONLY, dir_fd=here)
    os.close(here)
    here = below
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        subprocess.Popen(["sleep", "60"])
        while True:
            pass
    os._exit(0)
print("littered")
"""
_LOOK = """
import os
sys_processes = []
for name in os.listdir("/proc"):
    if name.isdecimal() and int(name) not in (1, os.getpid(), os.getppid()):
        sys_processes.append(name)
litter = [where for where in (".", os.environ["HOME"], os.environ["TMPDIR"], "/dev/shm") for _ in os.listdir(where)]
import one
print(sorted(os.listdir(".")), [where for where in litter if where != "."], sys_processes, one.WORD)
"""
_CLEAN = "['run.sh', 'words'] [] [] from the tree\n"
_BOMB = """
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    try:
        os.fork()
    except OSError:
        pass
"""


def python(pool: Pool, program: str, *, seconds: float = SECONDS, files: Mapping[str, bytes] | None = None) -> Outcome:
    return pool.run(Job(action=Command(argv=("python3", "-c", program)), seconds=seconds, files=files or {}))


def refused(pool: Pool, attempts: Mapping[str, str]) -> str:
    """Run statements that must raise OSError or ValueError; return a fault that names those that did not."""
    program = "import contextlib, ctypes, os, resource, socket\nlibc = ctypes.CDLL(None, use_errno=True)\n"
    for words, statement in attempts.items():
        body = "\n".join(f"    {line}" for line in statement.splitlines())
        program += f"try:\n{body}\n    print('done: ' + {words!r})\nexcept (OSError, ValueError):\n    pass\n"
    return expect(python(pool, program + "print('all tried')\n"), "all tried\n")


def expect(outcome: Outcome, output: str, *, exit_code: int = 0) -> str:
    """Return how an outcome differs from `output` with `exit_code`, or an empty string if it does not."""
    if outcome.ended is Ended.EXITED and outcome.exit_code == exit_code and outcome.output == output:
        return ""
    return f"expected {output!r} and exit code {exit_code}, got {described(outcome)}"


def described(outcome: Outcome) -> str:
    """Describe an outcome in a few words."""
    how = f"exit code {outcome.exit_code}" if outcome.ended is Ended.EXITED else f"{outcome.ended}, {outcome.signal}"
    memory = ", out of memory" if outcome.out_of_memory else ""
    return f"{outcome.output[-600:]!r}, {how}{memory}"


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


def _measured(pool: Pool) -> str:
    program = "import time\nheld = bytearray(60 << 20)\nend = time.process_time() + 0.3\n"
    outcome = python(pool, program + "while time.process_time() < end: pass\n")
    fits = 0.25 < outcome.cpu_seconds < 3 and 0.3 <= outcome.seconds < 15 and 60 << 20 < outcome.peak_bytes < 180 << 20
    return "" if fits else f"{outcome.cpu_seconds} s of CPU, {outcome.seconds} s, {outcome.peak_bytes} bytes"


BASIC = {
    "output and exit code come back": _output,
    "a signal is told from an exit": _signal,
    "a missing program is code 127": _missing,
    "stdin is empty": _no_input,
    "the tree is there, a job's files lie over it": _files,
    "home, temporary folder, variables and import path are set": _surroundings,
    "what a call returns comes back": _result,
    "no result comes of what has none": _no_result,
    "time and memory are measured": _measured,
}


def _clean(pool: Pool) -> str:
    for _ in range(2):  # two boxes may be open
        fault = expect(python(pool, _LITTER), "littered\n") or expect(python(pool, _LOOK), _CLEAN)
        if fault:
            return fault
    return expect(python(pool, _LOOK), _CLEAN)


def _reused(pool: Pool) -> str:
    """Check that harmless jobs share a box."""
    program = "print(open('/proc/1/stat').read().rsplit(')', 1)[1].split()[19])"
    for folder in ("/dev/shm", "."):
        python(pool, f"open('{folder}/litter', 'w').close()")
    boxes = {python(pool, program).output for _ in range(6)}
    if not all(name.strip().isdecimal() for name in boxes):
        return f"no box said since when it runs: {boxes}"
    return "" if len(boxes) <= 3 else f"six jobs in a row had {len(boxes)} boxes"


def _bomb(pool: Pool) -> str:
    outcome = python(pool, _BOMB, seconds=1.0)
    if outcome.ended is not Ended.TIMED_OUT:
        return described(outcome)
    for _ in range(3):
        fault = expect(python(pool, _LOOK), _CLEAN)
        if fault:
            return fault
    return ""


def _everyone(pool: Pool) -> str:
    outcome = python(pool, "import os\nos.kill(-1, 9)\nprint('lonely')")
    fair = (
        outcome.ended in (Ended.WRECKED, Ended.KILLED) or outcome.output == "lonely\n" or "Permission" in outcome.output
    )
    return ("" if fair else described(outcome)) or expect(python(pool, "print('alive')"), "alive\n")


def _beside(pool: Pool) -> str:
    """Run two jobs at once, which must not see each other's files or processes."""
    program = "import os, time\nopen(os.environ['TMPDIR'] + '/mine', 'x').close()\ntime.sleep(1.5)\n" + _LOOK
    outcomes: list[Outcome] = []
    threads = [threading.Thread(target=lambda: outcomes.append(python(pool, program))) for _ in range(2)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(outcomes) < 2:
        return "a job of two had no outcome"
    if any("[] from the tree" not in outcome.output for outcome in outcomes):
        return " and ".join(described(outcome) for outcome in outcomes)
    took = time.monotonic() - began
    return "" if took < 20 else f"two jobs of 1.5 s took {took:.1f} s"


BETWEEN = {
    "a box is used again": _reused,
    "nothing is left for the next job": _clean,
    "a fork bomb ends with its job": _bomb,
    "a job that kills all that it can harms itself only": _everyone,
    "jobs run side by side, apart": _beside,
}
FRESH = {"fresh boxes are clean": _clean, "fresh boxes survive a fork bomb": _bomb}
