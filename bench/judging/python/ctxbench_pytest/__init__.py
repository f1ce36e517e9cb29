"""Runs the tests of a Python repository inside a box; the working directory is the repository's root.

``ctxbench_pytest:run_tests`` judges one changed file. Its arguments:

- ``tests``: ids of the tests to run, as `cover` names them.
- ``target``: path of the changed file, which the tests must import.
- ``canaries``: tests that must fail, as a list of ``{"name", "unittest", "place", "left", "right"}``. Each asserts that
  two different numbers are equal, at ``place`` (0 to 1) of the order.
- ``arguments``: more arguments of pytest.
- ``nonce``: is returned unchanged.
- ``seconds``: processor time after which SIGXCPU stops the process that runs the tests.
- ``each``, ``idle``: processor time of one phase of a test, and seconds of waiting, after which SIGKILL stops that
  process; 0 for no limit.

It returns ``{"nonce", "exit", "signal", "events", "changed"}``: `exit` or `signal` of the process that ran the tests,
the files of the repository that it wrote, and its events, one JSON list per line
(`bench.judging.python.reports` reads them):
``["collected", [positions in tests]]``, ``["broken", where, message]``,
``["phase", position, phase, outcome, raised, ran, message]`` (canaries have the positions -1, -2, ...;
`raised`: whether the phase did; `ran`: whether the test's function returned, null if unknown),
``["loaded", bool]``, ``["altered", [names]]``, ``["end", exit status]``.

The caller's process writes the result and never runs code of the repository. A child process runs that code; it has
only the writing end of one pipe, and neither the nonce nor the result's channel.

``ctxbench_pytest:cover`` runs the whole suite under coverage, for published, trusted repositories. Its arguments:
``paths`` (of the tests; empty: pytest finds these), ``deselect`` (node ids to leave out), ``arguments``. It returns
``{"exit", "tests": [[id, outcome, processor seconds], ...], "broken": [[where, message], ...],
"sets": ["0-3,7", ...], "lines": {path: {line: position in sets}},
"modules": ["", module, ...], "imports": {path: {line: [positions in modules]}}}``. A set contains positions in tests.
`imports` lists the test modules whose import ran a line; "" stands for any time before. Lines are 1-based.

``ctxbench_pytest:compiled`` imports tests of a trusted repository and compiles what they import. Its arguments:
``paths`` (ids of tests), ``arguments``. It returns ``{path: content}`` of bytecode files, compressed, in base64.

Importing this package imports pytest and its late imports, so that a box has them before a job.
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
    """Run the suite and return which test ran which line; see the module for arguments and result."""
    return covering.cover(arguments)


def compiled(arguments: dict[str, Any]) -> dict[str, str]:
    """Compile tests and their imports; see the module for arguments and result."""
    return covering.compiled(arguments)
