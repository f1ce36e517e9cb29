"""The kernel: privileges, namespaces, calls that have held holes before, files that are its knobs."""

# ruff: noqa: E501 - attacks are programs as data

from tests.sandbox.attacks.case import Case


def _each(names: str) -> str:
    return "".join(f"{name}: <refused>\n" for name in names.split())


_MOUNTS = "mount umount2 pivot_root chroot fsopen open_tree move_mount mount_setattr"
_KEYS = "keyctl add_key request_key"
_RINGS = "io_uring_setup io_uring_enter io_uring_register"
_PEEK = "process_vm_readv process_vm_writev kcmp pidfd_getfd"
_WATCH = "bpf perf_event_open userfaultfd fanotify_init syslog"
_ADMIN = (
    "kexec_load kexec_file_load init_module finit_module delete_module reboot swapon swapoff sethostname setdomainname "
    "settimeofday clock_settime acct quotactl"
)

CASES = (
    Case(
        name="who-am-i",
        tries="be root, hold a capability, gain one by a program's set-uid bit",
        code="""
import os
held = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
print("root:", 0 in (*os.getresuid(), *os.getresgid(), *os.getgroups()))
for name in ("CapInh", "CapPrm", "CapEff", "CapAmb", "NoNewPrivs", "Seccomp"):
    print(name, int(held[name].strip(), 16))
""",
        seen="root: False\nCapInh 0\nCapPrm 0\nCapEff 0\nCapAmb 0\nNoNewPrivs 1\nSeccomp 2",
    ),
    Case(
        name="become-root",
        tries="setuid, setgid, setgroups",
        code="""
import os
from attack_tools import apart
apart("setuid", lambda: os.setuid(0))
apart("setreuid", lambda: os.setreuid(0, 0))
apart("setgid", lambda: os.setgid(0))
apart("setgroups", lambda: os.setgroups([0]))
""",
        seen="setuid: <no-root>\nsetreuid: <no-root>\nsetgid: <no-root>\nsetgroups: <no-root>",
    ),
    Case(
        name="set-uid-programs",
        tries="run the image's set-uid programs",
        code="""
import os, stat, subprocess
found = [os.path.join(top, name) for top in ("/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/lib")
         for name in (os.listdir(top) if os.path.isdir(top) else ()) if os.stat(os.path.join(top, name), follow_symlinks=False).st_mode & stat.S_ISUID]
for name in ("su", "mount", "newgrp"):
    path = "/usr/bin/" + name
    if path in found:
        subprocess.run([path, "-c", "id -u"], capture_output=True, timeout=10)
print("as root:", "0" in os.popen("python3 -c 'import os; print(os.geteuid())'").read().split())
""",
        seen="as root: False",
    ),
    Case(
        name="mounts",
        tries="mount, unmount, change the root, old and new calls",
        code=f"from attack_tools import calls\ncalls({_MOUNTS!r})\n",
        seen=_each(_MOUNTS),
    ),
    Case(
        name="namespaces",
        tries="new namespaces of all eight kinds by unshare, one by clone and clone3",
        code="""
from attack_tools import apart, kernel
import ctypes
for name, flag in (("user", 0x10000000), ("pid", 0x20000000), ("mount", 0x20000), ("net", 0x40000000),
                   ("ipc", 0x8000000), ("uts", 0x4000000), ("cgroup", 0x2000000), ("time", 0x80)):
    apart(name, lambda: kernel("unshare", flag))
apart("clone", lambda: kernel("clone", 0x10000000 | 17, 0, 0, 0, 0))
held = (ctypes.c_uint64 * 11)(0x10000000, 0, 0, 0, 17)
apart("clone3", lambda: kernel("clone3", ctypes.byref(held), 88))
""",
        seen=_each("user pid mount net ipc uts cgroup time clone clone3"),
    ),
    Case(
        name="enter-namespaces",
        tries="setns into those of the first process and of its own",
        code="""
import os
from attack_tools import tried, kernel
for pid in ("1", "self"):
    for name in ("user", "mnt", "net"):
        tried("ns", lambda: kernel("setns", os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY), 0))
""",
        seen="ns: <refused>\n" * 6,
    ),
    Case(
        name="keys",
        tries="kernel keyrings, which are no namespace's",
        code=f"from attack_tools import calls\ncalls({_KEYS!r})\n",
        seen=_each(_KEYS),
    ),
    Case(
        name="io-uring",
        tries="io_uring, which does file work past a filter of calls",
        code=f"from attack_tools import calls\ncalls({_RINGS!r})\n",
        seen=_each(_RINGS),
    ),
    Case(
        name="modify-ldt",
        tries="modify_ldt",
        code="from attack_tools import calls\ncalls('modify_ldt', 0, 0, 0)\n",
        seen="modify_ldt: <refused>",
    ),
    Case(
        name="trace",
        tries="trace its parent, process 1, and itself",
        code="""
import os
from attack_tools import apart, kernel
apart("parent", lambda parent=os.getppid(): kernel("ptrace", 16, parent, 0, 0))
apart("first", lambda: kernel("ptrace", 16, 1, 0, 0))
apart("me", lambda: kernel("ptrace", 0, 0, 0, 0))
""",
        seen="parent: <refused>\nfirst: <refused>\nme: <refused>",
    ),
    Case(
        name="peek",
        tries="read another process's memory or descriptors by system call",
        code=f"from attack_tools import calls\ncalls({_PEEK!r}, 1, 0, 0, 0, 0, 0)\n",
        seen=_each(_PEEK),
    ),
    Case(
        name="watch",
        tries="bpf, perf, userfaultfd, fanotify, the kernel's log",
        code=f"from attack_tools import calls\ncalls({_WATCH!r})\n",
        seen=_each(_WATCH),
    ),
    Case(
        name="administer",
        tries="modules, kexec, reboot, swap, host name, clock, accounting, quotas",
        code=f"from attack_tools import calls\ncalls({_ADMIN!r})\n",
        seen=_each(_ADMIN),
    ),
    Case(
        name="files-by-handle",
        tries="open a file past its folder, by a handle",
        code="""
import ctypes
from attack_tools import tried, kernel
handle = ctypes.create_string_buffer(b"\\x08\\0\\0\\0\\x01\\0\\0\\0\\x02\\0\\0\\0\\0\\0\\0\\0" + bytes(64))
import os
tried("handle", lambda: kernel("open_by_handle_at", os.open(".", os.O_RDONLY), handle, 0))
""",
        seen="handle: <refused>",
    ),
    Case(
        name="devices",
        tries="make a device, open those of the machine",
        code="""
import os, stat
from attack_tools import tried
tried("block", lambda: os.mknod("sda", 0o600 | stat.S_IFBLK, os.makedev(8, 0)))
tried("char", lambda: os.mknod("mem", 0o600 | stat.S_IFCHR, os.makedev(1, 1)))
for name in ("mem", "kmem", "kmsg", "port", "sda", "vda", "kvm", "fuse", "loop0", "nvidia0", "vsock", "vhost-net", "net/tun", "uinput", "console"):
    tried("device", lambda: os.open(f"/dev/{name}", os.O_RDONLY))
""",
        seen="block: <refused>\nchar: <refused>\n" + "device: <absent>\n" * 15,
    ),
    Case(
        name="knobs-of-proc",
        tries="write to /proc/sys, sysrq, a program for core dumps",
        code="""
from attack_tools import tried
def write(path):
    with open(path, "w") as file:
        file.write("1")
for path in ("sys/kernel/core_pattern", "sys/kernel/hostname", "sys/vm/overcommit_memory", "sys/net/ipv4/ip_forward",
             "sys/kernel/modprobe", "sysrq-trigger", "irq/0/smp_affinity", "self/timens_offsets", "1/oom_score_adj"):
    tried("write", lambda: write("/proc/" + path))
""",
        seen="write: <absent>\n" * 9,
    ),
    Case(
        name="knobs-of-sys",
        tries="write to sysfs and to control groups, its own limits among them",
        code="""
import os
from attack_tools import word
came, written = set(), []
for top, folders, files in os.walk("/sys"):
    if top.count("/") > 5:
        folders.clear()
    for name in files[:40]:
        path = os.path.join(top, name)
        if word(lambda: os.close(os.open(path, os.O_WRONLY))).startswith("done"):
            written.append(path)
print(written)
for path in ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/release_agent",
             "/sys/fs/cgroup/pids/pids.max", "/sys/kernel/uevent_helper"):
    print(word(lambda: os.close(os.open(path, os.O_WRONLY))).startswith("done"))
""",
        seen="[]\n" + "False\n" * 5,
    ),
    Case(
        name="other-architectures",
        tries="system calls of the 32-bit and the x32 table, which a filter may not know",
        code="""
import ctypes, errno, mmap, platform
from attack_tools import apart, kernel
def gate():
    if platform.machine() != "x86_64":
        raise OSError(errno.ENOSYS, "no such gate on this machine")
    # mov eax, 359 (socket); mov ebx, 40 (VSOCK); mov ecx, 1; xor edx, edx; int 0x80; ret
    code = bytes.fromhex("53b867010000bb28000000b90100000031d2cd805bc3")
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    got = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
    if got < 0:
        raise OSError(-got, "refused")
    return got
import os
for what, act in (("32", gate), ("x32", lambda: kernel(0x40000000 + 41, 40, 1, 0))):
    child = os.fork()
    if not child:
        try:
            act()
        except OSError as error:
            os._exit(0 if error.errno in (errno.EPERM, errno.ENOSYS, errno.EACCES) else 1)
        os._exit(2)
    _, status = os.waitpid(child, 0)
    print(what, "refused" if status in (0, 31, 31 | 128) else status)
""",
        seen="32 refused\nx32 refused",
    ),
    Case(
        name="undo-the-filter",
        tries="become traceable by others, drop the filter, gain privileges by prctl",
        code="""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 0, 0, 0, 0)
libc.prctl(22, 0, 0, 0, 0)
libc.prctl(8, 1, 0, 0, 0)
held = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
print(held["NoNewPrivs"].strip(), held["Seccomp"].strip())
""",
        seen="1 2",
    ),
)
