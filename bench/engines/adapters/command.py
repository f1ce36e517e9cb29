# /// script
# requires-python = ">=3.11"
# ///
"""A program in any language that reads questions and writes answers as lines of JSON."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

_FILES = Path("/ctxbench/lib/ctxbench_engine_source_files")


class CommandLine:
    """Forwards each call to the program as ``{"call": …}`` and returns the ``answer`` of its reply."""

    def __init__(self, *, run: str = "", requires: str = "", config: dict[str, Any] | None = None) -> None:
        """Set the command line `run`. The box installs `requires`, pip requirements."""
        words = (config or {}).get("command") or shlex.split(run)
        if not words:
            raise ValueError("there is no command to run: give run=")
        self._argv = [word.replace("{files}", str(_FILES)) for word in words]
        self._process: subprocess.Popen[str] | None = None

    def index(self, root: str) -> tuple[str, str]:
        """Start the program if needed, and let it index the files."""
        if self._process is None:
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(self._argv, stdin=pipe, stdout=pipe, text=True, cwd=root)
        name, version = self._ask(call="index", root=root)
        return name, version

    def update(self, paths: list[str]) -> None:
        """Forward the call."""
        self._ask(call="update", paths=paths)

    def search(self, text: str, path: str, line: int, top: int) -> Any:
        """Forward the call."""
        return self._ask(call="search", text=text, path=path, line=line, top=top)

    def _ask(self, **question: Any) -> Any:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise RuntimeError("index comes first")
        process.stdin.write(json.dumps(question) + "\n")
        process.stdin.flush()
        row = process.stdout.readline()
        if not row:
            raise RuntimeError(f"{self._argv[0]} has ended with {process.wait()}")
        return json.loads(row)["answer"]
