"""`serve`: runs a GGUF file with llama.cpp's own server on this machine, for one run (the extra ``llamacpp``)."""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import logging
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Annotated, Any

from ctxbench.bench.concurrency import cores
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.escaping import visible
from ctxbench.bench.files import sha256_file
from ctxbench.bench.languages.base import Language
from ctxbench.bench.parameters import AtLeast
from ctxbench.bench.retrieval.encoders import weights
from ctxbench.bench.spec import Shorthand
from ctxbench.harness.generators import models
from ctxbench.harness.generators.base import Capabilities, Generator, Request, Response, generator
from ctxbench.harness.generators.fim import Template
from ctxbench.harness.generators.local import UseOfTemplate, is_chat
from ctxbench.harness.generators.openai import PROTOCOL, OpenAI
from ctxbench.harness.generators.openai import settings as options
from ctxbench.harness.generators.openai.settings import OpenAISettings

CURE = "pip install 'ctxbench[llamacpp]'"
_LIBRARY = "install the library that the log names (libgomp.so.1 is in Debian's package libgomp1)"
_AGAIN = "run the same command again; if the fault repeats, set a smaller window, or check that the file is complete"
_LOG = logging.getLogger(__name__)
_CHILD = ("-P", "-c", "from ctxbench.harness.generators.serve import engine; engine()")
_KEY = "CTXBENCH_SERVE_KEY"
"""Variable that passes the server's key to `openai`. It is never in this process's environment."""
_STARTS = 2
_LONGEST = 900.0
_LAST_SECONDS = 2.0
"""Seconds to read the rest of an ended server's log. One of its child processes may keep the pipe open."""
_TAIL = 4096
_PASSED = ("PATH", "HOME", "LANG", "TMPDIR", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME")
_PASSED_BEGINNINGS = ("LC_", "OMP_", "GGML_")
"""Environment variables that the server gets, by name and by prefix. Other variables may contain secrets."""


@generator("serve", machine=("threads",), shorthand=Shorthand("MODEL", r"(?P<model>.+)"))
def serve(
    *,
    model: str,
    window: Annotated[int, AtLeast(64)] = 8192,
    chat: UseOfTemplate = "auto",
    tools: bool = False,
    threads: Annotated[int, AtLeast(0)] = 0,
) -> Serve:
    """Run a GGUF file with llama.cpp's server, which is started for the run; short: serve:MODEL.

    Args:
        model: a name of ``ctxbench model list``, or the path of a GGUF file.
        window: maximum tokens of prompt and answer.
        chat: use of a chat template: ``on``, ``off`` or ``auto``: as in `ctxbench model list`, or by the model's name.
        tools: whether requests contain a strategy's tools as fields, not as text; needs a chat model.
        threads: processors to use; 0 for all. Leave some for other work, because the threads wait for each other.
    """
    weights.need(("xllamacpp",), where="serve", cure=CURE)
    settings = OpenAISettings(
        model=Path(model).stem,
        url="http://127.0.0.1",
        chat=is_chat(chat, model),
        concurrency=1,
        timeout=_LONGEST,
        retries=8,
        backoff=0.5,
        window=window,
        fim=options.AUTO,
        key_env=_KEY,
        extra={},
        tools=tools,
    )
    return Serve(model, settings, threads=threads or cores())


class Serve(Generator):
    """llama.cpp's server in its own process, queried through `openai`."""

    def __init__(self, model: str, settings: OpenAISettings, *, threads: int) -> None:
        self._model, self._settings, self._threads = model, settings, threads
        self._unasked = OpenAI(settings)
        self._lock = threading.Lock()
        self._server: _Server | None = None
        self._starts = 0
        self._closed = threading.Event()
        self.capabilities = Capabilities(
            concurrent=True, instructs=settings.chat, fills=True, tools=settings.tools, service=True
        )

    @functools.cached_property
    def version(self) -> str:  # type: ignore[override] # computed on first use
        """Versions of the protocol and of llama.cpp's package, and the first digits of the model file's SHA-256."""
        digest = sha256_file(self._file)[:12]
        try:
            return f"{PROTOCOL}-{digest}-xllamacpp{version_of('xllamacpp')}"
        except PackageNotFoundError:
            return f"{PROTOCOL}-{digest}-xllamacpp"

    @property
    def served(self) -> tuple[str, ...]:
        """Names that the server reports for its model; empty before an answer, or if they add nothing to the spec."""
        return self._server.asked.served if self._server is not None and self._server.asked is not None else ()

    def infilling(self) -> Template:
        """Return the fill-in-the-middle template for the model's name.

        Raises:
            InputFault: if the model is used as a chat model, or no family matches its name.
        """
        return self._unasked.infilling()

    def wake(self, language: Language) -> None:
        """Start the server and wait until it has loaded the model.

        Raises:
            InputFault: if the model has no GGUF file on this machine.
            MachineFault: if the server does not start, or the generator was closed.
        """
        self._running()

    def generate(self, requests: Sequence[Request]) -> list[Response | MachineFault]:
        """Answer every request, in order. After a crash, a new server answers the remaining requests.

        Raises:
            InputFault: if the model has no GGUF file on this machine.
            MachineFault: if the server does not start or crashed twice, or the generator was closed.
        """
        outcomes: dict[int, Response | MachineFault] = {}
        while waiting := [number for number in range(len(requests)) if number not in outcomes]:
            server = self._running()
            answered = server.asked.generate([requests[number] for number in waiting])
            died = server.died()
            outcomes |= {
                number: outcome
                for number, outcome in zip(waiting, answered, strict=True)
                if isinstance(outcome, Response) or not died
            }
        return [outcomes[number] for number in range(len(requests))]

    def close(self) -> None:
        """End the server and its child processes. Waiting calls fail at once."""
        self._closed.set()
        if (server := self._server) is not None:
            server.stop()
        self._unasked.close()

    @functools.cached_property
    def _file(self) -> Path:
        if models.known(self._model) is not None:
            return models.gguf(self._model)
        path = Path(self._model).expanduser().absolute()
        if not path.is_file():
            cure = "use a name of `ctxbench model list`, or the path of a GGUF file"
            raise InputFault("the model is not a file", where=f"serve {self._model}", cure=cure)
        return path

    def _running(self) -> _Server:
        with self._lock:
            if self._closed.is_set():
                raise MachineFault("the generator was closed", where=self._where, cure="run the same command again")
            server = self._server
            if server is None or server.died():
                if self._starts == _STARTS and server is not None:
                    raise self._fault(f"llama.cpp's server died {_STARTS} times", server)
                self._starts += 1
                self._server = server = self._started(self._file)
                if self._closed.is_set():
                    server.stop()
            return server

    def _started(self, file: Path) -> _Server:
        _LOG.info("%s: llama.cpp's server is reading %s", self._where, file.name)
        begun = time.monotonic()
        self._server = server = _Server(self._settings, file, self._threads)
        if not server.wait():
            raise self._fault("llama.cpp's server did not start", server)
        _LOG.info("%s: ready after %.0f s", self._where, time.monotonic() - begun)
        return server

    def _fault(self, what: str, server: _Server) -> MachineFault:
        said = visible(" ".join(server.log.split()))[-300:]
        cure = _LIBRARY if "cannot open shared object file" in server.log else _AGAIN
        return MachineFault(f"{what}; its log ends with: {said or 'nothing'}", where=self._where, cure=cure)

    @property
    def _where(self) -> str:
        return f"serve {self._model}"


class _Server:
    def __init__(self, settings: OpenAISettings, file: Path, threads: int) -> None:
        self._settings, self._key = settings, secrets.token_hex(24)
        self._log = bytearray()
        self.asked: Any = None
        environment = {
            name: value for name, value in os.environ.items() if name in _PASSED or name.startswith(_PASSED_BEGINNINGS)
        }
        self._process = subprocess.Popen(
            [sys.executable, *_CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
        given = {
            "file": str(file),
            "name": settings.model,
            "key": self._key,
            "window": settings.window,
            "threads": threads,
        }
        # Send the key over standard input. Other users could read it on the command line or in the environment.
        with contextlib.suppress(OSError):
            self._process.stdin.write(json.dumps(given).encode() + b"\n")  # type: ignore[union-attr] # a pipe
            self._process.stdin.flush()  # type: ignore[union-attr]
        self._listening = threading.Thread(target=self._listen, daemon=True)
        self._listening.start()

    @property
    def log(self) -> str:
        return bytes(self._log[-_TAIL:]).decode("utf-8", "replace")

    def wait(self) -> bool:
        late = threading.Timer(_LONGEST, self.stop)
        late.daemon = True
        late.start()
        line = self._process.stdout.readline(_TAIL).decode("utf-8", "replace")  # type: ignore[union-attr]
        late.cancel()
        if not line.startswith("http://127.0.0.1:"):
            self.stop()
            return False
        settings = replace(self._settings, url=options.base_url(line.strip()))
        self.asked = OpenAI(settings, environment={_KEY: self._key})
        threading.Thread(target=self._watch, daemon=True).start()
        return True

    def died(self) -> bool:
        return self._process.poll() is not None

    def stop(self) -> None:
        if not self.died():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._listening.join(_LAST_SECONDS)
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr] # both are pipes

    def _listen(self) -> None:
        while part := self._process.stderr.read1(_TAIL):  # type: ignore[union-attr] # a pipe
            self._log += part
            del self._log[:-_TAIL]
        self._process.stderr.close()  # type: ignore[union-attr]

    def _watch(self) -> None:
        """Close the client when the server's process ends. Otherwise the client would retry requests."""
        self._process.wait()
        self.stop()
        self.asked.close()


def engine() -> None:
    """Serve the GGUF file that standard input names, until that input ends. `Serve` runs this in a new process."""
    # Imported by name: the package has no types, and only this process may load it.
    xllamacpp: Any = importlib.import_module("xllamacpp")
    given = json.loads(sys.stdin.readline())
    params = xllamacpp.CommonParams()
    params.model.path = given["file"]
    params.model_alias = {given["name"]}
    params.api_keys = [given["key"]]
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.n_ctx, params.n_parallel = given["window"], 1
    params.ui = params.endpoint_slots = params.warmup = False
    for processors in (params.cpuparams, params.cpuparams_batch):
        # Waiting threads must not spin. Otherwise answers would take many times as long while other programs run.
        processors.n_threads, processors.poll = given["threads"], 0
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)  # noqa: T201 - read by the parent process
    sys.stdin.read()
    os._exit(0)
