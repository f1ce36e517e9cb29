"""`ctxbench doctor`: check this machine, suggest fixes, and remove leftovers."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from ctxbench.bench.errors import CtxbenchError
from ctxbench.bench.home import Home
from ctxbench.harness.cli.options import base_image_option, engine_options, home_option
from ctxbench.sandbox.errors import SandboxError

_GIB = 1 << 30
_LITTLE = 5 * _GIB
"""Minimum free disk space in bytes: about the size of the built-in sets' images, environments and repositories."""


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """The result of one check of a machine."""

    name: str
    good: bool | None
    """Whether the check passed; None for a result that is not a failure, such as an absent optional feature."""
    text: str
    cure: str = ""
    """Advice: words around a command in backquotes, a bare command, or words alone; empty for none."""

    def line(self) -> str:
        """Return the advice as a shell line: command, then other words as a comment; unchanged without backquotes."""
        command = re.search(r"`([^`]+)`", self.cure)
        if command is None:
            return self.cure
        rest = self.cure.replace(command[0], "this")
        return command[1] if rest == "run this" else f"{command[1]}  # {rest}"


@click.command()
@click.option("--clean", is_flag=True, help="Remove leftovers of killed runs: containers, control groups, folders.")
@base_image_option
@engine_options
@home_option
def doctor(clean: bool, base_image: str, engine: str, address: str | None, home: Home) -> int:
    """Report what this machine offers, what is missing, and how to get it.

    Untrusted code runs in Docker or bubblewrap; function samples need one of them, line samples need neither. With
    --engine ray, the report covers every node of the cluster instead of this machine.
    """
    if clean:
        return _clean(home)
    if engine == "ray":
        return _nodes(address, base_image)
    findings = machine_findings(base_image)
    for finding in (*findings, _disk(home), _leftovers(home)):
        _show(finding)
    if _has_sandbox(findings):
        return 0
    click.echo("ctxbench: function samples cannot run here: neither Docker nor bubblewrap works; see above", err=True)
    return 1


def machine_findings(base_image: str) -> list[DoctorFinding]:
    """Return the findings of all checks of this machine, except those of disk space and leftovers."""
    checks = (_kernel, _python, _java, _gpu, _encoders, _extras)
    return [*_docker(base_image), *_bubblewrap(), *(finding for check in checks for finding in check())]


def _has_sandbox(findings: Sequence[DoctorFinding]) -> bool:
    return any(finding.good and finding.name in ("docker", "bubblewrap") for finding in findings)


def _nodes(address: str | None, base_image: str) -> int:
    from ctxbench.harness.run.cluster import ask_nodes

    without = []
    for name, cores, answer in ask_nodes(address, machine_findings, base_image):
        click.echo(f"node {name}: {cores} {'core' if cores == 1 else 'cores'}")
        if isinstance(answer, str):
            _show(DoctorFinding("ctxbench", False, answer, "install the same version of ctxbench[ray] on the node"))
            without.append(name)
            continue
        for finding in answer:
            _show(finding)
        if not _has_sandbox(answer):
            without.append(name)
    if not without:
        return 0
    click.echo(f"ctxbench: function samples cannot run on {', '.join(without)}; only other nodes run them", err=True)
    return 1


def _show(finding: DoctorFinding) -> None:
    mark = {True: "ok", False: "missing", None: "-"}[finding.good]
    click.echo(f"{mark:8} {finding.name:14} {finding.text}")
    if finding.cure and finding.good is not True:
        click.echo(f"{'':23} -> {finding.line()}")


def _docker(base_image: str) -> list[DoctorFinding]:
    from ctxbench.sandbox.docker import images
    from ctxbench.sandbox.docker.engine import DEBIAN_BASE, connected
    from ctxbench.sandbox.registry import docker_fault

    if (fault := docker_fault()) is not None:
        return [DoctorFinding("docker", False, fault.what, fault.cure)]
    try:
        with connected() as client:
            version = client.version().get("Version", "of unknown version")
            base = images.local_base(client, base_image)
            tags = client.images.get(base).tags if base else []
    except SandboxError as error:
        return [DoctorFinding("docker", False, error.what, error.cure)]
    cure = (
        f"run `docker pull {base_image}`, or let the first run pull it; if no registry can be reached, "
        f"run as root: {DEBIAN_BASE}"
    )
    used = base_image if base_image in tags else f"{', '.join(tags)}, in place of {base_image}"
    image = DoctorFinding("base image", True, used)
    if base is None:
        image = DoctorFinding("base image", None, f"{base_image} is not on this machine", cure)
    return [DoctorFinding("docker", True, f"engine {version}"), image, _gvisor()]


def _gvisor() -> DoctorFinding:
    from ctxbench.sandbox.registry import runtime_fault

    if (fault := runtime_fault("runsc")) is not None:
        return DoctorFinding("gvisor", None, fault.what, fault.cure)
    return DoctorFinding("gvisor", True, "runsc; boxes use it with --sandbox 'docker(runtime=runsc)'")


def _bubblewrap() -> list[DoctorFinding]:
    from ctxbench.sandbox.bubblewrap import available, cgroups, host

    # A temporary folder: the check must not write into the home folder.
    with tempfile.TemporaryDirectory(prefix="ctxbench-box-") as cache:
        fault = available(Path(cache))
    if fault is not None:
        return [DoctorFinding("bubblewrap", False, fault.what, fault.cure)]
    version = ".".join(map(str, host.version(host.bwrap())))
    who = "root, with a separate user per box" if host.draw_uid() is not None else f"user {os.geteuid()}"
    limited = f"by control groups (version {cgroups.version()})" if cgroups.usable() else "by a watchdog inside the box"
    return [DoctorFinding("bubblewrap", True, f"{version}, as {who}; box memory is limited {limited}")]


def _kernel() -> Iterator[DoctorFinding]:
    from ctxbench.sandbox.bubblewrap import cgroups
    from ctxbench.sandbox.guest import landlock

    if not sys.platform.startswith("linux"):
        return
    version = landlock.abi()
    cure = (
        "boot Linux 5.13 or later with the parameter that `echo lsm=landlock,$(cat /sys/kernel/security/lsm)` prints; "
        "without it, boxes lack one layer of protection"
    )
    text, cure = (f"version {version}", "") if version else ("none", cure)
    if version == 1:
        text = "version 1, which boxes do not use: it forbids moving files between folders"
        cure = "boot Linux 5.19 or later; without it, boxes lack one layer of protection"
    yield DoctorFinding("landlock", version > 1, text, cure)
    groups = cgroups.version()
    yield DoctorFinding("control groups", True if groups else None, f"version {groups}" if groups else "none")


def _python() -> Iterator[DoctorFinding]:
    from ctxbench.sandbox.wheels import pip_missing

    yield DoctorFinding("python", True, f"{platform.python_version()} at {sys.executable}")
    fault = pip_missing()
    yield DoctorFinding(
        "pip", fault is None, "installed" if fault is None else fault.what, "" if fault is None else fault.cure
    )


def _java() -> Iterator[DoctorFinding]:
    from ctxbench.bench.judging.java.build import PROGRAMS
    from ctxbench.sandbox.bubblewrap import host

    if shutil.which("java"):
        version = _ask(["java", "-version"])
        yield DoctorFinding("java", True, version.splitlines()[0] if version else "version unknown")
    else:
        yield DoctorFinding(
            "java", None, "not installed; only Java samples in bubblewrap need it", f"apt-get install {PROGRAMS[0]}"
        )
    try:
        host.programs(PROGRAMS)
    except SandboxError as error:
        yield DoctorFinding("junit", None, error.what, error.cure)
    else:
        yield DoctorFinding("junit", True, "installed with its dependencies")


def _gpu() -> Iterator[DoctorFinding]:
    gpus = _ask(["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"]).splitlines()
    yield DoctorFinding("gpu", True if gpus else None, "; ".join(gpus) or "none; the built-in generator needs no GPU")


def _encoders() -> Iterator[DoctorFinding]:
    from ctxbench.bench.retrieval import encoders

    for name in encoders.names():
        try:
            encoders.get(name)
            yield DoctorFinding(name, True, f"encoder: {encoders.summary(name)}")
        except CtxbenchError as error:
            yield DoctorFinding(name, None, f"encoder: {error.what}", error.cure)


def _extras() -> Iterator[DoctorFinding]:
    try:
        requirements = importlib.metadata.requires("ctxbench") or []
    except importlib.metadata.PackageNotFoundError:
        return
    parts: dict[str, list[str]] = {}
    for line in requirements:
        if match := re.search(r"extra\s*==\s*['\"]([^'\"]+)", line):
            parts.setdefault(match[1], []).append(re.split(r"[^A-Za-z0-9._-]", line)[0])
    for extra, names in sorted(parts.items()):
        missing = [name for name in names if not _installed(name)]
        text = f"not installed: {', '.join(missing)}" if missing else "installed"
        yield DoctorFinding(f"[{extra}]", None if missing else True, text, f"pip install 'ctxbench[{extra}]'")


def _installed(name: str) -> bool:
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _disk(home: Home) -> DoctorFinding:
    place = next(path for path in (home.root, *home.root.parents) if path.is_dir())
    free = shutil.disk_usage(place).free
    text = f"{free / _GIB:.0f} GiB free at {place}"
    return DoctorFinding(
        "disk",
        free >= _LITTLE,
        text,
        "free some space, or choose a --home on a larger disk: `export CTXBENCH_HOME=/a/larger/disk`",
    )


def _leftovers(home: Home) -> DoctorFinding:
    from ctxbench.sandbox.leftovers import find

    count = sum(1 for _ in find(home.root))
    return DoctorFinding(
        "left behind",
        None if count else True,
        f"{count} leftovers of ended commands" if count else "nothing",
        "ctxbench doctor --clean",
    )


def _clean(home: Home) -> int:
    from ctxbench.sandbox.leftovers import find

    removed = failed = 0
    for leftover in find(home.root):
        try:
            leftover.remove()
        except (OSError, SandboxError) as error:
            failed += 1
            click.echo(f"cannot remove {leftover.what}: {error}", err=True)
        else:
            removed += 1
            click.echo(f"removed {leftover.what}")
    click.echo(f"leftovers removed: {removed}" if removed or failed else "nothing was left behind", err=True)
    return 1 if failed else 0


def _ask(argv: list[str]) -> str:
    try:
        process = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (process.stdout or process.stderr).strip() if process.returncode == 0 else ""
