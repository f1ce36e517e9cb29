"""Engines on remote servers: used only if the spec says so, marked, and trusted no more than others."""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench.engines import box, recipe
from ctxbench.bench.engines.box import RemoteTalk
from ctxbench.bench.errors import InputFault
from ctxbench.bench.home import Home
from ctxbench.harness.run.runner import fault_of
from ctxbench.sandbox.persistent import Overdue
from tests.bench.engines.rooms import NAMES, answer_of, attempt, make_set, prompts, query_database
from tests.helpers.cli import run_cli

FILES, PER_FILE = 2, 3
SLOW = {
    b"HTTP/1.1 200 OK\r\nX-Word: ": b"a",
    b"HTTP/1.1 100 Continue\r\n\r\n": b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n\r\n": b" ",
}
"""Answers without an end: the first bytes -> the bytes that repeat."""


class Elsewhere:
    """A server whose answers a test sets. It records every question."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.answer: Callable[[dict[str, Any]], bytes | None] = honest
        self.gone = threading.Event()
        service = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
                """Print nothing."""

            def do_POST(self) -> None:
                question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                service.asked.append(question)
                reply = service.answer(question)
                if reply is None:
                    service.gone.wait(30)
                    return
                if reply in SLOW:
                    with contextlib.suppress(OSError):  # the client has hung up
                        self.wfile.write(reply)
                        while len(service.asked) < 100 and not service.gone.wait(0.02):
                            service.asked.append({"call": "more"})
                            self.wfile.write(SLOW[reply])
                    return
                moved = reply.startswith(b"moved")
                self.send_response(302 if moved else 200)
                self.send_header("Location", "http://127.0.0.1:9/")
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/engine"

    def close(self) -> None:
        self.gone.set()
        self._http.shutdown()
        self._http.server_close()


def honest(question: dict[str, Any]) -> bytes:
    found = [["shop/rates.py", 0, 2, 1.0]]
    return json.dumps({"answer": {"index": ["far", "2"], "search": found}.get(question["call"])}).encode()


@pytest.fixture
def service() -> Iterator[Elsewhere]:
    service = Elsewhere()
    yield service
    service.close()


def described(folder: Path, url: str) -> str:
    file = folder / "far.toml"
    file.write_text(f'summary = "It is far."\nprotocol = "http"\nurl = "{url}"\n')
    return str(file)


def explored(folder: Path, service: Elsewhere) -> Any:
    home = Home(folder / "home")
    make_set(home, files=FILES, per_file=PER_FILE)
    engine = f"{described(folder, service.url)}(remote=on)"
    # No sandbox is opened.
    return attempt(folder, None, engine, home=home, machines={"boxes": None})  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_remote_engine_gets_trees_without_answers_and_its_rows_are_marked(tmp_path: Path, service: Elsewhere) -> None:
    assert explored(tmp_path, service).scored == FILES * PER_FILE
    calls = [question["call"] for question in service.asked]
    assert sorted(calls) == sorted(["index", "end"] * FILES + ["search"] * FILES * PER_FILE)
    trees = {question["tree"]: question["files"] for question in service.asked if question["call"] == "index"}
    assert len(trees) == FILES
    own = [
        [path for path, text in files.items() if path.startswith("shop/pay") and "= " not in text]
        for files in trees.values()
    ]
    # Each tree has one target file cut. The other is whole, so the rows are marked.
    assert sorted(path for paths in own for path in paths) == ["shop/pay.py", "shop/pay1.py"]
    for number in range(FILES * PER_FILE):
        prompt = next(prompt for sample, prompt in sorted(prompts(tmp_path).items())[number : number + 1])
        assert answer_of(0, number) not in prompt and f"# def {NAMES[0]}" in prompt
    [(remark,)] = query_database(tmp_path, "SELECT text FROM remark WHERE text LIKE '%elsewhere%'")
    assert "127.0.0.1" in remark and "may remember" in remark
    assert query_database(tmp_path, "SELECT DISTINCT version FROM engine_use") == [("far 2",)]


LOST: dict[str, tuple[bytes | None, str]] = {
    "nothing": (b"", "did not answer|was lost"),
    "no JSON": (b"<html>", "was lost"),
    "redirect": (b"moved", "302"),
    "raised": (b'{"raised": "KeyError"}', "raised KeyError"),
    "floods": (b"x" * (5 << 20), "sent more than"),
    "hangs": (None, "did not answer within 0.5 seconds"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LOST)
def test_a_remote_engine_that_breaks_is_a_machine_fault(
    name: str, tmp_path: Path, service: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(box, "PATIENCE", box.EngineTimeLimits(index=60, search=0.5))
    reply, words = LOST[name]
    service.answer = lambda question: reply if question["call"] == "search" else honest(question)
    summary = explored(tmp_path, service)
    assert summary.scored == 0 and {fault.kind for fault in summary.faults} == {"machine"}
    assert any(word in summary.faults[0].message for word in words.split("|")), summary.faults[0].message
    assert str(fault_of([summary])).count("it does only what is missing") == 1


@pytest.mark.slow
@pytest.mark.parametrize("beginning", SLOW)
def test_an_answer_without_an_end_is_overdue(beginning: bytes, service: Elsewhere) -> None:
    service.answer = lambda _: beginning
    with pytest.raises(Overdue, match=r"did not answer within 0\.3 seconds"):
        RemoteTalk(service.url, {}, 1000).ask(b'{"call": "index"}', 0.3)
    assert len(service.asked) < 100


@pytest.mark.slow
def test_text_instead_of_a_place_is_refused(tmp_path: Path, service: Elsewhere) -> None:
    service.answer = lambda question: b'{"answer": ["levy(1)"]}' if question["call"] == "search" else honest(question)
    summary = explored(tmp_path, service)
    assert summary.scored == 0 and all("with text" in fault.message for fault in summary.faults)


def test_a_remote_engine_is_used_only_with_remote_on(tmp_path: Path, service: Elsewhere) -> None:
    spec = described(tmp_path, service.url)
    with pytest.raises(InputFault, match=r"remote=on\)"):
        recipe.read(spec)
    with pytest.raises(InputFault, match="has no parameter 'mode'"):
        recipe.read(f"{spec}(remote=on, mode=shared)")
    assert recipe.read(f"{spec}(remote=yes)").spec.endswith("far.toml(remote=true)")
    shown = run_cli("engine", "show", f"{spec}(remote=on)")
    assert shown.code == 0 and f"runs elsewhere: {service.url}" in shown.out and "It is far." in shown.out
    checked = run_cli("engine", "check", f"{spec}(remote=on)", "--home", str(tmp_path))
    # The check fails, because this server returns one fixed place, also for a tree that lacks it.
    assert "pass  starts and indexes" in checked.out and checked.code == 1


@pytest.mark.parametrize(
    "url", ["", "ftp://h/", "http://", "https://a:b@h/", "http://h/?key=1", "file:///etc/passwd", 7]
)
def test_an_invalid_server_address_is_refused(tmp_path: Path, url: object) -> None:
    file = tmp_path / "far.toml"
    file.write_text(f'protocol = "http"\nurl = {json.dumps(url)}\n')
    with pytest.raises(InputFault, match="not a plain server address"):
        recipe.read(f"{file}(remote=on)")
