"""Starts `javac` and `java`: found, flagged for short runs, their output kept in part; compiles the repository by them.

Compiled are its main classes, its test classes and our canary. None of its code is run here.
"""

from __future__ import annotations

import base64
import io
import os
import re
import resource
import signal
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SHIPPED = Path(".ctxbench")
"""Where the repository's jars lie when a job begins: below the repository, as all that a box is given."""
OWN = Path.home() / ".ctxbench"
"""Where everything of ours lies, for tests may list the repository, and look at all that is there."""
JARS = (
    "junit-platform-console-standalone.jar",
    "apiguardian-api.jar",
    "opentest4j.jar",
    "junit4.jar",
    "hamcrest.jar",
)
"""Of `/usr/share/java`: all that JUnit 3, 4 and 5 need, and their one launcher."""
_SHARE = Path("/usr/share/java")
_JDKS = Path("/usr/lib/jvm")
_JDK = "java-17-openjdk-*"
_VM = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xshare:auto",
    "-XX:-UsePerfData",
    # The box's limit is not the machine's memory: what Java may take is said, not measured.
    "-XX:-UseContainerSupport",
    "-XX:ReservedCodeCacheSize=48m",
    "-XX:CompressedClassSpaceSize=64m",
    "-XX:-CreateCoredumpOnCrash",
    "-XX:ErrorFile=/dev/null",
)
OVERTIME = -signal.SIGXCPU
_GRACE = 5
_MOST_OUTPUT = 16_000
"""Bytes of a program's output: its beginning and its end."""


class MissingProgram(Exception):
    """Raised when the box lacks what this package needs: the machine's fault, never the code's."""


def settle() -> None:
    """Make the folder for everything of ours, with the repository's jars if they are there."""
    if SHIPPED.is_dir():
        SHIPPED.rename(OWN)
    else:
        OWN.mkdir()


def program(name: str) -> str:
    """Return the path of a program of the JDK."""
    for candidate in sorted(_JDKS.glob(f"{_JDK}/bin/{name}")):
        return str(candidate)
    raise MissingProgram(f"{_JDKS}/{_JDK}/bin/{name} is not there")


def class_path(*places: Path | str, jars: Sequence[str] = JARS) -> str:
    """Return a class path: the places given, then jars of the system, JUnit's unless others are named."""
    paths = [_SHARE / name for name in jars]
    missing = [str(jar) for jar in paths if not jar.is_file()]
    if missing:
        raise MissingProgram(f"{missing[0]} is not there")
    return os.pathsep.join(str(place) for place in (*places, *paths))


def virtual_machine(heap: int) -> list[str]:
    """Return the flags of a short run.

    Args:
        heap: MiB that its objects may take.
    """
    return [*_VM, f"-Xmx{heap}m"]


def run(
    argv: Sequence[str], seconds: int | None = None, folder: str = "", most_output: int = _MOST_OUTPUT
) -> tuple[int, str]:
    """Run a program to its end; return its exit status and its output, of which a long middle is left out.

    Args:
        argv: the program and its arguments.
        folder: of the repository, where it runs; empty for the repository's own.
        seconds: of processor time after which the kernel ends it with `OVERTIME` as its status. Unlike the
            clock it does not run faster on a busy machine.
        most_output: bytes of its output, half of them its beginning.
    """
    with tempfile.TemporaryFile(dir=OWN) as out:
        status = subprocess.call(
            argv,
            cwd=folder or None,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            # By itself, before it becomes the program: a box refuses to set limits of other processes.
            preexec_fn=None if seconds is None else lambda: _limit(seconds),
        )
        size = out.seek(0, os.SEEK_END)
        out.seek(0)
        head = out.read(most_output // 2)
        out.seek(max(len(head), size - most_output // 2))
        tail = out.read()
    gap = b"\n[...]\n" if size > most_output else b""
    return status, (head + gap + tail).decode("utf-8", "replace")


def _limit(seconds: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + _GRACE))


def compile_files(
    files: Sequence[str],
    to: Path,
    *,
    on: str,
    encoding: str,
    release: str,
    heap: int = 512,
    seconds: int | None = None,
    most_output: int = _MOST_OUTPUT,
) -> tuple[int, str]:
    """Compile files into a folder, without annotation processors; return javac's status and messages."""
    to.mkdir(parents=True, exist_ok=True)
    listing = OWN / "files.txt"
    listing.write_text("".join('"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"\n' for name in files))
    argv = [program("javac"), *(f"-J{flag}" for flag in virtual_machine(heap))]
    argv += ["-proc:none", "-nowarn", "-Xlint:none", "-Xmaxerrs", "10000", "-implicit:none", "-sourcepath", ""]
    argv += ["-encoding", encoding, "--release", release, "-cp", on, "-d", str(to), f"@{listing}"]
    return run(argv, seconds, most_output=most_output)


_FAULT = re.compile(r"^(.+?\.java):\d+: error: ", re.MULTILINE)
_ROUNDS = 8
_MOST_MESSAGES = 8 * 1024 * 1024
"""Bytes of what javac says: all of it, but of a repository that it says the same of without end."""
_TIME = (1980, 1, 1, 0, 0, 0)
TOOLS = Path(__file__).parent


def build(arguments: dict[str, Any]) -> dict[str, Any]:
    """Compile the repository.

    Args:
        arguments: ``main`` and ``test`` (source folders), ``encoding``, ``release``, ``jars``.

    Returns:
        ``main``, ``test`` and ``tools``: jars in base64; ``dropped``: test files that do not compile;
        ``messages``: what javac says of them; or ``fault``: what it says of the main classes, or of the tests if
        none compiles.
    """
    options = {"encoding": arguments["encoding"], "release": arguments["release"]}
    jars = arguments["jars"]
    main, test, tools = (OWN / name for name in ("main", "test", "tools"))
    sources = java_files(arguments["main"])
    status, output = compile_files(sources, main, on=class_path(jars=jars), most_output=_MOST_MESSAGES, **options)
    if status:
        return {"fault": output}
    copy_rest(arguments["main"], main)
    path = class_path(main, jars=[*jars, *JARS])
    compiled, dropped, messages = compile_tests(java_files(arguments["test"]), test, on=path, **options)
    if not compiled:
        return {"fault": messages or "holds no test"}
    copy_rest(arguments["test"], test)
    status, output = compile_files([str(TOOLS / "Canary.java")], tools, on=class_path(), **options)
    if status:
        return {"fault": output}
    jars_of = {place.name: base64.b64encode(jar(place)).decode() for place in (main, test, tools)}
    return {"dropped": dropped, "messages": messages, **jars_of}


def compile_tests(
    files: Sequence[str], to: Path, *, on: str, encoding: str, release: str
) -> tuple[bool, list[str], str]:
    """Compile what compiles; return whether anything does, the files that do not, and what javac says of them."""
    remaining, messages = list(files), ""
    dropped: list[str] = []
    for _ in range(_ROUNDS):
        if not remaining:
            break
        status, output = compile_files(
            remaining, to, on=on, encoding=encoding, release=release, heap=640, most_output=_MOST_MESSAGES
        )
        if not status:
            return True, sorted(dropped), messages
        messages += output
        broken = {name for name in _FAULT.findall(output) if name in remaining}
        if not broken:
            break
        dropped += sorted(broken)
        remaining = [name for name in remaining if name not in broken]
    return False, sorted(dropped), messages


def java_files(folders: Sequence[str]) -> list[str]:
    """Return the Java files below some folders, sorted."""
    paths = [path for folder in folders for path in Path(folder).rglob("*.java")]
    return sorted(path.as_posix() for path in paths if path.name not in ("module-info.java",))


def copy_rest(folders: Sequence[str], to: Path) -> None:
    """Copy what is no Java source beside the classes, as build tools do with some of it."""
    for folder in folders:
        for path in sorted(Path(folder).rglob("*")):
            if path.is_file() and path.suffix not in (".java", ".html"):
                place = to / path.relative_to(folder)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(path.read_bytes())


def jar(folder: Path) -> bytes:
    """Return a folder as a jar; equal folders give equal bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _TIME)
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, path.read_bytes())
    return out.getvalue()
