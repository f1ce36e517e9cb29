"""Write sandbox/docker/seccomp.json, the system calls that a box may make: python -m scripts.seccomp_profile.

Everything that is not named here fails with EPERM, so a call that a later kernel adds is refused until
somebody names it. What is left out on purpose, and why, stands in BLOCKED: a test checks that none of it
is allowed. Only the machine's own 64-bit ABI is there: a filter on `socket` can be passed by the 32-bit
`socketcall`, whose arguments a filter cannot read.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

OUT = Path(__file__).resolve().parents[1] / "sandbox" / "docker" / "seccomp.json"

ALLOWED: dict[str, str] = {
    "files: open, read, write": """
        open openat openat2 creat close close_range read pread64 readv preadv preadv2 write pwrite64 writev pwritev
        pwritev2 lseek dup dup2 dup3 fcntl flock sendfile splice tee vmsplice copy_file_range fadvise64 readahead
        fsync fdatasync sync sync_file_range syncfs fallocate truncate ftruncate ioctl""",
    "files: names and attributes": """
        stat fstat lstat newfstatat statx statfs fstatfs access faccessat faccessat2 readlink readlinkat getdents
        getdents64 getcwd chdir fchdir mkdir mkdirat rmdir unlink unlinkat rename renameat renameat2 link linkat
        symlink symlinkat mknod mknodat chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat umask utime
        utimes utimensat futimesat getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr setxattr lsetxattr
        fsetxattr removexattr lremovexattr fremovexattr""",
    "memory": """
        brk mmap munmap mremap mprotect madvise mincore msync mlock mlock2 munlock mlockall munlockall memfd_create
        membarrier pkey_alloc pkey_free pkey_mprotect""",
    "processes and threads": """
        fork vfork execve execveat exit exit_group wait4 waitid getpid getppid gettid getpgid getpgrp setpgid getsid
        setsid set_tid_address set_robust_list get_robust_list futex futex_waitv futex_wake futex_wait
        futex_requeue rseq arch_prctl prctl getrlimit setrlimit prlimit64 getrusage times sched_yield
        sched_getaffinity sched_setaffinity sched_getparam sched_setparam sched_getscheduler sched_setscheduler
        sched_getattr sched_setattr sched_get_priority_max sched_get_priority_min sched_rr_get_interval getpriority
        setpriority ioprio_get ioprio_set getcpu""",
    "identity: without capabilities a process can only take ids that it has": """
        getuid geteuid getgid getegid getresuid getresgid getgroups setuid setgid setreuid setregid setresuid
        setresgid setfsuid setfsgid capget capset""",
    "signals": """
        kill tkill tgkill rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigqueueinfo
        rt_tgsigqueueinfo rt_sigsuspend sigaltstack restart_syscall pause signalfd signalfd4 pidfd_open
        pidfd_send_signal""",
    "time": """
        time gettimeofday clock_gettime clock_getres clock_nanosleep nanosleep alarm getitimer setitimer
        timer_create timer_settime timer_gettime timer_getoverrun timer_delete timerfd_create timerfd_settime
        timerfd_gettime""",
    "waiting for events": """
        poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd
        eventfd2 pipe pipe2 inotify_init inotify_init1 inotify_add_watch inotify_rm_watch io_setup io_submit
        io_getevents io_pgetevents io_cancel io_destroy""",
    "sockets: which kinds is below": """
        connect bind listen accept accept4 getsockname getpeername sendto sendmsg sendmmsg recvfrom recvmsg recvmmsg
        shutdown setsockopt getsockopt""",
    "facts about the machine, random numbers": "uname sysinfo getrandom",
    "to be confined further": """
        seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self""",
}

BLOCKED: dict[str, str] = {
    "other processes' memory and descriptors": """
        ptrace process_vm_readv process_vm_writev process_madvise process_mrelease pidfd_getfd kcmp""",
    "large and often broken parts of the kernel": "io_uring_setup io_uring_enter io_uring_register userfaultfd bpf",
    "new namespaces and mounts": """
        unshare setns mount umount2 mount_setattr move_mount open_tree fsopen fsconfig fsmount fspick pivot_root
        chroot""",
    "keys, which are not namespaced": "add_key keyctl request_key",
    "shared memory and queues that outlive a job": """
        shmget shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd msgrcv msgctl mq_open mq_unlink
        mq_timedsend mq_timedreceive mq_notify mq_getsetattr""",
    "the machine itself": """
        reboot kexec_load kexec_file_load init_module finit_module delete_module swapon swapoff acct quotactl
        quotactl_fd settimeofday clock_settime clock_adjtime adjtimex sethostname setdomainname syslog vhangup
        iopl ioperm""",
    "observation of the machine": "perf_event_open fanotify_init fanotify_mark lookup_dcookie",
    "files past their names": "open_by_handle_at name_to_handle_at",
    "the processor's old modes, memory that cannot be read back": "modify_ldt memfd_secret",
    "placing memory on nodes": "mbind migrate_pages move_pages set_mempolicy get_mempolicy",
}

NAMESPACES = 0x7E020000
"""Every CLONE_NEW flag that `clone` takes; CLONE_NEWTIME goes through clone3 and unshare alone."""
_ASK = 0xFFFFFFFF
FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10}


def profile() -> dict[str, Any]:
    """Return the profile as Docker reads it."""
    rules: list[dict[str, Any]] = [
        {"comment": why, "names": sorted(names.split()), "action": "SCMP_ACT_ALLOW"} for why, names in ALLOWED.items()
    ]
    for family, number in FAMILIES.items():
        rules.append(_rule(f"sockets of {family}", ["socket", "socketpair"], _argument(0, number, "SCMP_CMP_EQ")))
    no_namespace = {"index": 0, "value": NAMESPACES, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}
    rules.append(_rule("threads and processes in no new namespace", ["clone"], no_namespace))
    rules += [
        _rule("ask for the personality", ["personality"], _argument(0, value, "SCMP_CMP_EQ")) for value in (0, _ASK)
    ]
    rules.append(
        {
            "comment": "its flags are behind a pointer: say that there is none, and C libraries use clone",
            "names": ["clone3"],
            "action": "SCMP_ACT_ERRNO",
            "errnoRet": 38,
        }
    )
    natives = [{"architecture": f"SCMP_ARCH_{name}", "subArchitectures": []} for name in ("X86_64", "AARCH64")]
    return {"defaultAction": "SCMP_ACT_ERRNO", "archMap": natives, "syscalls": rules}


def _rule(why: str, names: list[str], argument: dict[str, Any]) -> dict[str, Any]:
    return {"comment": why, "names": names, "action": "SCMP_ACT_ALLOW", "args": [argument]}


def _argument(index: int, value: int, how: str) -> dict[str, Any]:
    return {"index": index, "value": value, "op": how}


if __name__ == "__main__":
    OUT.write_text(json.dumps(profile(), indent=1) + "\n", encoding="utf-8")
    print(f"{OUT}: {sum(len(rule['names']) for rule in profile()['syscalls'])} calls allowed", file=sys.stderr)
