"""Resolves and downloads wheels for both back ends. This step uses a network, but runs no package's code."""

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
"""Groups: name, extras, versions, marker. Options, addresses and paths, which pip accepts, are not allowed."""
_FORMAT = 1
_GLIBC = 36
"""Minor version of glibc in Debian 12, the images' system."""
_SECONDS = 1800.0
_TARGET = """
import json, runpy, sys
from pip._vendor.packaging import markers
real, other = markers.default_environment, json.loads(sys.argv.pop(1))
markers.default_environment = lambda: {**real(), **other}
runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""
"""A pip that evaluates markers (``; python_version < "3.12"``) for another Python version.

With ``--python-version``, pip 23.2 to 26.3 selects that version's files but evaluates markers for the running Python.
``uv pip compile`` evaluates markers correctly, but ignores pip's settings (index, certificates) and cannot download.
"""


def lock(
    requirements: Sequence[str], project: str, cache: Path, report: Report, python: str | None = None
) -> tuple[str, ...]:
    """Resolve requirements and all dependencies to ``name==version``. The project itself is left out.

    The wheels are kept, so `fetch` of the result needs no network.

    Args:
        project: distribution under test, e.g. ``fasta2a==2.1.1``; empty for none.
        python: version to resolve for, on Debian 12, e.g. ``3.11``; None for this interpreter and machine.

    Raises:
        SandboxUnavailable: if a requirement is malformed, has no wheels, or cannot be downloaded.
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
    """Return a folder with exactly the wheels that `lock` resolves to, and the project's metadata without its code.

    Arguments and errors are those of `lock`. An existing folder needs no network.
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
    """Return the file name and SHA-256 of each wheel in a folder, sorted by name."""
    paths = sorted(path for path in folder.iterdir() if path.suffix == ".whl")
    return [(path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in paths]


def pip_missing() -> SandboxUnavailable | None:
    """Return an error if this interpreter has no pip; otherwise None."""
    if importlib.util.find_spec("pip"):
        return None
    return SandboxUnavailable(
        "pip, which fetches the tests' requirements, is missing",
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
        # Run pip in an empty folder: pip would install a local file that has a requirement's name.
        process = subprocess.run(argv, cwd=into, capture_output=True, text=True, check=False, timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        raise _fault(requirements, f"pip did not finish in {_SECONDS:.0f} s") from None
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
        # Assume the version's first release: this adds backports for early releases, which does no harm.
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
        cure = "choose a version that has wheels for this Python and machine"
    else:
        cure = "check the network, pip's index and the free disk space, then run the command again"
    return SandboxUnavailable(f"wheels cannot be fetched: {reason}", where=_few(requirements), cure=cure)


def _reason(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    return (errors[-1] if errors else lines[-1] if lines else "pip failed without a message")[:400].rstrip(".")


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
    """Write a copy of `wheel` with only its metadata to `into`."""
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
            raise SandboxUnavailable("the wheel has no RECORD", where=wheel.name, cure="choose another version")
        stripped.writestr(zipfile.ZipInfo(record), "".join([*rows, f"{_field(record)},,\n"]))


def _field(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if re.search(r'[",\n]', name) else name
