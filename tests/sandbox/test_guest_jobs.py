"""The guest as a plain process that receives real frames. The jobs here are harmless."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxbench.sandbox.errors import SandboxError, SandboxUnavailable
from ctxbench.sandbox.pool import BoxPool, open_pool
from ctxbench.sandbox.types import MIB, Call, Command, Ended, Environment, Job, Limits, Outcome
from tests.helpers.bare import BareLauncher
from tests.sandbox.conformance.jobs import BASIC, LIBRARY

LIMITS = Limits(memory=150 * MIB, output=8 * 1024, result=64 * 1024)
NEEDLES = {"tree": "needle-in-the-tree", "job": "needle-in-the-job"}
TREE = {"words/one.py": b"WORD = 'from the tree'\n", "words/two.txt": b"two\n", "run.sh": b"#!/bin/sh\necho ran\n"}
_MORE = """
import os, sys

def memory(arguments):
    needle = arguments["needle"][::-1]
    here = [line.split() for line in open("/proc/self/maps")]
    found = 0
    with open("/proc/self/mem", "rb", 0) as memory:
        for words in here:
            if "r" in words[1] and "[v" not in words[-1]:
                start, end = (int(part, 16) for part in words[0].split("-"))
                memory.seek(start)
                try:
                    found += memory.read(end - start).count(needle.encode())
                except OSError:
                    pass
    return found

def descriptors(arguments):
    return sorted(int(name) for name in os.listdir("/proc/self/fd"))[:-1]

def modules(arguments):
    return sorted({"json", "decimal"} & set(sys.modules))

def nan(arguments):
    return float("nan")

def surrogate(arguments):
    return ["\\udc80", "\\ud83d\\ude00"]
"""


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoxPool]:
    library = tmp_path_factory.mktemp("library")
    (library / "ctxbench_probe.py").write_text(LIBRARY + _MORE)
    environment = Environment(
        name="bare",
        tree={**TREE, "words/.secret": NEEDLES["tree"].encode() * 1000},
        path=("words",),
        preload=("decimal",),
    )
    with open_pool(BareLauncher(str(library)), environment, LIMITS, width=1, reuse=1000) as opened:
        assert isinstance(opened, BoxPool)
        yield opened


def _call(pool: BoxPool, function: str, files: dict[str, bytes] | None = None, **arguments: object) -> Outcome:
    return pool.run(Job(action=Call(function=f"ctxbench_probe:{function}", arguments=arguments), files=files or {}))


def _shell(pool: BoxPool, script: str, seconds: float = 20.0) -> Outcome:
    return pool.run(Job(action=Command(argv=("sh", "-c", script)), seconds=seconds))


@pytest.mark.parametrize(
    "name",
    [
        "output and exit code come back",
        "a signal is told from an exit",
        "a missing program is code 127",
        "stdin is empty",
        "the tree is there, a job's files lie over it",
        "what a call returns comes back",
        "no result comes of what has none",
    ],
)
def test_the_guest_passes_conformance_checks_without_a_back_end(pool: BoxPool, name: str) -> None:
    assert BASIC[name](pool) == ""


def test_the_greeting_reports_the_active_protections(pool: BoxPool) -> None:
    assert set(pool.greeting) == {"protocol", "fault", "python", "landlock", "seccomp", "memory", "user"}
    assert pool.greeting["fault"] == "" and pool.greeting["seccomp"] is True and pool.greeting["user"] == os.getuid()
    assert pool.greeting["landlock"] >= 0 and pool.greeting["memory"] in ("watchdog", "cgroup-v1", "cgroup-v2")


def test_the_memory_of_a_call_contains_no_tree_or_job_files(pool: BoxPool) -> None:
    few = range(1, 6)  # the call's own argument, reversed, and copies of it
    for word in ("tree", "job"):
        reverse = NEEDLES[word][::-1]
        files = {"secret.txt": NEEDLES["job"].encode() * 1000}
        assert _call(pool, "memory", files, needle=reverse).result in few
        assert _call(pool, "memory", needle=reverse).result in few


def test_a_call_inherits_no_descriptor_of_the_guest(pool: BoxPool) -> None:
    standard_and_result = _call(pool, "descriptors").result
    assert standard_and_result[:3] == [0, 1, 2] and len(standard_and_result) == 4


def test_preloaded_modules_are_imported_before_a_job(pool: BoxPool) -> None:
    assert _call(pool, "modules").result == ["decimal", "json"]


def test_a_result_can_always_be_encoded_as_json(pool: BoxPool) -> None:
    assert _call(pool, "nan").result is None
    assert _call(pool, "surrogate").result == ["?", "\N{GRINNING FACE}"]


def test_a_time_out_ends_the_whole_job_but_not_its_box(pool: BoxPool) -> None:
    launcher = pool._launcher
    assert isinstance(launcher, BareLauncher)
    before = len(launcher.boxes)
    outcome = _shell(pool, "echo begun; sleep 61 & setsid sleep 61 & wait", 0.3)
    assert (outcome.ended, outcome.output, outcome.exit_code, outcome.signal) == (
        Ended.TIMED_OUT,
        "begun\n",
        None,
        None,
    )
    assert 0.3 <= outcome.seconds < 5
    for _ in range(3):
        assert _shell(pool, "echo alive; test -e words/two.txt").output == "alive\n"
    running = [Path(f"/proc/{pid}/cmdline") for pid in os.listdir("/proc") if pid.isdecimal()]
    assert not [path for path in running if _text(path) == b"sleep\x0061\x00"]
    assert len(launcher.boxes) <= before + 1


def _text(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_long_output_is_cut_in_the_middle(pool: BoxPool) -> None:
    outcome = _shell(pool, "echo first; seq 1 300000; echo last")
    assert outcome.truncated and outcome.output.startswith("first\n1\n") and outcome.output.endswith("300000\nlast\n")
    assert "bytes are left out here]" in outcome.output and len(outcome.output) < LIMITS.output + 100
    assert not _shell(pool, "seq 1 100").truncated


def test_a_background_process_does_not_delay_the_end_of_a_job(pool: BoxPool) -> None:
    outcome = _shell(pool, "echo said; sleep 62 &")
    assert outcome.output == "said\n" and outcome.exit_code == 0 and outcome.seconds < 5


def test_background_output_does_not_delay_the_end_of_a_job(pool: BoxPool) -> None:
    outcome = _shell(pool, "yes & sleep 0.2; exit 4")
    assert outcome.exit_code == 4 and outcome.truncated and outcome.seconds < 10


def test_memory_is_watched_without_a_control_group(pool: BoxPool) -> None:
    if pool.greeting["memory"] != "watchdog":
        pytest.fail("this machine's own group is taken for a box's")
    program = "held = []\nwhile True: held.append(bytearray(1 << 20))"
    outcome = pool.run(Job(action=Command(argv=("python3", "-c", program))))
    # On a busy machine, the program may reach its address-space limit before the watchdog's next check.
    assert (outcome.ended, outcome.signal) in ((Ended.KILLED, 9), (Ended.EXITED, None)) and outcome.out_of_memory
    assert not _shell(pool, "true").out_of_memory


@pytest.mark.slow
def test_forked_processes_are_not_counted_twice(pool: BoxPool) -> None:
    program = (
        "import os, time\nheld = bytearray(70 << 20)\nchildren = [os.fork() for _ in range(2)]\n"
        "time.sleep(0.5)\nprint('fits') if all(children) else None"
    )
    outcome = pool.run(Job(action=Command(argv=("python3", "-c", program))))
    assert outcome.output == "fits\n" and not outcome.out_of_memory


@pytest.mark.slow
def test_an_invalid_job_is_an_error_and_the_box_remains_usable(pool: BoxPool) -> None:
    with pytest.raises(
        SandboxError, match=r"the job's function cannot be called: .*ModuleNotFoundError.*; add the function's module"
    ):
        pool.run(Job(action=Call(function="no_such_module:f", arguments={})))
    with pytest.raises(SandboxError, match="files cannot be written"):
        pool.run(Job(action=Command(argv=("true",)), files={"run.sh/inside": b"x"}))
    assert _shell(pool, "echo alive").output == "alive\n"


@pytest.mark.parametrize(
    "job",
    [
        Job(action=Command(argv=())),
        Job(action=Call(function="nameless", arguments={})),
        Job(action=Command(argv=("true",)), files={"../out": b""}),
        Job(action=Command(argv=("true",)), files={"/out": b""}),
        Job(action=Command(argv=("true",)), seconds=0),
        Job(action=Command(argv=("true",)), seconds=float("nan")),
    ],
)
def test_an_invalid_job_is_refused_before_it_is_sent_to_a_box(pool: BoxPool, job: Job) -> None:
    with pytest.raises(ValueError, match=r"cannot|needs|is not"):
        pool.run(job)


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        (Environment(name="x", preload=("no_such_module",)), "no_such_module cannot be imported: ModuleNotFoundError"),
        (Environment(name="x", tree={"a": b"", "a/b": b""}), "the tree cannot be written"),
    ],
)
def test_an_environment_with_a_fault_is_refused(environment: Environment, words: str) -> None:
    launcher = BareLauncher()
    with pytest.raises(SandboxUnavailable, match=words), open_pool(launcher, environment, LIMITS, width=1, reuse=1):
        pytest.fail("it was opened")
    assert all(box.process.returncode is not None for box in launcher.boxes)


@pytest.mark.slow
def test_without_landlock_a_job_can_end_itself_but_not_fake_an_outcome() -> None:
    launcher = BareLauncher("", "no-landlock")
    with open_pool(launcher, Environment(name="x"), LIMITS, width=1, reuse=1000) as opened:
        assert isinstance(opened, BoxPool) and opened.greeting["landlock"] == 0
        assert _shell(opened, "echo runs > file; cat file").output == "runs\n"
        outcome = _shell(opened, "kill -9 $PPID; sleep 5; echo on")
        assert outcome.ended is Ended.WRECKED and "the supervisor ended with 9" in outcome.output
        assert _shell(opened, "ls -A; echo runs").output == "runs\n"
    assert all(box.process.returncode is not None for box in launcher.boxes)
