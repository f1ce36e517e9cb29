"""The layout of a box: its bind mounts and bwrap's arguments. Pure but for looking at paths."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ctxbench.sandbox.box import NETWORK
from ctxbench.sandbox.bubblewrap import host
from ctxbench.sandbox.bubblewrap.image import LIBRARY, PACKAGES, PYTHON, Image
from ctxbench.sandbox.types import MIB, Environment, Limits

GUEST = ("/usr/bin/env", "-u", "PWD", PYTHON, "-s", "-P", "-B", "-m", "sandbox.guest")
"""bwrap sets PWD, which goes stale with the first change of folder; the rest is as it is asked to be."""
PATH = "/ctxbench/bin:/ctxbench/site/bin:/usr/local/bin:/usr/bin:/bin"
_UID = "1000"
"""Inside; outside it is another one for each box."""
_SHM = f"size={16 * MIB},nr_inodes=1000,mode=1777"


@dataclass(frozen=True, slots=True)
class BoxLayout:
    """The part of a layout that is the same for all boxes of an environment."""

    program: str
    binds: tuple[tuple[str, str], ...]
    """(path on this machine, path in the box), read-only, in this order."""
    links: tuple[tuple[str, str], ...]
    variables: tuple[tuple[str, str], ...]
    tmpfs: str
    """Mount options of the working folder."""
    stage: str
    old: bool
    """Whether bwrap is too old to forbid further user namespaces itself; the guest's filter does it alone."""

    def specification(
        self,
        *,
        uid: int | None,
        status: int,
        groups: Sequence[Path],
        counters: Sequence[tuple[str, str]],
        command: Sequence[str] = GUEST,
    ) -> str:
        """Return what `sandbox.bubblewrap.stage` is started with.

        Args:
            uid: what the box runs as outside; None for this process's own.
            status: file descriptor that the number of the box's topmost process is written to.
            groups: control groups that it joins.
            counters: the groups' own folders and where the box reads them.
            command: its first process.
        """
        binds = (*self.binds, *counters)
        names = [f"{number:02d}" for number in range(len(binds))]
        spec = {
            "parent": os.getpid(),
            "status": status,
            "uid": uid,
            "stage": self.stage,
            "groups": [str(group / "cgroup.procs") for group in groups],
            "binds": [[source, name] for (source, _), name in zip(binds, names, strict=True)],
            "settings": [[f"/proc/sys/{name}", text] for name, text in NETWORK.items()],
            "tmpfs": [["work", f"{self.tmpfs},mode=700"], ["shm", _SHM]],
            "argv": self._argv([(name, target) for (_, target), name in zip(binds, names, strict=True)], command),
        }
        return json.dumps(spec)

    def _argv(self, binds: Sequence[tuple[str, str]], command: Sequence[str]) -> list[str]:
        # All namespaces but the network's, which the stage has made.
        argv = [self.program, "--die-with-parent", "--as-pid-1", "--unshare-user", "--unshare-ipc", "--unshare-pid"]
        argv += ["--unshare-uts", "--unshare-cgroup-try"]
        argv += [] if self.old else ["--disable-userns"]
        argv += ["--uid", _UID, "--gid", _UID, "--cap-drop", "ALL", "--hostname", "ctxbench"]
        for name, value in self.variables:
            argv += ["--setenv", name, value]
        argv += ["--proc", "/proc", "--dev", "/dev"]
        for source, target in self.links:
            argv += ["--symlink", source, target]
        for name, target in binds:
            argv += ["--ro-bind", f"{self.stage}/{name}", target]
        argv += ["--bind", f"{self.stage}/shm", "/dev/shm", "--bind", f"{self.stage}/work", "/work"]  # noqa: S108
        argv += [
            "--remount-ro",
            "/dev/pts",
            "--remount-ro",
            "/dev",
            "--remount-ro",
            "/",
            "--chdir",
            "/work",
            "--",
            *command,
        ]
        return argv


def layout(environment: Environment, image: Image, limits: Limits) -> BoxLayout:
    """Return the layout of boxes of one image under one set of limits.

    Raises:
        SandboxUnavailable: if bwrap is missing, or no folder can be used to stage a box.
    """
    program = host.bwrap()
    whole = [Path(name) for name in host.SYSTEM if os.path.isdir(name) and not os.path.islink(name)]  # noqa: PTH114
    binds = [(str(path), str(path)) for path in (*whole, *host.etc())]
    binds += [(str(path), place) for path, place in host.python()]
    binds += [(str(image.empty), place) for place in host.own_packages()]
    binds += [(str(path), f"/etc/{path.name}") for path in sorted(image.etc.iterdir())]
    binds += [(str(image.bin), "/ctxbench/bin"), (str(image.library), LIBRARY), (str(image.packages), PACKAGES)]
    return BoxLayout(
        program=program,
        binds=tuple(binds),
        links=tuple(host.links()),
        variables=variables(environment),
        tmpfs=f"size={limits.disk},nr_inodes={limits.inodes}",
        stage=host.stage([Path(source) for source, _ in binds]),
        old=host.version(program) < (0, 8),
    )


def variables(environment: Environment) -> tuple[tuple[str, str], ...]:
    """Return the whole environment of a box's first process."""
    fixed = {
        "PATH": PATH,
        "HOME": "/work",
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": f"{LIBRARY}:{PACKAGES}",
    }
    return tuple({**fixed, **dict(environment.variables)}.items())
