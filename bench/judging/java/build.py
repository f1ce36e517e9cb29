"""Compiles a Java repository once, in a box, and keeps the jars in the home's cache."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.files import explained, sha256, write_atomic
from ctxbench.bench.home import Home
from ctxbench.bench.judging.java import errors as java_errors
from ctxbench.bench.judging.java.errors import CompileError
from ctxbench.bench.judging.java.layout import Layout, Poms
from ctxbench.bench.judging.suites import run_job
from ctxbench.bench.repositories.manifest import TestSuite
from ctxbench.sandbox.types import MIB, Call, Environment, Job, Limits, Outcome, Sandbox

PROGRAMS = (
    "openjdk-17-jdk-headless",
    "junit4",
    "junit5",
    "libhamcrest-java",
    "libopentest4j-java",
    "libapiguardian-java",
)
LIMITS = Limits(memory=1536 * MIB, disk=192 * MIB, file_bytes=64 * MIB, processes=128, open_files=512)
PACKAGE = "ctxbench_java"
BUILD, SURVEY, JUDGE = (f"{PACKAGE}:{name}" for name in ("build", "survey", "judge"))
_SHIPPED = (".py", ".java", ".policy")
Report = Callable[[str], None]
_SECONDS = 900.0
BIG = Limits(
    memory=LIMITS.memory,
    disk=512 * MIB,
    inodes=60_000,
    file_bytes=128 * MIB,
    processes=1024,
    open_files=1024,
    result=64 * MIB,
)
_FILES = ("main", "test", "tools")
_LOG = "javac.log"
"""What javac said of what does not compile."""


@cache
def library() -> Mapping[str, bytes]:
    """Return the package's files by path, as `Environment.library` takes them."""
    folder = Path(__file__).parent / PACKAGE
    files = sorted(path for path in folder.iterdir() if path.suffix in _SHIPPED)
    return MappingProxyType({f"{PACKAGE}/{path.name}": path.read_bytes() for path in files})


@dataclass(frozen=True, kw_only=True)
class Build:
    """A repository's compiled classes, as jars."""

    main: bytes
    test: bytes
    tools: bytes
    dropped: tuple[str, ...]
    """Test files that do not compile."""
    messages: str = ""
    """What javac says of them."""
    log: str = ""
    """The file that holds that."""


def sources(tests: TestSuite, tree: Mapping[str, bytes], build: Build | None = None) -> Environment:
    """Return what stands in a box where the whole repository is compiled, or its whole suite is run."""
    return Environment(
        name="java",
        programs=(*PROGRAMS, *tests.requirements),
        tree={**tree, **_jars(build)} if build else tree,
        library=library(),
        preload=(PACKAGE,),
    )


def _jars(build: Build) -> dict[str, bytes]:
    return {f".ctxbench/{name}.jar": getattr(build, name) for name in ("main", "test", "tools")}


def built(
    tests: TestSuite,
    where: Layout,
    tree: Mapping[str, bytes],
    home: Home,
    sandbox: Sandbox | None,
    report: Report,
) -> Build:
    """Return the repository's classes, from the cache or compiled now.

    Args:
        tests: how it is tested.
        where: what `layout` says of it.
        tree: its files.
        home: whose cache is used.
        sandbox: where it is compiled; None: only the cache is looked at.
        report: told what happens.

    Raises:
        InputFault: if it cannot be compiled.
        MachineFault: if it must be compiled and there is no box for that.
    """
    environment = sources(tests, tree)
    key = [environment.digest, where.main, where.test, where.compiling()]
    folder = home.cache / "java" / sha256(json.dumps(key))[:32]
    stored = _read(folder)
    if stored is not None:
        return stored
    if sandbox is None:
        raise MachineFault(
            "the repository's classes are not in the cache", where=str(folder), cure="name a sandbox to compile them in"
        )
    report("compiling the repository and its tests")
    outcome = _compile(where, environment, sandbox, report)
    log = folder / _LOG
    messages = str(outcome.get("fault") or outcome.get("messages") or "")
    write_atomic(log, messages)
    if outcome.get("fault"):
        raise _uncompiled(messages, log, tree, where)
    build = _build(outcome, messages, log)
    for name in _FILES:
        write_atomic(folder / f"{name}.jar", getattr(build, name))
    # Written last: without it the folder counts as empty.
    write_atomic(folder / "build.json", json.dumps({"dropped": list(build.dropped)}))
    return build


def cure_of(errors: Sequence[CompileError], tree: Mapping[str, bytes], where: Layout) -> str:
    """Return what to do about javac's errors, in one line, as far as the repository tells."""
    dependencies = Poms(tree).dependencies(where.folder)
    return java_errors.cure(errors, tree, (*where.main, *where.test), dependencies)


def _uncompiled(messages: str, log: Path, tree: Mapping[str, bytes], where: Layout) -> InputFault:
    errors = java_errors.read(messages)
    main = any(error.path.startswith(tuple(f"{folder}/" for folder in where.main)) for error in errors)
    what = ("its sources do not compile" if main else "none of its tests compiles") + " with JDK 17"
    if not errors:
        last = messages.strip().splitlines()[-1:] or ["no output"]
        return InputFault(f"compiling it failed: {last[0]}", where=str(log), cure="that file holds all of it")
    advice = f"{cure_of(errors, tree, where)}; all that javac said is in {log}"
    return InputFault(f"{what}: {java_errors.summary(errors)}", cure=advice)


def checked_result(outcome: Outcome, what: str) -> dict[str, Any]:
    """Return the result of such a job.

    Raises:
        InputFault: if the repository's code or our call of it failed.
        MachineFault: if the box lacks a program.
    """
    result = outcome.result if isinstance(outcome.result, dict) else {}
    if result.get("unusable"):
        cure = "install what `ctxbench doctor` names; `dpkg -L PACKAGE` lists the jars that a requirement brings"
        raise MachineFault(str(result["unusable"]), cure=cure)
    if not result or result.get("fault"):
        message = str(result.get("fault") or outcome.output).strip()
        last = message.splitlines()[-1] if message else "no output"
        raise InputFault(f"{what} failed ({outcome.ended}): {last}", cure="see the repository's own notes on its build")
    return result


def _compile(where: Layout, environment: Environment, sandbox: Sandbox, report: Report) -> dict[str, Any]:
    arguments = {"main": list(where.main), "test": list(where.test), **where.compiling()}
    job = Job(action=Call(function=BUILD, arguments=arguments), seconds=_SECONDS)
    outcome = run_job(environment, job, sandbox, BIG, report)
    if isinstance(outcome.result, dict) and outcome.result.get("fault"):
        return outcome.result
    return checked_result(outcome, "compiling it")


def _build(result: Mapping[str, Any], messages: str, log: Path) -> Build:
    try:
        jars = {name: base64.b64decode(result[name], validate=True) for name in _FILES}
        dropped = tuple(str(name) for name in result["dropped"])
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise InputFault(f"the compiled classes did not come back: {error!r}", cure="try it again") from None
    return Build(**jars, dropped=dropped, messages=messages, log=str(log))


def _read(folder: Path) -> Build | None:
    marker = folder / "build.json"
    if not marker.is_file():
        return None
    with explained(folder):
        dropped = json.loads(marker.read_text(encoding="utf-8"))["dropped"]
        jars = {name: (folder / f"{name}.jar").read_bytes() for name in _FILES}
        log = folder / _LOG
        messages = log.read_text(encoding="utf-8") if log.is_file() else ""
        return Build(**jars, dropped=tuple(dropped), messages=messages, log=str(log))
