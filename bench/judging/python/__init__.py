"""Judges a changed file with the repository's pytest tests."""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import sha256, write_atomic
from ctxbench.bench.home import Home
from ctxbench.bench.judging import indentation
from ctxbench.bench.judging.python.judging import canaries, failing, judge, nonce
from ctxbench.bench.judging.python.plain import RepositoryWords, remarks
from ctxbench.bench.judging.python.text import splice
from ctxbench.bench.judging.suites import ADDED
from ctxbench.bench.judging.types import Judgement, span_of
from ctxbench.bench.repositories.manifest import TestSuite
from ctxbench.bench.types import Reference, Sample
from ctxbench.sandbox.types import MIB, Call, Environment, Job, Limits, Outcome, Pool, Sandbox

PYTEST = "pytest>=9,<10"
COVERAGE = "coverage>=7.10,<8"
CPU_SECONDS = 20
"""Maximum processor seconds for a judgement. Selected tests are few and fast, so only endless loops need more."""
TRIAL_SECONDS = 8
"""Maximum processor seconds for one phase of a test in a `trial` job. Usable tests need less than half of that."""
TRIAL_TOGETHER = 60
"""Maximum processor seconds for a `trial` job. Tests that the job does not reach count as passed."""
IDLE_SECONDS = 20.0
"""Maximum seconds that a test in a `trial` job may wait. A test that waits longer ends the job."""
SECONDS = 120.0
TRIAL_WALL = 900.0
"""Wall-clock limit of a `trial` job in seconds. It is long because the machine may be busy."""
LIMITS = Limits(memory=1024 * MIB, disk=128 * MIB, file_bytes=64 * MIB, processes=128)
PACKAGE = "ctxbench_pytest"
RUN, COVER, COMPILE = f"{PACKAGE}:run_tests", f"{PACKAGE}:cover", f"{PACKAGE}:compiled"
_MAX_BYTES = 8 << 20
_VERSION = 1


def requirements(tests: TestSuite) -> tuple[str, ...]:
    """Return a suite's requirements. pytest and coverage are added if they are missing."""
    names = {
        re.split(r"[^A-Za-z0-9._-]", requirement.strip(), maxsplit=1)[0].lower() for requirement in tests.requirements
    }
    ours = [requirement for requirement, name in ((PYTEST, "pytest"), (COVERAGE, "coverage")) if name not in names]
    return (*ours, *tests.requirements)


def environment(tests: TestSuite, lock: tuple[str, ...], project: str, tree: Mapping[str, bytes]) -> Environment:
    """Return the environment for the boxes in which a suite runs.

    Args:
        lock: installed packages, as ``name==version``.
        project: distribution under test, or empty.
    """
    return Environment(
        name=project.replace("==", "-") or "python",
        requirements=lock,
        project=project,
        tree=tree,
        library=library(),
        path=(tests.pythonpath,),
        preload=(PACKAGE,),
    )


def suite(
    tests: TestSuite,
    tree: Mapping[str, bytes],
    entry: Mapping[str, Any],
    home: Home,  # noqa: ARG001 - of languages that compile
    sandbox: Sandbox | None,  # noqa: ARG001
) -> PythonSuite:
    """Return a repository's suite (see `bench.judging.suites.Testing`)."""
    record = entry["tests"]
    return PythonSuite(tests, tuple(record.get("lock", ())), str(record.get("project", "")), tree)


class PythonSuite:
    """The `Suite` of a repository with pytest tests."""

    def __init__(self, tests: TestSuite, lock: tuple[str, ...], project: str, tree: Mapping[str, bytes]) -> None:
        self.environment = environment(tests, lock, project, tree)
        self.limits = LIMITS
        self._arguments = tests.arguments
        self._repository: RepositoryWords | None = None

    def blank(self, sample: Sample) -> str:
        """Return the function with its docstring and `pass` as its body."""
        return blank(sample)

    def job(self, sample: Sample, reference: Reference, text: str, secret: str) -> Job:
        """Return a job that runs the reference's tests on the file with `text` in it.

        Raises:
            InputFault: if the file is missing, `text` lacks the function, or the encoding cannot represent `text`.
        """
        if sample.path not in self.environment.tree:
            raise InputFault(
                f"the repository has no file {sample.path!r}", where=sample.id, cure="fetch the repository again"
            )
        changed = splice(self.environment.tree[sample.path], span_of(sample), sample.name or "", text)
        tests = list(reference.tests)
        call = Call(
            function=RUN,
            arguments={
                "tests": tests,
                "target": sample.path,
                "canaries": [canary.argument() for canary in canaries(secret, tests)],
                "arguments": list(self._arguments),
                "nonce": nonce(secret),
                "seconds": CPU_SECONDS,
                "each": 0,
                "idle": 0,
            },
        )
        return Job(action=call, files={sample.path: changed}, seconds=SECONDS)

    def compiling(self, tests: Collection[str]) -> Job:
        """Return a job that compiles the modules of these tests and the modules that they import."""
        paths = sorted({test.partition("::")[0] for test in tests})
        call = Call(function=COMPILE, arguments={"paths": paths, "arguments": list(self._arguments)})
        return Job(action=call, seconds=SECONDS)

    def cover(self, tests: TestSuite, seconds: float, *, only: Collection[str] = ()) -> Job:
        """Return a job that runs the unchanged repository's suite under coverage or, with `only`, just these tests."""
        call = Call(
            function=COVER,
            arguments={
                "paths": sorted({test.partition("[")[0] for test in only}) or _places(tests),
                "deselect": list(tests.deselect),
                "arguments": list(tests.arguments),
            },
        )
        return Job(action=call, seconds=seconds)

    def judge(self, reference: Reference, outcome: Outcome, secret: str) -> Judgement:
        """Return the judgement on the outcome of a job that `job` created."""
        return judge(reference.tests, canaries(secret, reference.tests), nonce(secret), outcome)

    def remarks(self, sample: Sample, reference: Reference, text: str) -> tuple[str, ...]:
        """Return remarks on code that is not allow-listed. Remarks that also apply to the reference are left out."""
        if self._repository is None:
            self._repository = RepositoryWords.of(self.environment.tree)
        source = self.environment.tree[sample.path]
        found = remarks(self._repository, source, sample.name or "", text, reference.target)
        return tuple(map(str, found))

    def trial(self, sample: Sample, reference: Reference, text: str, secret: str) -> Job:
        """Return a job whose outcome `failing` reads. Each test has its own limit, so endless loops stop sooner."""
        job = self.job(sample, reference, text, secret)
        assert isinstance(job.action, Call)
        limits = {"seconds": TRIAL_TOGETHER, "each": TRIAL_SECONDS, "idle": IDLE_SECONDS}
        action = replace(job.action, arguments={**job.action.arguments, **limits})
        return replace(job, action=action, seconds=TRIAL_WALL)

    def failing(self, reference: Reference, outcome: Outcome) -> frozenset[str] | None:
        """Return the reference's tests that detected a fault in a job from `trial`; None without a usable report."""
        return failing(reference.tests, outcome)


def blank(sample: Sample) -> str:
    """Return a sample's function with its docstring and `pass` as its body."""
    start, _ = span_of(sample)
    lines = sample.prefix.split("\n")[start:]
    first = indentation(lines[0])
    if not lines[-1].strip() and len(lines[-1]) <= len(first):
        inner = next((indentation(line) for line in reversed(lines[1:]) if line.strip()), "")
        lines[-1] = inner if len(inner) > len(first) else first + "    "
    return "\n".join(lines) + "pass\n"


def _places(tests: TestSuite) -> list[str]:
    named = tests.added is None or not tests.paths or ADDED.rstrip("/") in {path.rstrip("/") for path in tests.paths}
    return [*tests.paths, *([] if named else [ADDED])]


@cache
def library() -> Mapping[str, bytes]:
    """Return the files of `ctxbench_pytest` by path, for `Environment.library`."""
    folder = Path(__file__).parent / PACKAGE
    return MappingProxyType({f"{PACKAGE}/{path.name}": path.read_bytes() for path in sorted(folder.glob("*.py"))})


@runtime_checkable
class Compiling(Protocol):
    """A `Suite` with tests that Python compiles when it imports them."""

    def compiling(self, tests: Collection[str]) -> Job:
        """Return a job that compiles the modules of these tests and the modules that they import."""
        ...


def bytecode(suite: Compiling, tests: Collection[str], pool: Pool, image: str, home: Home) -> Mapping[str, bytes]:
    """Return the tests' bytecode by path, from the cache if possible. Without bytecode, judging takes twice as long.

    Args:
        image: key for the contents of the boxes.

    Raises:
        SandboxLost: if the machine failed.
    """
    if not tests:
        return {}
    path = home.cache / "bytecode" / f"{sha256(json.dumps([_VERSION, image, sorted(tests)]))[:32]}.json"
    if path.is_file():
        return read_bytecode(json.loads(path.read_text(encoding="utf-8")))
    outcome = pool.run(suite.compiling(tests))
    files = read_bytecode(outcome.result)
    if files:
        write_atomic(path, json.dumps(outcome.result))
    return files


def with_bytecode(job: Job, files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """Return a job's files and the tests' bytecode, without the changed file's bytecode, which contains the answer."""
    own = {(str(path.parent), path.stem) for path in map(PurePosixPath, job.files)}
    return {**{path: content for path, content in files.items() if _source(path) not in own}, **job.files}


def read_bytecode(result: object) -> dict[str, bytes]:
    """Return the bytecode by path from the result of ``ctxbench_pytest:compiled``. Invalid entries are skipped."""
    files: dict[str, bytes] = {}
    for path, text in result.items() if isinstance(result, dict) else ():
        if PurePosixPath(path).parent.name != "__pycache__" or PurePosixPath(path).suffix != ".pyc":
            continue
        unpacker = zlib.decompressobj()
        try:
            content = unpacker.decompress(base64.b64decode(text, validate=True), _MAX_BYTES)
        except (TypeError, ValueError, binascii.Error, zlib.error):
            continue
        if unpacker.eof:
            files[path] = content
    return files


def _source(path: str) -> tuple[str, str]:
    cached = PurePosixPath(path)
    return str(cached.parent.parent), cached.name.partition(".")[0]
