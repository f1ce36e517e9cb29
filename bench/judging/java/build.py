"""Compiles a Java repository in a box, caches the jars, and parses javac's messages."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.files import explained, sha256, write_atomic
from ctxbench.bench.home import Home
from ctxbench.bench.judging.java.layout import Layout
from ctxbench.bench.judging.suites import run_job
from ctxbench.bench.repositories.manifest import TestSuite
from ctxbench.sandbox.types import MIB, Call, Environment, Job, Limits, Outcome, Sandbox

MOST_ERRORS = 3
"""Maximum number of errors in one message."""
_ERROR_LINE = re.compile(r"^(\S.*?\.java):(\d+): error: (.*)$")
_SYMBOL = re.compile(r"^  symbol: +(?:static )?(class|interface|variable|method) ([\w$]+)")
_WITHIN = re.compile(r"^  location: package ([\w.]+)$")
CURE = (
    "add the missing library's Debian package to `requirements` and its jar to `jars` in [tests] (`apt-file search "
    'NAME.jar` finds both); for sun.misc, write release = "9" there; for names declared in Kotlin or another module, '
    "choose another source_dir"
)
"""How to repair a repository that does not compile."""


@dataclass(frozen=True, slots=True)
class CompileError:
    """An error that javac reports."""

    path: str
    line: int
    text: str
    """The message in one line, with a missing symbol's name and, if javac prints it, the symbol's package."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


def read_errors(messages: str) -> tuple[CompileError, ...]:
    """Parse javac's output into errors, in order."""
    errors: list[CompileError] = []
    for line in messages.split("\n"):
        error = _ERROR_LINE.match(line)
        if error:
            path, number, text = error.groups()
            errors.append(CompileError(path, int(number), text))
        elif errors:
            errors[-1] = _with_detail(errors[-1], line)
    return tuple(errors)


def _with_detail(error: CompileError, line: str) -> CompileError:
    symbol, within = _SYMBOL.match(line), _WITHIN.match(line)
    if symbol and error.text == "cannot find symbol":
        return replace(error, text=f"{error.text}: {symbol.group(1)} {symbol.group(2)}")
    return replace(error, text=f"{error.text} of package {within.group(1)}") if within else error


def summary(errors: Sequence[CompileError]) -> str:
    """Summarize compile errors in one line: how many there are, and the first errors with different messages."""
    different: dict[str, CompileError] = {}
    for error in errors:
        different.setdefault(error.text, error)
    first = " | ".join(map(str, [*different.values()][:MOST_ERRORS]))
    return f"{len(errors)} error{'s' * (len(errors) != 1)}: {first}{' | …' if len(different) > MOST_ERRORS else ''}"


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
BUILD, COVERAGE, JUDGE = (f"{PACKAGE}:{name}" for name in ("build", "measure_coverage", "judge"))
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


@cache
def library() -> Mapping[str, bytes]:
    """Return the files of `ctxbench_java` by path, for `Environment.library`."""
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
    messages: str = ""
    log: str = ""


def sources(tests: TestSuite, tree: Mapping[str, bytes], build: Build | None = None) -> Environment:
    """Return the environment for compiling the repository or, with `build`, for running the repository's tests."""
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
    """Return the repository's classes, either cached or compiled in `sandbox`.

    Raises:
        InputFault: if the repository does not compile.
        MachineFault: if the cache lacks the classes and there is no sandbox, or the sandbox lacks a program or failed.
    """
    environment = sources(tests, tree)
    key = [environment.digest, where.main, where.test, where.compiling()]
    folder = home.cache / "java" / sha256(json.dumps(key))[:32]
    stored = _read(folder)
    if stored is not None:
        return stored
    if sandbox is None:
        raise MachineFault(
            "the cache lacks the repository's classes", where=str(folder), cure="name a sandbox with --sandbox"
        )
    report("compiling the repository and its tests")
    outcome = _compile(where, environment, sandbox, report)
    log = folder / _LOG
    messages = str(outcome.get("fault") or outcome.get("messages") or "")
    write_atomic(log, messages)
    if outcome.get("fault"):
        raise _uncompiled(messages, log, where)
    build = _build(outcome, messages, log)
    for name in _FILES:
        write_atomic(folder / f"{name}.jar", getattr(build, name))
    # Written last: without this file the folder counts as empty.
    write_atomic(folder / "build.json", json.dumps({"dropped": list(build.dropped)}))
    return build


def _uncompiled(messages: str, log: Path, where: Layout) -> InputFault:
    errors = read_errors(messages)
    main = any(error.path.startswith(tuple(f"{folder}/" for folder in where.main)) for error in errors)
    what = ("the sources do not compile" if main else "no test compiles") + " with JDK 17"
    if not errors:
        last = messages.strip().splitlines()[-1:] or ["no output"]
        return InputFault(
            f"the repository does not compile: {last[0]}", where=str(log), cure="read javac's full output in that file"
        )
    return InputFault(f"{what}: {summary(errors)}", cure=f"{CURE}; the full output of javac is in {log}")


def checked_result(outcome: Outcome, what: str) -> dict[str, Any]:
    """Check and return the result of a job that compiles a repository or measures coverage.

    Raises:
        InputFault: if the job failed. The message begins with `what`, the job's purpose.
        MachineFault: if the box lacks a program.
    """
    result = outcome.result if isinstance(outcome.result, dict) else {}
    if result.get("unusable"):
        cure = "install what `ctxbench doctor` lists; `dpkg -L PACKAGE` lists the jars of a requirement"
        raise MachineFault(str(result["unusable"]), cure=cure)
    if not result or result.get("fault"):
        message = str(result.get("fault") or outcome.output).strip()
        last = message.splitlines()[-1] if message else "no output"
        raise InputFault(
            f"{what} failed ({outcome.ended}): {last}", cure="correct [tests] and source_dir in the manifest"
        )
    return result


def _compile(where: Layout, environment: Environment, sandbox: Sandbox, report: Report) -> dict[str, Any]:
    arguments = {"main": list(where.main), "test": list(where.test), **where.compiling()}
    job = Job(action=Call(function=BUILD, arguments=arguments), seconds=_SECONDS)
    outcome = run_job(environment, job, sandbox, BIG, report)
    if isinstance(outcome.result, dict) and outcome.result.get("fault"):
        return outcome.result
    return checked_result(outcome, "compiling the repository")


def _build(result: Mapping[str, Any], messages: str, log: Path) -> Build:
    try:
        jars = {name: base64.b64decode(result[name], validate=True) for name in _FILES}
        dropped = tuple(str(name) for name in result["dropped"])
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise InputFault(f"the box returned invalid classes: {error!r}", cure="run the same command again") from None
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
