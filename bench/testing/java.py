"""`JavaSuite`: how the JUnit suite of one repository judges one changed file."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from bench.errors import InputFault
from bench.languages.java import analyse
from bench.languages.java.facts import JavaFile
from bench.manifest_types import TestSuite
from bench.testing import java_guest, java_text
from bench.testing.java_judging import failing, judge
from bench.testing.types import Judgement
from bench.types import Reference, Sample
from sandbox.types import MIB, Call, Environment, Job, Limits, Outcome

PROGRAMS = (
    "openjdk-17-jdk-headless",
    "junit4",
    "junit5",
    "libhamcrest-java",
    "libopentest4j-java",
    "libapiguardian-java",
)
SECONDS = 180.0
"""For what waits or sleeps; a loop meets the limit on processor time long before, which is in the guest."""
LIMITS = Limits(memory=1536 * MIB, disk=192 * MIB, file_bytes=64 * MIB, processes=128, open_files=512)
OLDEST = 8
"""The oldest Java that the compiler of Java 17 takes without a warning."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Where a repository keeps what, and how it is compiled."""

    main: tuple[str, ...]
    test: tuple[str, ...]
    resources: tuple[str, ...]
    """Folders of the class path."""
    encoding: str
    release: str
    jars: tuple[str, ...] = ()
    """Of `/usr/share/java`: what it needs beside JUnit."""
    flags: tuple[str, ...] = ()
    """Of Java when the tests are run."""

    def compiling(self) -> dict[str, Any]:
        """Return the part of a call's arguments that every call needs."""
        return {"encoding": self.encoding, "release": self.release, "jars": list(self.jars)}


@dataclass(frozen=True, kw_only=True)
class Build:
    """A repository's compiled classes, as jars."""

    main: bytes
    test: bytes
    tools: bytes
    dropped: tuple[str, ...]
    """Test files that do not compile."""


def layout(tests: TestSuite, tree: Mapping[str, bytes]) -> Layout:
    """Return a repository's layout: Maven's folders, the rest from the manifest, else from its ``pom.xml``.

    Raises:
        InputFault: if it has no sources there.
    """
    pom = tree.get("pom.xml", b"").decode("utf-8", "replace")
    folders = {kind: _folders(tree, f"src/{kind}/java") for kind in ("main", "test")}
    for kind, found in folders.items():
        if not found:
            raise InputFault(f"has no src/{kind}/java", cure="only repositories of Maven's layout can be tested")
    release = tests.release or _property(pom, "maven.compiler.release", "maven.compiler.source") or str(OLDEST)
    number = int(release.removeprefix("1.")) if release.removeprefix("1.").isdigit() else OLDEST
    return Layout(
        main=folders["main"],
        test=folders["test"],
        resources=tuple(f for kind in ("main", "test") for f in _folders(tree, f"src/{kind}/resources")),
        encoding=tests.encoding or _property(pom, "project.build.sourceEncoding") or "UTF-8",
        release=str(max(number, OLDEST)),
        jars=tests.jars,
        flags=tests.arguments,
    )


def _folders(tree: Mapping[str, bytes], folder: str) -> tuple[str, ...]:
    return (folder,) if any(path.startswith(f"{folder}/") for path in tree) else ()


def _property(pom: str, *names: str) -> str:
    for name in names:
        found = re.search(rf"<{re.escape(name)}>\s*([\w.-]+)\s*</", pom)
        if found:
            return found.group(1)
    return ""


def sources(tests: TestSuite, tree: Mapping[str, bytes], build: Build | None = None) -> Environment:
    """Return what stands in a box where the whole repository is compiled, or its whole suite is run."""
    return Environment(
        name="java",
        programs=(*PROGRAMS, *tests.requirements),
        tree={**tree, **_jars(build)} if build else tree,
        library=java_guest.library(),
        preload=(java_guest.PACKAGE,),
    )


def _jars(build: Build) -> dict[str, bytes]:
    return {f".ctxbench/{name}.jar": getattr(build, name) for name in ("main", "test", "tools")}


class JavaSuite:
    """The `Suite` of a repository that JUnit tests."""

    def __init__(self, tests: TestSuite, tree: Mapping[str, bytes], build: Build) -> None:
        """Take a suite.

        Args:
            tests: how it is run.
            tree: path -> content of the repository.
            build: what `bench.testing.java_build` made of it.
        """
        self.tests, self.tree, self.build = tests, tree, build
        self.layout = layout(tests, tree)
        # The sources hold the answers and nothing needs them: the one changed file comes with its job.
        kept = {path: content for path, content in tree.items() if not path.endswith(".java")}
        self.environment = sources(tests, kept, build)
        self.limits = LIMITS
        self._entries = frozenset(zipfile.ZipFile(BytesIO(build.main)).namelist())

    def blank(self, sample: Sample) -> str:
        """Return the method with a body that returns null, 0 or false."""
        start, _ = _span(sample)
        return java_text.blank("\n".join(sample.prefix.split("\n")[start:]))

    def job(self, sample: Sample, reference: Reference, text: str, secret: str) -> Job:
        """Return the job that compiles the file with `text` in it and runs the reference's tests.

        Raises:
            InputFault: if the text is no text of such a method, or cannot be written in the file's encoding.
        """
        if sample.path not in self.tree:
            raise InputFault(f"the repository has no file {sample.path!r}", where=sample.id, cure="fetch it again")
        source = self.tree[sample.path]
        changed = java_text.splice(source, self.layout.encoding, _span(sample), sample.name or "", text)
        call = Call(
            function=java_guest.JUDGE,
            arguments={
                "path": sample.path,
                "types": self.types(sample.path),
                "classes": self._classes(sample.path),
                "tests": list(reference.tests),
                "resources": list(self.layout.resources),
                "flags": list(self.layout.flags),
                "secret": secret,
                **self.layout.compiling(),
            },
        )
        return Job(action=call, files={sample.path: changed}, seconds=SECONDS)

    def judge(self, reference: Reference, outcome: Outcome, secret: str) -> Judgement:
        """Return what the outcome of such a job means."""
        return judge(reference.tests, outcome, secret)

    def trial(self, sample: Sample, reference: Reference, text: str, secret: str) -> Job:
        """Return the job that tells which of the reference's tests notice a fault: the one that judges."""
        return self.job(sample, reference, text, secret)

    def failing(self, reference: Reference, outcome: Outcome) -> frozenset[str] | None:
        """Return which of the reference's tests did not pass in such a job, None if that is not known."""
        return failing(reference.tests, outcome)

    def types(self, path: str) -> list[str]:
        """Return the top-level types of a file as paths of classes without ``.class``."""
        facts: JavaFile = analyse(path, self.tree[path].decode(self.layout.encoding, "replace"))
        folder = facts.package.replace(".", "/")
        return [f"{folder}/{found.name}".lstrip("/") for found in facts.types if "." not in found.name]

    def _classes(self, path: str) -> list[str]:
        """Return the entries of the main jar that were compiled from a file."""
        types = self.types(path)
        return sorted(
            name for name in self._entries if any(name == f"{t}.class" or name.startswith(f"{t}$") for t in types)
        )


def _span(sample: Sample) -> tuple[int, int]:
    if sample.span is None:
        raise InputFault("the sample is no function", where=sample.id, cure="use a set built with --kind function")
    return sample.span
