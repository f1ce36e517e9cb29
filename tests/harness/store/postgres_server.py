"""A temporary PostgreSQL server for tests, in a temporary folder and on a free port."""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import URL

from tests.helpers.ports import free_port

USER = "bench"
PASSWORD = "p@ss:w/rd%2"
_WAIT_S = 60
_STOP_WITH_US = '"$@" & read -r _; kill -INT $!; wait'
"""The server stops when the test process closes its end of the pipe, even if that process is killed."""


def binaries() -> Path | None:
    """Return a folder that contains `initdb` and `postgres`: the one on PATH, or the newest installed one."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: (len(str(path)), path), reverse=True)
    return next((path for path in folders if all((path / name).exists() for name in ("initdb", "postgres"))), None)


def url(port: int, database: str = "postgres", **changes: Any) -> URL:
    """Return the URL of a database of the server."""
    fields = {"username": USER, "password": PASSWORD, "host": "127.0.0.1", "port": port, "database": database}
    return URL.create("postgresql", **{**fields, **changes})


def shown(at: URL) -> str:
    """Return a URL as a user writes it, including the password."""
    return at.render_as_string(hide_password=False)


def execute(at: URL, *statements: str) -> None:
    """Run statements one by one, outside a transaction."""
    with psycopg.connect(shown(at), autocommit=True, connect_timeout=10) as connection:
        for statement in statements:
            connection.execute(statement.encode())


@contextlib.contextmanager
def running(folder_of: Path) -> Iterator[int]:
    """Start a server and yield its port."""
    with tempfile.TemporaryDirectory(prefix="ctxbench-pg-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        # The server refuses to run as root.
        as_user: dict[str, Any] = {"cwd": folder, "env": {"PATH": os.defpath, "LC_ALL": "C", "HOME": name}}
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres", "postgres")
            as_user |= {"user": "postgres", "group": "postgres", "extra_groups": []}
        _make(folder_of / "initdb", folder, as_user)
        port = free_port()
        options = ["-D", "data", "-h", "127.0.0.1", "-p", str(port), "-k", name, "-F"]
        command = ["sh", "-c", _STOP_WITH_US, "sh", str(folder_of / "postgres"), *options]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, **as_user)
        try:
            _wait(process, port, folder / "log")
            yield port
        finally:
            process.communicate(timeout=_WAIT_S)


def _make(initdb: Path, folder: Path, as_user: dict[str, Any]) -> None:
    secret = folder / "secret"
    secret.write_text(PASSWORD)
    secret.chmod(0o644)  # only the owner can read the folder
    command = [str(initdb), "-D", "data", "-U", USER, "-A", "scram-sha-256", f"--pwfile={secret}"]
    command += ["--no-sync", "--encoding=UTF8", "--locale=C"]
    # Most servers have a locale that does not sort by code points.
    if "--icu-locale" in subprocess.run([initdb, "--help"], capture_output=True, text=True, check=True).stdout:
        command += ["--locale-provider=icu", "--icu-locale=en-US"]
    made = subprocess.run(command, capture_output=True, text=True, check=False, **as_user)
    assert made.returncode == 0, made.stderr


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + _WAIT_S
    while True:
        try:
            return execute(url(port), "SELECT 1")
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"the server did not start: {log.read_text()}") from None
            time.sleep(0.1)
