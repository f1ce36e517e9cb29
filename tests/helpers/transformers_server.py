"""Real servers with OpenAI's protocol in their own process groups: `transformers serve` and vLLM."""

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from ctxbench.harness.generators.vllm import ON_PROCESSOR
from tests.helpers.ports import free_port

_MAIN = "import sys; from transformers.cli.transformers import main; sys.exit(main())"
_START_SECONDS = 240.0
"""The start takes 13 s on a quiet machine, mostly for imports."""


class TransformersServer:
    """`transformers serve`. `start` and `kill` work repeatedly, always on the same port."""

    def __init__(self, model: Path, scratch: Path) -> None:
        """`scratch` contains the hub's empty cache and the server's log. The model's path is its name in requests."""
        self.model, self._scratch = model, scratch
        (scratch / "hub").mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def spec(self) -> str:
        return f"openai:{self.model}@http://127.0.0.1:{self.port}/v1"

    @property
    def log(self) -> str:
        return (self._scratch / "log").read_text(encoding="utf-8", errors="replace")

    def launch(self) -> None:
        argv = [sys.executable, *self._arguments(), "--host", "127.0.0.1", "--port", str(self.port)]
        # One thread: threads that wait for each other at every step are slow for a tiny model.
        own = {"HF_HOME": str(self._scratch), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", **ON_PROCESSOR}
        env = {**os.environ, **own}
        with (self._scratch / "log").open("ab") as log:
            self._process = subprocess.Popen(argv, env=env, stdout=log, stderr=log, start_new_session=True)

    def _arguments(self) -> list[str]:
        return ["-c", _MAIN, "serve", str(self.model), "--device", "cpu", "--dtype", "float32"]

    def wait(self) -> None:
        """Wait until the server answers; fail if it ends or does not answer in time."""
        until = time.monotonic() + _START_SECONDS
        while time.monotonic() < until:
            assert self._process is not None and self._process.poll() is None, self.log[-3000:]
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5) as reply:
                    if reply.status == 200:
                        return
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)
        raise AssertionError(f"no answer within {_START_SECONDS:g} s: {self.log[-3000:]}")

    def start(self) -> None:
        self.launch()
        self.wait()

    def kill(self) -> None:
        """Kill the whole process group at once, with all requests in flight."""
        process, self._process = self._process, None
        if process is not None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class VLLMServer(TransformersServer):
    """vLLM's server, started without its script, which does not start in the build for CPUs."""

    def _arguments(self) -> list[str]:
        how = ("--dtype", "bfloat16", "--max-model-len", "4096", "--enforce-eager", "--generation-config", "vllm")
        return ["-m", "vllm.entrypoints.openai.api_server", "--model", str(self.model), *how]
