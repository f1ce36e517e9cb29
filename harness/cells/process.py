"""Starts the fork server of cells, finds the files that cells may see, and prints the output of strategies."""

from __future__ import annotations

import contextlib
import glob
import importlib.util
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import ctxbench
from ctxbench.bench import spec as specs
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.escaping import visible
from ctxbench.bench.files import explained
from ctxbench.harness.cells import protocol
from ctxbench.harness.cells.protocol import END, ORDER, START
from ctxbench.sandbox.bubblewrap import host
from ctxbench.sandbox.ownership import abandoned, scratch

_START_TIMEOUT = 120.0
_KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "PYTHONHOME")
_SET_VARIABLES = {
    "LOGNAME": "cell",  # cells see no table of users
    # Use one thread: sums split over threads can differ in the last bit, and threads do not survive a fork.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
}
_PREFIX = "ctxbench-cells-"
_USERS = 64
"""Number of users that cells take in turn, so that concurrent cells have different users."""
MOST_OF_CELL = 1 << 12
"""Maximum bytes of a strategy's output that are printed per sample."""
_PRINTED = "strategy: "
MOST = 1 << 16
"""Maximum bytes of strategies' output that are printed in a run. More would hide the run's own output."""
_GROUP = "ctxbench.strategies"
_ETC = ("localtime", "mime.types")
"""Files in ``/etc`` that strategies need in addition to those visible in a sandbox."""
_SITES = ("site-packages", "dist-packages")
_SYSTEM = ("/usr/lib/python3*/*-packages", "/usr/local/lib/python3*/*-packages")
REFERENCE_FOLDER = Path(__file__).parents[1] / "reference"
"""Folder of the shipped results. Other strategies' scores for a sample reveal something about its answer."""
SHIPPED_ANSWERS = (REFERENCE_FOLDER, Path(specs.__file__).parent / "repos" / "codereval-tests")
"""Shipped folders that reveal answers: the results, and the tests of CoderEval's functions."""
_CACHES = ("~/.cache/pip", "~/.cache/uv")


class ForkServer:
    """A handle of the process that forks cells; thread-safe."""

    def __init__(
        self, hidden: Sequence[Path], visible: Sequence[str], memory: int, common: Mapping[str, Any] | None = None
    ) -> None:
        """Start the server. Each process of a cell may use `memory` bytes. `open_cells` describes `common`."""
        self._lock = threading.Lock()
        self._open = contextlib.ExitStack()
        self.scratch = self._open.enter_context(scratch_folder())
        self._control, theirs = socket.socketpair()
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ctxbench.harness.cells.server", str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=2,  # for the server's own output; strategies print to their own files
            pass_fds=[theirs.fileno()],
            env=_environment(),
            start_new_session=True,
        )
        theirs.close()
        setup = {
            "scratch": str(self.scratch),
            "hidden": [str(Path(path).absolute()) for path in hidden],
            "visible": list(visible),
            "memory": memory,
            **(common or {}),
            "users": [host.draw_uid() for _ in range(_USERS)],
            "private": any(map(private, visible)),
        }
        self.report = self._greet(setup)

    def _greet(self, setup: Mapping[str, Any]) -> dict[str, str]:
        try:
            self._control.settimeout(_START_TIMEOUT)
            protocol.send(self._control, setup)
            report: dict[str, str] = protocol.receive(self._control)[0]
            self._control.settimeout(None)
        except (OSError, EOFError, protocol.ProtocolError) as error:
            self.close()
            raise MachineFault(
                f"the process that runs strategies did not start ({type(error).__name__})",
                cure="correct the fault above, then run the same command again",
            ) from None
        return report

    @property
    def separates(self) -> bool:
        """Whether cells have their own namespaces, in which they see only the `visible` files."""
        return "namespaces" in self.report["isolation"]

    def start(self, job: int, channel: socket.socket, output: int) -> None:
        """Start a cell for the job number `job`. The cell reads its job from `channel` and prints to `output`.

        Raises:
            OSError: if the server has ended.
        """
        with self._lock:
            socket.send_fds(self._control, [ORDER.pack(START, job)], [channel.fileno(), output])

    def end(self, job: int) -> None:
        """End the cell of the job number `job`, with all its processes.

        Raises:
            OSError: if the server has ended.
        """
        with self._lock:
            self._control.sendall(ORDER.pack(END, job))

    def ended(self, seconds: float) -> bool:
        """Return whether the server ends within `seconds`."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def close(self) -> None:
        """Stop the server and its cells, and remove their temporary folder."""
        self._control.close()
        if not self.ended(10):
            self.process.kill()
            self.process.wait()
        self._open.close()


def _environment() -> dict[str, str]:
    variables = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    return {**variables, **_SET_VARIABLES, "PYTHONPATH": path}


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """Provide a temporary folder, locked while in use. First remove the folders of processes that have ended."""
    temporary = Path(tempfile.gettempdir())
    for path in temporary.glob(f"{_PREFIX}*"):
        if abandoned(path):
            shutil.rmtree(path, ignore_errors=True)
    with explained(temporary), scratch(temporary, _PREFIX, "") as folder:
        yield folder


class Remarks:
    """The output of strategies, printed to stderr up to a limit per run; thread-safe."""

    def __init__(self) -> None:
        self._left, self._lock = MOST, threading.Lock()

    @contextlib.contextmanager
    def of_cell(self) -> Iterator[int]:
        """Yield the descriptor of a file for a cell's output. When the context ends, print the start of the output."""
        handle = _file()
        try:
            yield handle
        finally:
            raw = os.pread(handle, MOST_OF_CELL + 1, 0)
            os.close(handle)
            if raw:
                self._show(raw)

    def _show(self, raw: bytes) -> None:
        if self._left <= 0:
            return
        printed = visible(raw[:MOST_OF_CELL].decode("utf-8", "replace"))
        # The prefix distinguishes a strategy's lines from ctxbench's own.
        text = "".join(f"{_PRINTED}{line}\n" for line in printed.removesuffix("\n").split("\n"))
        with self._lock:
            if self._left <= 0:
                return
            self._left -= len(text)
            ended = self._left <= 0
        if len(raw) > MOST_OF_CELL:
            text += f"(the strategy's output after {MOST_OF_CELL} bytes is not shown)\n"
        if ended:
            text += "(further output of strategies is not shown)\n"
        sys.stderr.write(text)
        sys.stderr.flush()


def _file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("remarks", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def visible_paths() -> list[str]:
    """Return the paths that every cell needs: system programs, the interpreter, importable packages."""
    paths = [*host.SYSTEM, *map(str, host.etc()), *(f"/etc/{name}" for name in _ETC)]
    paths += [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, *map(str, _imported())]
    paths += os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    return _with_real(path for path in paths if path)


def check_unseen(path: Path) -> None:
    """Check that strategies cannot read `path`, where answers will be written.

    Raises:
        InputFault: if the path is in one of `visible_paths`.
    """
    real = Path(os.path.realpath(path))
    if seen := next((folder for folder in visible_paths() if real.is_relative_to(folder)), None):
        raise InputFault(
            f"strategies could read the answers in this file, because they can read {seen}",
            where=str(path),
            cure="choose a file outside that folder",
        )


def strategy_file_folders(spec: str) -> list[str]:
    """Return the folders of the strategy files in a spec and its inner specs. A file may import its neighbours."""
    if "@" not in spec:
        return []
    return _with_real(str(path.parent) for file in _files(spec) for path in (file, Path(os.path.realpath(file))))


def private(path: str) -> bool:
    """Return whether other users may be unable to read a path or, for a folder, one of its modules."""
    try:
        modules = [entry.path for entry in os.scandir(path) if entry.name.endswith(".py")]
        return not _readable_by_others(path) or not all(map(_readable_by_others, modules))
    except NotADirectoryError:
        return not _readable_by_others(path)
    except OSError:
        return True


def _readable_by_others(path: str) -> bool:
    mode = Path(path).stat().st_mode
    needed = 0o5 if stat.S_ISDIR(mode) else 0o4
    return mode & needed == needed


def _files(spec: str) -> Iterator[Path]:
    try:
        parsed = specs.parse(spec)
    except InputFault:
        return
    path, at, _ = parsed.name.rpartition("@")
    if at:
        with contextlib.suppress(OSError, RuntimeError, ValueError):
            file = Path(path).expanduser().absolute()
            if file.is_file():
                yield file
    for value in parsed.arguments.values():
        if isinstance(value, str):
            yield from _files(value)


def _imported() -> Iterator[Path]:
    for entry in sys.path:
        yield Path(entry).absolute()
    for folder in map(Path, ctxbench.__path__):
        yield folder
        # The paths may be links to other places.
        yield from (folder / room for room in ("bench", "harness", "sandbox", "strategies"))
    # Editable installs may be outside every folder of the path.
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("__editable__"):
            yield from map(Path, getattr(module, "MAPPING", {}).values())
    for point in entry_points(group=_GROUP):
        with contextlib.suppress(ImportError, ValueError):
            module_spec = importlib.util.find_spec(point.module.partition(".")[0])
            if module_spec is not None:
                yield from map(Path, module_spec.submodule_search_locations or [module_spec.origin or ""])


def _with_real(paths: Iterable[str]) -> list[str]:
    both = [form for path in paths for form in (os.path.normpath(path), os.path.realpath(path))]
    return [path for path in dict.fromkeys(both) if path != "/" and Path(path).is_absolute() and Path(path).exists()]


def copies(files: Iterable[str]) -> list[Path]:
    """Return the paths to hide from cells: installed packages with one of the files, and the caches of pip and uv.

    An installed copy of a benchmark repository contains the answers. `files` are paths inside these repositories. For
    ``src/rich/text.py``, the function looks for ``src/rich/text.py``, ``rich/text.py`` and ``text.py``.
    """
    sites = [(site, {entry.name for entry in site.iterdir()}) for site in _sites()]
    paths = {Path(cache).expanduser() for cache in _CACHES if Path(cache).expanduser().is_dir()}
    for file in set(files):
        parts = Path(file).parts
        for start, first in enumerate(parts):
            paths |= {
                site / first for site, names in sites if first in names and site.joinpath(*parts[start:]).is_file()
            }
    return sorted(paths)


def _sites() -> list[Path]:
    candidates = {Path(entry) for entry in sys.path if Path(entry).name in _SITES}
    candidates |= {Path(match) for pattern in _SYSTEM for match in glob.glob(pattern)}  # noqa: PTH207 - absolute patterns
    return sorted(site for site in candidates if site.is_dir())
