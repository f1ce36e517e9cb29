"""Runs the whole suite on sources with probes: which test enters which method. Trusts the repository."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .building import TOOLS, copy_rest, java_files
from .programs import JARS, OWN, class_path, compile_files, program, run, virtual_machine
from .reports import FAILED, PASSED, SKIPPED, test_id

_SERVICE = "META-INF/services/org.junit.platform.launcher.TestExecutionListener"
_STATES = {"SUCCESSFUL": PASSED, "ABORTED": SKIPPED, "FAILED": FAILED}
_HEAP = 640
"""MiB."""


def survey(arguments: dict[str, Any]) -> dict[str, Any]:
    """Compile the main classes with their probes and run every test of the test jar.

    Args:
        arguments: ``main`` (source folders), ``resources``, ``flags``, ``encoding``, ``release``,
            ``jars``, ``probes`` (how many there are).

    Returns:
        ``tests``: [id, state, milliseconds, numbers of the probes it met] for each run of each test, with
        ``exit`` and ``messages``; or ``fault``.
    """
    classes, log = OWN / "probed", OWN / "survey.tsv"
    sources = [*java_files(arguments["main"]), str(TOOLS / "Probe.java")]
    options = {"encoding": arguments["encoding"], "release": arguments["release"]}
    jars = [*arguments["jars"], *JARS]
    status, said = compile_files(sources, classes, on=class_path(jars=jars), heap=_HEAP, **options)
    if status:
        return {"fault": said}
    copy_rest(arguments["main"], classes)
    service = classes / _SERVICE
    service.parent.mkdir(parents=True, exist_ok=True)
    service.write_text("ctxbench.Probe\n", encoding="utf-8")
    scratch = OWN / "tmp"
    scratch.mkdir()
    places = [place.absolute() for place in (classes, *map(Path, arguments["resources"]), OWN / "test.jar")]
    argv = [program("java"), *virtual_machine(_HEAP), f"-Djava.io.tmpdir={scratch.absolute()}"]
    argv += [f"-Dctxbench.survey={log.absolute()}", f"-Dctxbench.probes={int(arguments['probes'])}"]
    argv += [*arguments["flags"], "-cp", class_path(*places, jars=jars)]
    argv += ["org.junit.platform.console.ConsoleLauncher", "--disable-banner", "--disable-ansi-colors"]
    argv += ["--details=none", f"--scan-classpath={places[-1]}"]
    status, said = run(argv)
    if not log.is_file():
        return {"fault": said or f"JUnit ended with status {status} and no report"}
    return {"exit": status, "messages": said, "tests": [_line(line) for line in _lines(log)]}


def _lines(log: Path) -> list[str]:
    return [line for line in log.read_text(encoding="utf-8").split("\n") if line]


def _line(line: str) -> list[Any]:
    owner, name, state, took, hits = line.split("\t")
    return [test_id(owner, name), _STATES[state], int(took), [int(hit) for hit in hits.split(",") if hit]]
