"""Builds the files of a box that are not the system's (wheels, guest, library, ``/etc``), and lists its mounts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ctxbench.sandbox import wheels
from ctxbench.sandbox.bubblewrap import host
from ctxbench.sandbox.errors import SandboxUnavailable
from ctxbench.sandbox.link import guest_files
from ctxbench.sandbox.ownership import once
from ctxbench.sandbox.types import MIB, NETWORK, Environment, Limits, Report, digest_of, file_digests

_FORMAT = 1
PACKAGES, LIBRARY = "/ctxbench/site", "/ctxbench/lib"
PYTHON = "/ctxbench/bin/python3"
_SECONDS = 900.0
_ETC = {
    "passwd": "root:x:0:0:root:/:/usr/sbin/nologin\nctxbench:x:1000:1000::/work:/usr/sbin/nologin\n"
    "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
    "group": "root:x:0:\nctxbench:x:1000:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
GUEST = ("/usr/bin/env", "-u", "PWD", PYTHON, "-s", "-P", "-B", "-m", "sandbox.guest")
"""Command of the first process. It unsets PWD, which bwrap sets, because PWD would be wrong in another folder."""
PATH = "/ctxbench/bin:/ctxbench/site/bin:/usr/local/bin:/usr/bin:/bin"
_UID = "1000"
_SHM = f"size={16 * MIB},nr_inodes=1000,mode=1777"


@dataclass(frozen=True, slots=True)
class Image:
    """Folders on this machine that an environment's boxes mount."""

    digest: str
    packages: Path
    library: Path
    etc: Path
    bin: Path
    empty: Path


def make(environment: Environment, cache: Path, report: Report) -> Image:
    """Build the missing parts of an environment's image. If all parts exist, no network is needed.

    Raises:
        SandboxUnavailable: if wheels cannot be fetched or installed, or a program or library path is missing or wrong.
        OSError: if the cache cannot be written.
    """
    programs = host.programs(environment.programs)
    fetched = wheels.fetch(environment.requirements, environment.project, cache, report)
    parts = [str(_FORMAT), host.build(), host.release(), environment.installed, wheels.wheels(fetched)]
    packages = once(cache / "envs" / _short(parts), lambda folder: _install(fetched, folder, report))
    files = _library(environment.library)
    compiled = _short([_FORMAT, host.build(), file_digests(files)])
    library = once(cache / "libs" / compiled, lambda folder: _write(files, folder))
    common = once(cache / "libs" / _short([_FORMAT, _ETC, host.build(), host.executable()]), _common)
    digest = digest_of([*parts, programs, file_digests(files), environment.digest])
    return Image(digest, packages, library, common / "etc", common / "bin", common / "empty")


def _library(extra: Mapping[str, bytes]) -> dict[str, bytes]:
    files = dict(guest_files())
    for name, data in extra.items():
        pure = PurePosixPath(name)
        if pure.is_absolute() or ".." in pure.parts or not pure.parts or pure.parts[0] in ("sandbox", "sandbox.py"):
            raise SandboxUnavailable(
                f"{name!r} cannot be a library file",
                where="bubblewrap",
                cure="put it into a package with another name",
            )
        files[name] = data
    return files


def _write(files: Mapping[str, bytes], folder: Path) -> None:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    _finish(folder, LIBRARY)


def _common(folder: Path) -> None:
    for name, text in _ETC.items():
        (folder / "etc").mkdir(exist_ok=True)
        (folder / "etc" / name).write_text(text, encoding="utf-8")
    (folder / "bin").mkdir()
    for name in ("python", "python3", f"python{sys.version_info.major}.{sys.version_info.minor}"):
        (folder / "bin" / name).symlink_to(host.executable())
    (folder / "empty").mkdir()
    _open_up(folder)


def _install(fetched: Path, folder: Path, report: Report) -> None:
    files = [str(fetched / name) for name, _ in wheels.wheels(fetched)]
    if files:
        if (missing := wheels.pip_missing()) is not None:
            raise missing
        report(f"installing {len(files)} wheels")
        options = ["--no-index", "--no-deps", "--no-compile", "--quiet", "--no-input", "--disable-pip-version-check"]
        pip = [sys.executable, "-m", "pip", "--isolated", "install", *options, f"--target={folder}", "--", *files]
        _run("wheels cannot be installed", pip)
        _point_scripts(folder / "bin")
    _finish(folder, PACKAGES)


def _point_scripts(folder: Path) -> None:
    """Make console scripts start the box's interpreter, rather than this process's, which pip wrote into them."""
    ours = f"#!{sys.executable}\n".encode()
    for script in sorted(folder.glob("*")) if folder.is_dir() else []:
        data = script.read_bytes()
        if data.startswith(ours):
            script.write_bytes(f"#!{PYTHON}\n".encode() + data[len(ours) :])


def _finish(folder: Path, where: str) -> None:
    """Compile a folder's modules for their path in the box, and make the folder readable by all users."""
    settings = ["--invalidation-mode=unchecked-hash", "-s", str(folder), "-p", where]
    compiler = [sys.executable, "-m", "compileall", "-qq", *settings, str(folder)]
    _run("modules cannot be compiled", compiler, allowed=(0, 1))
    _open_up(folder)


def _open_up(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            runs = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if runs else 0o644)


def _run(failure: str, argv: list[str], allowed: tuple[int, ...] = (0,)) -> None:
    try:
        process = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=_SECONDS, cwd="/")
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxUnavailable(f"{failure}: {error}", where="bubblewrap", cure="run the command again") from error
    if process.returncode not in allowed:
        lines = (process.stderr or process.stdout).strip().splitlines() or ["no reason given"]
        raise SandboxUnavailable(
            f"{failure}: {lines[-1]}",
            where="bubblewrap",
            cure="free some disk space, then run the command again",
        )


def _short(parts: Sequence[object]) -> str:
    return digest_of(parts)[:32]


@dataclass(frozen=True, slots=True)
class BoxLayout:
    """Mounts and settings that all boxes of an environment share."""

    program: str
    binds: tuple[tuple[str, str], ...]
    """Read-only mounts, in order: (path on this machine, path in the box)."""
    links: tuple[tuple[str, str], ...]
    variables: tuple[tuple[str, str], ...]
    tmpfs: str
    stage: str
    old: bool
    """Whether bwrap cannot forbid nested user namespaces. Then only the guest's filter forbids them."""

    def specification(
        self,
        *,
        uid: int | None,
        status: int,
        groups: Sequence[Path],
        counters: Sequence[tuple[str, str]],
        command: Sequence[str] = GUEST,
    ) -> str:
        """Return the JSON argument of `sandbox.bubblewrap.stage`.

        Args:
            uid: the box's user id outside the box; None for this process's own.
            status: file descriptor for the pid of the box's first process.
            groups: folders of the box's control groups.
            counters: (control group's folder, its path in the box).
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
        # Create all namespaces except the network's, which the stage has created.
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
    """Return the layout of an image's boxes.

    Raises:
        SandboxUnavailable: if bwrap is missing, or no folder can stage a box.
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
    """Return all environment variables of a box's first process."""
    fixed = {
        "PATH": PATH,
        "HOME": "/work",
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": f"{LIBRARY}:{PACKAGES}",
    }
    return tuple({**fixed, **dict(environment.variables)}.items())
