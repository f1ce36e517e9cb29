"""Give up a cell's privileges for good: a process of root keeps nothing beyond reading and computing."""

from __future__ import annotations

import ctypes
import os
import sys

_DAC_READ_SEARCH = 1 << 2
_PR_SET_KEEPCAPS, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _CLEAR_ALL = 8, 24, 38, 47, 4
_VERSION = 0x20080522
"""Version of the structure that sets capabilities: two halves of 32."""


def bound() -> None:
    """Keep programs that this process or its children execute from gaining privileges; held ones stay."""
    if not sys.platform.startswith("linux"):
        return
    libc = ctypes.CDLL(None)
    number = 0
    while libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) == 0:  # a plain user cannot, and has none
        number += 1
    libc.prctl(_PR_CAP_AMBIENT, _CLEAR_ALL, 0, 0, 0)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def drop(uid: int | None, *, reads_all: bool = False) -> None:
    """Become the user `uid`, None to stay the same one, and give up every capability.

    Args:
        uid: the user.
        reads_all: whether to keep one capability, to read files of other users; executed programs lose it.

    Raises:
        OSError: if the kernel refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if reads_all and libc.prctl(_PR_SET_KEEPCAPS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "keep capabilities")
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    if not sys.platform.startswith("linux"):
        return
    capabilities = _DAC_READ_SEARCH if reads_all else 0
    # Effective, permitted, inheritable: the low half of each, then the high ones.
    if libc.capset((ctypes.c_uint32 * 2)(_VERSION, 0), (ctypes.c_uint32 * 6)(capabilities, capabilities)):
        raise OSError(ctypes.get_errno(), "capset")
