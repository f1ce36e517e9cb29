"""Runs in the box: compiles a changed file, and runs the expected tests and the canary, a test that must fail."""

from __future__ import annotations

import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from xml.etree import ElementTree as ET

from .programs import JARS, OVERTIME, OWN, class_path, compile_files, program, run, virtual_machine

T = TypeVar("T")

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
WHOLE = "[*]"
"""Suffix of a test's id if it runs only with its whole class."""
_BYTES = 32 * 1024 * 1024
_TEXT = 2000
_INVOCATION = re.compile(r"([\w$]+|.*\))\[.*\]", re.DOTALL)
"""JUnit 4's ``name[anything]`` and JUnit 5's ``name(types)[number]``."""


def test_id(owner: str, name: str) -> str:
    """Return a JUnit test's id: ``Class#method``, or ``Class#method…[*]`` for a test with parameters.

    >>> test_id("a.FooTest", "works()"), test_id("a.FooTest", "adds(int)[2]"), test_id("a.BarTest", "adds[7]")
    ('a.FooTest#works', 'a.FooTest#adds(int)[*]', 'a.BarTest#adds[*]')
    """
    plain = name.removesuffix("()")
    if re.fullmatch(r"[\w$]+", plain):
        return f"{owner}#{plain}"
    match = _INVOCATION.fullmatch(plain)
    return f"{owner}#{match.group(1) if match else plain}{WHOLE}"


def entry_of_test(reports: Mapping[str, T], test: str) -> T | None:
    """Return a test's entry in `reports`, under its id or its id without `WHOLE`; None if both are missing."""
    return reports.get(test, reports.get(test.removesuffix(WHOLE)))


def read_reports(folder: Path) -> dict[str, tuple[str, str, float]]:
    """Read JUnit's reports in a folder. Return each test's worst state, its message, and total seconds, by test id."""
    cases: dict[str, tuple[str, str, float]] = {}
    for path in sorted(folder.glob("TEST-*.xml")):
        if path.stat().st_size > _BYTES:
            continue
        try:
            # JUnit wrote this file where the policy keeps judged code from writing; expat limits entity expansion.
            root = ET.fromstring(path.read_bytes())  # noqa: S314
        except ET.ParseError:
            continue  # an incomplete report: a missing test has not passed
        for case in root.iter("testcase"):
            name = test_id(case.get("classname", ""), case.get("name", ""))
            cases[name] = _worse(cases.get(name), _case(case))
    return cases


def _case(case: ET.Element) -> tuple[str, str, float]:
    seconds = float(case.get("time", "0").replace(",", "") or 0)
    for tag, state in (("failure", FAILED), ("error", FAILED), ("skipped", SKIPPED)):
        node = case.find(tag)
        if node is not None:
            message = node.get("message") or (node.text or "").strip().partition("\n")[0]
            return state, f"{node.get('type', '')}: {message}"[:_TEXT] if state == FAILED else message[:_TEXT], seconds
    return PASSED, "", seconds


def _worse(first: tuple[str, str, float] | None, second: tuple[str, str, float]) -> tuple[str, str, float]:
    if first is None:
        return second
    order = (PASSED, SKIPPED, FAILED)
    worst = max(first, second, key=lambda case: order.index(case[0]))
    return worst[0], worst[1], first[2] + second[2]


CANARY = "ctxbench.Canary#alarm"
_CONSOLE = "org.junit.platform.console.ConsoleLauncher"
_PLAIN = re.compile(r"[\w.$]+#[\w$]+")
_POLICY = Path(__file__).parent / "judge.policy"
_HEAP = 384


def judge(arguments: dict[str, Any]) -> dict[str, Any]:
    """Compile the changed file and run tests against it.

    Args:
        arguments: ``path`` (the changed file), ``types`` (which the file may declare), ``classes`` (entries of the main
            jar that the file replaces), ``tests`` (ids), ``folder`` (working directory), ``resources`` (folders of the
            class path), ``flags`` (of Java), ``encoding``, ``release``, ``jars``, ``secret``, ``processor_seconds``
            (for javac and for the tests each).

    Returns:
        ``compiled`` and ``messages``. If the file declares a forbidden class, ``foreign`` (its name) and no more.
        Otherwise, the last program's ``exit``, ``signal`` and ``overtime`` (whether it used up its processor time).
        If the tests ran, also ``canary`` and ``tests``: [state, message] by id.
    """
    main, overlay = OWN / "main.jar", OWN / "overlay"
    remove_entries(main, set(arguments["classes"]))
    # The file needs neither JUnit nor the tests.
    status, output = compile_files(
        [arguments["path"]],
        overlay,
        on=class_path(main, jars=arguments["jars"]),
        encoding=arguments["encoding"],
        release=arguments["release"],
        seconds=arguments["processor_seconds"],
    )
    if status:
        return {"compiled": False, "messages": output, **_end(status)}
    strange = unexpected_class(overlay, arguments["types"])
    if strange:
        return {"compiled": True, "messages": output, "foreign": strange}
    places = [overlay, main, *arguments["resources"], OWN / "test.jar", OWN / "tools.jar"]
    exit_status, output = run_tests(
        arguments["tests"],
        places,
        flags=[*arguments["flags"], *guarded(arguments["secret"])],
        jars=arguments["jars"],
        folder=arguments["folder"],
        seconds=arguments["processor_seconds"],
    )
    outcomes = read_reports(OWN / "reports")
    expected = {name: entry_of_test(outcomes, name) for name in arguments["tests"]}
    return {
        "compiled": True,
        "messages": output,
        **_end(exit_status),
        "canary": outcomes.get(CANARY),
        "tests": {name: [*outcome[:2]] for name, outcome in expected.items() if outcome is not None},
    }


def _end(status: int) -> dict[str, Any]:
    return {"exit": status, "signal": -status if status < 0 else None, "overtime": status == OVERTIME}


def guarded(secret: str) -> list[str]:
    """Return Java's flags that enable ``judge.policy`` and pass `secret` to the canary."""
    return [
        "-Djava.security.manager",
        f"-Djava.security.policy=={_POLICY}",
        f"-Dctxbench.own={OWN}",
        f"-Dctxbench.canary={secret}",
    ]


def unexpected_class(overlay: Path, types: Sequence[str]) -> str:
    """Return a compiled class in `overlay` that is neither one of `types` nor nested in one; "" if there is none."""
    for path in sorted(overlay.rglob("*.class")):
        name = path.relative_to(overlay).as_posix().removesuffix(".class")
        if not any(name == type_name or name.startswith(f"{type_name}$") for type_name in types):
            return name
    return ""


def run_tests(
    tests: Iterable[str],
    places: Sequence[Path | str],
    *,
    flags: Sequence[str],
    jars: Sequence[str],
    folder: str,
    seconds: int,
) -> tuple[int, str]:
    """Run tests and the canary. Return the exit status and output of JUnit's launcher, shortened as in `run`."""
    scratch = tempfile.mkdtemp(prefix="tmp-", dir=OWN)
    argv = [program("java"), *virtual_machine(_HEAP), f"-Djava.io.tmpdir={scratch}"]
    path = class_path(*(Path(place).absolute() for place in places), jars=[*jars, *JARS])
    argv += [*flags, "-cp", path, _CONSOLE]
    argv += [
        "--disable-banner",
        "--disable-ansi-colors",
        "--details=none",
        f"--reports-dir={OWN / 'reports'}",
    ]
    return run([*argv, *selectors([CANARY, *tests])], seconds, folder)


def selectors(tests: Iterable[str]) -> list[str]:
    """Return the launcher's options that select tests, as methods or if necessary as classes."""
    ids = sorted(set(tests))
    whole = {name.partition("#")[0] for name in ids if not _PLAIN.fullmatch(name)}
    single = [f"--select-method={name}" for name in ids if name.partition("#")[0] not in whole]
    return [*(f"--select-class={name}" for name in sorted(whole)), *single]


def remove_entries(jar: Path, names: set[str]) -> None:
    """Remove entries from a jar, such as the original file's classes, which contain the answer."""
    beside = jar.with_suffix(".new")
    with zipfile.ZipFile(jar) as old, zipfile.ZipFile(beside, "w", zipfile.ZIP_STORED) as new:
        for entry in old.infolist():
            if entry.filename not in names:
                new.writestr(entry.filename, old.read(entry))
    shutil.move(beside, jar)
