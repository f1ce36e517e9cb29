"""Runs the guest runner without a box, in a process of its own: for trusted code only."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ctxbench.bench.testing import python as guest

_DRIVER = """
import json, sys
sys.path[:0] = [sys.argv[1], sys.argv[2]]
import ctxbench_pytest
arguments = json.loads(sys.stdin.readline())
result = getattr(ctxbench_pytest, sys.argv[4])(arguments)
open(sys.argv[3], "w").write(json.dumps(result))
"""


def run_tests(folder: Path, files: Mapping[str, bytes], arguments: Mapping[str, Any]) -> Any:
    """Write files to `folder` and return what `run_tests` makes of them."""
    return call("run_tests", folder, files, arguments)


def call(function: str, folder: Path, files: Mapping[str, bytes], arguments: Mapping[str, Any]) -> Any:
    """Write files to `folder` and return what a function of the guest runner makes of them."""
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    library, out = str(Path(guest.__file__).parent), folder.parent / "result.json"
    subprocess.run(
        [sys.executable, "-s", "-P", "-B", "-c", _DRIVER, library, str(folder), str(out), function],
        input=json.dumps(arguments) + "\n",
        text=True,
        cwd=folder,
        # The plugins that our own tests need are in no box, and take longer to import than most tests here to run.
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        check=True,
        capture_output=True,
        timeout=120,
    )
    return json.loads(out.read_text())
