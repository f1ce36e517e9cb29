"""Lock and fetch wheels: the only step of the sandbox with a network; no code of a package is run.

Only wheels are taken, so nothing is built and no ``setup.py`` runs. `fetch` gives a folder that both
back ends install from with ``--no-index``; the second time it needs no network. A project under test
is in that folder as metadata alone: its code would hold the answers.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import platform
import re
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ctxbench.sandbox.errors import SandboxUnavailable
from ctxbench.sandbox.ownership import once, scratch
from ctxbench.sandbox.types import Report, digest_of

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_REQUIREMENT = re.compile(rf"({_NAME})\s*(\[[^\]/]*\])?\s*\(?([<>=!~][^;@/]*)?(;.*)?", re.DOTALL)
"""Name, extras, versions, marker; no option, no address and no path, which pip would also take."""
_FORMAT = 1
"""Of the folder; a new one gives every folder a new name."""
_GLIBC = 36
"""Debian 12's, which the image of the other Python is."""
_SECONDS = 1800.0
_TARGET = """
import json, runpy, sys
from pip._vendor.packaging import markers
real, other = markers.default_environment, json.loads(sys.argv.pop(1))
markers.default_environment = lambda: {**real(), **other}
runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""
"""pip for another Python, in which markers (``; python_version < "3.12"``) hold for that Python too.

pip's public options (``download``, ``install --dry-run --report``, each with ``--python-version`` and ``--platform``)
choose files for another Python, but judge markers by the one that runs it, in 23.2 as in 26.3: for 3.9 they leave out
what is required below 3.10. ``uv pip compile`` judges them rightly, but is a program of 37 MB, takes none of pip's
settings (index, certificates, folders of wheels), by which people here reach their packages, and downloads nothing, so
that pip would still be needed after it. Neither is faster (0.5 s of processor time for a small closure).
"""


def lock(
    requirements: Sequence[str], project: str, cache: Path, report: Report, python: str | None = None
) -> tuple[str, ...]:
    """Resolve requirements, and what they and the project require, to ``name==version`` each.

    The project itself is left out. What was fetched is kept: `fetch` of the result needs no network.

    Args:
        requirements: pip requirement strings; addresses and paths are refused.
        project: the distribution under test, e.g. ``fasta2a==2.1.1``; empty for none.
        cache: a folder of the sandbox's own.
        report: takes lines on what is being done.
        python: version of a Debian 12 Linux to resolve for, e.g. ``3.11``; None is this interpreter on this machine.

    Raises:
        SandboxUnavailable: if a requirement is malformed, cannot be met by wheels, or cannot be fetched.
    """
    checked = _checked(requirements, project)
    if not checked:
        return ()
    report(f"resolving {_few(checked)}")
    with scratch(cache / "wheels") as aside:
        _download(checked, aside, python)
        own = _normal(_name(project)) if project else ""
        resolved = tuple(sorted("==".join(_parts(wheel)) for wheel in aside.iterdir() if _parts(wheel)[0] != own))
        once(_folder(resolved, project, cache, python), _moving(aside, project))
    return resolved


def fetch(requirements: Sequence[str], project: str, cache: Path, report: Report, python: str | None = None) -> Path:
    """Return a folder with exactly the wheels that `lock` would name, and the project's as metadata alone.

    Arguments and faults are those of `lock`. A folder that is there already is taken as it is, without a network.
    """
    checked = _checked(requirements, project)

    def make(folder: Path) -> None:
        if not checked:
            return
        report(f"fetching wheels for {_few(checked)}")
        with scratch(cache / "wheels") as aside:
            _download(checked, aside, python)
            _moving(aside, project)(folder)

    return once(_folder(requirements, project, cache, python), make)


def wheels(folder: Path) -> list[tuple[str, str]]:
    """Return name and SHA-256 of each wheel in a fetched folder, in order of name."""
    paths = sorted(path for path in folder.iterdir() if path.suffix == ".whl")
    return [(path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in paths]


def pip_missing() -> SandboxUnavailable | None:
    """Return the fault if this interpreter has no pip, which a bare virtual environment has not."""
    if importlib.util.find_spec("pip"):
        return None
    return SandboxUnavailable(
        "pip is missing, which fetches what a test needs",
        where=sys.executable,
        cure=f"run `{shlex.quote(sys.executable)} -m ensurepip`",
    )


def _checked(requirements: Sequence[str], project: str) -> list[str]:
    texts = [text.strip() for text in (*requirements, *([project] if project else []))]
    for text in texts:
        if not _REQUIREMENT.fullmatch(text) or "\n" in text or "\0" in text:
            raise SandboxUnavailable(
                f"{text!r} is not a requirement", where="requirements", cure="write it as `name` or `name==version`"
            )
    return sorted(set(texts))


def _few(requirements: Sequence[str]) -> str:
    return ", ".join(requirements[:4]) + (f" and {len(requirements) - 4} more" if len(requirements) > 4 else "")


def _folder(requirements: Sequence[str], project: str, cache: Path, python: str | None) -> Path:
    tag = [sys.implementation.cache_tag, platform.system(), platform.libc_ver()] if python is None else [python]
    names = sorted({text.strip() for text in requirements})
    return cache / "wheels" / digest_of([_FORMAT, names, project, platform.machine(), tag])[:32]


def _download(requirements: Sequence[str], into: Path, python: str | None) -> None:
    if (missing := pip_missing()) is not None:
        raise missing
    start = ["-m", "pip"] if python is None else ["-c", _TARGET, json.dumps(_markers(python))]
    options = ["--only-binary=:all:", "--no-input", "--disable-pip-version-check", "--progress-bar=off"]
    target = [] if python is None else ["--implementation=cp", f"--python-version={python}", *_platforms()]
    argv = [sys.executable, *start, "download", *options, *target, f"--dest={into}", "--", *requirements]
    try:
        # In an empty folder: a file there with a requirement's name would be taken for it.
        process = subprocess.run(argv, cwd=into, capture_output=True, text=True, check=False, timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        raise _fault(requirements, f"pip was not done after {_SECONDS:.0f} s") from None
    except OSError as error:
        raise _fault(requirements, str(error)) from error
    if process.returncode:
        raise _fault(requirements, _reason(process.stderr or process.stdout))


def _markers(python: str) -> dict[str, str]:
    return {
        "implementation_name": "cpython",
        "os_name": "posix",
        "platform_python_implementation": "CPython",
        "platform_system": "Linux",
        # The first of its line: a backport meant for early releases comes too, which does no harm.
        "python_full_version": python if python.count(".") > 1 else f"{python}.0",
        "python_version": ".".join(python.split(".")[:2]),
        "sys_platform": "linux",
    }


def _platforms() -> Iterable[str]:
    machine = {"arm64": "aarch64", "AMD64": "x86_64"}.get(platform.machine(), platform.machine())
    names = [f"manylinux_2_{minor}" for minor in range(_GLIBC, 4, -1)]
    return [f"--platform={name}_{machine}" for name in (*names, "manylinux2014", "manylinux2010", "manylinux1")]


def _fault(requirements: Sequence[str], reason: str) -> SandboxUnavailable:
    if re.search(r"No matching distribution|Could not find a version|conflict", reason):
        cure = "only wheels for this Python and machine are taken: choose another version"
    else:
        cure = "check the network, the index that pip is set to and the free disk, and run it again"
    return SandboxUnavailable(f"wheels cannot be fetched: {reason}", where=_few(requirements), cure=cure)


def _reason(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    return (errors[-1] if errors else lines[-1] if lines else "pip failed without a word")[:400].rstrip(".")


def _name(requirement: str) -> str:
    match = _REQUIREMENT.fullmatch(requirement.strip())
    return match[1] if match else requirement


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _parts(wheel: Path) -> tuple[str, str]:
    name, version = wheel.name.split("-")[:2]
    return _normal(name), version


def _moving(aside: Path, project: str) -> Callable[[Path], None]:
    def move(folder: Path) -> None:
        own = _normal(_name(project)) if project else ""
        for wheel in sorted(aside.iterdir()):
            if _parts(wheel)[0] == own:
                strip(wheel, folder / wheel.name)
            else:
                wheel.rename(folder / wheel.name)

    return move


def strip(wheel: Path, into: Path) -> None:
    """Write a wheel that has another's metadata and nothing else; pip installs it and what it requires."""
    rows: list[str] = []
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as stripped:
        names = [name for name in source.namelist() if name.split("/")[0].endswith(".dist-info")]
        record = ""
        for name in sorted(names):
            base = name.split("/", 1)[1]
            if base == "RECORD":
                record = name
            if base.startswith("RECORD") or name.endswith("/"):
                continue
            data = source.read(name)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append(f"{_field(name)},sha256={digest},{len(data)}\n")
            stripped.writestr(zipfile.ZipInfo(name), data)
        if not record:
            raise SandboxUnavailable("the wheel has no RECORD", where=wheel.name, cure="choose another version of it")
        stripped.writestr(zipfile.ZipInfo(record), "".join([*rows, f"{_field(record)},,\n"]))


def _field(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if re.search(r'[",\n]', name) else name
