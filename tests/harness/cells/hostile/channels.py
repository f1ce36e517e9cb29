"""Ways from one cell to another."""

# ruff: noqa: E501 - programs as data

from tests.harness.cells.hostile.case import Channel

WITHOUT = ("root-landlock", "plain-landlock")
"""Where the kernel grants no namespaces: processes and the files' times of reading are the whole machine's."""

CHANNELS = (
    # Times, rights, owners, attributes.
    Channel(
        name="times-of-change",
        tries="a note in the time of change of files and folders",
        leave="each(lambda path: os.utime(path, (number(note), number(note))), EVERYWHERE)",
        look="seen = each(lambda path: int(os.stat(path).st_mtime).to_bytes(6, 'big'), FILES)",
    ),
    Channel(
        name="times-of-reading",
        tries="a note in the time of reading, set",
        leave="each(lambda path: os.utime(path, ns=(number(note) * 10**9, os.stat(path).st_mtime_ns)), EVERYWHERE)",
        look="seen = each(lambda path: int(os.stat(path).st_atime).to_bytes(6, 'big'), FILES[:5])",
    ),
    Channel(
        name="times-by-descriptor",
        tries="a note in times, through an open descriptor and through calls without a name in C",
        leave="each(lambda path: os.utime(os.open(path, os.O_RDONLY), (number(note), number(note))), EVERYWHERE)\n"
        "pair = struct.pack('=qqqq', number(note), 0, number(note), 0)\n"
        "each(lambda path: (call('utimes', path.encode(), pair), call('futimesat', -100, path.encode(), pair)), EVERYWHERE)",
        look="seen = each(lambda path: int(os.stat(path).st_mtime).to_bytes(6, 'big'), FILES)",
    ),
    Channel(
        name="reading-itself",
        tries="a bit in whether a file was read: the kernel notes when",
        leave="for bit, path in zip(bits(note), QUIET):\n    bit and Path(path).read_bytes()",
        look="seen = letters([os.stat(path).st_atime > 10**9 for path in QUIET])",
        open_in=WITHOUT,
    ),
    Channel(
        name="rights",
        tries="bits in the rights of files",
        leave="each(lambda pair: os.chmod(pair[1], 0o600 + pair[0] * 0o44), list(zip(bits(note), QUIET)))\n"
        "each(lambda path: os.chmod(path, 0o755), PLACES)",
        look="seen = [oct(os.stat(path).st_mode) for path in QUIET]",
    ),
    Channel(
        name="rights-by-descriptor",
        tries="bits in the rights of files, by fchmod and by fchmodat2",
        leave="for bit, path in zip(bits(note), QUIET):\n"
        "    tried(lambda: os.fchmod(os.open(path, os.O_RDONLY), 0o600 + bit * 0o44))\n"
        "    syscall(452, -100, path.encode(), 0o600 + bit * 0o44, 0)",
        look="seen = [oct(os.stat(path).st_mode) for path in QUIET]",
    ),
    Channel(
        name="owners",
        tries="a note in the owner and the group of files",
        leave="each(lambda path: (os.chown(path, number(note), -1), os.chown(path, -1, number(note))), FILES)\n"
        "each(lambda path: os.lchown(path, number(note), number(note)), QUIET)\n"
        "each(lambda pair: os.chown(pair[1], -1, os.getgid() if pair[0] else -1), list(zip(bits(note), QUIET)))",
        look="seen = [(os.stat(path).st_uid, os.stat(path).st_gid) for path in QUIET]",
    ),
    Channel(
        name="attributes",
        tries="a note in extended attributes",
        leave="for key in ('user.note', 'trusted.note', 'security.note'):\n    each(lambda path: os.setxattr(path, key, note), EVERYWHERE)",
        look="seen = each(lambda path: [(key, os.getxattr(path, key)) for key in os.listxattr(path)], FILES)",
    ),
    Channel(
        name="attributes-removed",
        tries="bits in which attributes are gone",
        leave="for bit, path in zip(bits(note), QUIET):\n    bit and tried(lambda: os.removexattr(path, 'user.there'))",
        look="seen = each(lambda path: os.listxattr(path), QUIET)",
    ),
    Channel(
        name="attributes-by-new-calls",
        tries="attributes by setxattrat and file_setattr, calls of recent kernels",
        leave="value = ctypes.create_string_buffer(note)\n"
        "held = struct.pack('=QII', ctypes.addressof(value), 4, 0)\n"
        "for path in QUIET:\n    syscall(463, -100, path.encode(), 0, b'user.note', held, 16)\n"
        "    syscall(469, -100, path.encode(), struct.pack('=QIIIIQ', 128, 0, 0, number(note), 0, 0)[:24], 24, 0)",
        look="seen = each(lambda path: [(key, os.getxattr(path, key)) for key in os.listxattr(path)], QUIET)",
    ),
    Channel(
        name="flags",
        tries="bits in a flag of files that no dump wants",
        leave="for bit, path in zip(bits(note), QUIET):\n    bit and tried(lambda: fcntl.ioctl(os.open(path, os.O_RDONLY), 0x40086602, struct.pack('=q', 0x40)))",
        look="seen = each(lambda path: fcntl.ioctl(os.open(path, os.O_RDONLY), 0x80086601, bytes(8)), QUIET)",
    ),
    Channel(
        name="generation",
        tries="a note in a file's version number and in its project",
        leave="for path in FILES:\n    tried(lambda: fcntl.ioctl(os.open(path, os.O_RDONLY), 0x40087602, struct.pack('=q', number(note))))\n"
        "    tried(lambda: fcntl.ioctl(os.open(path, os.O_RDONLY), 0x401C5820, struct.pack('=IIIII', 0, 0, 0, number(note), 0) + bytes(8)))",
        look="seen = each(lambda path: fcntl.ioctl(os.open(path, os.O_RDONLY), 0x80087601, bytes(8)), FILES)\n"
        "seen += each(lambda path: fcntl.ioctl(os.open(path, os.O_RDONLY), 0x801C581F, bytes(28)), FILES)",
    ),
    Channel(
        name="hints",
        tries="bits in the hint how long what is written to a file will live",
        leave="for bit, path in zip(bits(note), QUIET):\n    bit and tried(lambda: fcntl.fcntl(os.open(path, os.O_RDONLY), 1036, struct.pack('=Q', 2)))",
        look="seen = each(lambda path: fcntl.fcntl(os.open(path, os.O_RDONLY), 1035, bytes(8)), QUIET)",
    ),
    # Names and contents.
    Channel(
        name="files",
        tries="a file in every place that takes one",
        leave="each(lambda place: Path(place, 'zqnote').write_bytes(note), PLACES)",
        look="seen = each(lambda place: Path(place, 'zqnote').read_bytes(), PLACES)",
    ),
    Channel(
        name="names",
        tries="a folder, a link, a pipe, a socket or a hard link whose name is the note",
        leave="name = 'zqname-' + note.decode()\n"
        "for place in PLACES:\n"
        "    target = os.path.join(place, name)\n"
        "    for make in (os.mkdir, os.mkfifo, os.mknod, lambda it: os.symlink('x', it), lambda it: os.link(__file__, it), lambda it: socket.socket(socket.AF_UNIX).bind(it)):\n"
        "        tried(lambda: make(target))",
        look="seen = [glob.glob(f'{place}/zqname-*') + glob.glob(f'{place}/*/zqname-*') for place in PLACES]",
    ),
    Channel(
        name="names-taken-away",
        tries="bits in which files are renamed or removed",
        leave="for bit, path in zip(bits(note), QUIET):\n    bit and (tried(lambda: os.rename(path, path + '.moved')), tried(lambda: os.unlink(path)))",
        look="seen = (sorted(os.listdir(HERE / 'quiet')), [os.path.exists(path) for path in QUIET])",
    ),
    Channel(
        name="contents",
        tries="a note written into files that are there",
        leave="each(lambda path: Path(path).open('r+b').write(note), FILES)\neach(lambda path: os.truncate(path, note[0]), FILES[:5])",
        look="seen = each(lambda path: Path(path).read_bytes()[:4], FILES[:6])",
    ),
    Channel(
        name="bytecode",
        tries="a note as a module's cache of bytecode, and as a module that would be imported",
        leave="for place in {*PLACES, *sys.path}:\n"
        "    tried(lambda: os.makedirs(os.path.join(place, '__pycache__'), exist_ok=True))\n"
        "    for name in ('zqmodule.py', 'sitecustomize.py', f'__pycache__/zqmodule.{sys.implementation.cache_tag}.pyc'):\n"
        "        tried(lambda: Path(place, name).write_bytes(b'NOTE = ' + repr(note).encode()))",
        look="import importlib\nimportlib.invalidate_caches()\nseen = tried(lambda: importlib.import_module('zqmodule').NOTE)",
    ),
    Channel(
        name="memory-of-the-server",
        tries="a note in modules, builtins, environment and interpreter settings",
        leave="import builtins, ctxbench.strategies as strategies\nbuiltins.zqnote = strategies.zqnote = os.zqnote = note\nos.environ['ZQNOTE'] = note.decode()\nsys.setrecursionlimit(2000 + note[0])",
        look="import builtins, ctxbench.strategies as strategies\nseen = [getattr(it, 'zqnote', '') for it in (builtins, strategies, os)], os.environ.get('ZQNOTE'), sys.getrecursionlimit()",
    ),
    # Kernel objects.
    Channel(
        name="shared-memory",
        tries="System V shared memory",
        leave="libc.shmat.restype = ctypes.c_void_p\nmade = libc.shmget(0x7A71, 4096, 0o1666)\nif made >= 0:\n    ctypes.memmove(libc.shmat(made, None, 0), note, 4)",
        look="libc.shmat.restype = ctypes.c_void_p\nmade = libc.shmget(0x7A71, 4096, 0)\nseen = made if made < 0 else ctypes.string_at(libc.shmat(made, None, 0), 4)",
    ),
    Channel(
        name="semaphores",
        tries="System V semaphores",
        leave="made = libc.semget(0x7A72, 32, 0o1666)\nfor at, bit in enumerate(bits(note)):\n    libc.semctl(made, at, 16, int(bit))",
        look="made = libc.semget(0x7A72, 32, 0)\nseen = made if made < 0 else letters([libc.semctl(made, at, 12) == 1 for at in range(32)])",
    ),
    Channel(
        name="message-queues",
        tries="System V and POSIX message queues",
        leave="made = libc.msgget(0x7A73, 0o1666)\nlibc.msgsnd(made, struct.pack('=q', 1) + note, 4, 0o4000)\n"
        "made = libc.mq_open(b'/zqnote', 0o102, 0o666, None)\nlibc.mq_send(made, note, 4, 0)",
        look="space = ctypes.create_string_buffer(9000)\nseen = [libc.msgrcv(libc.msgget(0x7A73, 0), space, 100, 0, 0o4000), bytes(space[8:12])]\n"
        "seen += [libc.mq_receive(libc.mq_open(b'/zqnote', 0o4000, 0, None), space, 8192, None), bytes(space[:4])]",
    ),
    Channel(
        name="posix-memory",
        tries="POSIX shared memory and named semaphores",
        leave="from multiprocessing import shared_memory\ntried(lambda: shared_memory.SharedMemory('zqmemory', True, 4).buf.__setitem__(slice(0, 4), note))\ncall('sem_open', b'/zqsem', 0o100, 0o666, note[0])",
        look="from multiprocessing import shared_memory\nseen = tried(lambda: bytes(shared_memory.SharedMemory('zqmemory').buf[:4])), os.path.exists('/dev/shm/sem.zqsem')",
    ),
    Channel(
        name="keys",
        tries="a key in the user's, the session's and the process's keyring",
        leave="for ring in range(-5, 0):\n    syscall(248, b'user', b'zqnote', note, ctypes.c_size_t(4), ring)",
        look="space = ctypes.create_string_buffer(16)\nseen = []\nfor ring in range(-5, 0):\n"
        "    found = libc.syscall(250, 10, ring, b'user', b'zqnote', 0)\n    libc.syscall(250, 11, found, space, 16)\n    seen.append(bytes(space))",
    ),
    Channel(
        name="bpf-and-rings",
        tries="maps of the kernel's own machine, rings for calls, counters",
        leave="seen = [syscall(321, 0, struct.pack('=IIIII', 2, 4, 4, 1, 0) + bytes(52), 72), syscall(425, 4, bytes(120)), syscall(298, bytes(112), 0, -1, -1, 0)]\n",
        look="seen = [syscall(321, 0, struct.pack('=IIIII', 2, 4, 4, 1, 0) + bytes(52), 72), syscall(425, 4, bytes(120)), syscall(298, bytes(112), 0, -1, -1, 0), syscall(323, 0), syscall(447, 0)]",
    ),
    Channel(
        name="host-name",
        tries="a note as the machine's name",
        leave="call('setdomainname', note, 4)",
        look="seen = os.uname()",
    ),
    # Sockets.
    Channel(
        name="abstract-socket",
        tries="a process that stays and answers on an abstract socket",
        leave="def serve():\n    server = socket.socket(socket.AF_UNIX)\n    server.bind('\\0zqnote')\n    server.listen()\n"
        "    while True:\n        server.accept()[0].sendall(note)\nstay(serve)",
        look="def ask():\n    peer = socket.socket(socket.AF_UNIX)\n    peer.connect('\\0zqnote')\n    return peer.recv(4)\nseen = tried(ask)",
    ),
    Channel(
        name="local-ports",
        tries="a process that stays and answers on a port of this machine, by TCP and UDP",
        leave="def serve():\n    server = socket.create_server(('127.0.0.1', 41717))\n    while True:\n        server.accept()[0].sendall(note)\nstay(serve)\n"
        "def answer():\n    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n    server.bind(('127.0.0.1', 41717))\n    while True:\n        server.sendto(note, server.recvfrom(9)[1])\nstay(answer)",
        look="def ask():\n    peer = socket.create_connection(('127.0.0.1', 41717), 1)\n    return peer.recv(4)\n"
        "def send():\n    peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n    peer.settimeout(1)\n    peer.sendto(b'x', ('127.0.0.1', 41717))\n    return peer.recv(4)\nseen = tried(ask), tried(send)",
    ),
    Channel(
        name="other-sockets",
        tries="netlink, packet, vsock and alg sockets",
        leave="seen = []",
        look="seen = [tried(lambda: socket.socket(family, socket.SOCK_RAW).close()) for family in (16, 17, 40, 38, 15, 31)]",
    ),
    # Processes.
    Channel(
        name="process-that-stays",
        tries="a process that lives on, with the note as its name",
        leave="stay(lambda: libc.prctl(15, b'zqlives' + note))\n",
        look="seen = [Path(path).read_bytes() for path in glob.glob('/proc/[0-9]*/comm') if 'zqlives' in Path(path).read_text()]",
    ),
    Channel(
        name="process-numbers",
        tries="bits in the number that the next process gets",
        leave="for _ in range(note[0]):\n    os.fork() or os._exit(0)\n    os.wait()",
        look="made = os.fork() or os._exit(0)\nos.waitpid(made, 0)\nseen = os.getpid(), made, os.getppid()",
        open_in=WITHOUT,
    ),
    Channel(
        name="processes-counted",
        tries="how many processes there are, by asking for each number",
        at_once="leave",
        leave="children = [os.fork() or time.sleep(300) for _ in range(note[0])]\nwait()",
        look="seen = len([pid for pid in range(1, 40000) if call('kill', pid, 0) != 'ESRCH']), len([pid for pid in range(1, 40000) if os.path.exists(f'/proc/{pid}')])",
        open_in=WITHOUT,
    ),
    Channel(
        name="session-and-group",
        tries="group, session, priority, scheduling and limits of the process above, which the next cell inherits",
        leave="for pid in [0, *parents()]:\n"
        "    for act in (lambda: os.setpriority(os.PRIO_PROCESS, pid, 5), lambda: os.sched_setaffinity(pid, {0}), lambda: resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0)),\n"
        "                lambda: resource.prlimit(pid, resource.RLIMIT_STACK, (number(note), -1)), lambda: os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0)),\n"
        "                lambda: os.setpgid(pid, 0), lambda: Path(f'/proc/{pid}/oom_score_adj').write_text('900'), lambda: Path(f'/proc/{pid}/comm').write_text(note.decode())):\n"
        "        tried(act)\nos.umask(note[0])",
        look="seen = [resource.getrlimit(kind) for kind in range(16)], os.sched_getscheduler(0), os.sched_getaffinity(0), tried(lambda: os.getpriority(os.PRIO_PROCESS, 0)), os.umask(0o22)\n"
        "seen = *seen, [(tried(lambda: os.getpriority(os.PRIO_PROCESS, pid)), tried(lambda: os.sched_getaffinity(pid)), tried(lambda: Path(f'/proc/{pid}/comm').read_text())) for pid in parents()]",
    ),
    Channel(
        name="affinity-of-others",
        tries="bits in the processors that a process may use, read from beside",
        at_once="leave",
        leave="os.sched_setaffinity(0, {0})\nwait()",
        look="seen = [pid for pid in range(max(2, os.getpid() - 200), os.getpid() + 200) if tried(lambda: os.sched_getaffinity(pid)) == '{0}'], [pid for pid in range(max(2, os.getpid() - 200), os.getpid()) if tried(lambda: os.getpgid(pid)) not in ('ESRCH', 'EPERM')]",
    ),
    Channel(
        name="signals",
        tries="signals to every process that is there",
        at_once="look",
        leave="for pid in [*parents(), *range(max(2, os.getpid() - 500), os.getpid() + 500)]:\n    pid != os.getpid() and call('kill', pid, signal.SIGUSR1)",
        look="seen = []\nsignal.signal(signal.SIGUSR1, lambda *_: seen.append('signal'))\nwait()\ntime.sleep(0.05)",
    ),
    # Descriptors.
    Channel(
        name="descriptors-inherited",
        tries="offset, flags and owner of what is open when a cell begins",
        leave="for handle in range(64):\n    for act in (lambda: os.lseek(handle, note[0], 0), lambda: fcntl.fcntl(handle, fcntl.F_SETFL, os.O_NONBLOCK | os.O_APPEND), lambda: fcntl.fcntl(handle, fcntl.F_SETOWN, os.getpid()),\n"
        "                lambda: fcntl.fcntl(handle, 10, note[0] % 64), lambda: fcntl.fcntl(handle, 1031, 1 << 20)):\n        handle in (0, 1, 2) and tried(act)",
        look="seen = [[tried(lambda: os.lseek(handle, 0, 1)), tried(lambda: fcntl.fcntl(handle, fcntl.F_GETFL)), tried(lambda: fcntl.fcntl(handle, fcntl.F_GETOWN)), tried(lambda: fcntl.fcntl(handle, 11))] for handle in range(3)]",
    ),
    Channel(
        name="descriptors-written",
        tries="a note written to, and read from, everything that is open",
        at_once="leave",
        leave="each(lambda handle: os.write(handle, note * 3), (0, 1, 2))\neach(lambda handle: Path(f'/proc/self/fd/{handle}').write_bytes(note), (0, 1, 2))\nwait()",
        look="def read(path):\n    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)\n    return os.read(handle, 100)\n"
        "seen = each(read, ['/dev/stdin', '/dev/stdout', '/dev/stderr', '/proc/self/fd/1', '/proc/self/fd/2']), each(lambda handle: os.pread(handle, 100, 0), (0, 1, 2))",
    ),
    Channel(
        name="terminal",
        tries="a note as the size of the terminal",
        leave="each(lambda handle: fcntl.ioctl(handle, 0x5414, struct.pack('=HHHH', note[0], note[1], 0, 0)), range(8))\neach(lambda path: fcntl.ioctl(os.open(path, os.O_RDWR), 0x5414, struct.pack('=HHHH', note[0], note[1], 0, 0)), ['/dev/tty', '/dev/console', *glob.glob('/dev/pts/*')])",
        look="seen = each(lambda handle: fcntl.ioctl(handle, 0x5413, bytes(8)), range(3)), each(lambda path: os.open(path, os.O_RDWR), ['/dev/tty', '/dev/console', '/dev/ptmx', '/dev/tty0', *glob.glob('/dev/pts/*')])",
    ),
    # Beside one another.
    Channel(
        name="locks",
        tries="bits in which files are locked as a whole",
        at_once="leave",
        leave="held = [fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB) for bit, path in zip(bits(note), QUIET) if bit]\nwait()",
        look="seen = each(lambda path: fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB), QUIET)",
    ),
    Channel(
        name="locks-of-ranges",
        tries="bits in which bytes of files are locked, of the process and of the open file",
        at_once="leave",
        leave="handles = [os.open(path, os.O_RDONLY) for path in FILES[:6]]\n"
        "for handle in handles:\n"
        "    for at, bit in enumerate(bits(note)):\n        bit and (tried(lambda: fcntl.fcntl(handle, fcntl.F_SETLK, struct.pack('=hhiqqi4x', 0, 0, 0, at, 1, 0))), tried(lambda: fcntl.fcntl(handle, 37, struct.pack('=hhiqqi4x', 0, 0, 0, at + 99, 1, 0))))\nwait()",
        look="handle = os.open(QUIET[0], os.O_RDONLY)\nseen = each(lambda at: fcntl.fcntl(handle, fcntl.F_GETLK, struct.pack('=hhiqqi4x', 1, 0, 0, at, 1, 0)), range(140))\n"
        "seen += each(lambda at: fcntl.fcntl(handle, 36, struct.pack('=hhiqqi4x', 1, 0, 0, at, 1, 0)), range(140))",
    ),
    Channel(
        name="leases",
        tries="bits in which files are held open, told by a lease",
        at_once="leave",
        leave="handles = [os.open(path, os.O_RDONLY) for bit, path in zip(bits(note), QUIET) if bit]\neach(lambda handle: fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_RDLCK), handles)\nwait()",
        look="seen = each(lambda path: fcntl.fcntl(os.open(path, os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_WRLCK), QUIET)",
    ),
    Channel(
        name="watched-files",
        tries="bits in which files are opened, watched by inotify, by its older sister, and by fanotify",
        at_once="look",
        leave="for bit, path in zip(bits(note), QUIET):\n    bit and Path(path).read_bytes()",
        look="watch = libc.inotify_init1(0o4000)\nadded = [libc.inotify_add_watch(watch, path.encode(), 0x21) for path in QUIET]\n"
        "told = tried(lambda: fcntl.fcntl(os.open(HERE / 'quiet', os.O_RDONLY), 1026, 0x80000001))\nsyscall(300, 0, 0)\nwait()\n"
        "seen = tried(lambda: os.read(watch, 9000)), watch, told",
    ),
    Channel(
        name="pages-in-memory",
        tries="bits in which files are in the page cache: mincore, cachestat, a read that must not wait, advice to drop them",
        leave="for bit, path in zip(bits(note), QUIET):\n    handle = os.open(path, os.O_RDONLY)\n    os.read(handle, 9) if bit else tried(lambda: os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED))",
        look="seen = []\nfor path in QUIET:\n    handle = os.open(path, os.O_RDONLY)\n    with mmap.mmap(handle, 4096, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE) as held:\n"
        "        at = ctypes.c_char_p\n        seen.append(call('mincore', ctypes.c_void_p(0), ctypes.c_size_t(0), None))\n"
        "    seen.append(tried(lambda: os.preadv(handle, [bytearray(9)], 0, 8)))\n    seen.append(syscall(451, handle, bytes(16), bytes(40), 0))",
    ),
    Channel(
        name="pages-shared",
        tries="bits in which pages of files others have mapped, as told of one's own memory",
        at_once="leave",
        leave="held = [mmap.mmap(os.open(path, os.O_RDONLY), 4096, prot=mmap.PROT_READ, flags=mmap.MAP_SHARED) for bit, path in zip(bits(note), QUIET) if bit]\ntouched = [page[0] for page in held]\nwait()",
        look="held = [mmap.mmap(os.open(path, os.O_RDONLY), 4096, prot=mmap.PROT_READ, flags=mmap.MAP_SHARED) for path in QUIET]\ntouched = [page[0] for page in held]\n"
        "seen = [line for line in (Path('/proc/self/smaps').read_text().split('quiet')[1:] if os.path.exists('/proc/self/smaps') else []) for line in line.splitlines() if 'Shared' in line or 'Pss' in line]",
        open_in=WITHOUT,
    ),
    Channel(
        name="numbers-of-the-machine",
        tries="load, memory, processes and locks of the machine, as files and as a call",
        at_once="leave",
        leave="held = bytearray(b'x') * (64 << 20)\nwait()",
        look="seen = call('sysinfo', ctypes.create_string_buffer(400)), each(lambda name: len(Path('/proc', name).read_text()) > 0, ['meminfo', 'stat', 'loadavg', 'locks', 'vmstat', 'keys', 'sysvipc/shm', 'net/unix', 'sys/fs/file-nr', 'sys/kernel/pty/nr', 'slabinfo', 'interrupts'])\n"
        "seen = *seen, glob.glob('/sys/fs/cgroup/*'), glob.glob('/sys/class/*')",
    ),
    Channel(
        name="pipes-of-one-user",
        tries="whether the user has so many pipes that new ones are small",
        at_once="leave",
        leave="def fill():\n    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)\n    held = [tried(os.pipe) for _ in range(700)]\n    time.sleep(300)\n"
        "for _ in range(4):\n    os.fork() or fill()\ntime.sleep(0.5)\nwait()",
        look="handle = os.pipe()[1]\nos.set_blocking(handle, False)\nseen = tried(lambda: os.write(handle, bytes(1 << 20)))",
        open_in=("plain-namespaces", *WITHOUT),
    ),
    Channel(
        name="mounts",
        tries="a file system of one's own, mounted where others see it; namespaces that would allow it",
        leave="for flags in (0x20000, 0x10000000, 0x10020000):\n    call('unshare', flags)\n"
        "for place in PLACES:\n    call('mount', b'tmpfs', place.encode(), b'tmpfs', ctypes.c_ulong(0), None) == '0' and tried(lambda: Path(place, 'zqmounted').write_bytes(note))\n"
        "    call('mount', None, place.encode(), None, ctypes.c_ulong(32 | 4096), None)",
        look="seen = each(lambda place: Path(place, 'zqmounted').read_bytes(), PLACES), tried(lambda: Path('/proc/self/mountinfo').read_text())",
    ),
)
