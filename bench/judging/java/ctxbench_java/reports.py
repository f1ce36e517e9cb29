"""Reads JUnit's XML reports: what each test came to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar
from xml.etree import ElementTree as ET

T = TypeVar("T")

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
WHOLE = "[*]"
"""Ends the id of a test that runs with its whole class only."""
_BYTES = 32 * 1024 * 1024
_TEXT = 2000
_INVOCATION = re.compile(r"([\w$]+|.*\))\[.*\]", re.DOTALL)
"""JUnit 4's ``name[anything]``, JUnit 5's ``name(types)[number]``."""


def test_id(owner: str, name: str) -> str:
    """Return ``Class#method``, or ``Class#method…[*]`` for a test that is run with parameters.

    >>> test_id("a.FooTest", "works()"), test_id("a.FooTest", "adds(int)[2]"), test_id("a.BarTest", "adds[7]")
    ('a.FooTest#works', 'a.FooTest#adds(int)[*]', 'a.BarTest#adds[*]')
    """
    plain = name.removesuffix("()")
    if re.fullmatch(r"[\w$]+", plain):
        return f"{owner}#{plain}"
    match = _INVOCATION.fullmatch(plain)
    return f"{owner}#{match.group(1) if match else plain}{WHOLE}"


def of_test(reports: Mapping[str, T], test: str) -> T | None:
    """Return what is kept for a test under its id, or under that of a plain method that runs with its class only."""
    return reports.get(test, reports.get(test.removesuffix(WHOLE)))


def read(folder: Path) -> dict[str, tuple[str, str, float]]:
    """Return test id -> what it came to, its failure's message, seconds; the worst of its invocations."""
    cases: dict[str, tuple[str, str, float]] = {}
    for path in sorted(folder.glob("TEST-*.xml")):
        if path.stat().st_size > _BYTES:
            continue
        try:
            # Written by JUnit, where the policy keeps the judged code from writing; expat bounds entities.
            root = ET.fromstring(path.read_bytes())  # noqa: S314
        except ET.ParseError:
            continue  # half a report: what it would have said is missing, and missing tests have not passed
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
