"""Runs in the box: starts `javac` and `java`, and compiles the repository, its tests and the canary."""

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
"""Folder of the repository's jars when a job begins. Boxes receive files only in the repository."""
OWN = Path.home() / ".ctxbench"
"""Folder of ctxbench's own files, outside the repository because tests may list it."""
JARS = (
    "junit-platform-console-standalone.jar",
    "apiguardian-api.jar",
    "opentest4j.jar",
    "junit4.jar",
    "hamcrest.jar",
)
"""Jars in `/usr/share/java` that JUnit 3, 4 and 5 and their launcher need."""
_SHARE = Path("/usr/share/java")
_JDKS = Path("/usr/lib/jvm")
_JDK = "java-17-openjdk-*"
_VM = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xshare:auto",
    "-XX:-UsePerfData",
    # The box's limit is not the machine's memory. Flags set the memory that Java may use.
    "-XX:-UseContainerSupport",
    "-XX:ReservedCodeCacheSize=48m",
    "-XX:CompressedClassSpaceSize=64m",
    "-XX:-CreateCoredumpOnCrash",
    "-XX:ErrorFile=/dev/null",
)
OVERTIME = -signal.SIGXCPU
_GRACE = 5
_MOST_OUTPUT = 16_000


class MissingProgram(Exception):
    """The box lacks a program or jar. The machine is at fault, not the code."""


def settle() -> None:
    """Create ctxbench's own folder and move the repository's jars there."""
    if SHIPPED.is_dir():
        SHIPPED.rename(OWN)
    else:
        OWN.mkdir()


def program(name: str) -> str:
    """Return the path of a JDK program. Raise `MissingProgram` if the box lacks it."""
    for candidate in sorted(_JDKS.glob(f"{_JDK}/bin/{name}")):
        return str(candidate)
    raise MissingProgram(f"{_JDKS}/{_JDK}/bin/{name} is missing")


def class_path(*places: Path | str, jars: Sequence[str] = JARS) -> str:
    """Return a class path: `places`, then system jars. Raise `MissingProgram` if the box lacks a jar."""
    paths = [_SHARE / name for name in jars]
    missing = [str(jar) for jar in paths if not jar.is_file()]
    if missing:
        raise MissingProgram(f"{missing[0]} is missing")
    return os.pathsep.join(str(place) for place in (*places, *paths))


def virtual_machine(heap: int) -> list[str]:
    """Return Java's flags for short runs. `heap` is in MiB."""
    return [*_VM, f"-Xmx{heap}m"]


def run(
    argv: Sequence[str], seconds: int | None = None, folder: str = "", most_output: int = _MOST_OUTPUT
) -> tuple[int, str]:
    """Run a program. Return its exit status and output. The middle of a long output is left out.

    Args:
        seconds: processor time after which the kernel stops the program with status `OVERTIME`.
        folder: working directory below the repository; empty for its root.
        most_output: bytes of output, half of them from the beginning.
    """
    with tempfile.TemporaryFile(dir=OWN) as out:
        status = subprocess.call(
            argv,
            cwd=folder or None,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            # The program limits itself before it starts: a box forbids limits on other processes.
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
    """Compile files into a folder, without annotation processors. Return javac's status and messages."""
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
_TIME = (1980, 1, 1, 0, 0, 0)
TOOLS = Path(__file__).parent


def build(arguments: dict[str, Any]) -> dict[str, Any]:
    """Compile the repository.

    Args:
        arguments: ``main`` and ``test`` (source folders), ``encoding``, ``release``, ``jars``.

    Returns:
        ``main``, ``test`` and ``tools``: jars in base64; ``dropped``: test files that do not compile; ``messages``:
        javac's messages on these. Or ``fault``: javac's messages if the main classes do not compile or no test remains.
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
        return {"fault": messages or "contains no test"}
    copy_rest(arguments["test"], test)
    status, output = compile_files([str(TOOLS / "Canary.java")], tools, on=class_path(), **options)
    if status:
        return {"fault": output}
    jars_of = {place.name: base64.b64encode(jar(place)).decode() for place in (main, test, tools)}
    return {"dropped": dropped, "messages": messages, **jars_of}


def compile_tests(
    files: Sequence[str], to: Path, *, on: str, encoding: str, release: str
) -> tuple[bool, list[str], str]:
    """Compile files without those that have errors. Return whether that succeeded, the files left out, and messages."""
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
    """Return the paths of the Java files in `folders`, sorted, without ``module-info.java``."""
    paths = [path for folder in folders for path in Path(folder).rglob("*.java")]
    return sorted(path.as_posix() for path in paths if path.name not in ("module-info.java",))


def copy_rest(folders: Sequence[str], to: Path) -> None:
    """Copy all files except Java sources and HTML to the folder of the classes, as build tools do."""
    for folder in folders:
        for path in sorted(Path(folder).rglob("*")):
            if path.is_file() and path.suffix not in (".java", ".html"):
                place = to / path.relative_to(folder)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(path.read_bytes())


def jar(folder: Path) -> bytes:
    """Return a jar of a folder's files. Equal folders result in equal bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _TIME)
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, path.read_bytes())
    return out.getvalue()
