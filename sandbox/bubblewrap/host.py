"""The parts of this machine that a box uses: interpreter, system folders, bwrap."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import re
import secrets
import shutil
import site
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from ctxbench.sandbox.errors import SandboxUnavailable

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""System folders that every program needs. Some are symlinks into ``/usr``."""
_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "ssl/certs")
"""Entries of ``/etc`` that programs read, besides ``java-*``. None contains names of users or machines."""
PREFIX = "/ctxbench/python"
"""Folder in a box for an interpreter from outside the system folders."""
_FIRST_UID, _LAST_UID = 0x70000000, 0x7FFF0000
_STAGES = ("/mnt", "/media", "/srv", "/opt")
_MACHINE = "install bubblewrap (`apt-get install bubblewrap`) or Docker"


def bwrap() -> str:
    """Return bwrap's path.

    Raises:
        SandboxUnavailable: if bwrap is not installed or is older than 0.4.
    """
    program = shutil.which("bwrap")
    if not sys.platform.startswith("linux") or program is None:
        raise SandboxUnavailable("bubblewrap is not installed", where="bubblewrap", cure=_MACHINE)
    if version(program) < (0, 4):
        raise SandboxUnavailable(f"{program} is older than 0.4", where="bubblewrap", cure="install a newer version")
    return os.path.realpath(program)


@functools.cache
def version(program: str) -> tuple[int, ...]:
    """Return bwrap's version, e.g. (0, 8, 0); (0,) if unknown."""
    process = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=10)
    return tuple(int(part) for part in re.findall(r"\d+", process.stdout)) or (0,)


def interpreter() -> Path:
    """Return the path of the Python that runs ctxbench, outside any virtual environment, with symlinks resolved."""
    return Path(os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable))


@functools.cache
def python() -> list[tuple[Path, str]]:
    """Return (path here, path in the box) of the interpreter's files and folders outside the system folders."""
    base = _base()
    # In a virtual environment, platstdlib would otherwise be that environment's own.
    folders = [sysconfig.get_path(name, vars={"platbase": sys.base_exec_prefix}) for name in ("stdlib", "platstdlib")]
    paths = [interpreter(), *(Path(os.path.realpath(folder)) for folder in folders)]
    paths += sorted((base / "lib").glob("libpython*.so*"))
    outside = [path for path in dict.fromkeys(paths) if path.exists() and not is_within(path, SYSTEM)]
    return [(path, _moved(path)) for path in outside if not any(other in path.parents for other in outside)]


def own_packages() -> list[str]:
    """Return the interpreter's site-packages folders, as paths in the box. The box must not see their content."""
    folders = [Path(os.path.realpath(path)) for path in site.getsitepackages([sys.base_prefix])]
    return [_moved(path) for path in folders if path.is_dir()]


def links() -> list[tuple[str, str]]:
    """Return symlinks to create in the box: (target, link)."""
    pairs = [(os.readlink(name), name) for name in SYSTEM if os.path.islink(name)]  # noqa: PTH114, PTH115
    if any(path.name.startswith("libpython") for path, _ in python()):
        pairs += [(PREFIX, str(path)) for path in dict.fromkeys([Path(sys.base_prefix), _base()])]
    return pairs


def executable() -> str:
    """Return the interpreter's path in the box."""
    return _moved(interpreter())


def _base() -> Path:
    return Path(os.path.realpath(sys.base_prefix))


def _moved(path: Path) -> str:
    if is_within(path, SYSTEM) or not path.is_relative_to(_base()):
        return str(path)
    return f"{PREFIX}/{path.relative_to(_base()).as_posix()}"


def etc() -> list[Path]:
    """Return this machine's files and folders in ``/etc`` that boxes mount."""
    base = Path("/etc")
    return [path for path in (*(base / name for name in _ETC), *sorted(base.glob("java-*"))) if path.exists()]


def is_within(path: Path, folders: Sequence[str]) -> bool:
    """Return whether a path is in or equal to one of the folders."""
    return any(path == Path(folder) or Path(folder) in path.parents for folder in folders)


def stage(sources: Sequence[Path]) -> str:
    """Return a folder that contains none of `sources`, to stage boxes in; raise SandboxUnavailable without one."""
    for name in _STAGES:
        if Path(name).is_dir() and not any(is_within(path, [name]) for path in sources):
            return name
    raise SandboxUnavailable(
        f"a box cannot be mounted on any of {', '.join(_STAGES)}",
        where="bubblewrap",
        cure="create an empty /mnt folder",
    )


def draw_uid() -> int | None:
    """Return a random unprivileged uid for a box; None if this process is not root or has fewer than 4096 uids."""
    if os.geteuid() != 0:
        return None
    ranges = [tuple(map(int, line.split())) for line in Path("/proc/self/uid_map").read_text().splitlines()]
    for inside, _, count in ranges:
        if inside <= _FIRST_UID and inside + count > _LAST_UID:
            return _FIRST_UID + secrets.randbelow(_LAST_UID - _FIRST_UID)
    inside, _, count = max(ranges, key=lambda uid_range: uid_range[2])
    # Root of a namespace with few uids: use the upper half. With fewer than 4096, the box runs as a plain user.
    return inside + count // 2 + secrets.randbelow(count // 2) if count >= 4096 else None


def release() -> str:
    """Return this machine's operating system, architecture and libc, as one text."""
    try:
        system = platform.freedesktop_os_release()
    except OSError:
        system = {}
    name = system.get("PRETTY_NAME") or platform.system()
    version_file = Path("/etc/debian_version")
    debian = version_file.read_text(encoding="utf-8").strip() if version_file.is_file() else ""
    return f"{name} {debian} {platform.machine()} {'-'.join(platform.libc_ver())}"


@functools.cache
def build() -> str:
    """Return the interpreter's name and version, and the digest of its executable, as one text."""
    digest = hashlib.sha256(interpreter().read_bytes()).hexdigest()
    return f"{sys.implementation.name} {sys.version} {digest}"


def programs(packages: Sequence[str]) -> list[str]:
    """Return ``NAME VERSION`` for each Debian package; without dpkg, ``NAME PATH`` with the path of its program.

    Raises:
        SandboxUnavailable: if a package is not installed.
    """
    if not packages:
        return []
    if shutil.which("dpkg-query") is None:
        return _by_path(packages)
    form = "-f=${Package} ${Version} ${db:Status-Status}\\n"
    process = subprocess.run(
        ["dpkg-query", "-W", form, "--", *packages], capture_output=True, text=True, check=False, timeout=30
    )
    rows = [line.split() for line in process.stdout.splitlines()]
    versions = {row[0]: row[1] for row in rows if len(row) == 3 and row[2] == "installed"}
    _require([name for name in packages if name.partition(":")[0] not in versions])
    return sorted(f"{name} {number}" for name, number in versions.items())


def _by_path(packages: Sequence[str]) -> list[str]:
    names = {name: "javac" if "jdk" in name else "java" if "jre" in name else name for name in packages}
    _require([name for name, program in names.items() if shutil.which(program) is None])
    return sorted(f"{name} {os.path.realpath(str(shutil.which(program)))}" for name, program in names.items())


def _require(missing: Sequence[str]) -> None:
    if missing:
        text = " ".join(missing)
        raise SandboxUnavailable(
            f"not installed on this machine: {text}", where="bubblewrap", cure=f"run `apt-get install {text}`"
        )
