"""Runs a Python repository's tests inside a box, in the repository's root. Importing this package imports pytest.

In `run_tests`, the process that writes the result never runs the repository's code. A child process does. It has only
the writing end of one pipe, and neither the nonce nor the result's channel.
"""

from __future__ import annotations

from typing import Any

from . import covering, parent
from .options import import_late_modules

import_late_modules()


def run_tests(arguments: dict[str, Any]) -> dict[str, Any]:
    """Run tests on one changed file.

    Args:
        arguments: ``tests`` (ids, as `cover` names them), ``target`` (the changed file, which the tests must import),
            ``canaries`` (tests that must fail, ``{"name", "unittest", "place", "left", "right"}``: they assert that two
            different numbers are equal, at ``place``, 0 to 1, of the order), ``arguments`` (of pytest), ``nonce``
            (returned unchanged), ``seconds`` (processor limit, by SIGXCPU), ``each`` and ``idle`` (processor limit of a
            test's phase, and seconds of waiting, by SIGKILL; 0 for none).

    Returns:
        ``nonce``, ``exit`` or ``signal`` of the child, ``changed`` (at most 5 files) and ``events``, lines of JSON
        that `bench.judging.python.reports` reads: ``["collected", [indexes in tests]]``, ``["broken", where,
        message]``, ``["phase", index, phase, outcome, raised, ran, message]`` (canaries have the indexes -1, -2, ...;
        `ran`: whether the test's function returned, null if unknown), ``["loaded", bool]``, ``["altered", [names]]``,
        ``["end", exit status]``.
    """
    return parent.run_tests(arguments)


def cover(arguments: dict[str, Any]) -> dict[str, Any]:
    """Run the whole suite of a trusted repository under coverage.

    Args:
        arguments: ``paths`` (of the tests; empty: pytest finds them), ``deselect`` (ids of tests, or
            paths to ignore), ``arguments`` (of pytest).

    Returns:
        ``exit``, ``tests`` ([id, outcome, processor seconds]), ``broken`` ([where, message]), ``sets`` (of indexes in
        tests, as ``0-3,7``), ``lines`` ({path: {line from 1: index in sets}}), ``modules`` (test modules; the first,
        "", stands for code outside tests and imports), ``imports`` ({path: {line: [indexes of modules that ran it]}}).
    """
    return covering.cover(arguments)


def compiled(arguments: dict[str, Any]) -> dict[str, str]:
    """Import tests of a trusted repository, and compile the modules that they import.

    Args:
        arguments: ``paths`` (of test files), ``arguments`` (of pytest).

    Returns:
        Contents of bytecode files by path, compressed, in base64.
    """
    return covering.compiled(arguments)
