"""CoderEval's official protocol for Java: one changed file, compiled before everything else, and a prebuilt test."""

from __future__ import annotations

from collections.abc import Mapping
from posixpath import basename, dirname
from typing import Any

from ctxbench.bench.codereval.protocol import JAVA, JAVA_RUNNER, WORK, judgement
from ctxbench.bench.errors import InputFault
from ctxbench.bench.testing.java import text as java_text
from ctxbench.bench.testing.types import Judgement
from ctxbench.bench.types import Reference, Sample
from ctxbench.sandbox.types import MIB, Command, Ended, Environment, Job, Limits, Outcome

SECONDS = 120.0
"""The official harness gives the compiler and the test 60 s each."""
LIMITS = Limits(memory=2048 * MIB, disk=128 * MIB, processes=256, open_files=1024, cpus=2.0)
_VERSION = "1"
_MOST_CLASSPATH = 120_000
"""Characters: the kernel takes no variable longer than 128 KiB."""
_SCRIPT = """cd "$PROJECT" && mkdir /work/classes || exit 1
"$JAVAC" -encoding utf8 -d /work/classes -cp "$1:$CLASSPATH" "$2" || exit 1
echo "$3"
exec "$JAVA" -cp "/work/classes:$1:$CLASSPATH" "$4"
"""
"""Folder of classes, source file, a secret, test class. The official harness copies the compiled classes over those of
the project; here they stand before them on the class path, since nobody may write into the image."""


def entry(image: str, project: str, java: str, roots: tuple[str, ...], jars: tuple[str, ...]) -> dict[str, Any]:
    """Return what a set's manifest keeps of a Java project's tests.

    Args:
        image: the image's id.
        project: its folder below `JAVA`.
        java: path of the virtual machine, beside the compiler.
        roots: folders of compiled classes below `JAVA`.
        jars: absolute paths.

    Raises:
        InputFault: if the class path is too long.
    """
    own = [f"{JAVA}/{root}" for root in roots if root.startswith(f"{project}/")]
    # Its own jars if it brings some; else those of the local Maven repositories. A folder's jars are one entry.
    inside = [jar for jar in jars if jar.startswith(f"{JAVA}/{project}/")]
    path = [*own, *dict.fromkeys(f"{dirname(jar)}/*" for jar in inside or jars)]
    if len(":".join(path)) > _MOST_CLASSPATH:
        raise InputFault(f"the class path of {project} is too long", cure="leave its tasks out")
    return {"runner": JAVA_RUNNER, "image": image, "folder": project, "java": java, "classpath": path}


class OfficialJavaSuite:
    """The `Suite` of a Java project of the official image."""

    def __init__(self, entry: Mapping[str, Any], texts: Mapping[str, str]) -> None:
        """Take a project.

        Args:
            entry: the project's `entry`.
            texts: path -> text of its source files.
        """
        java = str(entry["java"])
        self.environment = Environment(
            name=JAVA_RUNNER,
            image=str(entry["image"]),
            folder=WORK,
            variables=(
                ("PROJECT", f"{JAVA}/{entry['folder']}"),
                ("CLASSPATH", ":".join(entry["classpath"])),
                ("JAVA", java),
                ("JAVAC", f"{java}c"),
                ("CTXBENCH_PROTOCOL", f"{JAVA_RUNNER}-{_VERSION}"),
            ),
        )
        self.limits = LIMITS
        self._texts = texts

    def blank(self, sample: Sample) -> str:
        """Return the method with a body that returns null, 0 or false."""
        if sample.span is None:
            raise InputFault("the sample is no function", where=sample.id, cure="use a set of functions")
        return java_text.blank("\n".join(sample.prefix.split("\n")[sample.span[0] :]))

    def job(self, sample: Sample, reference: Reference, text: str, secret: str) -> Job:
        """Return the job that compiles the file with `text` in it and runs the reference's test program.

        Raises:
            InputFault: if the file is not there, or the text cannot be written.
        """
        (test,) = reference.tests
        root, _, name = test.partition("::")
        if sample.path not in self._texts or sample.span is None:
            raise InputFault(f"the repository has no file {sample.path!r}", where=sample.id, cure="import it again")
        try:
            changed = public(self._texts[sample.path], sample.span, text).encode()
        except UnicodeEncodeError as error:
            raise InputFault(f"cannot be written as UTF-8 ({error.reason})", where=sample.id) from None
        file = f"source/{basename(sample.path)}"
        argv = ("/bin/sh", "-c", _SCRIPT, "sh", f"{JAVA}/{root}", f"{WORK}/{file}", secret, name)
        return Job(action=Command(argv=argv), files={file: changed}, seconds=SECONDS)

    def judge(self, reference: Reference, outcome: Outcome, secret: str) -> Judgement:
        """Return the judgement: passed if the test program's output holds ``true`` and not ``false``."""
        del reference
        _, compiled, printed = outcome.output.partition(f"{secret}\n")
        if not compiled:
            return judgement(outcome, passed=False, reason=f"compile error: {_fault(outcome.output)}")
        passed = outcome.ended is not Ended.WRECKED and "true" in printed and "false" not in printed
        return judgement(outcome, passed=passed, reason=f"exec error: {_thrown(printed)}")


def public(source: str, span: tuple[int, int], text: str) -> str:
    """Return a file with lines replaced by a completion, and every ``private `` in it made ``public ``."""
    lines = source.split("\n")
    start, end = span
    return "\n".join([*lines[:start], text.rstrip("\n"), *lines[end:]]).replace("private ", "public ")


def _thrown(printed: str) -> str:
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    return next((line for line in lines if "Exception" in line or "Error" in line), lines[-1] if lines else "")[:200]


def _fault(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if "error" in line]
    return lines[0][:200] if lines else "no word of the compiler"
