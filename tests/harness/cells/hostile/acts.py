"""What is done to the coordinator, to the machine, and to the files that hold the answers."""

# ruff: noqa: E501 - programs as data

from tests.harness.cells.hostile.case import Act

_NO = "(EPERM|EACCES|ENOSYS|ENOENT|ESRCH|EROFS|EINVAL|ENOTTY|ENODEV|ENXIO|EAFNOSUPPORT|EOPNOTSUPP|ENOTDIR|EBADF|EXDEV|ELOOP)"
_ALL_NO = rf"\[('{_NO}'(, )?)*\]"

ACTS = (
    Act(
        name="limits-of-others",
        tries="the coordinator's limits on files, processes and processor time",
        code="said = [tried(lambda: resource.prlimit(pid, kind, (3, 3))) for pid in parents() for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_CPU)]",
        says=_ALL_NO,
    ),
    Act(
        name="affinity-of-the-coordinator",
        tries="the processors that the coordinator may use",
        code="said = [tried(lambda: os.sched_setaffinity(pid, {0})) for pid in parents()]",
        says=_ALL_NO,
    ),
    Act(
        name="priority-of-the-coordinator",
        tries="priority, scheduling and disk priority of the coordinator and of all that are the user's",
        code="said = [tried(lambda: os.setpriority(os.PRIO_PROCESS, pid, 19)) for pid in parents()] + [tried(lambda: os.setpriority(os.PRIO_USER, 0, 19))]\n"
        "said += [tried(lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))) for pid in parents()] + [syscall(251, 1, pid, 3 << 13) for pid in parents()]",
        says=_ALL_NO,
    ),
    Act(
        name="real-time",
        tries="a priority of its own above everything",
        code="said = [tried(lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))), tried(lambda: os.nice(-5)), syscall(314, 0, struct.pack('=IIQiIQQQ', 48, 6, 0, 0, 0, 1000000, 9000000, 10000000), 0)]",
        says=_ALL_NO,
    ),
    Act(
        name="kill-the-coordinator",
        tries="signals to the server and the coordinator, by number and by descriptor",
        code="said = [call('kill', pid, number) for pid in parents() for number in (19, 15, 9)] + [syscall(424, syscall(434, pid, 0) == '3' and 3 or -1, 9, None, 0) for pid in parents()]",
        says=rf"\[('({_NO}|0)'(, )?)*\]",
    ),
    Act(
        name="kill-everything",
        tries="signals to everything that it may send one to",
        # Only where it sees no process but its own: without any isolation this would be the end of the machine's.
        code="said = call('kill', -1, signal.SIGTERM) if os.getpid() == 1 else 'ESRCH'",
        says=f"{_NO}|0",
    ),
    Act(
        name="trace",
        tries="tracing the server, reading and writing its memory, taking its descriptors",
        code="said = [call('ptrace', 16, pid, 0, 0) for pid in parents()] + [tried(lambda: open(f'/proc/{pid}/mem', 'rb')) for pid in parents()]\n"
        "said += [syscall(310, pid, bytes(16), 1, bytes(16), 1, 0) for pid in parents()] + [syscall(438, 3, 0, 0)]",
        says=_ALL_NO,
    ),
    Act(
        name="device-of-the-disk",
        tries="a device node of the home's disk in its own folder and in others, to read the answers past all rights",
        code="device = os.stat(HERE).st_dev\nsaid = []\nfor place in PLACES:\n    name = os.path.join(place, 'zqdisk')\n    said.append(tried(lambda: os.mknod(name, 0o60600, device)))\n    said.append(tried(lambda: os.open(name, os.O_RDONLY)))",
        says=_ALL_NO,
    ),
    Act(
        name="devices",
        tries="disks, memory and ports of the machine, as far as there are devices for them",
        code="said = [tried(lambda: os.open(path, os.O_RDONLY)) for path in glob.glob('/dev/*') + glob.glob('/dev/*/*') + ['/dev/mem', '/dev/kmsg', '/dev/port', '/proc/kcore', '/dev/fuse', '/dev/kvm', '/dev/vda', '/dev/sda', '/dev/loop-control'] if os.path.basename(path) not in ('null', 'zero', 'full', 'random', 'urandom') and not os.path.isdir(path)]",
        says=_ALL_NO,
    ),
    Act(
        name="answers-by-path",
        tries="the answers, by every path that leads there",
        code="paths = [HOME / 'references.jsonl', f'/proc/self/root{HOME}/references.jsonl', f'/proc/1/root{HOME}/references.jsonl', f'/proc/self/cwd/{HOME}/references.jsonl', HERE / 'link' / 'references.jsonl']\n"
        "said = [tried(lambda: Path(path).read_bytes()) for path in paths] + [tried(lambda: os.listdir(HOME))] + [tried(lambda: os.open(f'/proc/{pid}/cwd', os.O_RDONLY)) for pid in parents()]",
        says=r"\[('(EACCES|ENOENT|EPERM|ESRCH|\[\])'(, )?)*\]",
    ),
    Act(
        name="answers-by-handle",
        tries="the answers, by a handle of the file system instead of a path",
        code="held = struct.pack('=Ii', 128, 0) + bytes(128)\nsaid = [call('name_to_handle_at', -100, str(HERE).encode(), ctypes.create_string_buffer(held), ctypes.byref(ctypes.c_int()), 0),\n"
        "        call('open_by_handle_at', os.open(HERE, os.O_RDONLY), ctypes.create_string_buffer(struct.pack('=IiIII', 8, 1, 2, 0, 0)), 0)]",
        says=_ALL_NO,
    ),
    Act(
        name="answers-changed",
        tries="rights, owner, times and content of the file with the answers, and of the folders above it",
        code="said = []\nfor path in (HOME / 'references.jsonl', HOME, HERE.parent):\n"
        "    for act in (lambda: os.chmod(path, 0o777), lambda: os.chown(path, 1, 1), lambda: os.utime(path, (1, 1)), lambda: os.truncate(path, 0), lambda: os.rename(path, str(path) + 'x'), lambda: os.unlink(path)):\n        said.append(tried(act).replace('EISDIR', 'EROFS'))",
        says=_ALL_NO,
    ),
    Act(
        name="type-into-the-terminal",
        tries="a command typed into the user's terminal",
        code="said = [tried(lambda: fcntl.ioctl(handle, 0x5412, b'x')) for handle in range(8)] + [tried(lambda: fcntl.ioctl(os.open(path, os.O_RDWR), 0x5412, b'x')) for path in ['/dev/tty', '/dev/console', '/dev/tty1', *glob.glob('/dev/pts/*')]]\n"
        "said += [tried(lambda: fcntl.ioctl(handle, 0x540E, 1)) for handle in range(3)] + [tried(lambda: fcntl.ioctl(handle, 0x1C | 0x5400, b'\\x03')) for handle in range(3)]",
        says=_ALL_NO,
    ),
    Act(
        name="codes-to-the-terminal",
        tries="a terminal's codes among what it prints",
        code="print('\\x1b]0;zqtitle\\x07\\x1b[2Jzqcodes\\r\\x9b', flush=True)\nos.write(2, b'\\x1b[31mzqcodes')\nsubprocess.run(['/bin/echo', '-e', '\\\\033[1mzqcodes'])\nsaid = 'printed'",
        says="printed",
    ),
    Act(
        name="floods-the-terminal",
        tries="more words than anybody can read",
        code="for _ in range(2000):\n    os.write(1, b'zqflood ' * 1000)\nsaid = 'printed'",
        says="printed",
    ),
    Act(
        name="capabilities",
        tries="what root can do, kept or got back: capabilities, another user, programs of root's",
        code="held = ctypes.create_string_buffer(24)\nlibc.capget(ctypes.create_string_buffer(struct.pack('=II', 0x20080522, 0)), held)\n"
        "effective, permitted, inheritable = struct.unpack('=III', held.raw[:12])\n"
        "said = [effective & ~4, permitted & ~4, inheritable, struct.unpack('=III', held.raw[12:])[0], libc.prctl(39, 0, 0, 0, 0)]\n"
        "said += [call('capset', ctypes.create_string_buffer(struct.pack('=II', 0x20080522, 0)), ctypes.create_string_buffer(b'\\xff' * 24)), [number for number in range(41) if libc.prctl(47, 1, number, 0, 0) == 1]]\n"
        "said += [tried(lambda: os.setuid(0)) if os.getuid() else 'EPERM', tried(lambda: os.setgroups([0]))]",
        says=r"\[0, 0, 0, 0, 1, 'EPERM', \[\], '(EPERM|EINVAL)', 'EPERM'\]",
    ),
    Act(
        name="users",
        tries="to be root",
        code="said = 'root' if 0 in (os.getuid(), os.geteuid(), os.getgid(), os.getegid(), *os.getgroups()) else 'not root'",
        says="not root",
        without="(not )?root",
    ),
    Act(
        name="programs-of-root",
        tries="a program that makes its user root",
        code="said = []\nfor program in ('su', 'mount', 'passwd', 'sudo', 'newuidmap'):\n    path = next((f for f in (f'/bin/{program}', f'/usr/bin/{program}') if os.path.exists(f)), '/bin/true')\n"
        "    done = subprocess.run([sys.executable, '-c', 'import os, sys; print(os.geteuid())'] if program == 'su' else [path, '--version'], capture_output=True, text=True)\n"
        "    said.append(done.stdout if program == 'su' else '')\nsaid = 'root' if said[0].strip() == '0' else 'not root'",
        says="not root",
        without="(not )?root",
    ),
    Act(
        name="way-out",
        tries="another root, other namespaces, the old root below the view",
        code="said = [call('chroot', b'/'), call('pivot_root', b'.', b'.'), call('umount2', b'/', 2), call('umount2', str(HOME).encode(), 2), call('setns', 0, 0), syscall(428, -100, b'/', 1), syscall(442, -100, b'/', 0x8000, struct.pack('=QQQQ', 0, 1, 0, 0), 32), syscall(435, struct.pack('=QQQQQQQQ', 0x10000000, 0, 0, 0, 17, 0, 0, 0), 64)]\n"
        "said += [syscall(56, 0x10000011, 0, 0, 0, 0), tried(lambda: os.listdir('/proc/1/root')), tried(lambda: os.open('/..' * 9 + str(HOME) + '/references.jsonl', os.O_RDONLY))]",
        says=_ALL_NO,
    ),
    Act(
        name="machine",
        tries="name, clock, modules, swap, accounts, restart, messages of the machine",
        code="said = [call('sethostname', b'zq', 2), syscall(227, 0, struct.pack('=qq', 0, 0)), syscall(175, b'', 0, b''), syscall(313, -1, b'', 0), call('swapoff', b'/zq'), call('acct', None), syscall(169, 0, 0, 0, None), syscall(103, 5, None, 0), syscall(246, 0, 0, None, 0), call('iopl', 3)]\n"
        "said += [tried(lambda: Path(path).write_text('x')) for path in ('/proc/sys/kernel/domainname', '/proc/sysrq-trigger', '/sys/power/state', '/sys/fs/cgroup/memory/tasks', '/proc/sys/kernel/core_pattern')]",
        says=_ALL_NO,
    ),
    Act(
        name="flush-the-disks",
        tries="to keep every disk busy with writing out",
        code="said = [syscall(306, 1)] + [syscall(162)]",
        says=_ALL_NO,
    ),
    Act(
        name="fill-the-disk",
        tries="to fill the disk: one large file, many empty ones",
        code="folder = Path(tempfile.mkdtemp())\ndef fill():\n    with (folder / 'large').open('wb', 0) as file:\n        for _ in range(600):\n            file.write(bytes(1 << 20))\n"
        "def litter():\n    for at in range(25000):\n        os.close(os.open(folder / str(at), os.O_CREAT))\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n(folder / 'sparse').touch()\n"
        "said = [tried(fill), tried(lambda: os.truncate(folder / 'sparse', 1 << 40))]\n(folder / 'large').unlink()\nsaid.append(tried(litter))",
        says=r"\['(ENOSPC|EFBIG)', 'EFBIG', '(ENOSPC|None)'\]",
    ),
    Act(
        name="many-processes",
        tries="more processes than a cell should need, each in a session of its own",
        code="made = 0\ntry:\n    while made < 1100:\n        if os.fork() == 0:\n            os.setsid()\n            time.sleep(300)\n            os._exit(0)\n        made += 1\nexcept OSError:\n    pass\nsaid = 'stopped' if made <= 1024 else 'not stopped'",
        says="stopped",
        without="(not )?stopped",
    ),
    Act(
        name="packages-changed",
        tries="the strategy's own file, its neighbours, the packages that every later cell imports",
        code="import strategies\nsaid = [tried(lambda: Path(path).open('ab').write(b' ')) for path in (__file__, strategies.__file__, os.__file__, HERE / 'cases.json')] + [tried(lambda: Path(folder, 'zqmine.py').write_text('x')) for folder in (HERE, os.path.dirname(os.__file__), *strategies.__path__)]",
        says=_ALL_NO,
    ),
    Act(
        name="drop-from-memory",
        tries="to drop files from the machine's memory, so that they are slow to read for others",
        code="handle = os.open(QUIET[0], os.O_RDONLY)\nheld = mmap.mmap(handle, 4096, prot=mmap.PROT_READ, flags=mmap.MAP_SHARED)\n"
        "said = [tried(lambda: held.madvise(20)), tried(lambda: held.madvise(21)), tried(lambda: os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED))]",
        says=_ALL_NO,
    ),
    Act(
        name="memory-of-nobody",
        tries="memory that is in no process's size: a file in memory, and pages shared with a process that does not touch them",
        code="said = [tried(lambda: os.memfd_create('zq')), tried(lambda: mmap.mmap(-1, 1 << 20)), tried(lambda: mmap.mmap(os.open('/dev/zero', os.O_RDWR), 1 << 20))]",
        says=r"\['ENOSYS', 'EPERM', 'EACCES'\]",
    ),
    Act(
        name="asynchronous-reading",
        tries="the machine's pool of requests for reading without waiting",
        code="said = [syscall(206, 60000, ctypes.byref(ctypes.c_ulong())), syscall(425, 4096, bytes(120))]",
        says=_ALL_NO,
    ),
    Act(
        name="32-bit-calls",
        tries="calls of the older machine, which a filter may not know: mkdir and a socket",
        code="said = [syscall(0x40000000 + 41, 2, 1, 0), syscall(0x40000000 + 83, b'/cell/tmp/x32', 0o700)]",
        says=_ALL_NO,
    ),
)
