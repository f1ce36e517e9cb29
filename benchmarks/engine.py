"""A private Docker engine and control group, which count only the processor time of sandboxing."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

_GROUP = "ctxbench-bench"
_ROOT = Path("/sys/fs/cgroup")


class Meter:
    """Processor seconds of this process, its children, the private engine and its containers."""

    def __init__(self) -> None:
        """As root, move this process into a control group. Otherwise count only this process and its children."""
        self.what = "this process and its children"
        self._group = next((top for top in (_ROOT / "cpuacct", _ROOT) if (top / "cgroup.procs").is_file()), None)
        if self._group is not None and os.geteuid() == 0:
            self._group /= _GROUP
            self._group.mkdir(exist_ok=True)
            (self._group / "cgroup.procs").write_text(str(os.getpid()))
            self.what = "a control group with this process, the engine and its containers"
        else:
            self._group = None

    def read(self) -> float:
        """Return the processor seconds used so far."""
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        own_seconds = sum(usage.ru_utime + usage.ru_stime for usage in used)
        if self._group is None:
            return own_seconds
        with contextlib.suppress(FileNotFoundError):
            return int((self._group / "cpuacct.usage").read_text()) / 1e9
        fields = dict(line.split() for line in (self._group / "cpu.stat").read_text().splitlines())
        return int(fields["usage_usec"]) / 1e6


@contextlib.contextmanager
def engine(image: str) -> Iterator[None]:
    """Start an engine with an image in this process's control group, and set DOCKER_HOST to it."""
    with tempfile.TemporaryDirectory(prefix="ctxbench-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        address = f"unix://{folder}/docker.sock"
        # In its own network, because an engine without a bridge removes docker0, which belongs to the usual engine.
        argv = ["unshare", "--net", "dockerd", "--host", address, "--bridge=none", "--iptables=false"]
        argv.append(f"--cgroup-parent=/{_GROUP}")
        argv += [f"--{key}={folder / value}" for key, value in _PLACES.items()]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(argv, stdout=log, stderr=log, start_new_session=True)
        try:
            version = ["docker", "-H", address, "version"]
            while subprocess.run(version, capture_output=True, check=False).returncode:
                time.sleep(0.5)
            pipe = 'docker save "$1" | docker -H "$2" load'
            subprocess.run(["sh", "-c", pipe, "sh", image, address], check=True, capture_output=True)
            os.environ["DOCKER_HOST"] = address
            yield
        finally:
            os.environ.pop("DOCKER_HOST", None)
            process.terminate()
            process.wait()


_PLACES = {"data-root": "data", "exec-root": "exec", "pidfile": "docker.pid"}
