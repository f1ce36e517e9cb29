"""The cost of a job in a pool of sandboxes: processor time of client, engine and sandbox together.

As root with Docker, the engine is private and measured exactly. `HUMAN_EVAL=<checkout of openai/human-eval>` adds its
runner and problems. `JOBS=10000` sets the number of jobs in one pool at the end.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.engine import Meter, engine
from ctxbench.sandbox.errors import SandboxUnavailable
from ctxbench.sandbox.registry import NAMES, open_sandbox
from ctxbench.sandbox.types import Call, Command, Environment, Job, Limits, Pool

LIBRARY = {
    "runs.py": b"""
import contextlib, io
def nothing(given):
    return 1
def program(given):
    with contextlib.redirect_stdout(io.StringIO()):
        exec(given["program"], {"__name__": "program"})
    return True
def tests(given):
    import pytest
    return int(pytest.main(["-q", "-p", "no:cacheprovider"]))
"""
}
REUSE = 1000
"""Jobs per sandbox, which share the costs of its start and end."""
TESTS = "".join(f"def test_{n}():\n    assert {n} + 1 == {n + 1}\n\n\n" for n in range(20)).encode()
_LOADED = "argparse ast code difflib doctest fnmatch inspect pdb pytest tempfile textwrap unittest xml.dom"
PRELOAD = tuple(_LOADED.split())


def main() -> None:
    meter = Meter()
    print(f"processor time of {meter.what}")
    for name in NAMES:
        with contextlib.ExitStack() as stack:
            cache = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ctxbench-bench-")))
            try:
                open_sandbox(name, cache)
            except SandboxUnavailable as missing:
                print(f"\n{name}: not measured: {missing}")
                continue
            base = ""
            if name == "docker":
                base = _base()
                if os.geteuid() == 0 and shutil.which("dockerd"):
                    stack.enter_context(engine(base))
            _compare(name, meter, cache, base)


def _base() -> str:
    from ctxbench.sandbox.docker import images
    from ctxbench.sandbox.docker.engine import connected

    with connected() as client:
        image = images.base_id(client, os.environ.get("CTXBENCH_BASE_IMAGE") or images.OFFICIAL, print)
        return str(client.api.inspect_image(image)["RepoTags"][0])


def _compare(name: str, meter: Meter, cache: Path, base: str) -> None:
    sandbox = open_sandbox(name, cache, base)
    plain = Environment(name="plain", library=LIBRARY, preload=("runs",))
    tests = Environment(
        name="tests", requirements=("pytest",), library=LIBRARY, preload=PRELOAD, tree={"test_it.py": TESTS}
    )
    for environment in (plain, tests):
        sandbox.prepare(environment, lambda _: None)
    nothing = Job(action=Call(function="runs:nothing", arguments={}))
    trivial = _pooled(meter, lambda: sandbox.open(plain, limits=Limits(), reuse=REUSE), [nothing] * 2 * REUSE)
    print(f"\n{name}: {trivial * 1e3:.1f} ms per trivial job in a pool with {REUSE} jobs per box")
    python = Job(action=Command(argv=("python3", "-c", "pass")))
    per_command = _pooled(meter, lambda: sandbox.open(plain, limits=Limits(), reuse=200), [python] * 60)
    fresh = _pooled(meter, lambda: sandbox.open(plain, limits=Limits(), reuse=1), [nothing] * 10)
    print(f"  `python3 -c pass` {per_command * 1e3:.1f} ms, in a fresh box {fresh * 1e3:.0f} ms")
    if name == "docker":
        _docker(meter, trivial, base)
    _repository(meter, lambda: sandbox.open(tests, limits=Limits(), reuse=50))
    _human_eval(meter, lambda: sandbox.open(plain, limits=Limits(), reuse=200))
    _many(lambda: sandbox.open(plain, limits=Limits(), reuse=500, width=2), nothing)


def _pooled(meter: Meter, opened: Callable[[], Any], jobs: list[Job]) -> float:
    """Return the processor seconds per job, including the sandboxes' start and end."""
    began = meter.read()
    with opened() as pool:
        for job in jobs:
            outcome = pool.run(job)
            assert outcome.exit_code == 0, outcome
    return (meter.read() - began) / len(jobs)


def _docker(meter: Meter, trivial: float, base: str) -> None:
    import docker

    client = docker.from_env(version="auto")
    command = ["python3", "-c", "pass"]
    alone = ["docker", "run", "--rm", "--network", "none", base, *command]
    began = meter.read()
    for _ in range(10):
        subprocess.run(alone, check=True)
    run = (meter.read() - began) / 10
    warm = client.containers.run(base, ["sleep", "600"], detach=True, network_mode="none")
    try:
        began = meter.read()
        for _ in range(30):
            assert warm.exec_run(command).exit_code == 0
        execute = (meter.read() - began) / 30
    finally:
        warm.remove(force=True)
    client.close()
    print(f"  docker run --rm: {run * 1e3:.0f} ms, {run / trivial:.0f} times as much (aim: 40)")
    print(
        f"  exec by the SDK in a warm container: {execute * 1e3:.0f} ms, "
        f"{execute / trivial:.0f} times as much (aim: 10)"
    )


def _repository(meter: Meter, opened: Callable[[], Any]) -> None:
    cold = Job(action=Command(argv=("python3", "-m", "pytest", "-q", "-p", "no:cacheprovider")))
    warm = Job(action=Call(function="runs:tests", arguments={}))
    costs = [_pooled(meter, opened, [job] * 20) for job in (cold, warm)]
    print(
        f"  pytest, 20 tests: {costs[0] * 1e3:.0f} ms as a program, {costs[1] * 1e3:.0f} ms with its modules preloaded"
    )


def _human_eval(meter: Meter, opened: Callable[[], Any]) -> None:
    where = os.environ.get("HUMAN_EVAL")
    if not where:
        print("  HumanEval: not measured; set HUMAN_EVAL to a checkout of openai/human-eval")
        return
    sys.path.insert(0, where)
    from human_eval.execution import check_correctness  # type: ignore[import-not-found]

    with gzip.open(Path(where, "data", "HumanEval.jsonl.gz"), "rt") as lines:
        problems = [json.loads(line) for line in lines]
    began = meter.read()
    assert all(check_correctness(problem, problem["canonical_solution"], 10.0)["passed"] for problem in problems)
    theirs = (meter.read() - began) / len(problems)
    whole = [
        Job(action=Call(function="runs:program", arguments={"program": _program(problem)})) for problem in problems
    ]
    ours = _pooled(meter, opened, whole)
    print(f"  HumanEval's {len(problems)} own solutions: HumanEval's runner, without isolation, {theirs * 1e3:.1f} ms")
    print(f"    a job in the pool {ours * 1e3:.1f} ms ({theirs / ours:.1f} times less)")


def _program(problem: dict[str, str]) -> str:
    return f"{problem['prompt']}{problem['canonical_solution']}\n{problem['test']}\ncheck({problem['entry_point']})\n"


def _many(opened: Callable[[], Any], job: Job) -> None:
    count = int(os.environ.get("JOBS", "1000"))
    with opened() as pool:
        _some(pool, job, count // 4)
        before = _resident()
        began = time.perf_counter()
        _some(pool, job, count)
        took = time.perf_counter() - began
        grown = _resident() - before
    print(f"  {count} jobs, two at a time: {count / took:.0f} per second; this process grew by {grown} KiB")


def _some(pool: Pool, job: Job, count: int) -> None:
    """Run jobs from two threads, half each, because a queue of 10,000 futures would dominate the measured memory."""

    def half() -> bool:
        return all(pool.run(job).result == 1 for _ in range(count // 2))

    with ThreadPoolExecutor(2) as workers:
        assert all(future.result() for future in [workers.submit(half), workers.submit(half)])


def _resident() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


if __name__ == "__main__":
    main()
