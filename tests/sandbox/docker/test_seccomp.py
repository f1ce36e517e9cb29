"""The seccomp profile: its rules, and the calls that it refuses in a box."""

import json

import pytest

from ctxbench.sandbox.docker.box import DockerBox
from scripts import seccomp_profile
from tests.sandbox.docker.standin import run

NUMBERS = {
    "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "pidfd_getfd": 438, "kcmp": 312,
    "io_uring_setup": 425, "userfaultfd": 323, "bpf": 321, "unshare": 272, "setns": 308, "mount": 165, "umount2": 166,
    "pivot_root": 155, "chroot": 161, "fsopen": 430, "move_mount": 429, "add_key": 248, "request_key": 249,
    "keyctl": 250, "shmget": 29, "semget": 64, "msgget": 68, "mq_open": 240, "reboot": 169, "kexec_load": 246,
    "init_module": 175, "swapon": 167, "acct": 163, "quotactl": 179, "settimeofday": 164, "sethostname": 170,
    "syslog": 103, "iopl": 172, "ioperm": 173, "perf_event_open": 298, "fanotify_init": 300,
    "open_by_handle_at": 304, "name_to_handle_at": 303, "modify_ldt": 154, "memfd_secret": 447, "mbind": 237,
    "move_pages": 279, "io_destroy": 207, "io_cancel": 210,
}  # fmt: skip
"""System call numbers on x86_64."""
CALL = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
value = {}
for name, number in %s.items():
    # Arguments that no call takes: one that is let through fails with another error.
    ctypes.set_errno(0)
    libc.syscall(number, -1, -1, -1, -1, -1, -1)
    value[name] = ctypes.get_errno()
"""
NATIVE = """
import ctypes, mmap, os
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes(%r))
pid = os.fork()
if not pid:
    ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
    os._exit(0)
value = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""


def names(action: str) -> set[str]:
    profile = json.loads(seccomp_profile.OUT.read_text())
    return {name for rule in profile["syscalls"] if rule["action"] == action for name in rule["names"]}


def test_the_profile_file_equals_the_scripts_output() -> None:
    assert json.loads(seccomp_profile.OUT.read_text()) == seccomp_profile.profile()


def test_blocked_calls_are_not_allowed() -> None:
    blocked = {name for group in seccomp_profile.BLOCKED.values() for name in group.split()}
    assert not blocked & names("SCMP_ACT_ALLOW")
    assert set(NUMBERS) <= blocked
    assert json.loads(seccomp_profile.OUT.read_text())["defaultAction"] == "SCMP_ACT_ERRNO"


def test_arguments_are_compared_by_their_lower_32_bits() -> None:
    """libseccomp compares 64 bits, the kernel reads an `int`: "not 1" would let 1 + 2**32 pass as 1."""
    tests = [test for rule in seccomp_profile.profile()["syscalls"] for test in rule.get("args", [])]
    assert {test["op"] for test in tests} == {"SCMP_CMP_MASKED_EQ"}
    assert all(test["value"] < 1 << 32 and test["valueTwo"] & ~test["value"] == 0 for test in tests)


@pytest.mark.parametrize("values", [[1], [0], [0xFFFFFFFF], [7, 8, 26, 50, 51, 52], [0x5423, 0x8940, 0x8941]])
def test_masks_match_all_values_except_the_listed_ones(values: list[int]) -> None:
    tests = list(seccomp_profile._all_but(1, values))
    for value in {*range(200), *(value ^ 1 << bit for value in values for bit in range(32)), *values}:
        hits = [test for test in tests if value & test["value"] == test["valueTwo"]]
        assert len(hits) == (value not in values), value


def test_unconditional_calls_are_listed_once() -> None:
    listed = [name for group in seccomp_profile.ALLOWED.values() for name in group.split()]
    assert len(listed) == len(set(listed))


@pytest.mark.slow
def test_a_box_is_refused_every_blocked_call(box: DockerBox) -> None:
    if run(box, "import os; value = os.uname().machine") != "x86_64":
        pytest.skip("the numbers are x86_64's")
    assert run(box, CALL % NUMBERS) == dict.fromkeys(NUMBERS, 1)
    # Calls whose flags a filter cannot read are reported as absent, so that C libraries use older calls.
    absent = {"clone3": 435, "io_setup": 206, "io_submit": 209, "io_getevents": 208, "io_pgetevents": 333}
    assert run(box, CALL % absent) == dict.fromkeys(absent, 38)
    assert run(box, "import os; os.sync(); value = 'answered'") == "answered"


@pytest.mark.slow
def test_calls_are_judged_by_their_arguments(box: DockerBox) -> None:
    """The stand-in for the guest has no filter, so this tests the engine's filter."""
    code = """
import ctypes, errno, mmap, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def said(call, *arguments):
    ctypes.set_errno(0)
    call(*arguments)
    return errno.errorcode.get(ctypes.get_errno(), "done")
value = []
with socket.socket() as made:
    before = made.getsockopt(1, 8)
    for option in (7, 8, 26, 50, 51, 52, 2, 9, 15):
        value.append(said(libc.setsockopt, made.fileno(), 1, option, ctypes.byref(ctypes.c_int(1 << 20)), 4))
    value.append(made.getsockopt(1, 8) == before)
    value.append(said(libc.setsockopt, made.fileno(), 6, 1, ctypes.byref(ctypes.c_int(1)), 4))
libc.mmap.restype = ctypes.c_void_p
value += [said(libc.mmap, None, ctypes.c_size_t(4096), 3, flags, -1, ctypes.c_long(0)) for flags in (0x22, 0x40022)]
value += [said(libc.memfd_create, b"x", flags) for flags in (1, 5)]
value += [said(libc.socket, 2, kind, protocol) for kind, protocol in ((1, 0), (1, 6), (2, 17), (1, 132), (1, 262))]
"""
    options = ["done", "done", "EPERM", "EPERM", "EPERM", "EPERM", "done", "done", "done"]
    rest = [True, "done", "done", "EPERM", "done", "EPERM", "done", "done", "done", "EPERM", "EPERM"]
    assert run(box, code) == options + rest


@pytest.mark.slow
def test_the_upper_half_of_an_argument_cannot_bypass_the_filter(box: DockerBox) -> None:
    if run(box, "import os; value = os.uname().machine") != "x86_64":
        pytest.skip("the numbers are x86_64's")
    code = """
import ctypes, errno, socket
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.argtypes = [ctypes.c_long, *[ctypes.c_uint64] * 5]
def said(number, *arguments):
    ctypes.set_errno(0)
    failed = libc.syscall(number, *arguments, *[0] * (5 - len(arguments))) < 0
    return errno.errorcode[ctypes.get_errno()] if failed else "done"
value = []
with socket.socket() as made:
    size = ctypes.c_int(4 << 20)
    before = made.getsockopt(1, 8)
    for high in (0, 1 << 32):
        for level, option in ((high | 1, 26), (1, high | 26), (high | 1, 50), (high | 1, 8), (1, high | 8)):
            value.append(said(54, made.fileno(), level, option, ctypes.addressof(size), 4))
        value.append(said(16, made.fileno(), high | 0x8940, ctypes.addressof(ctypes.create_string_buffer(64))))
        value.append(said(41, high | 16, 3, 0))
        value.append(said(41, 2, 1, high | 132))
        value.append(said(41, 2, 0o2000000 | 1, high | 6))
        value.append(said(54, made.fileno(), high | 6, 1, ctypes.addressof(ctypes.c_int(1)), 4))
    value.append(made.getsockopt(1, 8) == before)
"""
    once = ["EPERM", "EPERM", "EPERM", "done", "done", "EPERM", "EPERM", "EPERM", "done", "done"]
    assert run(box, code) == [*once, *once, True]


@pytest.mark.slow
def test_sockets_and_requests_that_load_kernel_modules_are_refused(box: DockerBox) -> None:
    code = """
import errno, fcntl, socket
value = []
for family, kind in ((2, 6), (2, 10), (2, 5), (2, 3), (10, 5), (10, 6), (1, 10)):
    try: socket.socket(family, kind, 0).close(); value.append("made")
    except OSError as error: value.append(errno.errorcode[error.errno])
with socket.socket() as made:
    for request in (0x5423, 0x8940, 0x8941, 0x8980, 0x8981, 0x8982, 0x8983, 0x89a0, 0x89a1):
        try: fcntl.ioctl(made, request, bytes(64)); value.append("done")
        except OSError as error: value.append(errno.errorcode[error.errno])
    import struct
    value.append(struct.unpack("16sI", fcntl.ioctl(made, 0x8933, struct.pack("16sI", b"lo", 0)))[1])
for kind in (1, 2, 3, 5):
    socket.socket(socket.AF_UNIX, kind).close()
"""
    assert run(box, code) == ["EPERM"] * 16 + [1]


@pytest.mark.slow
@pytest.mark.parametrize("family", [16, 17, 29, 38, 40, 44], ids=["NETLINK", "PACKET", "CAN", "ALG", "VSOCK", "XDP"])
def test_a_box_can_open_only_plain_sockets(box: DockerBox, family: int) -> None:
    code = "import socket\nfor kind in (socket.SOCK_RAW, socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):"
    code += "\n try: socket.socket(%d, kind).close(); value = 'made'; break\n except PermissionError: value = 'refused'"
    assert run(box, code % family) == "refused"
    for plain in (1, 2, 10):
        assert run(box, f"import socket; socket.socket({plain}, socket.SOCK_STREAM).close(); value = 1") == 1


@pytest.mark.slow
def test_clone_cannot_create_namespaces(box: DockerBox) -> None:
    code = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
value = []
for flag in (0x20000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
    ctypes.set_errno(0)
    pid = libc.syscall(56, flag | 17, 0, 0, 0, 0)
    value.append((pid, ctypes.get_errno()))
"""
    assert run(box, code) == [[-1, 1]] * 7


@pytest.mark.slow
def test_system_calls_of_32_bit_abis_kill_the_process(box: DockerBox) -> None:
    if run(box, "import os; value = os.uname().machine") != "x86_64":
        pytest.skip("machine code of x86_64")
    # mov eax, 20 (getpid); int 0x80; ret. A filter with only the 64-bit calls kills the process with SIGSYS.
    assert run(box, NATIVE % [0xB8, 20, 0, 0, 0, 0xCD, 0x80, 0xC3]) == -31
    # mov eax, 0x40000027 (x32's getpid); syscall; ret.
    assert run(box, NATIVE % [0xB8, 0x27, 0, 0, 0x40, 0x0F, 0x05, 0xC3]) == -31
    # The same machine code with a 64-bit call works, so the page itself is not refused.
    assert run(box, NATIVE % [0xB8, 0x27, 0, 0, 0, 0x0F, 0x05, 0xC3]) == 0


@pytest.mark.slow
def test_calls_that_ordinary_programs_need_work(box: DockerBox) -> None:
    code = """
import asyncio, multiprocessing, sqlite3, subprocess, sys, threading, tempfile, os
os.environ["TMPDIR"] = "/work"
assert subprocess.run([sys.executable, "-c", "print(6)"], capture_output=True).stdout == b"6\\n"
thread = threading.Thread(target=int); thread.start(); thread.join()
context = multiprocessing.get_context("fork")
queue = context.Queue()
process = context.Process(target=queue.put, args=(7,)); process.start()
value = [queue.get(timeout=20)]
process.join()
async def main():
    made = await asyncio.create_subprocess_exec("echo", "8", stdout=-1)
    return int((await made.communicate())[0])
value.append(asyncio.run(main()))
base = sqlite3.connect("/work/base"); base.execute("create table t (a)"); base.commit()
value.append(len(base.execute("select * from sqlite_master").fetchall()))
"""
    assert run(box, code, 60) == [7, 8, 1]
