"""Make the folders that a box has beside the system: installed wheels, the guest and the library, a small ``/etc``.

Everything lies in digest-named folders of the cache, built aside and renamed, readable by everybody:
a box runs as a uid that owns none of it.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ctxbench import sandbox
from ctxbench.sandbox import wheels
from ctxbench.sandbox.bubblewrap import host
from ctxbench.sandbox.errors import SandboxUnavailable
from ctxbench.sandbox.folders import once
from ctxbench.sandbox.types import Environment, Report

_FORMAT = 1
"""Of the folders; a new one gives every folder, and every image, a new name."""
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


@dataclass(frozen=True, slots=True)
class Image:
    """The folders that `prepare` made for an environment."""

    digest: str
    packages: Path
    library: Path
    etc: Path
    bin: Path
    empty: Path


def make(environment: Environment, cache: Path, report: Report) -> Image:
    """Make the missing parts of an environment's image; if none is missing, no network is needed.

    Raises:
        SandboxUnavailable: if wheels cannot be had, or this machine lacks a program.
    """
    programs = host.programs(environment.programs)
    fetched = wheels.fetch(environment.requirements, environment.project, cache, report)
    parts = [str(_FORMAT), host.build(), host.release(), environment.installed, wheels.wheels(fetched)]
    packages = once(cache / "envs" / _short(parts), lambda folder: _install(fetched, folder, report))
    files = _library(environment.library)
    compiled = _short([_FORMAT, host.build(), _digests(files)])
    library = once(cache / "libs" / compiled, lambda folder: _write(files, folder))
    common = once(cache / "libs" / _short([_FORMAT, _ETC, host.build(), host.executable()]), _common)
    digest = _digest([*parts, programs, _digests(files), environment.digest])
    return Image(digest, packages, library, common / "etc", common / "bin", common / "empty")


def _library(extra: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of ``/ctxbench/lib``: our guest, and an environment's library beside it."""
    root = Path(sandbox.__file__).parent
    guest = sorted(path for path in (root / "guest").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    ours = [root / "__init__.py", root / "errors.py", *guest]
    files = {f"sandbox/{path.relative_to(root).as_posix()}": path.read_bytes() for path in ours}
    for name, data in extra.items():
        pure = PurePosixPath(name)
        if pure.is_absolute() or ".." in pure.parts or not pure.parts or pure.parts[0] in ("sandbox", "sandbox.py"):
            raise SandboxUnavailable(
                f"{name!r} cannot be a file of a library",
                where="bubblewrap",
                cure="name it inside a package of its own",
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
        _run([sys.executable, "-m", "pip", "--isolated", "install", *options, f"--target={folder}", "--", *files])
        _point_scripts(folder / "bin")
    _finish(folder, PACKAGES)


def _point_scripts(folder: Path) -> None:
    """Make console scripts start the box's interpreter; pip wrote this process's."""
    ours = f"#!{sys.executable}\n".encode()
    for script in sorted(folder.glob("*")) if folder.is_dir() else []:
        data = script.read_bytes()
        if data.startswith(ours):
            script.write_bytes(f"#!{PYTHON}\n".encode() + data[len(ours) :])


def _finish(folder: Path, where: str) -> None:
    """Compile a folder as if it lay where the box sees it, and let everybody read it.

    Some packages hold files that are no Python of this version; that they do not compile is no fault.
    """
    settings = ["--invalidation-mode=unchecked-hash", "-s", str(folder), "-p", where]
    _run([sys.executable, "-m", "compileall", "-qq", *settings, str(folder)], allowed=(0, 1))
    _open_up(folder)


def _open_up(folder: Path) -> None:
    """Let every uid read, whatever this process's umask is."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            runs = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if runs else 0o644)


def _run(argv: list[str], allowed: tuple[int, ...] = (0,)) -> None:
    try:
        process = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=_SECONDS, cwd="/")
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxUnavailable(f"cannot be installed: {error}", where="bubblewrap", cure="run it again") from error
    if process.returncode not in allowed:
        lines = (process.stderr or process.stdout).strip().splitlines() or ["no reason given"]
        raise SandboxUnavailable(
            f"wheels cannot be installed: {lines[-1]}", where="bubblewrap", cure="free some disk and run it again"
        )


def _digests(files: Mapping[str, bytes]) -> list[list[str]]:
    return [[name, hashlib.sha256(files[name]).hexdigest()] for name in sorted(files)]


def _digest(parts: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _short(parts: Sequence[object]) -> str:
    return _digest(parts)[:32]
