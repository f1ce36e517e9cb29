"""Runs programs as a plain user, who may read other users' files but not write them."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.helpers.extras import missing

USER = 65534
_CLOSED = 99
"""Exit code if a plain user cannot reach the interpreter."""
_OPENED = f"""
hold=$(mktemp -d) && mount --bind "$2" "$hold" && mount -t tmpfs -o mode=755 none "$1" && mkdir -p "$2" &&
mount --move "$hold" "$2" && rmdir "$hold" || exit {_CLOSED}
shift 2
exec setpriv --reuid {USER} --regid {USER} --clear-groups "$@"
"""
"""A shell program that replaces a closed folder in the interpreter's path by an open, empty folder."""


PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from ctxbench.harness.cli.main import main; main()"
)
"""The command line. A shell that starts the tests in the background makes them inherit an ignored interrupt."""


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    """Run the command line as a plain user, or as the current user if not root."""
    with start(*argv) as process:
        out, err = process.communicate(timeout=120)
    if process.returncode == _CLOSED:
        missing(f"no plain user can start {sys.executable}: {err}")
    return subprocess.CompletedProcess(argv, process.returncode, out, err)


def start(*argv: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, *argv]
    settings: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": "/"}
    settings["env"] = {**os.environ, "HOME": "/nonexistent"}
    if os.geteuid():
        return subprocess.Popen(command, **settings)
    real = Path(sys.executable).resolve()
    closed = [folder for folder in real.parents if not folder.stat().st_mode & 0o001]
    if not closed:
        return subprocess.Popen(command, user=USER, group=USER, extra_groups=[], **settings)
    inside = closed[-1] / real.relative_to(closed[-1]).parts[0]
    return subprocess.Popen(
        ["unshare", "-m", "sh", "-c", _OPENED, "sh", str(closed[-1]), str(inside), *command], **settings
    )
