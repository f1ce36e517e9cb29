"""Errors of a missing or failing Docker engine: one line each, with what to do."""

import contextlib
import socket
import threading
from pathlib import Path

import pytest

from ctxbench.sandbox.docker import engine
from ctxbench.sandbox.docker.engine import connected
from ctxbench.sandbox.errors import SandboxLost, SandboxUnavailable


def test_the_error_without_an_engine_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(SandboxUnavailable, match="no Docker engine answers") as caught, connected():
        pass
    assert "docker/docker_engine.sh`" in str(caught.value) and "\n" not in str(caught.value)
    assert not engine.answers()


def test_a_server_that_is_not_a_docker_engine_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "a.sock"))
        server.listen()

        def answer() -> None:
            while True:
                # The first client only checks that a server listens.
                with contextlib.suppress(BrokenPipeError):
                    try:
                        client, _ = server.accept()
                    except OSError:
                        return
                    with client:
                        client.recv(65536)
                        client.sendall(b"SSH-2.0-nothing\r\n")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/a.sock")
        with pytest.raises(SandboxUnavailable), connected(5):
            pass
        server.shutdown(socket.SHUT_RDWR)
        thread.join(10)


@pytest.mark.parametrize(
    ("said", "cure"),
    [
        ("PermissionError(13, 'Permission denied')", "usermod -aG docker"),
        ("write /x: no space left on device", "label=ctxbench.image"),
        ("Read timed out. (read timeout=120)", "restart the engine"),
        ("something new", "engine's log"),
    ],
)
def test_every_engine_error_says_what_to_do(said: str, cure: str) -> None:
    text = str(engine.fault(OSError(f"it says:\n {said}"), SandboxLost, "docker"))
    assert text.startswith("docker: it says: ") and cure in text and "\n" not in text
