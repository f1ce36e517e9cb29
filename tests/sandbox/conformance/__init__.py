"""Conformance checks that run in real boxes, for ctxbench's tests and for authors of other back ends.

for finding in check(MySandbox()):
    print(finding.name, finding.passed, finding.detail)
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ctxbench.sandbox.errors import SandboxError
from ctxbench.sandbox.types import MIB, Environment, Limits, Pool, Sandbox
from tests.sandbox.conformance.jobs import BASIC, BETWEEN, FRESH, LIBRARY
from tests.sandbox.conformance.walls import BOUNDS, ISOLATION

Checks = Mapping[str, Callable[[Pool], str]]
"""A required behaviour -> a function that returns the fault, or an empty string if there is none."""

LIMITS = Limits(
    memory=192 * MIB,
    disk=16 * MIB,
    inodes=2000,
    file_bytes=8 * MIB,
    processes=32,
    open_files=64,
    output=8 * 1024,
    result=64 * 1024,
)
ENVIRONMENT = Environment(
    name="conformance",
    tree={"words/one.py": b"WORD = 'from the tree'\n", "words/two.txt": b"two\n", "run.sh": b"#!/bin/sh\necho ran\n"},
    library={"ctxbench_probe.py": LIBRARY.encode()},
    path=("words",),
    variables=(("CTXBENCH_PROBE", "a value"),),
)
_SHARED: Checks = {**BASIC, **BOUNDS, **ISOLATION, **BETWEEN}
_FRESH: Checks = FRESH
NAMES = (*_SHARED, *_FRESH)
_MANY = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    name: str
    passed: bool
    detail: str
    """The fault, or an empty string if the check passed."""


def check(sandbox: Sandbox, names: Sequence[str] = NAMES) -> Iterator[CheckResult]:
    """Prepare a small environment, run the named checks in it and yield their results.

    Raises:
        SandboxUnavailable: if the back end cannot be used on this machine.
    """
    sandbox.prepare(ENVIRONMENT, lambda _: None)
    for checks, reuse in ((_SHARED, _MANY), (_FRESH, 1)):
        selected = [name for name in checks if name in names]
        if not selected:
            continue
        with sandbox.open(ENVIRONMENT, limits=LIMITS, width=2, reuse=reuse) as pool:
            for name in selected:
                try:
                    detail = checks[name](pool)
                except SandboxError as error:
                    detail = str(error)
                yield CheckResult(name=name, passed=not detail, detail=detail)
