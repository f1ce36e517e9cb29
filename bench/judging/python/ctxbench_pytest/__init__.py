"""Runs the tests of a Python repository inside a box; the working directory is the repository's root.

``ctxbench_pytest:run_tests`` judges one changed file. Its arguments:

- ``tests``: ids of the tests to run, as `cover` names them; nothing else is run.
- ``target``: path of the changed file, which must be what the tests import.
- ``canaries``: tests that must be reported as failed, as a list of ``{"name", "unittest", "place",
  "left", "right"}``: each asserts that two different numbers are equal, at ``place`` (0 to 1) of the order.
- ``arguments``: more arguments of pytest.
- ``nonce``: comes back as it is.
- ``seconds``: processor time after which the process that runs the tests is ended by SIGXCPU.
- ``each``, ``idle``: processor time of one phase of a test, and seconds of one that waits, after which that process
  is ended by SIGKILL; 0 for as long as it takes.

It returns ``{"nonce", "exit", "signal", "events", "changed"}``: `exit` or `signal` of the process that ran
the tests, which of the repository's files it wrote to, and its events, one JSON list a line
(`bench.judging.python.reports` reads them):
``["collected", [positions in tests]]``, ``["broken", where, message]``,
``["phase", position, phase, outcome, raised, ran, message]`` (canaries have the positions -1, -2, ...),
(`raised`: whether the phase did; `ran`: whether the test's function returned, null where that cannot be seen),
``["loaded", bool]``, ``["altered", [names]]``, ``["end", exit status]``.

The caller's process writes the result and never runs code of the repository: that happens in a child which
has the writing end of one pipe, and neither the nonce's use nor the result's channel.

``ctxbench_pytest:cover`` runs the whole suite under coverage. Its arguments: ``paths`` (where the tests
are; empty: where pytest finds them), ``deselect`` (node ids left out), ``arguments``. It returns
``{"exit", "tests": [[id, outcome, seconds of processor time], ...], "broken": [[where, message], ...],
"sets": ["0-3,7", ...], "lines": {path: {line: position in sets}},
"modules": ["", module, ...], "imports": {path: {line: [positions in modules]}}}``. A set holds positions in tests;
`imports` says which modules of tests ran a line when they were imported, the empty one what runs before any is. Lines
are 1-based, and `bench.judging.python.reports.read_coverage` makes this plain. It trusts the repository: it is for
repositories as they were published.

``ctxbench_pytest:compiled`` imports tests and compiles what that imports. Its arguments: ``paths`` (ids of tests),
``arguments``. It returns ``{path: content}`` of bytecode files, compressed, in base64. It trusts the repository, too.

Importing this package imports pytest with what pytest imports late: a box does it before a job comes.
"""

from __future__ import annotations

from typing import Any

from . import covering, parent
from .options import late

late()


def run_tests(arguments: dict[str, Any]) -> dict[str, Any]:
    """Run some tests on one changed file; see the module for arguments and result."""
    return parent.run_tests(arguments)


def cover(arguments: dict[str, Any]) -> dict[str, Any]:
    """Run the suite and tell which test ran which line; see the module for arguments and result."""
    return covering.cover(arguments)


def compiled(arguments: dict[str, Any]) -> dict[str, str]:
    """Compile tests and what they import; see the module for arguments and result."""
    return covering.compiled(arguments)
