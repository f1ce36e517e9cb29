"""The pypi source, tested with a real HTTP server on this machine."""

import hashlib
import http.server
import io
import json
import tarfile
import threading
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import pytest

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.home import Home
from ctxbench.bench.repositories import checkout, manifest, pypi
from ctxbench.bench.repositories.pypi import Configuration
from tests.helpers.repositories import manifest_of

Answer = tuple[int, str, bytes, int | None]
"""Status, type, body, and the announced length (None: the true length)."""


def sdist(text: str = "x = 1\n") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        info = tarfile.TarInfo("Demo_Pkg-1.0/demo/__init__.py")
        info.size = len(text)
        tar.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()


class Server:
    """A server with a list of answers per path. It sends them in turn and repeats the last one."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Answer]] = {}
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                outer.headers.append(dict(self.headers))
                queue = outer.answers.get(self.path, [(404, "text/plain", b"", None)])
                status, kind, body, length = queue.pop(0) if len(queue) > 1 else queue[0]
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body) if length is None else length))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    monkeypatch.setattr(pypi, "PAUSES", (0.0, 0.0))

    def use(*indices: str, links: tuple[str, ...] = ()) -> None:
        configuration = Configuration(indices=indices, links=links, seconds=5)
        monkeypatch.setattr(pypi, "configured", lambda: configuration)

    return use


def fetch(folder: Path, raw: bytes | str) -> Path:
    digest = raw if isinstance(raw, str) else hashlib.sha256(raw).hexdigest()
    made = manifest_of(folder, f'[[source]]\nkind = "pypi"\nname = "demo.pkg"\nsha256 = "{digest}"\n', name="demo-pkg")
    return checkout.fetch(made, Home(folder / "home"), report=lambda _: None).root


def as_json(raw: bytes, *, digest: bool = True, url: str = "../../files/demo_pkg-1.0.tar.gz") -> Answer:
    hashes = {"sha256": hashlib.sha256(raw).hexdigest()} if digest else {}
    files = [
        {"filename": "demo_pkg-1.0-py3-none-any.whl", "url": "/files/wheel", "hashes": {}},
        {"filename": "demo_pkg-0.9.tar.gz", "url": "/files/old", "hashes": {}},
        {"filename": "demo_pkg-1.0.tar.gz", "url": url, "hashes": hashes, "upload-time": "2024-05-06T23:59:59.9Z"},
    ]
    return 200, "application/vnd.pypi.simple.v1+json", json.dumps({"files": files}).encode(), None


def blob(raw: bytes, length: int | None = None) -> Answer:
    return 200, "application/octet-stream", raw, length


PAGE, FILE = "/simple/demo-pkg/", "/files/demo_pkg-1.0.tar.gz"


@pytest.fixture
def raw(server: Server, use: Callable[..., None]) -> bytes:
    """Serve a release on the configured index, and return its archive."""
    raw = sdist()
    server.answers = {PAGE: [as_json(raw)], FILE: [blob(raw)]}
    use(server.url + "/simple")
    return raw


def kept(folder: Path) -> list[str]:
    place = folder / "home" / "repos" / "demo-pkg"
    return sorted(p.name for p in place.iterdir() if p.name != ".lock") if place.exists() else []


def test_a_json_index_is_read(tmp_path: Path, server: Server, raw: bytes) -> None:
    assert (fetch(tmp_path, raw) / "demo" / "__init__.py").read_text() == "x = 1\n"
    assert server.asked == [PAGE, FILE]
    fetch(tmp_path, raw)
    assert server.asked == [PAGE, FILE], "what is there is not fetched again"
    record = checkout.find(manifest.load(str(tmp_path / "demo-pkg.toml")), Home(tmp_path / "home"))
    assert record is not None and record.published == date(2024, 5, 6)


@pytest.mark.parametrize("base", ["", '<base href="/files/">'])
def test_an_html_index_is_read(tmp_path: Path, server: Server, use: Callable[..., None], base: str) -> None:
    raw = sdist()
    href = "demo_pkg-1.0.tar.gz" if base else FILE
    page = f"<html>{base}<a href='{href}#sha256={hashlib.sha256(raw).hexdigest()}'>any text</a><a>no link</a></html>"
    server.answers = {PAGE: [(200, "text/html", page.encode(), None)], FILE: [blob(raw)]}
    use(server.url + "/simple/")
    assert (fetch(tmp_path, raw) / "demo").is_dir()


def test_a_wrong_hash_on_the_index_is_reported_without_a_download(tmp_path: Path, server: Server, raw: bytes) -> None:
    with pytest.raises(InputFault) as caught:
        fetch(tmp_path, "0" * 64)
    assert "0" * 64 in str(caught.value) and hashlib.sha256(raw).hexdigest() in str(caught.value)
    assert server.asked == [PAGE] and kept(tmp_path) == []


@pytest.mark.parametrize("digest", [True, False], ids=["index-lies", "index-says-nothing"])
def test_a_wrong_file_hash_is_refused(tmp_path: Path, server: Server, use: Callable[..., None], digest: bool) -> None:
    wanted, served = sdist(), sdist("import evil\n")
    server.answers = {PAGE: [as_json(wanted, digest=digest)], FILE: [blob(served)]}
    use(server.url + "/simple")
    with pytest.raises(InputFault, match=hashlib.sha256(served).hexdigest()):
        fetch(tmp_path, wanted)
    assert kept(tmp_path) == []


def test_server_errors_and_truncated_downloads_are_retried(tmp_path: Path, server: Server, raw: bytes) -> None:
    error = (503, "text/plain", b"", None)
    server.answers = {PAGE: [error, as_json(raw)], FILE: [blob(raw[:50], len(raw)), error, blob(raw)]}
    assert (fetch(tmp_path, raw) / "demo").is_dir()
    assert server.asked == [PAGE] * 2 + [FILE] * 3


def test_a_download_that_stays_truncated_is_a_machine_fault(tmp_path: Path, server: Server, raw: bytes) -> None:
    server.answers[FILE] = [blob(raw[:50], len(raw))]
    with pytest.raises(MachineFault, match="cut off"):
        fetch(tmp_path, raw)
    assert server.asked.count(FILE) == 3 and kept(tmp_path) == []


def test_a_missing_page_is_not_retried_but_the_next_index_is_tried(
    tmp_path: Path, server: Server, use: Callable[..., None]
) -> None:
    raw = sdist()
    server.answers = {"/extra/demo-pkg/": [as_json(raw)], FILE: [blob(raw)]}
    use(server.url + "/simple", server.url + "/extra")
    assert (fetch(tmp_path, raw) / "demo").is_dir()
    assert server.asked == [PAGE, "/extra/demo-pkg/", FILE]


def test_if_no_index_works_the_reasons_and_a_fix_are_named(
    tmp_path: Path, server: Server, use: Callable[..., None]
) -> None:
    server.answers = {"/other/demo-pkg/": [(200, "application/json", b"{", None)]}
    use(server.url.replace("http://", "http://me:secret@") + "/simple", server.url + "/other")
    with pytest.raises(MachineFault) as caught:
        fetch(tmp_path, "0" * 64)
    message = str(caught.value)
    assert "HTTP 404" in message and "PEP 691" in message and 'kind = "local"' in message
    assert "secret" not in message and "\n" not in message


@pytest.mark.parametrize("same_host", [True, False])
def test_a_password_is_sent_only_to_its_own_host(
    tmp_path: Path, server: Server, use: Callable[..., None], same_host: bool
) -> None:
    raw = sdist()
    host = server.url if same_host else server.url.replace("127.0.0.1", "localhost")
    server.answers = {PAGE: [as_json(raw, url=host + FILE)], FILE: [blob(raw)]}
    use(server.url.replace("http://", "http://me:se%40cret@") + "/simple")
    fetch(tmp_path, raw)
    assert server.headers[0]["Authorization"] == "Basic bWU6c2VAY3JldA=="
    assert ("Authorization" in server.headers[1]) is same_host


@pytest.mark.parametrize("listing", [False, True])
def test_an_archive_in_a_links_folder_is_found(tmp_path: Path, use: Callable[..., None], listing: bool) -> None:
    raw = sdist()
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    (wheels / "demo_pkg-1.0.tar.gz").write_bytes(raw)
    if listing:
        (wheels / "index.html").write_text('<a href="demo_pkg-1.0.tar.gz">demo</a>')
    use(links=(str(wheels),))
    assert (fetch(tmp_path, raw) / "demo").is_dir()


def test_a_folder_can_be_an_index(tmp_path: Path, use: Callable[..., None]) -> None:
    raw = sdist()
    place = tmp_path / "simple" / "demo-pkg"
    place.mkdir(parents=True)
    (place / "demo_pkg-1.0.tar.gz").write_bytes(raw)
    use((tmp_path / "simple").as_uri())
    assert (fetch(tmp_path, raw) / "demo").is_dir()


@pytest.mark.slow
def test_the_configuration_of_pip_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://packages.invalid/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "file:///extra")
    monkeypatch.setenv("PIP_FIND_LINKS", "/links")
    monkeypatch.setenv("PIP_CERT", "/certificates.pem")
    pypi.configured.cache_clear()
    try:
        found = pypi.configured()
    finally:
        pypi.configured.cache_clear()
    assert found.indices == ("https://packages.invalid/simple", "file:///extra")
    assert found.links == ("/links",) and found.certificates == "/certificates.pem"


@pytest.mark.network
def test_a_shipped_repository_is_fetched_from_the_real_index(tmp_path: Path) -> None:
    pypi.configured.cache_clear()
    found = checkout.fetch(manifest.load("fasta2a"), Home(tmp_path), report=lambda _: None)
    assert (found.root / "fasta2a" / "__init__.py").is_file() and found.source == "pypi:fasta2a==2.1.1"
