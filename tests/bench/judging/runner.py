"""Runs the guest runner in its own process without a box. Use it only for trusted code."""

import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ctxbench.bench.judging import python as guest

_SERVER = """
import json, os, signal, sys
sys.path.insert(0, sys.argv[1])
import ctxbench_pytest
for line in sys.stdin:
    folder, out, function, arguments = json.loads(line)
    signal.alarm(120)
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        output = os.open(out + ".printed", os.O_WRONLY | os.O_CREAT)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(folder)
        sys.path.insert(1, folder)
        try:
            result = getattr(ctxbench_pytest, function)(arguments)
            with open(out, "w") as file:
                json.dump(result, file)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    signal.alarm(0)
    print(flush=True)
"""


@functools.cache
def _server() -> subprocess.Popen[str]:
    """Start a process that imports pytest once and forks for each call, as the guest does. It ends with the tests."""
    return subprocess.Popen(
        [sys.executable, "-s", "-P", "-B", "-c", _SERVER, str(Path(guest.__file__).parent)],
        text=True,
        # Boxes lack the plugins of ctxbench's own tests. Importing them takes longer than most tests here.
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        cwd=tempfile.gettempdir(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def run_tests(folder: Path, files: Mapping[str, bytes], arguments: Mapping[str, Any]) -> Any:
    """Write files to `folder` and return the result of `run_tests`."""
    return call("run_tests", folder, files, arguments)


def call(function: str, folder: Path, files: Mapping[str, bytes], arguments: Mapping[str, Any]) -> Any:
    """Write files to `folder` and return the result of a function of the guest runner."""
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    out, server = folder.parent / "result.json", _server()
    out.unlink(missing_ok=True)
    assert server.stdin is not None and server.stdout is not None
    server.stdin.write(json.dumps([str(folder), str(out), function, arguments]) + "\n")
    server.stdin.flush()
    assert server.stdout.readline(), "the guest runner did not end"
    assert out.exists(), Path(f"{out}.printed").read_text()
    return json.loads(out.read_text())
