"""`JavaSuite`: how the JUnit suite of one repository judges one changed file."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any, NamedTuple

from ctxbench.bench.errors import InputFault
from ctxbench.bench.languages.java.facts import JavaFile
from ctxbench.bench.languages.java.uses import analyse
from ctxbench.bench.manifest_types import TestSuite
from ctxbench.bench.testing import java_guest, java_text
from ctxbench.bench.testing.java_judging import failing, judge
from ctxbench.bench.testing.java_pom import Poms, inside, upwards
from ctxbench.bench.testing.types import Judgement
from ctxbench.bench.types import Reference, Sample
from ctxbench.sandbox.types import MIB, Call, Environment, Job, Limits, Outcome

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


class SourceKind(NamedTuple):
    """Which of a module's sources."""

    setting: str
    """Of a ``pom.xml`` that names their folder."""
    usual: str
    """Their folder without one."""


MAIN = SourceKind("sourceDirectory", "src/main/java")
TEST = SourceKind("testSourceDirectory", "src/test/java")


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Where a repository keeps what, and how it is compiled."""

    folder: str
    """The module whose tests are run, and where they are run; "" is the repository's own folder."""
    main: tuple[str, ...]
    """Of the module and of those that it needs."""
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

    def running(self) -> dict[str, Any]:
        """Return the part of a call's arguments that every call needs that runs tests."""
        resources, flags = list(self.resources), list(self.flags)
        return {"folder": self.folder, "resources": resources, "flags": flags, **self.compiling()}


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


def layout(tests: TestSuite, tree: Mapping[str, bytes], source_dir: str = "") -> Layout:
    """Return a repository's layout: Maven's folders, the rest from the manifest, else from its ``pom.xml`` files.

    Args:
        tests: how it is tested.
        tree: its files.
        source_dir: a module of it, or a folder in one: only that is tested, with the modules that it needs.

    Raises:
        InputFault: if it has no sources there.
    """
    poms = Poms(tree)
    folder = _module(tree, poms, source_dir)
    main, test = _folders(tree, poms, folder, MAIN), _folders(tree, poms, folder, TEST)
    if not test:
        what = f"has no {inside(folder, TEST.usual)}"
        raise InputFault(what, cure="choose a module whose tests stand beside its sources")
    resources = [*_resources(tree, folder)]
    for sibling, needed in poms.siblings(folder):
        folders = _folders(tree, poms, sibling, TEST if needed.of_tests else MAIN)
        main, test = (main, (*test, *folders)) if needed.test or needed.of_tests else ((*main, *folders), test)
        resources += _resources(tree, sibling)
    names = ("maven.compiler.release", "maven.compiler.source", "release", "source")
    release = (tests.release or poms.setting(folder, *names)).removeprefix("1.")
    return Layout(
        folder=folder,
        main=main,
        test=test,
        resources=tuple(resources),
        encoding=tests.encoding or poms.setting(folder, "project.build.sourceEncoding") or "UTF-8",
        release=str(max(int(release), OLDEST) if release.isdigit() else OLDEST),
        jars=tests.jars,
        flags=tests.arguments,
    )


def _module(tree: Mapping[str, bytes], poms: Poms, source_dir: str) -> str:
    """Return the folder of the module that is meant, "" for the repository's own."""
    for folder in upwards(source_dir):
        if _folders(tree, poms, folder, MAIN):
            return folder
    modules = sorted({path.partition(f"/{MAIN.usual}/")[0] for path in tree if f"/{MAIN.usual}/" in path})
    cure = "only repositories of Maven's layout can be tested"
    if modules:
        cure = f"name one of its modules in the manifest, as source_dir: {', '.join(modules)}"
    raise InputFault(f"has no {inside(source_dir, MAIN.usual)}", cure=cure)


def _folders(tree: Mapping[str, bytes], poms: Poms, folder: str, kind: SourceKind) -> tuple[str, ...]:
    place = inside(folder, poms.setting(folder, kind.setting) or kind.usual)
    return (place,) if any(path.startswith(f"{place}/") for path in tree) else ()


def _resources(tree: Mapping[str, bytes], folder: str) -> Iterator[str]:
    for place in (inside(folder, f"src/{kind}/resources") for kind in ("main", "test")):
        if any(path.startswith(f"{place}/") for path in tree):
            yield place


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

    def __init__(self, tests: TestSuite, where: Layout, tree: Mapping[str, bytes], build: Build) -> None:
        """Take a suite.

        Args:
            tests: how it is run.
            where: what `layout` says of it.
            tree: path -> content of the repository.
            build: what `bench.testing.java_build` made of it.
        """
        self.tests, self.layout, self.tree, self.build = tests, where, tree, build
        # The sources hold the answers and nothing needs them: the one changed file comes with its job.
        other_files = {path: content for path, content in tree.items() if not path.endswith(".java")}
        self.environment = sources(tests, other_files, build)
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
                "secret": secret,
                **self.layout.running(),
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
        return [f"{folder}/{declared.name}".lstrip("/") for declared in facts.types if "." not in declared.name]

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
