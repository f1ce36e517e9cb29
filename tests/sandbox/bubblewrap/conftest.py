"""Boxes as root and as a plain user: tests that take `run_as` run as each of them that this machine allows."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ctxbench import sandbox
from ctxbench.sandbox.bubblewrap import available
from tests.helpers.extras import missing

PLAIN = 54321
"""A uid that no user has."""
_DRIVER = Path(__file__).with_name("driver.py")
_CONFORMANCE = Path(__file__).parents[1] / "conformance"


@dataclass(frozen=True)
class Driver:
    root: bool
    argv: tuple[str, ...]
    folder: Path

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    @contextmanager
    def begin(self, **asked: Any) -> Iterator[subprocess.Popen[str]]:
        text = json.dumps({"cache": str(self.cache), **asked})
        environment = {**os.environ, "PYTHONPATH": str(self.folder), "HOME": str(self.folder), "SECRET": "of-the-host"}
        for name in ("CTXBENCH_HOME", "TMPDIR"):
            environment.pop(name, None)
        pipe = subprocess.PIPE
        with subprocess.Popen(self.argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment) as started:
            try:
                assert started.stdin
                started.stdin.write(text + "\n")
                started.stdin.flush()
                yield started
            finally:
                started.kill()

    def __call__(self, **asked: Any) -> dict[str, Any]:
        with self.begin(**asked) as started:
            out, err = started.communicate(timeout=300)
        assert started.returncode == 0, err
        answer: dict[str, Any] = json.loads(out.splitlines()[-1])
        return answer

    def say(self, code: str, **asked: Any) -> Any:
        """Run code in a box; return the JSON value that it prints."""
        answer = self(raw=code, **asked)
        assert answer["said"], answer
        return json.loads(answer["said"])


@pytest.fixture(scope="session", autouse=True)
def _boxes(tmp_path_factory: pytest.TempPathFactory) -> None:
    fault = available(tmp_path_factory.mktemp("cache"))
    if fault is not None:
        missing(str(fault))


def _plain_python() -> str | None:
    """Return an interpreter that a plain user can start and that is new enough."""
    for path in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        test = ["setpriv", f"--reuid={PLAIN}", f"--regid={PLAIN}", "--clear-groups", path, "-c"]
        code = "import sys; open(sys._base_executable).close(); sys.exit(sys.version_info < (3, 11))"
        if subprocess.run([*test, code], capture_output=True, check=False).returncode == 0:
            return path
    return None


@pytest.fixture(scope="session", params=["root", "plain user"])
def run_as(request: pytest.FixtureRequest) -> Iterator[Driver]:
    root = request.param == "root"
    me_root = os.geteuid() == 0
    if root and not me_root:
        missing("these tests are not run by root")
    # pytest's own folder is closed to other users.
    folder = Path(tempfile.mkdtemp(prefix="ctxbench-tests-"))
    try:
        folder.chmod(0o755)
        source = Path(sandbox.__file__).parent
        shutil.copytree(source, folder / "ctxbench/sandbox", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(source.parent / "__init__.py", folder / "ctxbench")
        shutil.copy(_DRIVER, folder / "driver.py")
        shutil.copytree(
            _CONFORMANCE, folder / "tests/sandbox/conformance", ignore=shutil.ignore_patterns("__pycache__")
        )
        (folder / "cache").mkdir()
        argv: tuple[str, ...] = (sys.executable, str(folder / "driver.py"))
        if me_root and not root:
            python = _plain_python()
            if python is None:
                missing("no interpreter that a plain user can start")
            os.chown(folder / "cache", PLAIN, PLAIN)
            argv = ("setpriv", f"--reuid={PLAIN}", f"--regid={PLAIN}", "--clear-groups", str(python), argv[1])
        yield Driver(root, argv, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def as_root(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], None]:
    """Return a function that skips the test unless it runs as root."""

    def check() -> None:
        if os.geteuid() != 0:
            missing("only root can make control groups")

    return check
