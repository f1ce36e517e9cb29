"""Boxes under bwrap, for machines without a Docker engine."""

from __future__ import annotations

import dataclasses
import re
import threading
import time
from contextlib import AbstractContextManager
from pathlib import Path

from ctxbench.sandbox.bubblewrap import host
from ctxbench.sandbox.bubblewrap.box import BubblewrapLauncher
from ctxbench.sandbox.bubblewrap.image import GUEST, LIBRARY, PYTHON, Image, layout, make
from ctxbench.sandbox.errors import SandboxError, SandboxLost, SandboxUnavailable
from ctxbench.sandbox.persistent import RESIDENT, Conversation, conversation
from ctxbench.sandbox.pool import open_pool
from ctxbench.sandbox.types import Environment, Limits, Pool, Report

_FILTERED = f"""
import sys
sys.path.append({LIBRARY!r})
from sandbox.guest import permitted
try:
    permitted.restrict()
    print("box")
except OSError as error:
    print("no filter of system calls can be installed:", error.strerror)
"""
_PROBE = (PYTHON, "-I", "-S", "-c", _FILTERED)
_SECONDS = 30.0
_REFUSAL = "namespace|uid.map|[Pp]ermi"
_REFUSED = (
    "let plain users create user namespaces (`sysctl -w kernel.apparmor_restrict_unprivileged_userns=0` on Ubuntu, "
    "`sysctl -w kernel.unprivileged_userns_clone=1` on old Debian), or use Docker"
)


class BubblewrapSandbox:
    """The back end that runs boxes under bwrap, as root or as a plain user (see `sandbox.types.Sandbox`)."""

    name = "bubblewrap"

    def __init__(self, cache: Path) -> None:
        self._cache = cache.absolute()
        self._made: dict[str, Image] = {}
        self._lock = threading.Lock()

    def check(self) -> None:
        """Check that boxes work: start one, install the system-call filter in it, and end it.

        Raises:
            SandboxError: if a step fails.
            OSError: if the cache cannot be written.
        """
        environment, limits = Environment(name="probe"), Limits()
        image = make(environment, self._cache, lambda _: None)
        box = BubblewrapLauncher("", layout(environment, image, limits), limits, _PROBE).start()
        words = ""
        try:
            words = box.receive(time.monotonic() + _SECONDS).decode("utf-8", "replace").strip()
        except SandboxLost as lost:
            words = lost.what
        finally:
            box.end()
        if words != "box":
            cure = _REFUSED if re.search(_REFUSAL, words) else "remove the cause of this error, or use Docker"
            raise SandboxUnavailable(words, where="bubblewrap", cure=cure)

    def prepare(self, environment: Environment, report: Report) -> str:
        """Build the missing parts of an environment (see `sandbox.types.Sandbox.prepare`)."""
        host.bwrap()
        return self._image(environment, report).digest

    def open(
        self, environment: Environment, *, limits: Limits, width: int = 1, reuse: int = 1
    ) -> AbstractContextManager[Pool]:
        """Open a pool for a prepared environment (see `sandbox.types.Sandbox.open`)."""
        image = self._image(environment, lambda _: None)
        launcher = BubblewrapLauncher(image.digest, layout(environment, image, limits), limits)
        return open_pool(launcher, environment, limits, width=width, reuse=reuse)

    def converse(self, environment: Environment, *, limits: Limits) -> AbstractContextManager[Conversation]:
        """Open a persistent box (see `sandbox.types.Sandbox.converse`)."""
        # Leave the tree out: images do not contain trees, so environments that differ only in the tree share one image.
        image = self._image(dataclasses.replace(environment, tree={}), lambda _: None)
        command = (*GUEST[:-1], RESIDENT)
        launcher = BubblewrapLauncher(image.digest, layout(environment, image, limits), limits, command)
        return conversation(launcher, environment, limits)

    def _image(self, environment: Environment, report: Report) -> Image:
        with self._lock:
            image = self._made.get(environment.digest)
            if image is None:
                try:
                    image = make(environment, self._cache, report)
                except OSError as error:
                    raise _unwritable(self._cache, error) from error
                self._made[environment.digest] = image
            return image


def available(cache: Path) -> SandboxError | None:
    """Return why boxes do not work here; None if a test box was started and could filter system calls."""
    try:
        BubblewrapSandbox(cache).check()
    except SandboxError as fault:
        return fault
    except OSError as error:
        return _unwritable(cache, error)
    return None


def _unwritable(cache: Path, error: OSError) -> SandboxUnavailable:
    return SandboxUnavailable(
        f"the cache cannot be written ({error.strerror or error})",
        where=str(cache),
        cure="if the disk is full, free some space there; otherwise choose another folder: CTXBENCH_CACHE=FOLDER",
    )
