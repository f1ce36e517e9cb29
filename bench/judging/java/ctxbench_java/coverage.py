"""Runs in the box: runs the whole suite with probes, to find which test runs which block. Trusts the repository."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .judging import FAILED, PASSED, SKIPPED, WHOLE, entry_of_test, selectors, test_id
from .programs import JARS, OWN, TOOLS, class_path, compile_files, copy_rest, java_files, program, run, virtual_machine

UNSELECTABLE = "unselectable"
"""State of a test that passes only with the whole suite."""
_SERVICE = "META-INF/services/org.junit.platform.launcher.TestExecutionListener"
_STATES = {"SUCCESSFUL": PASSED, "ABORTED": SKIPPED, "FAILED": FAILED}
_CLASSES = (r"[^$]*", r".+\$Test.*|.*\$.*Tests?")
"""Patterns of test classes: any outer class; an inner class only with a test's name."""
_HEAP = 640


def measure_coverage(arguments: dict[str, Any]) -> dict[str, Any]:
    """Compile sources with probes, run the suite, then run the passing tests one by one.

    Args:
        arguments: ``main`` (source folders), ``test`` (test files with probes), ``folder`` (working directory),
            ``resources``, ``flags``, ``encoding``, ``release``, ``jars``, ``probes`` (their number), ``deselected``
            (ids of tests and names of classes to leave out).

    Returns:
        ``tests``: [id, state, processor milliseconds, probes] for each invocation of a test in the suite, with ``exit``
        and ``messages``. Or ``fault``: the output of javac or JUnit after a failure.
    """
    classes, log = OWN / "probed", OWN / "coverage.tsv"
    sources = [*java_files(arguments["main"]), str(TOOLS / "Probe.java")]
    options = {"encoding": arguments["encoding"], "release": arguments["release"]}
    jars = [*arguments["jars"], *JARS]
    status, output = compile_files(sources, classes, on=class_path(jars=jars), heap=_HEAP, **options)
    if status:
        return {"fault": output}
    copy_rest(arguments["main"], classes)
    service = classes / _SERVICE
    service.parent.mkdir(parents=True, exist_ok=True)
    service.write_text("ctxbench.Probe\n", encoding="utf-8")
    test_jar, tests = OWN / "test.jar", OWN / "probed-tests"
    if arguments["test"]:
        on = class_path(classes, test_jar, jars=jars)
        status, output = compile_files(arguments["test"], tests, on=on, heap=_HEAP, **options)
        if status:
            return {"fault": output}
    # Classes with probes come before the same classes without.
    places = [classes, tests, *arguments["resources"], test_jar]
    defined = [f"-Dctxbench.coverage={log}", f"-Dctxbench.probes={int(arguments['probes'])}"]
    argv = [*_java(arguments, places), *defined, "org.junit.platform.console.ConsoleLauncher"]
    argv += ["--disable-banner", "--disable-ansi-colors", "--details=none", f"--scan-classpath={test_jar}"]
    argv += [f"--include-classname={pattern}" for pattern in _CLASSES]
    deselected = set(arguments["deselected"])
    argv += [f"--exclude-classname={_pattern(name)}" for name in sorted(deselected) if "#" not in name]
    status, output = run(argv, folder=arguments["folder"])
    if not log.is_file():
        return {"fault": output or f"JUnit ended with status {status} and no report"}
    rows = [row for row in map(_line, _lines(log)) if row[0] not in deselected]
    return {"exit": status, "messages": output, "tests": _selectable(rows, arguments)}


def _pattern(name: str) -> str:
    return f"^{re.escape(name)}(\\$.*)?$"


def _java(arguments: Mapping[str, Any], places: Iterable[Path | str]) -> list[str]:
    scratch = OWN / "tmp"
    scratch.mkdir(exist_ok=True)
    path = class_path(*(Path(place).absolute() for place in places), jars=[*arguments["jars"], *JARS])
    flags = [*virtual_machine(_HEAP), f"-Djava.io.tmpdir={scratch}", *arguments["flags"]]
    return [program("java"), *flags, "-cp", path]


def _selectable(rows: Sequence[list[Any]], arguments: Mapping[str, Any]) -> list[list[Any]]:
    """Return the rows with ids that the judge can select. A test that fails alone gets its whole class's id."""
    passed = {name for name, state, _, _ in rows if state == PASSED}
    alone = _run_alone(passed, arguments)
    lost = passed - alone
    renamed = {name: name.removesuffix(WHOLE) + WHOLE for name in lost}
    whole = _run_alone({new for new in renamed.values() if new not in passed}, arguments)
    selectable = []
    for name, state, took, hits in rows:
        if name not in lost or state != PASSED:
            selectable.append([name, state, took, hits])
        elif renamed[name] in whole | alone:
            selectable.append([renamed[name], state, took, hits])
        else:
            selectable.append([name, UNSELECTABLE, took, hits])
    return selectable


def _run_alone(tests: set[str], arguments: Mapping[str, Any]) -> set[str]:
    option_of = {test: selectors([test])[0] for test in tests}
    options = sorted(set(option_of.values()))
    if not options:
        return set()
    tools, listing, log = (OWN / name for name in ("alone", "alone.txt", "alone.tsv"))
    program_of_ours = [str(TOOLS / "Alone.java")]
    compile_files(program_of_ours, tools, on=class_path(), encoding="UTF-8", release=arguments["release"])
    listing.write_text("".join(f"{option}\n" for option in options), encoding="utf-8")
    places = [tools, OWN / "main.jar", *arguments["resources"], OWN / "test.jar"]
    argv = [*_java(arguments, places), "ctxbench.Alone", str(listing), str(log)]
    _, output = run(argv, folder=arguments["folder"])
    if not log.is_file():
        raise RuntimeError(f"the tests could not be run one by one: {output}")
    states: dict[str, dict[str, set[str]]] = {option: {} for option in options}
    for line in _lines(log):
        number, owner, name, state = line.split("\t")
        states[options[int(number)]].setdefault(test_id(owner, name), set()).add(_STATES[state])
    return {test for test in tests if entry_of_test(states[option_of[test]], test) == {PASSED}}


def _lines(log: Path) -> list[str]:
    return [line for line in log.read_text(encoding="utf-8").split("\n") if line]


def _line(line: str) -> list[Any]:
    owner, name, own, state, took, hits = line.split("\t")
    test = test_id(owner, name) if own == "true" else test_id(owner, name).removesuffix(WHOLE) + WHOLE
    return [test, _STATES[state], int(took), [int(hit) for hit in hits.split(",") if hit]]
