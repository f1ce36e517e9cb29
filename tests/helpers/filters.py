"""Runs a system-call filter as the kernel would."""

from __future__ import annotations

import struct

from sandbox.guest import seccomp


def run_filter(code: bytes, architecture: int, number: int, argument: int = 0, second: int = 0) -> int:
    """Return the filter's answer to one call with these first arguments."""
    lines = list(struct.iter_unpack("=HBBI", code))
    data = {seccomp.NUMBER: number, seccomp.ARCHITECTURE: architecture, seccomp.FIRST_ARGUMENT: argument}
    data[seccomp.FIRST_ARGUMENT + 8] = second
    at, value = 0, 0
    while True:
        operation, yes, no, operand = lines[at]
        at += 1
        if operation == seccomp.LOAD:
            value = data[operand]
        elif operation == seccomp.RETURN:
            return int(operand)
        else:
            holds = {
                seccomp.EQUAL: value == operand,
                seccomp.AT_LEAST: value >= operand,
                seccomp.ANY_BIT: bool(value & operand),
            }[operation]
            at += yes if holds else no
