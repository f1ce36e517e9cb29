"""Judges a changed file with the repository's JUnit tests."""

from __future__ import annotations

import logging
import re
import zipfile
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

from ctxbench.bench.errors import InputFault
from ctxbench.bench.home import Home
from ctxbench.bench.judging.java import plain
from ctxbench.bench.judging.java import text as java_text
from ctxbench.bench.judging.java.build import JUDGE, LIMITS, Build, built, sources
from ctxbench.bench.judging.java.layout import Layout, layout
from ctxbench.bench.judging.types import TAMPERED, Finding, Judgement, Verdict, concluded, ended, killed, span_of
from ctxbench.bench.languages.java.reader import JavaFile
from ctxbench.bench.languages.java.uses import analyse
from ctxbench.bench.repositories.manifest import TestSuite
from ctxbench.bench.types import Reference, Sample
from ctxbench.sandbox.types import Call, Job, Outcome, Sandbox

SECONDS = 180.0
"""Wall-clock limit of a judging job in seconds, for tests that wait. Endless loops reach the processor limit first."""
PROCESSOR_SECONDS = 20
"""Maximum processor seconds for javac, and again for the tests. Both together normally need 1 second."""
_MAX_OUTPUT = 64 * 1024
_FAILED_STATUS = 1
"""JUnit's exit status after a failed test. Only this status is valid, because the canary must fail."""
_ERRORS_STATUS = 1
"""javac's exit status for errors in the code. Status 3 means that javac itself failed."""
_NO_MEMORY = re.compile(
    "^(Error occurred during initialization of VM|# There is insufficient memory for the Java Runtime)", re.MULTILINE
)
"""Java's messages if the machine lacks memory. Judged code cannot cause these messages."""
_ANY_ERROR = re.compile(r"^(.*: )?error: ", re.MULTILINE)
_ERROR = re.compile(r"^\S+?\.java:\d+: error: (.*)$", re.MULTILINE)


_LOG = logging.getLogger(__name__)


def suite(
    tests: TestSuite, tree: Mapping[str, bytes], entry: Mapping[str, Any], home: Home, sandbox: Sandbox | None
) -> JavaSuite:
    """Return a repository's suite, with classes compiled now or cached (see `bench.judging.suites.Testing`)."""
    where = layout(tests, tree, str(entry.get("source_dir", "")))
    return JavaSuite(tests, where, tree, built(tests, where, tree, home, sandbox, _LOG.info))


class JavaSuite:
    """The `Suite` of a repository with JUnit tests."""

    def __init__(self, tests: TestSuite, where: Layout, tree: Mapping[str, bytes], build: Build) -> None:
        self.tests, self.layout, self.tree, self.build = tests, where, tree, build
        # Sources contain the answers, and are not needed: each job brings the changed file.
        other_files = {path: content for path, content in tree.items() if not path.endswith(".java")}
        self.environment = sources(tests, other_files, build)
        self.limits = LIMITS
        self._words = plain.words(tree)
        self._entries = frozenset(zipfile.ZipFile(BytesIO(build.main)).namelist())

    def blank(self, sample: Sample) -> str:
        """Return the method with a body that only returns null, 0, false or nothing."""
        start, _ = span_of(sample)
        return java_text.blank("\n".join(sample.prefix.split("\n")[start:]))

    def job(self, sample: Sample, reference: Reference, text: str, secret: str) -> Job:
        """Return a job that compiles the file with `text` in it and runs the reference's tests.

        Raises:
            InputFault: if the file is missing, `text` lacks the method, or the encoding cannot represent `text`.
        """
        if sample.path not in self.tree:
            raise InputFault(
                f"the repository has no file {sample.path!r}", where=sample.id, cure="fetch the repository again"
            )
        source = self.tree[sample.path]
        changed = java_text.splice(source, self.layout.encoding, span_of(sample), sample.name or "", text)
        call = Call(
            function=JUDGE,
            arguments={
                "path": sample.path,
                "types": self.types(sample.path),
                "classes": self._classes(sample.path),
                "tests": list(reference.tests),
                "secret": secret,
                "processor_seconds": PROCESSOR_SECONDS,
                **self.layout.running(),
            },
        )
        return Job(action=call, files={sample.path: changed}, seconds=SECONDS)

    def judge(self, reference: Reference, outcome: Outcome, secret: str) -> Judgement:
        """Return the judgement on the outcome of a job that `job` created."""
        return judge(reference.tests, outcome, secret)

    def remarks(self, sample: Sample, reference: Reference, text: str) -> tuple[str, ...]:
        """Return remarks on unusual code in a completion. Remarks that also apply to the reference are left out."""
        return plain.remarks(self._words, text, reference.target)

    def trial(self, sample: Sample, reference: Reference, text: str, secret: str) -> Job:
        """Return a job whose outcome `failing` reads. This job is the same as for judging."""
        return self.job(sample, reference, text, secret)

    def failing(self, reference: Reference, outcome: Outcome) -> frozenset[str] | None:
        """Return the reference's tests that did not pass in a job from `trial`; None without a usable report."""
        return failing(reference.tests, outcome)

    def types(self, path: str) -> list[str]:
        """Return a file's top-level types as paths of class files, without the suffix ``.class``."""
        facts: JavaFile = analyse(path, self.tree[path].decode(self.layout.encoding, "replace"))
        folder = facts.package.replace(".", "/")
        return [f"{folder}/{declared.name}".lstrip("/") for declared in facts.types if "." not in declared.name]

    def _classes(self, path: str) -> list[str]:
        types = self.types(path)
        return sorted(
            name for name in self._entries if any(name == f"{t}.class" or name.startswith(f"{t}$") for t in types)
        )


def judge(tests: Sequence[str], outcome: Outcome, secret: str) -> Judgement:
    """Judge the outcome of a ``ctxbench_java:judge`` job. The canary, a test that must fail, must report `secret`."""
    return _verdict(tests, outcome, secret).judgement(outcome, _output(outcome))


def failing(tests: Sequence[str], outcome: Outcome) -> frozenset[str] | None:
    """Return the tests that did not pass; None if unknown, for example if the code does not compile."""
    report = outcome.result
    if not isinstance(report, dict) or report.get("compiled") is not True:
        return None
    tested = report.get("tests")
    if not isinstance(tested, dict) or not tested:
        return None
    return frozenset(name for name in tests if (_state(tested.get(name)) or ("", ""))[0] != "passed")


def _output(outcome: Outcome) -> str:
    messages = outcome.result.get("messages") if isinstance(outcome.result, dict) else None
    return (outcome.output + (messages if isinstance(messages, str) else ""))[:_MAX_OUTPUT]


def _verdict(tests: Sequence[str], outcome: Outcome, secret: str) -> Finding:
    early = ended(outcome)
    if early:
        return early
    report = outcome.result
    if not isinstance(report, dict):
        what = f"no result was written (exit status {outcome.exit_code})"
        if outcome.out_of_memory:
            what = "out of memory"
        return Finding(Verdict.FAILED, f"ended early: {what}")
    if report.get("unusable"):
        return Finding(Verdict.BROKEN, str(report["unusable"]))
    if report.get("overtime"):
        return Finding(Verdict.TIMED_OUT, "ran out of processor time")
    if report.get("compiled") is not True:
        return _uncompiled(report.get("exit"), str(report.get("messages", "")), outcome)
    if report.get("foreign"):
        return Finding(Verdict.FAILED, f"{TAMPERED}: the file declares classes of other files: {report['foreign']}")
    tested = report.get("tests")
    if not isinstance(tested, dict):
        return Finding(Verdict.FAILED, f"{TAMPERED}: the result has the wrong form")
    return _tested(tests, report, tested, outcome, secret)


def _tested(
    tests: Sequence[str], report: Mapping[str, Any], tested: Mapping[str, Any], outcome: Outcome, secret: str
) -> Finding:
    states = {name: _state(tested.get(name)) for name in tests}
    run = sum(1 for state in states.values() if state is not None)
    canary = _state(report.get("canary"))
    if canary is None and not run:
        return Finding(Verdict.FAILED, _cut_short(report.get("exit"), "JUnit wrote no report", outcome))
    if canary is None or canary[0] == "passed":
        return Finding(Verdict.FAILED, f"{TAMPERED}: the test that must fail did not fail", run)
    if not canary[1].endswith(f": {secret}"):
        return Finding(Verdict.FAILED, f"{TAMPERED}: the test that must fail failed in another way: {canary[1]}", run)
    if not run:
        return Finding(Verdict.NO_TESTS, "none of the expected tests was found")
    wrong = {
        name: "not run" if state is None else f"{state[0]}: {state[1]}"
        for name, state in states.items()
        if state is None or state[0] != "passed"
    }
    unproven = ""
    if report.get("exit") != _FAILED_STATUS or outcome.exit_code != 0:
        unproven = f"{TAMPERED}: exit status {report.get('exit')} instead of {_FAILED_STATUS}"
    return concluded(tests, wrong, unproven, run)


def _state(value: object) -> tuple[str, str] | None:
    if isinstance(value, list) and len(value) >= 2 and isinstance(value[0], str) and isinstance(value[1], str):
        return value[0], value[1]
    return None


def _uncompiled(status: object, messages: str, outcome: Outcome) -> Finding:
    first_line = messages.strip().partition("\n")[0]
    if status == _ERRORS_STATUS and _ANY_ERROR.search(messages):
        match = _ERROR.search(messages)
        return Finding(Verdict.FAILED, f"does not compile: {match.group(1) if match else first_line}")
    if status == _ERRORS_STATUS and _NO_MEMORY.search(messages):
        return Finding(Verdict.BROKEN, f"javac has too little memory: {first_line}")
    return Finding(Verdict.FAILED, _cut_short(status, f"javac printed: {first_line}", outcome))


def _cut_short(status: object, otherwise: str, outcome: Outcome) -> str:
    what = f"{otherwise} (exit status {status})"
    return f"ended early: {killed(-status, outcome) if isinstance(status, int) and status < 0 else what}"
