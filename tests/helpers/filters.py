"""Runs a system-call filter as the kernel would."""

import struct

from ctxbench.sandbox.guest import seccomp


def run_filter(code: bytes, architecture: int, number: int, *arguments: int) -> int:
    """Return the filter's answer to one call. Missing arguments are 0."""
    lines = list(struct.iter_unpack("=HBBI", code))
    data = {seccomp.NUMBER: number, seccomp.ARCHITECTURE: architecture}
    for index in range(6):
        data[seccomp.FIRST_ARGUMENT + 8 * index] = (*arguments, *(6 * [0]))[index]
    at, value = 0, 0
    while True:
        operation, yes, no, operand = lines[at]
        at += 1
        if operation == seccomp.LOAD:
            value = data[operand]
        elif operation == seccomp.MASK:
            value &= operand
        elif operation == seccomp.RETURN:
            return int(operand)
        else:
            holds = {
                seccomp.EQUAL: value == operand,
                seccomp.AT_LEAST: value >= operand,
                seccomp.ANY_BIT: bool(value & operand),
            }[operation]
            at += yes if holds else no
