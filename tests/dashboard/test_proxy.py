"""The pages behind a proxy with its own host name and path."""

from __future__ import annotations

import contextlib
import shutil
import socket
import socketserver
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from ctxbench.bench.home import Home
from tests.dashboard.browser import Site, serving
from tests.helpers.browsers import ARGUMENTS, CHROMIUM
from tests.helpers.cli import assert_fault, run_cli

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAME, PATH = "lab.example", "/team/ctxbench"


@contextlib.contextmanager
def forwarding(port: int) -> Iterator[int]:
    """Forward every connection to a port of this machine, as a transparent proxy. Yield the proxy's port."""

    class Passing(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection(("127.0.0.1", port)) as behind:
                back = threading.Thread(target=copy, args=(behind, self.request), daemon=True)
                back.start()
                copy(self.request, behind)
                back.join()

    def copy(source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        # A browser opens many connections at once. On a busy machine, connections not accepted in time would be lost.
        request_queue_size = 100

    with Server(("127.0.0.1", 0), Passing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.mark.slow
def test_pages_and_links_work_below_the_path_of_a_proxy(database: Home, browser: Browser) -> None:
    with serving(database.root, "--public-url", f"http://{NAME}{PATH}") as site:
        port = int(site.address.removeprefix("http://127.0.0.1:").partition("/")[0])
        with forwarding(port) as outer:
            named = f"--host-resolver-rules=MAP {NAME} 127.0.0.1"
            resolving = browser.browser_type.launch(executable_path=shutil.which(CHROMIUM), args=[*ARGUMENTS, named])
            proxied = Site(f"http://{NAME}:{outer}{PATH}", database.root)
            page = resolving.new_page()
            proxied.watch(page)

            def follow() -> None:
                page.get_by_role("link", name="Leaderboard").first.click()
                page.wait_for_url(f"**{PATH}/leaderboard*")

            proxied.load(page, lambda: page.goto(f"{proxied.address}/runs"), follow)
            proxied.check(page)
            resolving.close()


def test_links_begin_with_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    from ctxbench.dashboard import choices

    assert choices.link("samples", run="a") == "/samples?run=a"
    monkeypatch.setattr(choices.st, "get_option", lambda _: PATH)
    assert (choices.link("samples", run="a"), choices.link("runs")) == (f"{PATH}/samples?run=a", f"{PATH}/runs")


@pytest.mark.parametrize(
    "address", ["lab.example/x", "ftp://lab.example", "http://", "http://lab.example/?a=1", "http://a:b/"]
)
def test_an_invalid_public_address_is_refused(empty_home: Home, address: str) -> None:
    refused = run_cli("dashboard", "--home", str(empty_home.root), "--public-url", address)
    assert_fault(refused, "--public-url", "write it as https://lab.example/ctxbench")
