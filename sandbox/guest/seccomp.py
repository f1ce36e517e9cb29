"""A system-call filter: no access to other processes' memory, no shared kernel objects, no namespaces, few sockets.

It closes what Landlock leaves open: other families of sockets, files opened by handle, and memory, queues or keys in
which a job could leave data for a later one. It covers the 64-bit calls only. Calls of another architecture would
bypass the filter, so a process that makes one is killed.

A job may make only the calls in `ALLOWED`, so a call that a later kernel adds is refused until it is listed. Calls left
out on purpose, and the reasons, are in `scripts/seccomp_profile.py`.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import platform
import socket
import struct
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_TABLE = """
read:0:63 write:1:64 open:2:- close:3:57 stat:4:- fstat:5:80 lstat:6:- poll:7:- lseek:8:62 mmap:9:222
mprotect:10:226 munmap:11:215 brk:12:214 rt_sigaction:13:134 rt_sigprocmask:14:135 rt_sigreturn:15:139
ioctl:16:29 pread64:17:67 pwrite64:18:68 readv:19:65 writev:20:66 access:21:- pipe:22:- select:23:-
sched_yield:24:124 mremap:25:216 msync:26:227 mincore:27:232 madvise:28:233 shmget:29:194 shmat:30:196
shmctl:31:195 dup:32:23 dup2:33:- pause:34:- nanosleep:35:101 getitimer:36:102 alarm:37:- setitimer:38:103
getpid:39:172 sendfile:40:71 socket:41:198 connect:42:203 accept:43:202 sendto:44:206 recvfrom:45:207
sendmsg:46:211 recvmsg:47:212 shutdown:48:210 bind:49:200 listen:50:201 getsockname:51:204 getpeername:52:205
socketpair:53:199 setsockopt:54:208 getsockopt:55:209 clone:56:220 fork:57:- vfork:58:- execve:59:221 exit:60:93
wait4:61:260 kill:62:129 uname:63:160 semget:64:190 semop:65:193 semctl:66:191 shmdt:67:197 msgget:68:186
msgsnd:69:189 msgrcv:70:188 msgctl:71:187 fcntl:72:25 flock:73:32 fsync:74:82 fdatasync:75:83 truncate:76:45
ftruncate:77:46 getdents:78:- getcwd:79:17 chdir:80:49 fchdir:81:50 rename:82:- mkdir:83:- rmdir:84:- creat:85:-
link:86:- unlink:87:- symlink:88:- readlink:89:- chmod:90:- fchmod:91:52 chown:92:- fchown:93:55 lchown:94:-
umask:95:166 gettimeofday:96:169 getrlimit:97:163 getrusage:98:165 sysinfo:99:179 times:100:153 ptrace:101:117
getuid:102:174 syslog:103:116 getgid:104:176 setuid:105:146 setgid:106:144 geteuid:107:175 getegid:108:177
setpgid:109:154 getppid:110:173 getpgrp:111:- setsid:112:157 setreuid:113:145 setregid:114:143 getgroups:115:158
setresuid:117:147 getresuid:118:148 setresgid:119:149 getresgid:120:150 getpgid:121:155 setfsuid:122:151
setfsgid:123:152 getsid:124:156 capget:125:90 capset:126:91 rt_sigpending:127:136 rt_sigtimedwait:128:137
rt_sigqueueinfo:129:138 rt_sigsuspend:130:133 sigaltstack:131:132 utime:132:- mknod:133:- personality:135:92
statfs:137:43 fstatfs:138:44 getpriority:140:141 setpriority:141:140 sched_setparam:142:118
sched_getparam:143:121 sched_setscheduler:144:119 sched_getscheduler:145:120 sched_get_priority_max:146:125
sched_get_priority_min:147:126 sched_rr_get_interval:148:127 mlock:149:228 munlock:150:229 mlockall:151:230
munlockall:152:231 vhangup:153:58 modify_ldt:154:- pivot_root:155:41 prctl:157:167 arch_prctl:158:-
adjtimex:159:171 setrlimit:160:164 chroot:161:51 sync:162:81 acct:163:89 settimeofday:164:170 mount:165:40
umount2:166:39 swapon:167:224 swapoff:168:225 reboot:169:142 sethostname:170:161 setdomainname:171:162
iopl:172:- ioperm:173:- init_module:175:105 delete_module:176:106 quotactl:179:60 gettid:186:178
readahead:187:213 setxattr:188:5 lsetxattr:189:6 fsetxattr:190:7 getxattr:191:8 lgetxattr:192:9 fgetxattr:193:10
listxattr:194:11 llistxattr:195:12 flistxattr:196:13 removexattr:197:14 lremovexattr:198:15 fremovexattr:199:16
tkill:200:130 time:201:- futex:202:98 sched_setaffinity:203:122 sched_getaffinity:204:123 io_setup:206:0
io_destroy:207:1 io_getevents:208:4 io_submit:209:2 io_cancel:210:3 lookup_dcookie:212:18 epoll_create:213:-
getdents64:217:61 set_tid_address:218:96 restart_syscall:219:128 semtimedop:220:192 fadvise64:221:223
timer_create:222:107 timer_settime:223:110 timer_gettime:224:108 timer_getoverrun:225:109 timer_delete:226:111
clock_settime:227:112 clock_gettime:228:113 clock_getres:229:114 clock_nanosleep:230:115 exit_group:231:94
epoll_wait:232:- epoll_ctl:233:21 tgkill:234:131 utimes:235:- mbind:237:235 set_mempolicy:238:237
get_mempolicy:239:236 mq_open:240:180 mq_unlink:241:181 mq_timedsend:242:182 mq_timedreceive:243:183
mq_notify:244:184 mq_getsetattr:245:185 kexec_load:246:104 waitid:247:95 add_key:248:217 request_key:249:218
keyctl:250:219 ioprio_set:251:30 ioprio_get:252:31 inotify_init:253:- inotify_add_watch:254:27
inotify_rm_watch:255:28 migrate_pages:256:238 openat:257:56 mkdirat:258:34 mknodat:259:33 fchownat:260:54
futimesat:261:- newfstatat:262:79 unlinkat:263:35 renameat:264:38 linkat:265:37 symlinkat:266:36
readlinkat:267:78 fchmodat:268:53 faccessat:269:48 pselect6:270:72 ppoll:271:73 unshare:272:97
set_robust_list:273:99 get_robust_list:274:100 splice:275:76 tee:276:77 sync_file_range:277:84 vmsplice:278:75
move_pages:279:239 utimensat:280:88 epoll_pwait:281:22 signalfd:282:- timerfd_create:283:85 eventfd:284:-
fallocate:285:47 timerfd_settime:286:86 timerfd_gettime:287:87 accept4:288:242 signalfd4:289:74 eventfd2:290:19
epoll_create1:291:20 dup3:292:24 pipe2:293:59 inotify_init1:294:26 preadv:295:69 pwritev:296:70
rt_tgsigqueueinfo:297:240 perf_event_open:298:241 recvmmsg:299:243 fanotify_init:300:262 fanotify_mark:301:263
prlimit64:302:261 name_to_handle_at:303:264 open_by_handle_at:304:265 clock_adjtime:305:266 syncfs:306:267
sendmmsg:307:269 setns:308:268 getcpu:309:168 process_vm_readv:310:270 process_vm_writev:311:271 kcmp:312:272
finit_module:313:273 sched_setattr:314:274 sched_getattr:315:275 renameat2:316:276 seccomp:317:277
getrandom:318:278 memfd_create:319:279 kexec_file_load:320:294 bpf:321:280 execveat:322:281 userfaultfd:323:282
membarrier:324:283 mlock2:325:284 copy_file_range:326:285 preadv2:327:286 pwritev2:328:287 pkey_mprotect:329:288
pkey_alloc:330:289 pkey_free:331:290 statx:332:291 io_pgetevents:333:292 rseq:334:293 pidfd_send_signal:424:424
io_uring_setup:425:425 io_uring_enter:426:426 io_uring_register:427:427 open_tree:428:428 move_mount:429:429
fsopen:430:430 fsconfig:431:431 fsmount:432:432 fspick:433:433 pidfd_open:434:434 clone3:435:435
close_range:436:436 openat2:437:437 pidfd_getfd:438:438 faccessat2:439:439 process_madvise:440:440
epoll_pwait2:441:441 mount_setattr:442:442 quotactl_fd:443:443 landlock_create_ruleset:444:444
landlock_add_rule:445:445 landlock_restrict_self:446:446 memfd_secret:447:447 process_mrelease:448:448
futex_waitv:449:449 cachestat:451:451 fchmodat2:452:452 futex_wake:454:454 futex_wait:455:455
futex_requeue:456:456
"""
"""``name:number on x86-64:number on ARM64``; a dash if the machine has no such call."""
NUMBERS: dict[str, tuple[int | None, int | None]] = {
    name: (None if first == "-" else int(first), None if second == "-" else int(second))
    for name, first, second in (entry.split(":") for entry in _TABLE.split())
}
NEWEST = max(number for numbers in NUMBERS.values() for number in numbers if number is not None)
"""Calls with larger numbers belong to kernels later than this table."""

ALLOWED: dict[str, str] = {
    "files: open, read, write": """
        open openat openat2 creat close close_range read pread64 readv preadv preadv2 write pwrite64 writev pwritev
        pwritev2 lseek dup dup2 dup3 fcntl flock sendfile splice tee vmsplice copy_file_range fadvise64 readahead
        fsync fdatasync sync_file_range fallocate truncate ftruncate ioctl""",
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
        clone fork vfork execve execveat exit exit_group wait4 waitid getpid getppid gettid getpgid getpgrp setpgid
        getsid setsid set_tid_address set_robust_list get_robust_list futex futex_waitv futex_wake futex_wait
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
        eventfd2 pipe pipe2 inotify_init inotify_init1 inotify_add_watch inotify_rm_watch""",
    "sockets": """
        socket socketpair connect bind listen accept accept4 getsockname getpeername sendto sendmsg sendmmsg
        recvfrom recvmsg recvmmsg shutdown setsockopt getsockopt""",
    "facts about the machine, random numbers": "uname sysinfo getrandom personality",
    "to be confined further": "landlock_create_ruleset landlock_add_rule landlock_restrict_self",
}
REFUSED_TO_JOBS = frozenset(NUMBERS).difference(["clone3"], *map(str.split, ALLOWED.values()))
"""All other calls but `clone3`, which is absent, so that programs fall back to `clone`."""


_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _FILTER_MODE = 38, 22, 2
LOAD, EQUAL, AT_LEAST, ANY_BIT, MASK, RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
KILL, ERROR, ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
ARCHITECTURE, NUMBER, FIRST_ARGUMENT = 4, 0, 16
"""Offsets in ``struct seccomp_data``; for an argument that of its low half, which both machines store first."""
_X32 = 0x40000000
NAMESPACES = 0x7E020000
"""All ``CLONE_NEW…`` flags of `clone`."""
FAMILIES = (int(socket.AF_UNIX), int(socket.AF_INET), int(socket.AF_INET6))
"""Socket families that a job may use."""
MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""Machine -> the kernel's constant for it, and its column of `NUMBERS`."""

Line = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentRule:
    """A rule that allows or refuses a system call by the value of one of its arguments."""

    call: str
    argument: int
    """Position of the argument, from 0; its low half is compared."""
    passed: tuple[int, ...] = ()
    """Values for which the call is allowed."""
    pretended: tuple[int, ...] = ()
    """Values for which the call reports success without being made."""
    error: int = errno.EPERM
    """Error number for any other value, or for a value with `all_bits`."""
    all_bits: tuple[int, ...] = ()
    """An alternative to `passed` and `pretended`: the call is allowed unless its argument has all of these bits."""


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def restrict(
    refused: Iterable[str],
    *,
    absent: Iterable[str] = (),
    families: Sequence[int] | None = None,
    judged: Sequence[ArgumentRule] = (),
    newest: int | None = None,
) -> None:
    """Filter the system calls of this thread and its future children, for good.

    Args:
        refused: calls that fail with EPERM.
        absent: calls that fail with ENOSYS, as on a kernel without them.
        families: the only socket families allowed. New namespaces are then refused too. None restricts neither.
        judged: calls that are allowed with some arguments only.
        newest: calls with this or a larger number fail with ENOSYS too, on any later kernel; None to allow them.

    Raises:
        OSError: if the kernel has no filters, or `NUMBERS` lacks this machine; nothing is refused then.
    """
    install(program(*machine(), refused, absent, families, judged, newest))


def refusal(refused: Iterable[str]) -> bytes:
    """Return a filter program that makes the calls in `refused` fail with EPERM. Many processes can install it.

    Raises:
        OSError: if there is no table of calls for this machine.
    """
    return program(*machine(), refused)


def machine() -> tuple[int, int]:
    """Return the kernel's constant for this machine, and its column of `NUMBERS`.

    Raises:
        OSError: if there is no table of calls for it, or this program has 32 bits.
    """
    name = platform.machine()
    # The names that the kernel reports under `setarch`; the calls of a 64-bit program stay the same.
    name = {"i686": "x86_64", "armv8l": "aarch64"}.get(name, name)
    if not sys.platform.startswith("linux") or name not in MACHINES or sys.maxsize < 1 << 32:
        raise OSError(errno.ENOSYS, f"no table of system calls for {name} with {sys.maxsize.bit_length() + 1} bits")
    return MACHINES[name]


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def install(code: bytes) -> None:
    """Filter the system calls of this thread and its future children with the filter program `code`, for good.

    Raises:
        OSError: if the kernel has no filters; nothing is refused then.
    """
    libc = _libc()
    program = _Program(len(code) // 8, code)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        _PR_SET_SECCOMP, _FILTER_MODE, ctypes.byref(program), 0, 0
    ):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def program(
    architecture: int,
    column: int,
    refused: Iterable[str],
    absent: Iterable[str] = (),
    families: Sequence[int] | None = None,
    judged: Sequence[ArgumentRule] = (),
    newest: int | None = None,
) -> bytes:
    """Return the filter program that `restrict` installs. `machine` returns `architecture` and `column`."""
    lines = opening(architecture)
    if newest is not None:
        lines += [(AT_LEAST, 0, 1, newest), (RETURN, 0, 0, ERROR | errno.ENOSYS)]
    for error, names in ((errno.EPERM, refused), (errno.ENOSYS, absent)):
        for number in sorted(_numbers(names, column)):
            lines += [(EQUAL, 0, 1, number), (RETURN, 0, 0, ERROR | error)]
    rules = list(judged)
    if families is not None:
        [clone] = _numbers(["clone"], column)
        lines += _namespaces(clone)
        rules.append(ArgumentRule(call="socket", argument=0, passed=tuple(families), error=errno.EAFNOSUPPORT))
    for rule in rules:
        for number in _numbers([rule.call], column):
            lines += _judged(number, rule)
    lines.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def opening(architecture: int) -> list[Line]:
    """Return the start of every filter: kill a process of another architecture, load the call's number, refuse x32."""
    return [
        (LOAD, 0, 0, ARCHITECTURE),
        (EQUAL, 1, 0, architecture),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER),
        (AT_LEAST, 0, 1, _X32),
        (RETURN, 0, 0, ERROR | errno.EPERM),
    ]


def _numbers(names: Iterable[str], column: int) -> list[int]:
    return [number for name in names if (number := NUMBERS[name][column]) is not None]


def _namespaces(number: int) -> list[Line]:
    return [
        (EQUAL, 0, 4, number),
        (LOAD, 0, 0, FIRST_ARGUMENT),
        (ANY_BIT, 0, 1, NAMESPACES),
        (RETURN, 0, 0, ERROR | errno.EPERM),
        (RETURN, 0, 0, ALLOW),
    ]


def _judged(number: int, rule: ArgumentRule) -> list[Line]:
    block: list[Line] = [(LOAD, 0, 0, FIRST_ARGUMENT + 8 * rule.argument)]
    for verdict, values in ((ALLOW, rule.passed), (ERROR, rule.pretended)):
        for value in values:
            block += [(EQUAL, 0, 1, value), (RETURN, 0, 0, verdict)]
    block += [(ANY_BIT, 0, len(rule.all_bits) - at, bit) for at, bit in enumerate(rule.all_bits)]
    block.append((RETURN, 0, 0, ERROR | rule.error))
    if rule.all_bits:
        block.append((RETURN, 0, 0, ALLOW))
    return [(EQUAL, 0, len(block), number), *block]
