"""Checks of this machine: changes by an attack, and remains of a pool.

Other tests and programs run at the same time, so the checks cover only processes with a token in their environment,
the containers of these processes, and settings that no other program changes.
"""

import contextlib
import hashlib
import itertools
import os
import re
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from ctxbench.sandbox.ownership import owner

_VOLATILE = re.compile(
    r"random/|ns_last_pid|pty/nr|file-nr|inode-|dentry-|aio-nr|epoll|quota|binfmt|sched_|/conf/|/neigh/|nf_conntrack|"
    r"netfilter|route/|/xfrm|stat_refresh|numa|tainted|core_sched|perf_event_max|kernel/keys|pid_max|threads-max|cad_pid"
)


@dataclass
class Seen:
    """The processes of the tested boxes, and their containers."""

    boxes: set[int] = field(default_factory=set)
    containers: set[str] = field(default_factory=set)

    def look(self, token: str) -> None:
        for pid in processes(token):
            self.boxes.add(pid)
            with contextlib.suppress(OSError):
                self.containers |= set(re.findall(r"[0-9a-f]{64}", Path(f"/proc/{pid}/cgroup").read_text()))

    def left(self, token: str) -> list[str]:
        """Return all remains: processes, containers, mounts and control groups."""
        found = [f"process {pid}" for pid in _until_none(token)]
        mounts = Path("/proc/self/mountinfo").read_text()
        for name in sorted(self.containers):
            known = subprocess.run(["docker", "inspect", name], capture_output=True, check=False).returncode == 0
            found += [f"container {name}"] if known else []
            found += [f"mount of {name}"] if name in mounts else []
        ours = f"ctxbench-box-{owner().replace(':', '-')}-*"
        groups = (*Path("/sys/fs/cgroup").glob(ours), *Path("/sys/fs/cgroup").glob(f"*/{ours}"))
        return found + [str(path) for path in groups]


def processes(token: str) -> list[int]:
    """Return the processes that have the token in their environment, as all processes of a box do."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                if f"CTXBENCH_ATTACK={token}".encode() in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                    found.append(int(name))
    return found


def _until_none(token: str, seconds: float = 5.0) -> list[int]:
    deadline = time.monotonic() + seconds
    while (found := processes(token)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def fingerprint(canary: Path) -> dict[str, str]:
    """Return the kernel's settings, this machine's names, its own mounts' options, and the canary's files."""
    found = {}
    for folder, _, names in os.walk("/proc/sys"):
        for name in names:
            path = os.path.join(folder, name)
            if not _VOLATILE.search(path):
                with contextlib.suppress(OSError):
                    found[path] = Path(path).read_bytes().decode("latin-1")
    for path in sorted(canary.rglob("*")):
        held = path.lstat()
        found[str(path)] = f"{held.st_mode:o} {held.st_uid} {hashlib.sha256(path.read_bytes()).hexdigest()}"
    for path in ("/etc/passwd", "/etc/shadow", "/etc/hosts", "/etc/ld.so.preload"):
        with contextlib.suppress(OSError):
            found[path] = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    found["device nodes"] = ",".join(sorted(name for name in os.listdir("/dev") if not name.startswith("loop")))
    return found


def leftovers() -> list[str]:
    temporary = Path(tempfile.gettempdir())
    return [str(path) for path in temporary.iterdir() if re.search(rf"ctxbench.*\b{os.getpid()}\b", path.name)]


def address() -> str:
    """Return an address of this machine other than its loopback, or the bridge's address if there is no other."""
    for line, following in itertools.pairwise(Path("/proc/net/fib_trie").read_text().splitlines()):
        found = re.search(r"\|-- (\d+\.\d+\.\d+\.\d+)", line)
        if found and "/32 host LOCAL" in following and not found[1].startswith("127."):
            return found[1]
    return "172.17.0.1"
