"""Test `serve`: an engine's process from start to end. The stand-in is `tests.helpers.serve_engine`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.retrieval.encoders import weights
from ctxbench.harness.generators import base, serve
from ctxbench.harness.generators.base import Generator, Response
from tests.helpers.requests import make_request

pytestmark = pytest.mark.slow
ENGINE = Path(__file__).parents[2] / "helpers" / "serve_engine.py"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that controls the stand-in and contains a model file."""
    monkeypatch.setattr(weights, "need", lambda *_, **__: None)
    monkeypatch.setattr(serve, "_CHILD", ("-P", str(ENGINE), str(tmp_path)))
    (tmp_path / "tiny.gguf").write_bytes(b"GGUF")
    return tmp_path


@pytest.fixture
def model(folder: Path) -> Iterator[Generator]:
    made = base.resolve(f"serve:{folder}/tiny.gguf")
    yield made
    made.close()


def given(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in folder.glob("given-*.json")]


def processes(folder: Path) -> list[int]:
    """Return the ids of stand-in processes that still run."""
    numbers = [int(path.stem.removeprefix("given-")) for path in folder.glob("given-*.json")]
    return [number for number in numbers if Path(f"/proc/{number}").exists()]


def test_serve_answers_and_closing_ends_its_process(folder: Path, model: Generator) -> None:
    [answer] = model.generate([make_request("x = one")])
    assert isinstance(answer, Response) and answer.text == "one"
    assert len(processes(folder)) == 1 and model.served == ()
    model.close()
    assert processes(folder) == []
    with pytest.raises(MachineFault, match="closed"):
        model.generate([make_request("x = one")])


def test_the_version_depends_on_the_bytes_of_the_model_file(folder: Path, model: Generator) -> None:
    first = model.version
    (folder / "tiny.gguf").write_bytes(b"GGUG")
    assert base.resolve(f"serve:{folder}/tiny.gguf").version != first
    assert given(folder) == []


def test_the_engine_gets_its_own_key_and_no_secrets(
    folder: Path, model: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-123456789")
    model.wake(PYTHON)
    [entry] = given(folder)
    assert len(entry["key"]) == 48 and "sk-123456789" not in str(entry)
    [process] = processes(folder)
    assert entry["key"] not in Path(f"/proc/{process}/cmdline").read_text()
    assert entry["key"] not in Path(f"/proc/{process}/environ").read_text()
    assert entry["key"] not in str(dict(os.environ))


def test_a_server_that_dies_is_restarted_once(folder: Path, model: Generator) -> None:
    (folder / "die-once").touch()
    [answer] = model.generate([make_request("x = one")])
    assert isinstance(answer, Response) and answer.text == "one" and len(given(folder)) == 2


def test_a_server_that_dies_twice_is_not_started_again(folder: Path, model: Generator) -> None:
    (folder / "die").touch()
    begun = time.monotonic()
    for _ in range(3):
        with pytest.raises(MachineFault, match="server died 2 times"):
            model.generate([make_request("x = one")])
    assert len(given(folder)) == 2 and time.monotonic() - begun < 20


def test_the_end_of_the_log_is_reported_in_one_line(folder: Path, model: Generator) -> None:
    (folder / "stay").write_text("no such \x1b[31mmodel")
    (folder / "noisy").touch()
    with pytest.raises(MachineFault, match="did not start") as fault:
        model.wake(PYTHON)
    said = str(fault.value)
    assert "no such" in said and "\x1b" not in said and "\n" not in said and len(said) < 700


def test_a_missing_system_library_is_reported_with_its_package(folder: Path, model: Generator) -> None:
    said = "ImportError: libgomp.so.1: cannot open shared object file: No such file or directory"
    (folder / "stay").write_text(said)
    with pytest.raises(MachineFault, match="did not start") as fault:
        model.wake(PYTHON)
    assert said in str(fault.value) and "Debian's package libgomp1" in fault.value.cure


def test_an_engine_that_logs_much_is_not_blocked(folder: Path, model: Generator) -> None:
    (folder / "noisy").touch()
    [answer] = model.generate([make_request("x = one")])
    assert isinstance(answer, Response)


def test_closing_ends_a_waiting_request(folder: Path, model: Generator) -> None:
    (folder / "hang").touch()
    model.wake(PYTHON)
    faults: list[BaseException] = []

    def ask() -> None:
        try:
            model.generate([make_request("x = one")])
        except MachineFault as fault:
            faults.append(fault)

    thread = threading.Thread(target=ask)
    thread.start()
    time.sleep(0.3)
    model.close()
    thread.join(10)
    assert not thread.is_alive() and len(faults) == 1 and processes(folder) == []


def test_no_engine_outlives_a_killed_run(folder: Path) -> None:
    program = (
        "import os, signal\n"
        "from ctxbench.harness.generators import base, serve\n"
        "from ctxbench.bench.languages.python import PYTHON\n"
        "serve.weights.need = lambda *_, **__: None\n"
        f"serve._CHILD = {('-P', str(ENGINE), str(folder))!r}\n"
        f"base.resolve('serve:{folder}/tiny.gguf').wake(PYTHON)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=False, timeout=60)
    assert len(given(folder)) == 1
    until = time.monotonic() + 10
    while processes(folder) and time.monotonic() < until:
        time.sleep(0.05)
    assert processes(folder) == []


def test_a_missing_model_file_is_reported(folder: Path) -> None:
    with pytest.raises(InputFault, match="the model is not a file"):
        base.resolve("serve:nowhere.gguf").wake(PYTHON)
