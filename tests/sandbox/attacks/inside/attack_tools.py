"""Shared functions of attack programs. They run inside a box, as part of the environment's library."""

import ctypes
import errno
import os
import platform

_LIBC = ctypes.CDLL(None, use_errno=True)
_COLUMN = {"x86_64": 0, "aarch64": 1}[platform.machine()]
NUMBERS = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_settime": (227, 112),
    "clone": (56, 220),
    "clone3": (435, 435),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsopen": (430, 430),
    "init_module": (175, 105),
    "ioctl": (16, 29),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "mknodat": (259, 33),
    "modify_ldt": (154, None),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "mq_open": (240, 180),
    "msgget": (68, 186),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "semget": (64, 190),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "setsockopt": (54, 208),
    "settimeofday": (164, 170),
    "shmget": (29, 194),
    "socket": (41, 198),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
}


def kernel(name, *arguments):
    """Make a system call past the C library; raise OSError if it fails. Calls that a machine lacks are ENOSYS."""
    number = NUMBERS[name][_COLUMN] if isinstance(name, str) else name
    if number is None:
        raise OSError(errno.ENOSYS, name)
    whole = [ctypes.c_long(part) if isinstance(part, int) else part for part in arguments]
    got = _LIBC.syscall(ctypes.c_long(number), *whole)
    if got == -1:
        raise OSError(ctypes.get_errno(), name)
    return got


def word(act):
    """Return the result of an action: an error's name, or ``done`` and the returned value."""
    try:
        got = act()
    except OSError as error:
        return errno.errorcode.get(error.errno, type(error).__name__)
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is printed
        return type(error).__name__
    return "done" if got is None else f"done {got!r}"


def tried(what, act):
    """Print the result of an action."""
    print(f"{what}: {word(act)}", flush=True)


def in_child(what, act):
    """Run an action in a child process, which it may kill, and print the result."""
    child = os.fork()
    if not child:
        tried(what, act)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        print(f"{what}: signal {os.WTERMSIG(status)}", flush=True)


def calls(names, *arguments):
    """Make system calls, each with the same arguments, and print one line each."""
    for name in names.split():
        in_child(name, lambda name=name: kernel(name, *(arguments or (0, 0, 0, 0, 0, 0))))
